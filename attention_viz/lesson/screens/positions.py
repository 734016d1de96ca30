"""Positions: attention can't tell the order of words without them."""

from dataclasses import replace

from attention_viz.edits.effects import moved_output
from attention_viz.lesson.asking import Ask, short
from attention_viz.lesson.lesson import Control, Lesson, Shown
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.words import in_words, offered
from attention_viz.scratch.model import Scratch
from attention_viz.trace.splitting import split_words
from attention_viz.trace.trace import Trace
from attention_viz.views import changed_outputs

__all__ = ["LESSON"]

_D_MODEL, _HEADS = 8, 2
# Outputs that differ by less are the same but for the order in which numbers were added.
_NOTHING = 1e-4
_OPTIONS = {
    "trained": "in a trained model",
    "sinusoidal": "in our own, with positions",
    "none": "in our own, without positions",
}
_SEED = "its numbers made by a seed, so that only whether they change means something"
_WHICH = {
    "sinusoidal": f"in a small module of ours with positions, {_SEED}",
    "none": f"in a small module of ours without positions, {_SEED}",
}


def _turned(scene: Scene) -> tuple[Trace, Trace] | None:
    """Run the reversed sentence too; None if its tokens differ."""
    before = scene.trained()
    turned = scene.run(scene.model, " ".join(split_words(scene.read)[::-1]))
    places = _places(before, turned)
    return None if places is None else (before, replace(before, output=turned.output[places]))


def _places(before: Trace, turned: Trace) -> list[int] | None:
    """Reverse the words, but not a word's pieces."""
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
        assert found is not None  # else it is no option
        return found
    scratch = Scratch(_D_MODEL, _HEADS, scene.seed, positions)
    before, turned = scratch.trace(scene.text), scratch.trace(" ".join(scene.words[::-1]))
    return before, replace(before, output=turned.output.flip(0))


def _ask(scene: Scene) -> Ask:
    positions = _CONTROL.value(scene)
    before, after = _both(scene, positions)
    changes = [one if one >= _NOTHING else 0.0 for one in moved_output(before, after).tolist()]
    tokens = before.query_tokens()
    shown = tokens.counted or range(len(tokens))
    moved, labels = [changes[at] for at in shown], [tokens.written[at] for at in shown]
    most = max(range(len(moved)), key=moved.__getitem__)
    found = f"{short(labels[most])} changes most, by {moved[most]:.0%}" if moved[most] else "No output changes"
    whose = scene.called if positions == "trained" else "our own module, numbers from a seed"
    return Ask(
        f"The sentence is turned around, {_OPTIONS[positions]}. Whose output changes most?",
        found,
        f"{whose}: change as a part of the output's length",
        tuple(offered(labels).values()),
        tuple(moved),
        shown=tuple(f"{one:.1%}" for one in moved),
    )


def _show(scene: Scene) -> Shown:
    positions = _CONTROL.value(scene)
    before, after = _both(scene, positions)
    moved, labels = moved_output(before, after), before.query_tokens().written
    shown = list(before.query_tokens().counted) or list(range(len(labels)))
    most = shown[int(moved[shown].argmax())]
    words = split_words(scene.read) if positions == "trained" else scene.words
    facts = {
        "sentence": " ".join(in_words(word) for word in words),
        "turned": " ".join(in_words(word) for word in words[::-1]),
        "which": _WHICH.get(positions, f"in {scene.called}, which has learned positions"),
        "most": f"{float(moved[most]):.1%}",
        "word": in_words(labels[most]),
        "moved": _moved_words(labels[most], float(moved[most])),
        "same": "the same, only in another order" if float(moved.max()) < _NOTHING else "not the same any more",
    }
    figure = changed_outputs(before, after, theme=scene.theme)
    # Without positions nothing moves but the last digit, which a scale of its own would blow up.
    figure.update_xaxes(range=[0, max(1.0, float(moved.max()) * 1.05)])
    says = f"Turned around {_OPTIONS[positions]}: {facts['moved'][0].lower()}{facts['moved'][1:]}"
    return Shown(facts, figure, says)


def _moved_words(word: str, by: float) -> str:
    if by < _NOTHING:
        return "No word's output changed by more than rounding."
    return f"The word that moved most is “{in_words(word)}”: by {by:.1%} of the length of its output."


def _options(scene: Scene) -> dict[str, str]:
    return _OPTIONS if _turned(scene) is not None else {name: _OPTIONS[name] for name in _WHICH}


_CONTROL = Control("Vectors", _options, lambda scene: next(iter(_options(scene))))

LESSON = Lesson(
    "Positions and order",
    6,
    _ask,
    _show,
    _CONTROL,
    "permute",
    deeper=("steps",),
    covers=(
        "permutation: without positions, shuffled words give the same outputs in shuffled order; with positions they "
        "give others",
    ),
)
