"""A student's progress file, as `explorer/static/lesson/progress.js` writes it; anything can be in it."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attention_viz.errors import AttentionVizError

__all__ = ["MOST_BYTES", "SEEDS", "STUDENTS", "Progress", "Tried", "first_seed", "read_progress"]

MOST_BYTES = 200_000
# The seeds of exercises, and the students' numbers: each has a hundred seeds.
SEEDS, STUDENTS, _EACH = range(10_000), range(1, 100), 100
_MOST_EXERCISES, _MOST_TRIES, _MOST_HINTS = 300, 20, 20
_ANSWER, _TEXT, _NAME = 200, 2_000, 40
_OPEN = "open a file from “Save progress”"


@dataclass(frozen=True)
class Tried:
    """An exercise that a student tried; nothing of it is checked yet.

    Attributes:
        tries: the last answers as typed, or a choice's place ("#2").
        solution: whether the student saw the solution before the right answer.
        solved: whether the file calls it solved.
    """

    lesson: str
    text: str
    seed: int
    tries: tuple[str, ...] = ()
    hints: int = 0
    solution: bool = False
    solved: bool = False


@dataclass(frozen=True)
class Progress:
    """A progress file.

    Attributes:
        id: random, the same in all files of one browser; "" in a file of version 1.0.
        lessons: those that the student's link selected; empty for all.
        student: the number in the link; 0 for none.
        before: answers to the test before the course.
        after: answers to the test after it.
        done: the lessons that a file of version 1.0 calls solved.
    """

    id: str = ""
    lessons: tuple[str, ...] = ()
    student: int = 0
    exercises: tuple[Tried, ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    done: tuple[str, ...] = ()

    @property
    def other_seeds(self) -> bool:
        """Whether an exercise has a seed of another student's."""
        own = range(first_seed(self.student), first_seed(self.student + 1))
        return bool(self.student) and any(one.seed not in own for one in self.exercises)


def first_seed(student: int) -> int:
    """Return the first of a student's hundred seeds."""
    return student * _EACH


def read_progress(content: bytes) -> Progress:
    """Read a file; raise `AttentionVizError` that names the first part that isn't as it should be.

    Exercises with seeds that no exercise has are left out.
    """
    if len(content) > MOST_BYTES:
        raise AttentionVizError(f"a progress file may have at most {MOST_BYTES:,} bytes; this one has {len(content):,}")
    try:
        found: Any = json.loads(content)
    except (ValueError, RecursionError):
        raise AttentionVizError(f"the file isn't valid JSON; {_OPEN}") from None
    if not isinstance(found, dict):
        raise AttentionVizError(f"the file isn't a progress file; {_OPEN}")
    record: Mapping[str, Any] = found
    if "version" not in record and "done" in record:
        return Progress(done=_texts(record["done"], "done", _NAME, _MOST_EXERCISES))
    if record.get("version") != 1:
        raise AttentionVizError(f"“version” must be 1; got {_short(record.get('version'))}; {_OPEN}")
    name = record.get("id")
    if not isinstance(name, str) or not re.fullmatch(r"[0-9a-f]{16}", name):
        raise AttentionVizError(f"“id” must have 16 digits from 0 to f; got {_short(name)}; {_OPEN}")
    course, test = _record(record, "course"), _record(record, "test")
    exercises = enumerate(_list(record.get("exercises"), "exercises", _MOST_EXERCISES))
    return Progress(
        name,
        _texts(course.get("lessons", []), "course.lessons", _NAME, _MOST_EXERCISES),
        _number(course.get("student", 0), "course.student", range(STUDENTS.stop)),
        tuple(_tried(one, f"exercises[{at}]") for at, one in exercises if not _has_no_seed(one)),
        _texts(test.get("before", []), "test.before"),
        _texts(test.get("after", []), "test.after"),
    )


def _has_no_seed(one: Any) -> bool:
    """Return whether an exercise's seed is a number that no exercise has; the browser leaves it out, too."""
    seed: Any = one.get("seed") if isinstance(one, dict) else None
    return type(seed) in (int, float) and not 0 <= seed < SEEDS.stop


def _tried(one: Any, where: str) -> Tried:
    if not isinstance(one, dict):
        raise AttentionVizError(f"“{where}” must be an exercise; got {_short(one)}")
    found: Mapping[str, Any] = one
    return Tried(
        _text(found.get("lesson"), f"{where}.lesson", _NAME),
        _text(found.get("text"), f"{where}.text", _TEXT),
        _number(found.get("seed"), f"{where}.seed", SEEDS),
        _texts(found.get("tries", []), f"{where}.tries"),
        _number(found.get("hints", 0), f"{where}.hints", range(_MOST_HINTS + 1)),
        found.get("solution") is True,
        found.get("solved") is True,
    )


def _record(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    one = found.get(name, {})
    if not isinstance(one, dict):
        raise AttentionVizError(f"“{name}” must be an object; got {_short(one)}")
    return one


def _list(found: Any, name: str, most: int) -> Sequence[Any]:
    if not isinstance(found, list):
        raise AttentionVizError(f"“{name}” must be a list; got {_short(found)}")
    if len(found) > most:
        raise AttentionVizError(f"“{name}” may have at most {most} entries; got {len(found)}")
    return found


def _texts(found: Any, name: str, letters: int = _ANSWER, most: int = _MOST_TRIES) -> tuple[str, ...]:
    return tuple(_text(one, f"{name}[{at}]", letters) for at, one in enumerate(_list(found, name, most)))


def _text(found: Any, name: str, letters: int) -> str:
    if not isinstance(found, str):
        raise AttentionVizError(f"“{name}” must be a text; got {_short(found)}")
    if len(found) > letters:
        raise AttentionVizError(f"“{name}” may have at most {letters:,} characters; got {len(found):,}")
    # JSON can hold halves of letters, which nothing else can write.
    return found.encode("utf-8", "replace").decode("utf-8")


def _number(found: Any, name: str, allowed: range) -> int:
    if type(found) is not int or found not in allowed:
        raise AttentionVizError(f"“{name}” must be a whole number from 0 to {allowed.stop - 1}; got {_short(found)}")
    return found


def _short(value: Any) -> str:
    text = ascii(value) if not isinstance(value, dict | list) else type(value).__name__
    return text if len(text) <= _NAME else f"{text[: _NAME - 1]}…"
