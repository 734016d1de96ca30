"""The student's record, which the browser keeps."""

import secrets
from collections import deque
from dataclasses import dataclass, field

from attention_viz.explorer import keeping_source, noting_source
from attention_viz.lesson.export.words import keeping_words
from attention_viz.lesson.translation import current_language
from attention_viz.ui import visit, widgets
from attention_viz.ui.pages.learn.page import LearnChoice, clear_progress, open_progress

_keeping = widgets.component("keeping", *keeping_source())
_noting = widgets.component("noting", *noting_source())
_KEY = "learn-keeping"
# A note reaches the browser at the end of its run; fast presses may put several into one.
_LAST = 10


@dataclass
class _Notes:
    """A visit's last notes; the name tells this visit from the one before a lost connection."""

    name: str = field(default_factory=lambda: secrets.token_hex(8))
    count: int = 0
    last: deque[dict[str, object]] = field(default_factory=lambda: deque[dict[str, object]](maxlen=_LAST))


def note(lesson: str, text: str, seed: int, **what: object) -> None:
    """Have the browser add to an exercise: `answer` and `right`, `hints`, or `solution`."""
    notes = visit.memory(_Notes)
    notes.count += 1
    notes.last.append({"number": notes.count, "lesson": lesson, "text": text, "seed": seed, **what})


def send_notes(choice: LearnChoice) -> None:
    """Hand the notes to the browser."""
    notes = visit.memory(_Notes)
    _noting(key="learn-noting", data={"visit": notes.name, "notes": list(notes.last), **whose(choice)})


def whose(choice: LearnChoice) -> dict[str, object]:
    """Return what a record has besides answers: the language, the class's lessons and the student's number."""
    course = {"lessons": list(choice.lessons), "student": choice.student or 0}
    return {"language": current_language(), "course": course}


def show_keeping() -> None:
    """Draw the record's buttons."""
    _keeping(
        key=_KEY, data=keeping_words(), height="content", on_opened_change=_take_opened, on_cleared_change=_take_cleared
    )


def _take_opened() -> None:
    names = widgets.sent(_KEY, "opened")
    # Anything can come from a browser.
    if isinstance(names, list):
        open_progress(tuple(name for name in names if isinstance(name, str)))


def _take_cleared() -> None:
    if widgets.sent(_KEY, "cleared") is True:
        clear_progress()
