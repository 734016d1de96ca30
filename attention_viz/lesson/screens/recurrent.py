"""Recurrent against parallel: steps between words; how the first fades."""

import torch

from attention_viz.lesson.asking import Ask, short
from attention_viz.lesson.lesson import Control, Lesson, Shown
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.spots import line_spots
from attention_viz.lesson.words import counted, in_words, offered
from attention_viz.scratch.model import Scratch
from attention_viz.views import paths
from attention_viz.views.style.wording import readable

__all__ = ["LESSON", "left_of_the_first"]

_D_MODEL = 8
_LEAST = 0.001
# How high the two lines of words stand in the picture.
_RECURRENT, _DIRECT = 1.0, 0.0


def left_of_the_first(scene: Scene) -> list[float]:
    """Return each state's sensitivity to the first word, relative to the first state's.

    The norm of ∂h_t / ∂x_0 in h_t = tanh(W h_{t−1} + U x_t) (Elman 1990), with our module's W_Q and W_K as W and U.
    """
    scratch = Scratch(_D_MODEL, 1, scene.seed, positions="none")
    known = scratch.projections()
    w, u = known["query"].weight, known["key"].weight
    words = scratch.embed(scene.words)

    def states(first: torch.Tensor) -> torch.Tensor:
        state, found = torch.zeros(_D_MODEL), []
        for x in (first, *words[1:]):
            state = torch.tanh(state @ w + x @ u)
            found.append(state)
        return torch.stack(found)

    moved = torch.autograd.functional.jacobian(states, words[0])
    assert isinstance(moved, torch.Tensor)
    sizes = moved.flatten(1).norm(dim=-1)
    return (sizes / sizes[0]).tolist()


def _ask(scene: Scene) -> Ask:
    end = int(_CONTROL.value(scene))
    counts = sorted({min(end, 1), end, end * end})
    first, last = short(scene.words[0]), short(scene.words[end])
    return Ask(
        f"Read word by word, how many steps lie between {first} and {last}?",
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


def _show(scene: Scene) -> Shown:
    end = int(_CONTROL.value(scene))
    trace = Scratch(_D_MODEL, 1, scene.seed, positions="none").trace(scene.text)
    facts = {
        "first": in_words(scene.words[0]),
        "last": in_words(scene.words[end]),
        "hops": counted(end, "step"),
        "one": counted(min(end, 1), "step"),
        "words": counted(len(scene.words), "word"),
        "left": _percent(left_of_the_first(scene)[end]),
        "weight": f"{float(trace.weights(0, 0)[end, 0]):.3f}",
    }
    steps = f"{facts['hops']} one after the other, {facts['one']} by attention"
    says = f"From “{facts['first']}” to “{facts['last']}”: {steps}."
    names = readable(trace.query_tokens().written)
    spots = line_spots(range(len(names)), names, _CONTROL.options(scene).keys(), (_RECURRENT, _DIRECT))
    return Shown(facts, paths(trace, 0, end, theme=scene.theme), says, spots)


def _percent(part: float) -> str:
    """Never write "0.0%", as something is left."""
    return f"{part:.1%}" if part >= _LEAST else f"less than {_LEAST:.1%}"


def _far(scene: Scene) -> dict[str, str]:
    words = offered(scene.words)
    return {at: word for at, word in words.items() if at != "0"} or words


_CONTROL = Control("Word at the far end", _far, lambda scene: str(len(scene.words) - 1), words=True)

LESSON = Lesson(
    "Recurrent against parallel",
    5,
    _ask,
    _show,
    _CONTROL,
    "path",
    covers=("parallel against recurrent: one hop against as many as there are words",),
)
