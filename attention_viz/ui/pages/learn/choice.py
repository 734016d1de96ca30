"""What a reader of the course chose, read from the address and written back."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from attention_viz.errors import AttentionVizError
from attention_viz.serving.settings import SETTINGS
from attention_viz.ui.parts.notices import notice

__all__ = ["LONGEST_FILE", "NOTATIONS", "LearnChoice", "begun", "read_choice", "read_progress", "write_choice"]

# As on the Step by step page, in the words of one who has just heard of matrices.
NOTATIONS = {"rows": "words as rows", "columns": "words as columns"}

# Bytes of a file with somebody's progress; ours has some two hundred.
LONGEST_FILE = 10_000

_SWITCHES = ("present", "answers")
_LONGEST_CHOICE = 40
# A word alone looks at nothing but itself, of which there is little to tell.
_FEWEST = 2


@dataclass(frozen=True)
class LearnChoice:
    """Everything that decides what the page shows, besides sentence and seed.

    Attributes:
        lesson: a name in `LESSONS`; empty for the first.
        choice: what the lesson's control is set to; empty for its default.
        notation: one of `NOTATIONS`.
        done: the lessons whose exercises were solved.
        present: "on" for large type, with nothing but the text and the picture.
        answers: "on" for the answers to all exercises.
    """

    lesson: str = ""
    choice: str = ""
    notation: str = "rows"
    done: tuple[str, ...] = ()
    present: str = "off"
    answers: str = "off"


def read_choice(parameters: Mapping[str, str], lessons: Sequence[str]) -> tuple[LearnChoice, list[str]]:
    """What an address asks for, and a plain sentence for each part of it that can't be had.

    Args:
        parameters: the address's query parameters, as anybody may have typed them.
        lessons: the course's lessons, in order.
    """
    choice, notices = LearnChoice(lesson=lessons[0]), list[str]()
    allowed = {"lesson": tuple(lessons), "notation": tuple(NOTATIONS), **dict.fromkeys(_SWITCHES, ("on", "off"))}
    for name, there in allowed.items():
        given, usual = parameters.get(name), getattr(choice, name)
        if given is None or given in there:
            choice = replace(choice, **{name: given or usual})
        else:
            notices.append(notice(name, given, ", ".join(there), usual))
    done = [name for name in parameters.get("done", "").split(".") if name]
    if unknown := [name for name in done if name not in lessons]:
        notices.append(notice("done", ".".join(unknown), ", ".join(lessons), "what of it there is"))
    chosen = parameters.get("choice", "")[:_LONGEST_CHOICE]
    return replace(choice, choice=chosen, done=tuple(name for name in lessons if name in done)), notices


def write_choice(choice: LearnChoice) -> dict[str, str]:
    """The query parameters that reproduce a choice."""
    told: dict[str, Any] = {field.name: getattr(choice, field.name) for field in fields(LearnChoice)}
    told["done"] = ".".join(choice.done)
    usual = LearnChoice()
    kept = {name: text for name, text in told.items() if name in ("lesson", "notation") or text}
    return {name: text for name, text in kept.items() if name not in _SWITCHES or text != getattr(usual, name)}


def begun(text: str, longest: int, example: str) -> tuple[str, str]:
    """The part of a text that the course reads, and what to say about that; empty where there is nothing to say.

    A course about words that look at each other takes two of them.

    Args:
        text: what was typed.
        longest: the most words.
        example: the sentence that stands in for one of fewer than two words.
    """
    from attention_viz.trace.tokens import split_words

    if len(split_words(text)) < _FEWEST:
        said = "no word" if not split_words(text) else "a single word"
        return example, f"There is {said} in the box, so the course goes on with its example: “{example}”."
    short = text[: SETTINGS.longest_link]
    words = split_words(short)
    if short == text and len(words) <= longest:
        return text, ""
    kept: list[str] = []
    for part in short.split():
        if len(split_words(" ".join([*kept, part]))) > longest:
            break
        kept.append(part)
    # Some scripts put no space between words.
    begin = " ".join(kept) or " ".join(words[:longest])
    last = split_words(begin)[-1]
    said = (
        f"The course reads the first {longest} words and signs, up to “{last}”, so that each can be shown; what you "
        "typed stays in the box."
    )
    return begin, said


def read_progress(content: bytes, lessons: Sequence[str]) -> tuple[str, ...]:
    """The lessons that a file with somebody's progress says are done.

    Args:
        content: the file, as anybody may have made it.
        lessons: the course's lessons, in order.

    Raises:
        AttentionVizError: it is no such file.
    """
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
