"""Layers without a softmax: a running sum that costs n, and the delta rule that erases before it writes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
import torch
from torch import Tensor

from attention_viz.lesson.figures.panels import Panel, panels, trimmed
from attention_viz.lesson.lesson import Ask, CatalogueHead, Control, Lesson, Shown
from attention_viz.lesson.recalled import MODEL, NAMES, OPENING, RULES, STREAM, Recalled
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.tasks.drawing import Draw
from attention_viz.lesson.translation import grouped, translate
from attention_viz.lesson.without_softmax import crowded, running, states
from attention_viz.lesson.words import in_words, offered, signed, signs, texts
from attention_viz.operation.token_mixer import TokenMixer

# Few words and numbers, so that each cell can be worked out by hand.
_MOST_WORDS, _WIDTH = 5, 2
_DECAYS = ("0.25", "0.5", "0.9", "1")
_NO_DECAY = _DECAYS[-1]
# The question's state, one number per key, and the value that a new word adds to both.
_HELD, _NEW = (3, 5), 2
# Of one head, for counting multiplications; and texts that are shorter, longer and much longer than it is wide.
_WIDE, _COUNTED = 64, (10, 1_000, 100_000)

_ORDERS = {
    "rows": r"\sum_{j \le i} (q_i \cdot k_j)\, v_j = q_i S_i, \quad S_i = \sum_{j \le i} k_j^{\top} v_j",
    "columns": r"\sum_{j \le i} (q_i \cdot k_j)\, v_j = S_i q_i, \quad S_i = \sum_{j \le i} v_j k_j^{\top}",
}


@dataclass(frozen=True, eq=False)
class _Small:
    """The first words with small whole numbers, at the asked word."""

    words: tuple[str, ...]
    at: int
    mixer: TokenMixer
    states: Tensor

    @property
    def by_state(self) -> list[float]:
        """The asked word's output, its query × the state."""
        return (self.mixer.query[self.at] @ self.states[self.at]).tolist()

    @property
    def by_rows(self) -> list[float]:
        """The same from the whole row of weights."""
        return (self.mixer.weights[self.at] @ self.mixer.value).tolist()


def small_example(scene: Scene) -> _Small:
    """Draw queries, keys and values for the first words."""
    words = scene.words[:_MOST_WORDS]
    draw, decay = Draw("linear", scene.seed, " ".join(words)), float(_CONTROL_LINEAR.value(scene))
    query, key, value = ([draw.vector(_WIDTH, 2) for _ in words] for _ in range(3))
    at = scene.word if scene.word is not None and scene.word < len(words) else len(words) - 1
    return _Small(words, at, running(query, key, value, decay), states(key, value, decay))


def _ask_linear(scene: Scene) -> Ask:
    decay = _CONTROL_LINEAR.value(scene)
    first, second = _HELD
    kept = float(decay) * first
    after = states([[1, 1]], [[_NEW]])[0][:, 0] + float(decay) * torch.tensor([first, second])
    right = float(torch.tensor([1.0, 0.0], dtype=torch.float64) @ after)
    # What a slip reads, and its working.
    read = {
        kept: trimmed(first) if decay == _NO_DECAY else f"{first} × {decay}",
        float(_NEW): str(_NEW),
        float(after.sum()): " + ".join(map(trimmed, after.tolist())),
        right: f"{trimmed(kept)} + {_NEW}",
    }
    reasons = {
        kept: translate("That is the old state alone; the new word adds to it."),
        float(_NEW): translate("That is the new word alone; the old state counts, too."),
        float(after.sum()): translate("That adds both numbers of the state; the query (1, 0) reads only the first."),
        right: "",
    }
    options = sorted(read)
    plain = translate(
        "If a value is one number, the state is a vector: ({first}, {second}).", first=first, second=second
    )
    return Ask(
        translate("What does the query (1, 0) read from the state now?"),
        translate(
            "The query (1, 0) reads {right}: {kept} from before and {new} of the new word",
            right=trimmed(right),
            kept=trimmed(kept),
            new=_NEW,
        ),
        translate("worked out: query · state"),
        tuple(map(trimmed, options)),
        tuple(float(one == right) for one in options),
        shown=tuple(read[one] for one in options),
        premise=f"{plain} {_new_word(decay)}",
        reasons=tuple(reasons[one] for one in options),
    )


def _new_word(decay: str) -> str:
    if decay == _NO_DECAY:
        return translate("A new word adds its key (1, 1) times its value, {new}.", new=_NEW)
    return translate(
        "A new word multiplies it by the decay, {decay}, and adds its key (1, 1) times its value, {new}.",
        decay=decay,
        new=_NEW,
    )


def _show_linear(scene: Scene) -> Shown:
    small, decay = small_example(scene), _CONTROL_LINEAR.value(scene)
    row, word = small.mixer.weights[small.at, : small.at + 1], in_words(small.words[small.at])
    facts = {
        **texts(word=word, d=_WIDTH, decay=decay, wide=_WIDE),
        "formula.orders": _ORDERS.get(scene.notation, _ORDERS["rows"]),
        "by_rows": _vector(small.by_rows),
        "by_state": _vector(small.by_state),
        "row": ", ".join(map(trimmed, row.tolist())),
        "sum": trimmed(float(row.sum())),
        **_costs(),
        "keys": str(_WIDTH + 1),
        "angle": str(360 // (_WIDTH + 1)),
        "overlap": signed(crowded(_WIDTH + 1), 1),
    }
    says = translate(
        "With a decay of {decay}, the row of weights gives “{word}” the output {by_rows}; the query times the state "
        "gives {by_state}.",
        **{name: facts[name] for name in ("decay", "word", "by_rows", "by_state")},
    )
    return Shown(facts, _drawn(small, scene), says, drawn=True)


def _costs() -> dict[str, str]:
    """Count multiplications: 2 n² d for all pairs, 2 n d² for writing and reading the state."""
    found: dict[str, str] = {}
    for name, count in zip(("short", "middle", "long"), _COUNTED, strict=True):
        pairs, carried = 2 * count**2 * _WIDE, 2 * count * _WIDE**2
        found |= {name: grouped(count), f"{name}_pairs": _large(pairs), f"{name}_state": _large(carried)}
    return found


def _large(number: int) -> str:
    """Write a large number in millions or billions, exactly."""
    if number >= 10**9:
        return translate("{number} billion", number=grouped(number / 10**9, ",g"))
    if number >= 10**6:
        return translate("{number} million", number=grouped(number / 10**6, ",g"))
    return grouped(number)


def _vector(numbers: Sequence[float]) -> str:
    return f"({', '.join(map(trimmed, numbers))})"


def _drawn(small: _Small, scene: Scene) -> go.Figure:
    mixer, names = small.mixer, [*offered(small.words).values()]
    ahead = torch.ones(mixer.shape, dtype=torch.bool).triu(1)
    word = in_words(small.words[small.at])
    entries = [f"{c}" for c in range(_WIDTH)]
    key = [translate("key {at}", at=at) for at in entries]
    value = [translate("value {at}", at=at) for at in entries]
    rows = [*(translate("query {at}", at=at) for at in entries), *key, *value]
    numbers = torch.cat([mixer.query, mixer.key, mixer.value], dim=-1).mT
    weights = mixer.weights.masked_fill(ahead, torch.nan).tolist()
    state = small.states[small.at].tolist()
    ways, both = [translate("by weights"), translate("by state")], [small.by_rows, small.by_state]
    return panels(
        (
            (Panel(translate("Whole numbers from a seed"), rows, names, numbers.tolist()),),
            (
                Panel(
                    translate("Weights: query · key × decay, a row per word"), names, names, weights, small.at, digits=4
                ),
            ),
            (
                Panel(translate("State after “{word}”", word=word), key, value, state, digits=4),
                Panel(translate("Output of “{word}”", word=word), ways, value, both, digits=4),
            ),
        ),
        scene.theme,
    )


def _words(scene: Scene) -> tuple[Mapping[str, str], str]:
    small = small_example(scene)
    return offered(small.words), str(small.at)


_CONTROL_LINEAR = Control("Decay", lambda scene: {one: one for one in _DECAYS}, lambda scene: _NO_DECAY, ordered=True)


# Two colours are alike if the smaller weight is more than this part of the other.
_ALIKE = 0.75
_QUESTIONS = {
    "adds": "A layer only adds to its state. Which colour does the question read?",
    "half": "A layer uses half its β: it erases less of a key’s old value, and adds less of the new. "
    "Which colour does the question read?",
    "erases": "A layer erases a key’s old value before it adds the new one. Which colour does the question read?",
}
# By option: mostly the old value, mostly the new one, both alike; none for the right one.
_REASONS = {
    "adds": (*["Nothing is erased, so both values stay, with the same key."] * 2, ""),
    "half": ("Part of the old value is erased, none of the new one.", "", "That is so if nothing is erased."),
    "erases": ("The old value is erased before the new one comes.", "", "That is so if nothing is erased."),
}
_FORMULAS_DELTA = {
    "rows": r"S_i = S_{i-1} + \beta_i\, k_i^{\top} (v_i - k_i S_{i-1})",
    "columns": r"S_i = S_{i-1} + \beta_i\, (v_i - S_{i-1} k_i)\, k_i^{\top}",
}


def _recalled(scene: Scene) -> Recalled:
    return Recalled(scene, scene.word if scene.word is not None and scene.word < len(NAMES) else OPENING)


def _ask_delta(scene: Scene) -> Ask:
    # A name with one colour has nothing to replace.
    found, rule = Recalled(scene, OPENING), _CONTROL_DELTA.value(scene)
    (old, new), (layer, head) = found.own, found.place
    numbers = found.got(rule, found.own)
    sizes = [abs(one) for one in numbers]
    right = 2 if min(sizes) > _ALIKE * max(sizes) else sizes.index(max(sizes))
    options = (
        translate("mostly {colour}", colour=old),
        translate("mostly {colour}", colour=new),
        translate("both alike"),
    )
    shown = f"{old} {trimmed(numbers[0], 3)}, {new} {trimmed(numbers[1], 3)}"
    return Ask(
        translate(_QUESTIONS[rule]),
        translate("The question reads both alike: {weights}", weights=shown)
        if right == len(sizes)
        else translate("The question reads mostly {colour}: {weights}", colour=found.own[right], weights=shown),
        translate(
            "the toy “{model}”, layer {layer}, head {head}: weight of each colour for “?”",
            model=MODEL,
            layer=layer,
            head=head,
        ),
        options,
        tuple(float(at == right) for at in range(len(options))),
        shown=tuple(shown if at == right else "" for at in range(len(options))),
        place=CatalogueHead(MODEL, found.text, layer, head, stream=STREAM),
        premise=translate(
            "“{old}” and “{new}” are written for the same key, that of “{name}”. A weight here may be negative. As "
            "values have signs, too, a minus alone says little: compare sizes.",
            old=old,
            new=new,
            name=NAMES[OPENING],
        ),
        reasons=tuple(map(translate, _REASONS[rule])) if not _REASONS[rule][right] else (),
    )


def _show_delta(scene: Scene) -> Shown:
    found, rule = _recalled(scene), _CONTROL_DELTA.value(scene)
    twice, (layer, head) = Recalled(scene, OPENING), found.place
    (old, new), name = twice.own, NAMES[OPENING]
    other = Recalled(scene, next(at for at in range(len(NAMES)) if at != OPENING))
    only = other.own[0]
    facts = {
        "formula.delta": _FORMULAS_DELTA.get(scene.notation, _FORMULAS_DELTA["rows"]),
        **texts(text=found.text, name=name, old=old, new=new, model=MODEL, layer=layer, head=head, only=only),
        "other": translate(
            "With the rule “{rule}”, “{only}” has {kept} for “{other}”.",
            rule=translate(RULES[rule].label),
            only=only,
            kept=trimmed(other.got(rule, other.own)[0], 3),
            other=NAMES[other.name],
        ),
        **signs(2, same=twice.alike(old, new), apart=twice.alike(old, only)),
    }
    for one in RULES:
        facts[f"{one}_old"], facts[f"{one}_new"] = (trimmed(number, 3) for number in twice.got(one, twice.own))
    got = ", ".join(f"{colour} {trimmed(one, 3)}" for colour, one in zip(found.colours, found.got(rule), strict=True))
    says = translate(
        "Weights at the question with the rule “{rule}”: {weights}.", rule=translate(RULES[rule].label), weights=got
    )
    return Shown(facts, _drawn_delta(found, rule, scene), says)


def _drawn_delta(found: Recalled, rule: str, scene: Scene) -> go.Figure:
    mixer, words = found.by_rule(rule), [*offered(found.words).values()]
    weights = mixer.weights.masked_fill(torch.ones(mixer.shape, dtype=torch.bool).triu(1), torch.nan)
    title = translate("Weights with the rule “{rule}”, a row per word", rule=translate(RULES[rule].label))
    below = translate("Each colour’s weight for “{name}”", name=NAMES[found.name])
    rules, colours = [translate(one.label) for one in RULES.values()], [*found.colours]
    got = [found.got(one) for one in RULES]
    return panels(
        (
            (Panel(title, words, words, weights.tolist(), len(words) - 1),),
            (Panel(below, rules, colours, got, [*RULES].index(rule), digits=3),),
        ),
        scene.theme,
    )


def _names(scene: Scene) -> tuple[Mapping[str, str], str]:
    return offered(NAMES), str(_recalled(scene).name)


_CONTROL_DELTA = Control(
    "Rule", lambda scene: {name: translate(one.label) for name, one in RULES.items()}, lambda scene: "half"
)

LESSONS = {
    "linear": Lesson(
        "Attention without a softmax",
        7,
        _ask_linear,
        _show_linear,
        _CONTROL_LINEAR,
        "state",
        words=_words,
        idea=(
            "Linear attention keeps no keys and values, only a state of fixed size. Each word adds its key times its "
            "value, and a query reads the state by a product. A decay can shrink the state before each new word."
        ),
    ),
    "delta": Lesson(
        "Write, keep, erase",
        6,
        _ask_delta,
        _show_delta,
        _CONTROL_DELTA,
        "erase",
        ("", "heads"),
        _names,
        idea=(
            "A state stores values by their keys. If a key comes again, a layer can add the new value to the old. "
            "Or it replaces a part, β (the delta rule): it takes away β times the old value and adds β times the new. "
            "Here β varies by word."
        ),
    ),
}
