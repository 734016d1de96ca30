"""The Learn page's choices, row and slots."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import streamlit as st

from attention_viz.lesson.progress.record import SEEDS, STUDENTS, first_seed
from attention_viz.lesson.quiz import PARTS
from attention_viz.lesson.translation import LANGUAGES, translate
from attention_viz.serving.settings import SETTINGS
from attention_viz.trace.splitting import first_words, split_words
from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.address.codec import Older, parameter
from attention_viz.ui.address.kinds import AnyText, Names, NamesInOrder, OneOf, WholeNumber
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.pickers import ControlRow
from attention_viz.ui.parts.drawing import PicturePlace
from attention_viz.ui.runner.page import Page, Slots
from attention_viz.ui.selection import Group

if TYPE_CHECKING:
    from attention_viz.lesson import Lesson

# As on the Step by step page, in words for beginners.
NOTATIONS = {"rows": "words as rows", "columns": "words as columns"}

# A single word attends only to itself, so it teaches little.
_FEWEST = 2


_STUDENT = WholeNumber(range(STUDENTS.stop), nothing="none")
_WORD = WholeNumber(range(96), nothing="the lesson's own")
# In the URL as a student's number: the page asks for it.
ASK = 0
# The placeholder's height for the first lesson: the smaller, the less moves when the lesson comes.
_WAIT = 120


def _lessons(choice: object, lessons: Sequence[str]) -> Sequence[str]:
    return lessons


def _of_class(choice: Any, lessons: Sequence[str]) -> Sequence[str]:
    return choice.lessons or lessons


def _of_an_exercise(address: Mapping[str, str]) -> bool:
    """Return whether a URL's seed is an exercise's; our own module shared it."""
    return "lesson" in address or address.get("model") != "scratch"


@dataclass(frozen=True)
class LearnChoice:
    """The Learn page's URL choices."""

    # Before the lesson, which is one of them.
    lessons: tuple[str, ...] = parameter((), NamesInOrder(_lessons), "the lessons of the class, in order", brief=True)
    lesson: str = parameter("", OneOf(_of_class), "the lesson")
    choice: str = parameter("", AnyText(longest=40), "the lesson's setting", brief=True)
    notation: str = parameter("rows", OneOf(tuple(NOTATIONS)), "the notation")
    done: tuple[str, ...] = parameter((), Names(_lessons), "the lessons with solved exercises", brief=True)
    exercise_seed: int = parameter(
        0, WholeNumber(SEEDS), "the seed of the exercises", older=Older("seed", _of_an_exercise)
    )
    student: int | None = parameter(None, _STUDENT, "the student’s number", brief=True)
    answers: str = parameter("off", AnyText(longest=40), "the key of the answer sheet", brief=True)
    test: str = parameter("off", OneOf(("off", *PARTS)), "the test of learning instead of the lesson", brief=True)
    guess: str = parameter("", AnyText(longest=400), "the guess", brief=True)
    word: int | None = parameter(None, _WORD, "the clicked word", brief=True)
    lang: str | None = parameter(None, OneOf(tuple(LANGUAGES), nothing="the browser’s language"), "the language")


def _follow(choice: LearnChoice, before: State, after: State) -> Mapping[str, Any]:
    """Drop a guess about another text, and a word if another page chose one."""
    if before.text != after.text:
        return {"guess": "", "word": None}
    if before.query == after.query:
        return {}
    lesson = _all().get(choice.lesson)
    return {"word": None} | ({"choice": ""} if lesson is not None and lesson.asks_word else {})


def _all() -> "Mapping[str, Lesson]":
    from attention_viz.lesson import LESSONS

    return LESSONS


LEARN_CHOICES = Group(LearnChoice(), "course-", follow=_follow)


def begun(text: str, longest: int, example: str) -> tuple[str, str]:
    """Return the course's text (two words or more), and a notice or ""."""
    if len(split_words(text)) < _FEWEST:
        if not split_words(text):
            return example, translate("The box has no word, so the course uses its example: “{text}”.", text=example)
        return example, translate("The box has only one word, so the course uses its example: “{text}”.", text=example)
    short = text[: SETTINGS.longest_link]
    if short == text and len(split_words(text)) <= longest:
        return text, ""
    begin = first_words(short, longest)
    last = split_words(begin)[-1]
    return begin, translate(
        "The course reads the first {longest} words and signs, up to “{last}”, so that it can show each. Your whole "
        "text stays in the box.",
        **{"longest": longest, "last": last},
    )


@dataclass
class Tries:
    """A reader's tries, by exercise key.

    Attributes:
        answer: None if unanswered; cleared on leaving the lesson.
        checks: how often *Check* was pressed.
        solved: the exercise with its solution shown.
    """

    answer: tuple[str, str | None] = ("", None)
    checks: int = 0
    hints: tuple[str, int] = ("", 0)
    solved: str = ""


def chosen() -> LearnChoice:
    """Return the current choices."""
    return visit.chosen(LEARN_CHOICES)


def set_choice(**changes: Any) -> None:
    """Set choices, named as in `LearnChoice`."""
    visit.pick(LEARN_CHOICES, **changes)


@dataclass
class LeftLessons:
    """How a visit left its lessons, by lesson and text."""

    choices: dict[tuple[str, str], LearnChoice] = field(default_factory=dict[tuple[str, str], LearnChoice])


def go(lesson: str) -> None:
    """Open a lesson as the reader left it, or with its default control."""
    visit.memory(LeftLessons).choices[chosen().lesson, visit.shared().text] = chosen()
    _open(lesson)


def open_test(part: str) -> None:
    """Open the test before or after the course."""
    set_choice(test=part, answers="off")


def begin_lesson() -> None:
    """Replace the previous lesson's choices."""
    _open(chosen().lesson)


def _open(lesson: str) -> None:
    visit.memory(Tries).answer = "", None
    left = visit.memory(LeftLessons).choices.get((lesson, visit.shared().text), LearnChoice())
    set_choice(lesson=lesson, choice=left.choice, guess=left.guess, word=left.word, answers="off", test="off")


def another_exercise() -> None:
    """Request other exercises of the same kinds, within a student's own seeds."""
    choice = chosen()
    own = range(first_seed(choice.student), first_seed(choice.student + 1)) if choice.student else SEEDS
    set_choice(exercise_seed=own[(choice.exercise_seed - own.start + 1) % len(own)])


def take_number(number: int) -> None:
    """Give a student's number its exercises."""
    set_choice(student=number, exercise_seed=first_seed(number))


def lesson_names(choice: LearnChoice) -> tuple[str, ...]:
    """Return the lessons of the class in order, or all."""
    return choice.lessons or tuple(_all())


def mark_done() -> None:
    """Mark the lesson's exercise as solved."""
    _add_done((chosen().lesson,))


def open_progress(done: tuple[str, ...]) -> None:
    """Add a file's lessons to the finished ones."""
    _add_done(done)


def clear_progress() -> None:
    """Forget the finished lessons."""
    set_choice(done=())


def _add_done(more: Sequence[str]) -> None:
    known = {*chosen().done, *more}
    set_choice(done=tuple(name for name in _all() if name in known))


def _layout(_state: State, row: ControlRow) -> Slots:
    assert row.fold is not None
    named = {"row": row.options, "fold": row.fold, "notes": st.container()}
    wait = st.empty()
    named["lesson"] = st.container(key="learn-body")
    return Slots(PicturePlace(wait, stays=False), _WAIT, named)


PAGE = Page(
    "Learn",
    "learn",
    row=pickers.sentence,
    layout=_layout,
    groups=(LEARN_CHOICES,),
    address_follows_run=True,
    badges="none",
)
