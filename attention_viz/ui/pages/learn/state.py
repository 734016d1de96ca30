"""What a reader of the course chose, and what they tried at its exercises."""

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
    """What a reader tried at the exercises, each with its exercise's key; another exercise shows none of it.

    Attributes:
        answer: the last answer; None if nothing was answered. It goes when the reader leaves the lesson.
        solved: the exercise whose solution is shown.
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
    """Open a lesson, its control as the lesson sets it."""
    visit.memory(Tries).answer = "", None
    set_choice(lesson=lesson, choice="", guess="", word=None, answers="off")


def begin_lesson() -> None:
    """Forget what was chosen in another lesson, now that this one is picked."""
    go(chosen().lesson)


def another_exercise() -> None:
    """Ask for other exercises of the same kinds."""
    set_choice(exercise_seed=(chosen().exercise_seed + 1) % _MOST_SEEDS)


def mark_done() -> None:
    """Note that the exercise of the lesson on the screen was solved."""
    _add_done((chosen().lesson,))


def open_progress(done: tuple[str, ...]) -> None:
    """Add the lessons that a file names to those that are done."""
    _add_done(done)


def _add_done(more: Sequence[str]) -> None:
    from attention_viz.lesson import LESSONS

    known = {*chosen().done, *more}
    set_choice(done=tuple(name for name in LESSONS if name in known))
