"""A course reader's choices and exercise tries."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from attention_viz.ui import visit
from attention_viz.ui.pages.learn.choice import LEARN_CHOICES, LearnChoice

__all__ = [
    "Tries",
    "another_exercise",
    "begin_lesson",
    "chosen",
    "go",
    "mark_done",
    "open_progress",
    "set_choice",
]

_MOST_SEEDS = 10_000


@dataclass
class Tries:
    """A reader's tries, by exercise key.

    Attributes:
        answer: None if unanswered; cleared on leaving the lesson.
        solved: the exercise with its solution shown.
    """

    answer: tuple[str, str | None] = ("", None)
    hints: tuple[str, int] = ("", 0)
    solved: str = ""


def chosen() -> LearnChoice:
    """Return what is chosen now."""
    return visit.chosen(LEARN_CHOICES)


def set_choice(**changes: Any) -> None:
    """Choose something else, by the names of `LearnChoice`."""
    visit.pick(LEARN_CHOICES, **changes)


def go(lesson: str) -> None:
    """Open a lesson with its default control."""
    visit.memory(Tries).answer = "", None
    set_choice(lesson=lesson, choice="", guess="", word=None, answers="off")


def begin_lesson() -> None:
    """Clear the previous lesson's choices."""
    go(chosen().lesson)


def another_exercise() -> None:
    """Ask for other exercises of the same kinds."""
    set_choice(exercise_seed=(chosen().exercise_seed + 1) % _MOST_SEEDS)


def mark_done() -> None:
    """Mark the lesson's exercise as solved."""
    _add_done((chosen().lesson,))


def open_progress(done: tuple[str, ...]) -> None:
    """Add a file's lessons to the finished ones."""
    _add_done(done)


def _add_done(more: Sequence[str]) -> None:
    from attention_viz.lesson import LESSONS

    known = {*chosen().done, *more}
    set_choice(done=tuple(name for name in LESSONS if name in known))
