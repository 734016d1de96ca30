"""The course's lessons and exercises in order; add yours here."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from attention_viz.errors import AttentionVizError
from attention_viz.lesson.answering import SHAPES_MODEL
from attention_viz.lesson.exercise import Cells, Exercise, Table
from attention_viz.lesson.lesson import Lesson
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.screens import (
    answering,
    around,
    costs,
    cross,
    heads,
    kinds,
    masks,
    order,
    roles,
    scaling,
    scoring,
    seen,
    states,
    toy,
    trained,
    why,
    word_map,
)
from attention_viz.lesson.screens.caching import kv_cache, windows
from attention_viz.lesson.seen import PICTURE_MODEL, SOUND_MODEL
from attention_viz.lesson.tasks.answering import asked
from attention_viz.lesson.tasks.around import logits, residual
from attention_viz.lesson.tasks.caching import stored, window
from attention_viz.lesson.tasks.counting import cost, memory, shape
from attention_viz.lesson.tasks.dots import nearest, project, scaled, score
from attention_viz.lesson.tasks.looking import head, job, matters, strongest
from attention_viz.lesson.tasks.mixing import additive, output, plain, temperature
from attention_viz.lesson.tasks.order import mask, path, permute
from attention_viz.lesson.tasks.seen import region, stretch
from attention_viz.lesson.tasks.states import erase, state
from attention_viz.lesson.tasks.toy import added, part
from attention_viz.lesson.translation import translate
from attention_viz.sources import CATALOGUE

__all__ = ["EXERCISES", "LESSONS", "ExerciseKind", "Solved", "answer_sheet", "check_lessons", "given"]
# Draws tried until no common slip gives the right answer, and the distance between their seeds.
_DRAWS, _APART = 12, 100_003
_SCREENS = (
    *(answering, around, costs, cross, heads, kinds, kv_cache, masks, order, roles, scaling, scoring),
    *(seen, states, toy, trained, why, windows, word_map),
)
_LESSONS = {name: lesson for screen in _SCREENS for name, lesson in screen.LESSONS.items()}
_ORDER = (
    "why vectors plain roles scores softmax scaling mixture masks heads around next jobs together writes "
    "positions cross picture where sound older recurrent cost cache windows practice linear delta limits"
)
LESSONS: dict[str, Lesson] = {name: _LESSONS[name] for name in _ORDER.split()}


def check_lessons(names: Sequence[str]) -> None:
    """Raise `AttentionVizError` for a lesson that the course doesn't have."""
    if unknown := [name for name in names if name not in LESSONS]:
        raise AttentionVizError(f"unknown lesson {unknown[0]!r}; choose from {', '.join(LESSONS)}")


@dataclass(frozen=True)
class ExerciseKind:
    """A kind of exercise, deterministic by scene and seed, and the model it needs, if any."""

    label: str
    make: Callable[[Scene, int], Exercise]
    lesson: str
    needs: str = ""

    @property
    def available(self) -> bool:
        """Whether the model it needs is installed."""
        return not self.needs or CATALOGUE[self.needs].available


class Solved(NamedTuple):
    """A line of the answer sheet: the exercise's kind, question, data, right answer and working."""

    kind: str
    question: str
    given: Sequence[Table]
    solution: str
    working: str


def _clear(make: Callable[[Scene, int], Exercise]) -> Callable[[Scene, int], Exercise]:
    """Redraw until no slip gives the right answer."""

    def made(scene: Scene, seed: int) -> Exercise:
        first = make(scene, seed)
        others = (make(scene, seed + _APART * draw) for draw in range(1, _DRAWS))
        return next(filter(_tells, itertools.chain([first], others)), first)

    return made


def _tells(exercise: Exercise) -> bool:
    return not any(exercise.answer.accepts(slip.answer) for slip in exercise.slips)


EXERCISES: dict[str, ExerciseKind] = {
    "strongest": ExerciseKind(
        "Predict where a word looks", strongest, "To predict from a word's meaning where it looks."
    ),
    "nearest": ExerciseKind("Find the nearest word", nearest, "To compare vectors by dot product and by cosine."),
    "plain": ExerciseKind("Work out a share", _clear(plain), "To turn dot products into shares that add up to 1."),
    "project": ExerciseKind(
        "Work out an entry of a query", _clear(project), "To make a query from a vector and a learned matrix."
    ),
    "score": ExerciseKind("Work out a score", _clear(score), "To match the query of one word with the key of another."),
    "scaled": ExerciseKind("Scale a score", _clear(scaled), "To divide a score by the root of the width."),
    "temperature": ExerciseKind("Choose the temperature", temperature, "To know what makes a softmax even or sharp."),
    "output": ExerciseKind("Work out an entry of the output", _clear(output), "To mix values by their weights."),
    "mask": ExerciseKind("Fix the mask", mask, "To know which words a mask blocks."),
    "head": ExerciseKind("Find the head", head, "To read a head's job from its rows of weights."),
    "residual": ExerciseKind(
        "Follow a word's vector",
        _clear(residual),
        "To know that a layer adds to a vector, and that its parts read normed copies.",
    ),
    "logits": ExerciseKind(
        "Compare two next words", _clear(logits), "To turn a difference of logits into a ratio of probabilities."
    ),
    "job": ExerciseKind("Continue a pattern", job, "To know where an induction head looks."),
    "part": ExerciseKind("Find the missing part", _clear(part), "To know that the parts of a score add up to it."),
    "added": ExerciseKind(
        "Add up a head's output", _clear(added), "To know that a head adds up values by its weights."
    ),
    "permute": ExerciseKind("Follow the shuffle", _clear(permute), "To know what moves when words move."),
    "shape": ExerciseKind("Count rows and columns", shape, "To know which text gives the queries and which the keys."),
    "additive": ExerciseKind("Work out an additive score", _clear(additive), "To score as older attention did."),
    "path": ExerciseKind("Count the steps", path, "To compare reading word by word with looking at all at once."),
    "cost": ExerciseKind("Count the weights", cost, "To know how attention grows with the text."),
    "stored": ExerciseKind(
        "Count a cache",
        _clear(stored),
        "To count the numbers that a model stores per token, and the ones that heads share.",
    ),
    "window": ExerciseKind("Count what a window shows", _clear(window), "To know what a window and its sinks show."),
    "memory": ExerciseKind("Count weights in memory", memory, "To know how much work in blocks saves."),
    "region": ExerciseKind(
        "Add up part of an image", _clear(region), "To read weights over patches as sums.", PICTURE_MODEL
    ),
    "asked": ExerciseKind(
        "Find the question", asked, "To know which word's weights tell what an answer is about.", SHAPES_MODEL
    ),
    "stretch": ExerciseKind(
        "Find where a word begins", _clear(stretch), "To see how words get their times.", SOUND_MODEL
    ),
    "state": ExerciseKind(
        "Read a state", _clear(state), "To know that a state holds the sum of all words before, and how it decays."
    ),
    "erase": ExerciseKind("Replace a value", _clear(erase), "To distinguish erasing one value from letting all decay."),
    "matters": ExerciseKind("Find the head that matters", matters, "To distinguish a head's weights from its effect."),
}


def answer_sheet(scene: Scene, seeds: Sequence[int], kinds: Sequence[str] = tuple(EXERCISES)) -> list[Solved]:
    """Return the right answers for each seed, kind by kind."""
    return [
        Solved(name, made.question, given(made), made.solution, made.working)
        for name in kinds
        if EXERCISES[name].available
        for made in (EXERCISES[name].make(scene, seed) for seed in seeds)
    ]


def given(exercise: Exercise) -> Sequence[Table]:
    """List an exercise's data on paper; of a mask also its marks."""
    answer = exercise.answer
    if not isinstance(answer, Cells):
        return exercise.given
    size = range(len(answer.rows)), range(len(answer.columns))
    marks = tuple(tuple(float((row, column) in answer.start) for column in size[1]) for row in size[0])
    return (*exercise.given, Table(translate("✕ is blocked"), answer.rows, answer.columns, marks, marks=True))
