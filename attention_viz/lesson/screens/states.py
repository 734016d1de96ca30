"""Layers without a softmax: a running sum that costs n, and the delta rule that erases before it writes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
import torch
from torch import Tensor

from attention_viz.lesson.lesson import Ask, CatalogueHead, Control, Lesson, Shown, short
from attention_viz.lesson.panels import Panel, panels, trimmed
from attention_viz.lesson.recalled import MODEL, NAMES, OPENING, RULES, STREAM, Recalled
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.tasks.drawing import Draw
from attention_viz.lesson.without_softmax import crowded, running, states
from attention_viz.lesson.words import in_words, offered, signed, signs, texts
from attention_viz.operation.token_mixer import TokenMixer

# Few words and numbers, so that each cell can be worked out by hand.
_MOST_WORDS, _WIDTH = 5, 2
_DECAYS = ("0.25", "0.5", "0.9", "1")
_LATER = 4
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
    ones = [[1.0]] * (1 + _LATER)
    left = float(running(ones, ones, ones, float(decay)).weights[-1, 0])
    wrong = {float(decay) / _LATER: f"{decay} ÷ {_LATER}", float(decay): "one word later", 0.0: "nothing"}
    why = {**wrong, left: " × ".join([decay] * _LATER)}
    options = sorted(why)
    return Ask(
        f"A layer multiplies its memory by {decay} before each new word. How much of the first word is left "
        f"{_LATER} words later?",
        f"{trimmed(left, 6)} of the first word is left",
        "computed: the weight of the first word in the row of the last",
        tuple(trimmed(one, 6) for one in options),
        tuple(float(one == left) for one in options),
        shown=tuple(why[one] for one in options),
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
        "overlap": signed(crowded(_WIDTH + 1), 1),
    }
    says = (
        f"With a decay of {decay}, the row of weights gives “{word}” the output {facts['by_rows']}; the query times "
        f"the state gives {facts['by_state']}."
    )
    return Shown(facts, _drawn(small, scene), says, drawn=True)


def _costs() -> dict[str, str]:
    """Count multiplications: n² d for all pairs, n d² for the state."""
    found: dict[str, str] = {}
    for name, count in zip(("short", "middle", "long"), _COUNTED, strict=True):
        pairs, carried = count**2 * _WIDE, count * _WIDE**2
        found |= {name: f"{count:,}", f"{name}_pairs": _large(pairs), f"{name}_state": _large(carried)}
    return found


def _large(number: int) -> str:
    """Write a large number in millions or billions, exactly."""
    for size, name in ((10**9, "billion"), (10**6, "million")):
        if number >= size:
            return f"{number / size:,g} {name}"
    return f"{number:,}"


def _vector(numbers: Sequence[float]) -> str:
    return f"({', '.join(map(trimmed, numbers))})"


def _drawn(small: _Small, scene: Scene) -> go.Figure:
    mixer, names = small.mixer, [*offered(small.words).values()]
    ahead = torch.ones(mixer.shape, dtype=torch.bool).triu(1)
    word = short(small.words[small.at])
    entries = [f"{c}" for c in range(_WIDTH)]
    rows = [f"{part} {c}" for part in ("query", "key", "value") for c in entries]
    numbers = torch.cat([mixer.query, mixer.key, mixer.value], dim=-1).mT
    return panels(
        (
            (Panel("Whole numbers from a seed", rows, names, numbers.tolist()),),
            (
                Panel(
                    "Weights: query · key × decay, a row per word",
                    names,
                    names,
                    mixer.weights.masked_fill(ahead, torch.nan).tolist(),
                    small.at,
                    digits=4,
                ),
            ),
            (
                Panel(
                    f"State after {word}",
                    [f"key {c}" for c in entries],
                    [f"value {c}" for c in entries],
                    small.states[small.at].tolist(),
                    digits=4,
                ),
                Panel(
                    f"Output of {word}",
                    ["weights", "state"],
                    [f"value {c}" for c in entries],
                    [small.by_rows, small.by_state],
                    digits=4,
                ),
            ),
        ),
        scene.theme,
    )


def _words(scene: Scene) -> tuple[Mapping[str, str], str]:
    small = small_example(scene)
    return offered(small.words), str(small.at)


_CONTROL_LINEAR = Control("Decay", lambda scene: {one: one for one in _DECAYS}, lambda scene: "0.5", ordered=True)


# Two colours are alike if the smaller weight is more than this part of the other.
_ALIKE = 0.5
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
    options = (f"mostly “{old}”", f"mostly “{new}”", "both alike")
    shown = f"{old} {trimmed(numbers[0], 3)}, {new} {trimmed(numbers[1], 3)}"
    return Ask(
        f"“{found.text}” A layer keeps each colour in its state. If {RULES[rule].clause}, what does the question get?",
        f"Weights at the question: {shown}",
        f"the toy {MODEL}, layer {layer}, head {head}: weight of each colour for “?”",
        options,
        tuple(float(at == right) for at in range(len(options))),
        shown=tuple(shown if at == right else "" for at in range(len(options))),
        place=CatalogueHead(MODEL, found.text, layer, head, stream=STREAM),
    )


def _show_delta(scene: Scene) -> Shown:
    found, rule = _recalled(scene), _CONTROL_DELTA.value(scene)
    twice, (layer, head) = Recalled(scene, OPENING), found.place
    (old, new), name = twice.own, NAMES[OPENING]
    once_written = next(at for at in range(len(NAMES)) if at != OPENING)
    other = Recalled(scene, once_written)
    facts = {
        "formula.delta": _FORMULAS_DELTA.get(scene.notation, _FORMULAS_DELTA["rows"]),
        **texts(text=found.text, name=name, old=old, new=new, model=MODEL, layer=layer, head=head),
        **texts(
            rule=RULES[rule].clause,
            other=NAMES[once_written],
            only=other.own[0],
            kept=trimmed(other.got(rule, other.own)[0], 3),
        ),
    }
    facts |= signs(2, same=twice.alike(old, new), apart=twice.alike(old, other.own[0]))
    for one in RULES:
        facts[f"{one}_old"], facts[f"{one}_new"] = (trimmed(number, 3) for number in twice.got(one, twice.own))
    got = ", ".join(f"{colour} {trimmed(one, 3)}" for colour, one in zip(found.colours, found.got(rule), strict=True))
    says = f"Weights at the question if {RULES[rule].clause}: {got}."
    return Shown(facts, _drawn_delta(found, rule, scene), says)


def _drawn_delta(found: Recalled, rule: str, scene: Scene) -> go.Figure:
    mixer, words = found.by_rule(rule), [*offered(found.words).values()]
    weights = mixer.weights.masked_fill(torch.ones(mixer.shape, dtype=torch.bool).triu(1), torch.nan)
    rules = [one.label for one in RULES.values()]
    return panels(
        (
            (
                Panel(
                    f"Weights if {RULES[rule].clause}, a row per word", words, words, weights.tolist(), len(words) - 1
                ),
            ),
            (
                Panel(
                    f"Each colour’s weight for {short(NAMES[found.name])}",
                    rules,
                    [*found.colours],
                    [found.got(one) for one in RULES],
                    [*RULES].index(rule),
                    digits=3,
                ),
            ),
        ),
        scene.theme,
    )


def _names(scene: Scene) -> tuple[Mapping[str, str], str]:
    return offered(NAMES), str(_recalled(scene).name)


_CONTROL_DELTA = Control("Rule", lambda scene: {name: one.label for name, one in RULES.items()}, lambda scene: "adds")

LESSONS = {
    "linear": Lesson(
        "Attention without a softmax", 7, _ask_linear, _show_linear, _CONTROL_LINEAR, "state", words=_words
    ),
    "delta": Lesson("Write, keep, erase", 6, _ask_delta, _show_delta, _CONTROL_DELTA, "erase", ("", "heads"), _names),
}
