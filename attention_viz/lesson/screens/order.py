"""Order: attention needs positions, and recurrent networks read in order."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import plotly.graph_objects as go
import torch

from attention_viz.edits.effects import moved_output, moved_rows
from attention_viz.lesson.figures.panels import Panel, panels
from attention_viz.lesson.lesson import Ask, Control, Lesson, Shown, line_spots
from attention_viz.lesson.links import asking_position
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.translation import translate
from attention_viz.lesson.words import in_words, offered, quoted
from attention_viz.operation import masks
from attention_viz.scratch.model import Scratch
from attention_viz.trace.spelling import weight_text
from attention_viz.trace.splitting import split_words
from attention_viz.trace.trace import Trace
from attention_viz.views import changed_outputs, paths
from attention_viz.views.style.wording import share_text, token_names

_D_MODEL, _HEADS = 8, 2
# Smaller differences come from the order of adding numbers alone.
_NOTHING = 1e-4
_OPTIONS = {
    "none": "without positions",
    "causal": "only a causal mask",
    "sinusoidal": "with positions",
    "trained": "a trained model",
}
_WHICH = {
    "none": "We ran a small module of ours, without positions.",
    "causal": "We ran a small module of ours, without positions but with a causal mask.",
    "sinusoidal": "We ran a small module of ours, with positions.",
    "trained": "We ran {model}, which has learned positions.",
}
_QUESTIONS = {
    "none": "Attention without positions reads the sentence backwards. What becomes of the output of “{word}”?",
    "causal": "With a causal mask and no positions, attention reads the sentence backwards. What becomes of the output "
    "of “{word}”?",
    "sinusoidal": "With positions, attention reads the sentence backwards. What becomes of the output of “{word}”?",
    "trained": "A trained model reads the sentence backwards. What becomes of the output of “{word}”?",
}


class _Backwards(NamedTuple):
    """A run, one of the reversed sentence with its outputs in the old order, and each token's place in that one."""

    before: Trace
    after: Trace
    places: Sequence[int]


def _turned(scene: Scene) -> _Backwards | None:
    """Run the reversed sentence too; None if its tokens differ."""
    before = scene.trained()
    turned = scene.run(scene.model, " ".join(split_words(scene.read)[::-1]))
    places = _places(before, turned)
    return None if places is None else _Backwards(before, replace(before, output=turned.output[places]), places)


def _places(before: Trace, turned: Trace) -> list[int] | None:
    """Reverse the words, but not the subword tokens within a word."""
    (old, first), (new, then) = ((trace.query_tokens(), _pieces(trace)) for trace in (before, turned))
    mirrored = then[::-1]
    if [[old.numbers[at] for at in word] for word in first] != [[new.numbers[at] for at in word] for word in mirrored]:
        return None
    found = {at: to for word, other in zip(first, mirrored, strict=True) for at, to in zip(word, other, strict=True)}
    marks, others = ([at for at, word in enumerate(one.words) if word is None] for one in (old, new))
    found |= dict(zip(marks, others, strict=False))
    return [found[at] for at in range(len(old))] if len(found) == len(old) == len(new) else None


def _pieces(trace: Trace) -> list[list[int]]:
    found: dict[int, list[int]] = {}
    for at, word in enumerate(trace.query_tokens().words):
        if word is not None:
            found.setdefault(word, []).append(at)
    return list(found.values())


def _both(scene: Scene, positions: str) -> _Backwards:
    if positions == "trained":
        found = _turned(scene)
        assert found is not None  # else it isn't an option
        return found
    words = scene.words
    scratch = Scratch(_D_MODEL, _HEADS, scene.seed, "sinusoidal" if positions == "sinusoidal" else "none")
    allowed = masks.causal(len(words)) if positions == "causal" else None
    before, turned = (scratch.run(" ".join(some), allowed) for some in (words, words[::-1]))
    return _Backwards(before, replace(before, output=turned.output.flip(0)), range(len(words))[::-1])


def _ask_positions(scene: Scene) -> Ask:
    positions = _CONTROL_POSITIONS.value(scene)
    run = _both(scene, positions)
    at, names = _moving(scene, run), run.before.query_tokens().names
    there = run.places[at]
    # From the word's own old output, and from that of the word whose place it takes.
    own, other = (float(moved_rows(run.before.output[[one]], run.after.output[[at]])) for one in (at, there))
    own = own if own >= _NOTHING else 0.0
    right = 1 if own else 0
    word, by = in_words(names[at]), share_text(own)
    options = [translate("it stays the same"), translate("it changes")]
    shown = ["", ""]
    shown[right] = translate("moves by {part}", part=by)
    reasons = [
        translate("With positions, the words’ vectors change when their places do.") if right else "",
        "" if right else translate("Without positions, the same words have the same weights and values in any order."),
    ]
    if there != at:
        options.append(translate("it is that of ‘{word}’", word=in_words(names[there])))
        shown.append(translate("{part} away", part=share_text(other)))
        reasons.append(
            translate("Only the position comes from there; the word is still “{word}”.", word=word)
            if right
            else translate("Its query is still that of “{word}”, wherever it is.", word=word)
        )
    return Ask(
        translate(_QUESTIONS[positions], word=word),
        translate("Read backwards, the output of “{word}” stays the same", word=word)
        if right == 0
        else translate("Read backwards, the output of “{word}” moves by {part}", word=word, part=by),
        translate("{model}: distance from the old output, divided by its length", model=scene.called)
        if positions == "trained"
        else translate("our own module, with random numbers: distance from the old output, divided by its length"),
        tuple(options),
        tuple(float(one == right) for one in range(len(options))),
        shown=tuple(shown),
        premise=translate("Backwards, it reads: “{turned}”.", turned=" ".join(map(in_words, _words(scene)[::-1]))),
        reasons=tuple(reasons),
    )


def _moving(scene: Scene, run: _Backwards) -> int:
    """Return the asked word's token, or, if it stays in its place, the first that doesn't."""
    tokens = run.before.query_tokens()
    asked = asking_position(scene) if _CONTROL_POSITIONS.value(scene) == "trained" else scene.asking
    return next((at for at in (asked, *tokens.counted) if run.places[at] != at), asked)


def _words(scene: Scene) -> tuple[str, ...]:
    trained = _CONTROL_POSITIONS.value(scene) == "trained"
    return tuple(split_words(scene.read)) if trained else scene.words


def _show_positions(scene: Scene) -> Shown:
    positions = _CONTROL_POSITIONS.value(scene)
    run = _both(scene, positions)
    moved, labels = moved_output(run.before, run.after), run.before.query_tokens().names
    shown = list(run.before.query_tokens().counted) or list(range(len(labels)))
    most = shown[int(moved[shown].argmax())]
    words = [in_words(word) for word in _words(scene)]
    facts = {
        "sentence": " ".join(words),
        "turned": " ".join(words[::-1]),
        "which": f"{translate(_WHICH[positions], model=scene.called)}{_sees(positions, moved[shown].tolist())}",
        "moved": _moved_words(labels[most], float(moved[most])),
    }
    figure = changed_outputs(run.before, run.after, theme=scene.theme) if positions == "trained" else _compared(scene)
    return Shown(facts, figure, f"{facts['which']} {facts['moved']}", drawn=positions != "trained")


def _sees(positions: str, moved: Sequence[float]) -> str:
    """Say why a causal mask moves outputs; "" for other settings."""
    if positions != "causal" or len(moved) == 1:
        return ""
    why = translate("Backwards, a word sees the words after it and no longer those before it.")
    return f" {why} {translate('So no output stays the same.')}" if min(moved) >= _NOTHING else f" {why}"


def _compared(scene: Scene) -> go.Figure:
    """Draw how far each word's output moves in each setting of our own module."""
    settings = [name for name in _OPTIONS if name != "trained"]
    moved = [moved_output(run.before, run.after).tolist() for run in (_both(scene, name) for name in settings)]
    title = translate("Change of each word’s output, divided by its length")
    rows, words = [translate(_OPTIONS[name]) for name in settings], [*offered(scene.words).values()]
    chosen = settings.index(_CONTROL_POSITIONS.value(scene))
    return panels([[Panel(title, rows, words, moved, chosen)]], scene.theme)


def _moved_words(word: str, by: float) -> str:
    if by < _NOTHING:
        return translate("No output changes by more than rounding.")
    return translate(
        "The output of “{word}” moves most: by {part} of its length.", word=in_words(word), part=share_text(by)
    )


def _options(scene: Scene) -> dict[str, str]:
    names = [name for name in _OPTIONS if name != "trained" or _turned(scene) is not None]
    return {name: translate(_OPTIONS[name]) for name in names}


_CONTROL_POSITIONS = Control("Setting", _options, lambda scene: "none")


_D_MODEL_RECURRENT = 8
# The heights of the two lines of words in the figure.
_RECURRENT, _DIRECT = 1.0, 0.0


def left_of_the_first(scene: Scene) -> list[float]:
    """Return each state's sensitivity to the first word, relative to the first state's.

    The norm of ∂h_t / ∂x_0 in h_t = tanh(W h_{t−1} + U x_t) (Elman 1990), with our module's W_Q and W_K as W and U.
    """
    scratch = Scratch(_D_MODEL_RECURRENT, 1, scene.seed, positions="none")
    known = scratch.projections()
    w, u = known["query"].weight, known["key"].weight
    words = scratch.embed(scene.words)

    def states(first: torch.Tensor) -> torch.Tensor:
        state, found = torch.zeros(_D_MODEL_RECURRENT), []
        for x in (first, *words[1:]):
            state = torch.tanh(state @ w + x @ u)
            found.append(state)
        return torch.stack(found)

    moved = torch.autograd.functional.jacobian(states, words[0])
    assert isinstance(moved, torch.Tensor)
    sizes = moved.flatten(1).norm(dim=-1)
    return (sizes / sizes[0]).tolist()


def _ask_recurrent(scene: Scene) -> Ask:
    count = 1 + int(_CONTROL_RECURRENT.value(scene))
    rounds = sorted({1, (count + 1) // 2, count, count**2})
    named = {1: translate("attention"), count: translate("recurrent network")}
    if count == 1:
        named = {1: translate("both")}
    reasons = {
        count**2: translate("Each word needs one new state; nothing compares pairs of words."),
        (count + 1) // 2: translate("No word can be left out: each state needs the one before."),
        1: translate("That is attention; a state needs the one before, so states come one after the other."),
        count: "",
    }
    return Ask(
        translate(
            "With as many processors as you like, how many rounds does a recurrent network need to reach “{word}”?",
            word=in_words(scene.names[count - 1]),
        ),
        translate("{rounds} for a recurrent network, one per word; 1 for attention", rounds=_rounds(count)),
        translate("counted, up to word {count}", count=count),
        tuple(map(_rounds, rounds)),
        tuple(float(one == count) for one in rounds),
        shown=tuple(named.get(one, "") for one in rounds),
        reasons=tuple(reasons[one] for one in rounds),
    )


def _rounds(count: int) -> str:
    return translate("1 round") if count == 1 else translate("{count} rounds", count=count)


def _steps(count: int) -> str:
    return translate("1 step") if count == 1 else translate("{count} steps", count=count)


def _show_recurrent(scene: Scene) -> Shown:
    end = int(_CONTROL_RECURRENT.value(scene))
    trace = Scratch(_D_MODEL_RECURRENT, 1, scene.seed, positions="none").trace(scene.text)
    facts = {
        **quoted(scene.names, first=0, last=end),
        "hops": _steps(end),
        "one": _steps(min(end, 1)),
        "left": share_text(left_of_the_first(scene)[end]),
        "weight": weight_text(float(trace.weights(0, 0)[end, 0])),
    }
    says = translate(
        "From “{first}” to “{last}”: {hops} one after the other, {one} by attention.",
        **{name: facts[name] for name in ("first", "last", "hops", "one")},
    )
    names = token_names(trace.query_tokens())
    spots = line_spots(range(len(names)), names, _CONTROL_RECURRENT.options(scene).keys(), (_RECURRENT, _DIRECT))
    return Shown(facts, paths(trace, 0, end, theme=scene.theme), says, spots)


def _far(scene: Scene) -> dict[str, str]:
    words = offered(scene.words)
    return {at: word for at, word in words.items() if at != "0"} or words


_CONTROL_RECURRENT = Control("Distant word", _far, lambda scene: str(len(scene.words) - 1), words=True)

LESSONS = {
    "positions": Lesson(
        "Positions and order",
        6,
        _ask_positions,
        _show_positions,
        _CONTROL_POSITIONS,
        "permute",
        deeper=("steps",),
        idea=(
            "A word's output adds up the values of all words, each times its weight. Weights and values come from the "
            "words' vectors. Models can add each word's position, its place in the text, to its vector; here you can "
            "leave that out."
        ),
    ),
    "recurrent": Lesson(
        "Recurrent against parallel",
        5,
        _ask_recurrent,
        _show_recurrent,
        _CONTROL_RECURRENT,
        "path",
        idea=(
            "A recurrent network carries a vector along the text, its state. At each word, it computes a new state "
            "from the old one and the word. In a round, processors compute everything that needn't wait."
        ),
    ),
}
