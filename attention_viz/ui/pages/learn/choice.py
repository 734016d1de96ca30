"""The Learn page's URL and file choices, and its text limit."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attention_viz.errors import AttentionVizError
from attention_viz.serving.settings import SETTINGS
from attention_viz.trace.splitting import split_words
from attention_viz.ui.address import State
from attention_viz.ui.address.codec import Older, parameter
from attention_viz.ui.address.kinds import AnyText, Names, OneOf, WholeNumber
from attention_viz.ui.selection import Group

__all__ = ["LEARN_CHOICES", "LONGEST_FILE", "NOTATIONS", "LearnChoice", "begun", "read_progress"]

# As on the Step by step page, in the words of one who has just heard of matrices.
NOTATIONS = {"rows": "words as rows", "columns": "words as columns"}

# Bytes of a file with somebody's progress; ours has some two hundred.
LONGEST_FILE = 10_000

# A word alone looks at nothing but itself, of which there is little to tell.
_FEWEST = 2


_WORD = WholeNumber(range(96), nothing="the lesson's own")


def _lessons(choice: object, lessons: Sequence[str]) -> Sequence[str]:
    return lessons


def _of_an_exercise(address: Mapping[str, str]) -> bool:
    """Return whether a URL's seed is an exercise's; our own module shared it."""
    return "lesson" in address or address.get("model") != "scratch"


@dataclass(frozen=True)
class LearnChoice:
    """The Learn page's own URL choices, known by the lessons' names."""

    lesson: str = parameter("", OneOf(_lessons), "the lesson")
    choice: str = parameter("", AnyText(longest=40), "its setting", brief=True)
    notation: str = parameter("rows", OneOf(tuple(NOTATIONS)), "the notation")
    done: tuple[str, ...] = parameter((), Names(_lessons), "whose exercises were solved", brief=True)
    exercise_seed: int = parameter(
        0, WholeNumber(range(10_000)), "the numbers of the exercises", older=Older("seed", _of_an_exercise)
    )
    answers: str = parameter("off", OneOf(("on", "off")), "the answer sheet", brief=True)
    guess: str = parameter("", AnyText(longest=400), "what was guessed", brief=True)
    word: int | None = parameter(None, _WORD, "the word that was pressed", brief=True)


def _follow(_choice: LearnChoice, before: State, after: State) -> Mapping[str, Any]:
    """Let go of a guess about another text."""
    return {"guess": "", "word": None} if before.text != after.text else {}


LEARN_CHOICES = Group(LearnChoice(), "course-", follow=_follow)


def begun(text: str, longest: int, example: str) -> tuple[str, str]:
    """Return the course's text (two words or more), and a notice or empty."""
    if len(split_words(text)) < _FEWEST:
        said = "no word" if not split_words(text) else "a single word"
        return example, f"There is {said} in the box, so the course goes on with its example: “{example}”."
    short = text[: SETTINGS.longest_link]
    words = split_words(short)
    if short == text and len(words) <= longest:
        return text, ""
    used: list[str] = []
    for part in short.split():
        if len(split_words(" ".join([*used, part]))) > longest:
            break
        used.append(part)
    # Some scripts put no space between words.
    begin = " ".join(used) or " ".join(words[:longest])
    last = split_words(begin)[-1]
    said = (
        f"The course reads the first {longest} words and signs, up to “{last}”, so that each can be shown; what you "
        "typed stays in the box."
    )
    return begin, said


def read_progress(content: bytes, lessons: Sequence[str]) -> tuple[str, ...]:
    """Read the finished lessons from a progress file."""
    if len(content) > LONGEST_FILE:
        raise AttentionVizError(f"a file with progress has at most {LONGEST_FILE:,} bytes; this one has more")
    try:
        found: Any = json.loads(content)
    except (ValueError, RecursionError):
        raise AttentionVizError("a file with progress is JSON, as “Save my progress” writes it; this is none") from None
    done: Any = found.get("done") if isinstance(found, dict) else None
    if not isinstance(done, list) or not all(isinstance(name, str) for name in done):
        raise AttentionVizError("a file with progress has a list “done” with the names of lessons; this one has none")
    if unknown := [name for name in done if name not in lessons]:
        raise AttentionVizError(
            f"the file names the lesson {unknown[0][:40]!r}, which there isn't; there are {', '.join(lessons)}"
        )
    return tuple(name for name in lessons if name in done)
