"""Positions: attention alone can't tell the order of words; what is added to their vectors can."""

from dataclasses import replace

from attention_viz.edits.effects import moved_output
from attention_viz.lesson.asking import Ask, short
from attention_viz.lesson.lesson import Control, Lesson, Shown
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.words import in_words, offered
from attention_viz.scratch.model import Scratch
from attention_viz.trace.trace import Trace
from attention_viz.views import changed_outputs

__all__ = ["LESSON"]

_D_MODEL, _HEADS = 8, 2
# Outputs that differ by less are the same but for the order in which numbers were added.
_NOTHING = 1e-4
_OPTIONS = {"none": "without positions", "sinusoidal": "with positions"}


def _both(scene: Scene, positions: str) -> tuple[Trace, Trace]:
    """The sentence, and the sentence from its last word to its first with the outputs put back into the old order."""
    scratch = Scratch(_D_MODEL, _HEADS, scene.seed, positions)
    before, turned = scratch.trace(scene.text), scratch.trace(" ".join(scene.words[::-1]))
    return before, replace(before, output=turned.output.flip(0))


def _ask(scene: Scene) -> Ask:
    positions = _CONTROL.value(scene)
    moved = [one if one >= _NOTHING else 0.0 for one in moved_output(*_both(scene, positions)).tolist()]
    most = max(range(len(moved)), key=moved.__getitem__)
    found = f"{short(scene.words[most])} changes most, by {moved[most]:.0%}" if moved[most] else "No output changes"
    return Ask(
        f"The sentence is turned around, {_OPTIONS[positions]}. Whose output changes most?",
        found,
        "our own module, weights from a seed: change as a part of the output's length",
        tuple(offered(scene.words).values()),
        tuple(moved),
        shown=tuple(f"{one:.1%}" for one in moved),
    )


def _show(scene: Scene) -> Shown:
    positions = _CONTROL.value(scene)
    before, after = _both(scene, positions)
    moved = moved_output(before, after)
    most = int(moved.argmax())
    facts = {
        "sentence": " ".join(in_words(word) for word in scene.words),
        "turned": " ".join(in_words(word) for word in scene.words[::-1]),
        "which": _OPTIONS[positions],
        "most": f"{float(moved[most]):.1%}",
        "word": in_words(scene.words[most]),
        "moved": _moved_words(scene.words[most], float(moved[most])),
        "same": "the same, only in another order" if float(moved.max()) < _NOTHING else "not the same any more",
    }
    figure = changed_outputs(before, after, theme=scene.theme)
    # Without positions nothing moves but the last digit, which a scale of its own would blow up.
    figure.update_xaxes(range=[0, max(1.0, float(moved.max()) * 1.05)])
    says = f"Turned around {facts['which']}: {facts['moved'][0].lower()}{facts['moved'][1:]}"
    return Shown(facts, figure, says)


def _moved_words(word: str, by: float) -> str:
    if by < _NOTHING:
        return "No word's output changed by more than rounding."
    return f"The word that moved most is “{in_words(word)}”: by {by:.1%} of the length of its output."


_CONTROL = Control("Vectors", lambda scene: _OPTIONS, lambda scene: "sinusoidal")

LESSON = Lesson(
    "Positions and order",
    6,
    _ask,
    _show,
    _CONTROL,
    "permute",
    deeper=("steps",),
    covers=("permutation: without positions it permutes the output and nothing else; with positions it does not",),
)
