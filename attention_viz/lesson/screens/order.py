"""Order: attention needs positions, and recurrent networks read in order."""

from dataclasses import replace

import torch

from attention_viz.edits.effects import moved_output
from attention_viz.lesson.lesson import Ask, Control, Lesson, Shown, line_spots, short
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.words import counted, in_words, offered, quoted
from attention_viz.scratch.model import Scratch
from attention_viz.trace.spelling import weight_text
from attention_viz.trace.splitting import split_words
from attention_viz.trace.trace import Trace
from attention_viz.views import changed_outputs, paths
from attention_viz.views.style.wording import token_names

_D_MODEL, _HEADS = 8, 2
# Smaller differences come from the order of adding numbers alone.
_NOTHING = 1e-4
_OPTIONS = {
    "trained": "in a trained model",
    "sinusoidal": "in our own, with positions",
    "none": "in our own, without positions",
}
_SEED = "(its numbers come from a seed, so look only at whether they change)"
_WHICH = {
    "sinusoidal": f"in a small module of ours with positions {_SEED}",
    "none": f"in a small module of ours without positions {_SEED}",
}


def _turned(scene: Scene) -> tuple[Trace, Trace] | None:
    """Run the reversed sentence too; None if its tokens differ."""
    before = scene.trained()
    turned = scene.run(scene.model, " ".join(split_words(scene.read)[::-1]))
    places = _places(before, turned)
    return None if places is None else (before, replace(before, output=turned.output[places]))


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


def _both(scene: Scene, positions: str) -> tuple[Trace, Trace]:
    if positions == "trained":
        found = _turned(scene)
        assert found is not None  # else it isn't an option
        return found
    scratch = Scratch(_D_MODEL, _HEADS, scene.seed, positions)
    before, turned = scratch.trace(scene.text), scratch.trace(" ".join(scene.words[::-1]))
    return before, replace(before, output=turned.output.flip(0))


def _ask_positions(scene: Scene) -> Ask:
    positions = _CONTROL_POSITIONS.value(scene)
    before, after = _both(scene, positions)
    changes = [one if one >= _NOTHING else 0.0 for one in moved_output(before, after).tolist()]
    tokens = before.query_tokens()
    shown = tokens.counted or range(len(tokens))
    moved, labels = [changes[at] for at in shown], tuple(tokens.names[at] for at in shown)
    most = max(range(len(moved)), key=moved.__getitem__)
    found = f"{short(labels[most])} changes most, by {moved[most]:.0%}" if moved[most] else "No output changes"
    whose = scene.called if positions == "trained" else "our own module with random numbers"
    return Ask(
        f"The sentence is turned around, {_OPTIONS[positions]}. Whose output changes most?",
        found,
        f"{whose}: change of the output, divided by its length",
        labels,
        tuple(moved),
        shown=tuple(f"{one:.1%}" for one in moved),
        drawn=positions != "trained",
    )


def _show_positions(scene: Scene) -> Shown:
    positions = _CONTROL_POSITIONS.value(scene)
    before, after = _both(scene, positions)
    moved, labels = moved_output(before, after), before.query_tokens().names
    shown = list(before.query_tokens().counted) or list(range(len(labels)))
    most = shown[int(moved[shown].argmax())]
    words = split_words(scene.read) if positions == "trained" else scene.words
    facts = {
        "word": in_words(labels[most]),
        "sentence": " ".join(in_words(word) for word in words),
        "turned": " ".join(in_words(word) for word in words[::-1]),
        "which": _WHICH.get(positions, f"in {scene.called}, which has learned positions"),
        "most": f"{float(moved[most]):.1%}",
        "moved": _moved_words(labels[most], float(moved[most])),
        "same": "the same, only in another order" if float(moved.max()) < _NOTHING else "not the same any more",
    }
    figure = changed_outputs(before, after, theme=scene.theme)
    # Without positions only the last digit moves; automatic axes would magnify it.
    figure.update_xaxes(range=[0, max(1.0, float(moved.max()) * 1.05)])
    says = f"The sentence is turned around, {_OPTIONS[positions]}. {facts['moved']}"
    return Shown(facts, figure, says, drawn=positions != "trained")


def _moved_words(word: str, by: float) -> str:
    if by < _NOTHING:
        return "No word's output changed by more than rounding."
    return f"The output of “{in_words(word)}” moved most: by {by:.1%} of its length."


def _options(scene: Scene) -> dict[str, str]:
    return _OPTIONS if _turned(scene) is not None else {name: _OPTIONS[name] for name in _WHICH}


_CONTROL_POSITIONS = Control("Vectors", _options, lambda scene: next(iter(_options(scene))))


_D_MODEL_RECURRENT = 8
_LEAST = 0.001
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
    end = int(_CONTROL_RECURRENT.value(scene))
    counts = sorted({min(end, 1), end, end * end})
    first, last = short(scene.names[0]), short(scene.names[end])
    return Ask(
        f"If a model reads word by word, how many steps are there from {first} to {last}?",
        f"{counted(end, 'step')} word by word, {min(end, 1)} by attention",
        "counted along the sentence",
        tuple(counted(count, "step") for count in counts),
        tuple(float(count == end) for count in counts),
        shown=tuple(
            " and ".join(
                [name for name, steps in (("word by word", end), ("attention", min(end, 1))) if steps == count]
            )
            for count in counts
        ),
    )


def _show_recurrent(scene: Scene) -> Shown:
    end = int(_CONTROL_RECURRENT.value(scene))
    trace = Scratch(_D_MODEL_RECURRENT, 1, scene.seed, positions="none").trace(scene.text)
    facts = {
        **quoted(scene.names, first=0, last=end),
        "hops": counted(end, "step"),
        "one": counted(min(end, 1), "step"),
        "words": counted(len(scene.words), "word"),
        "left": _percent(left_of_the_first(scene)[end]),
        "weight": weight_text(float(trace.weights(0, 0)[end, 0])),
    }
    steps = f"{facts['hops']} one after the other, {facts['one']} by attention"
    says = f"From “{facts['first']}” to “{facts['last']}”: {steps}."
    names = token_names(trace.query_tokens())
    spots = line_spots(range(len(names)), names, _CONTROL_RECURRENT.options(scene).keys(), (_RECURRENT, _DIRECT))
    return Shown(facts, paths(trace, 0, end, theme=scene.theme), says, spots)


def _percent(part: float) -> str:
    """Never write "0.0%", as something is left."""
    return f"{part:.1%}" if part >= _LEAST else f"less than {_LEAST:.1%}"


def _far(scene: Scene) -> dict[str, str]:
    words = offered(scene.words)
    return {at: word for at, word in words.items() if at != "0"} or words


_CONTROL_RECURRENT = Control("Distant word", _far, lambda scene: str(len(scene.words) - 1), words=True)

LESSONS = {
    "positions": Lesson(
        "Positions and order", 6, _ask_positions, _show_positions, _CONTROL_POSITIONS, "permute", deeper=("steps",)
    ),
    "recurrent": Lesson("Recurrent against parallel", 5, _ask_recurrent, _show_recurrent, _CONTROL_RECURRENT, "path"),
}
