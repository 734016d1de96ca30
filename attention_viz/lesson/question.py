"""A lesson's question as JSON for the browser, before and after its answer, and the guess as a URL has it."""

import re
import zlib
from collections.abc import Mapping

from attention_viz.lesson.lesson import Ask, Lesson
from attention_viz.lesson.openings.opening import Reply
from attention_viz.lesson.translation import translate

__all__ = ["GUESS", "SHOWN", "hide_letters", "how_to_guess", "question_data", "read_guess", "reply"]

# In the URL instead of a guess: the answer is shown without one.
SHOWN = "shown"
GUESS = re.compile(r"shown|[0-9]{1,4}(\.[0-9]{1,4})*")
_PERCENT = 100


def read_guess(ask: Ask, text: str) -> tuple[int, ...] | None:
    """Return a guess's whole numbers, such as an option, or a percentage per option; None if it isn't one."""
    if not GUESS.fullmatch(text) or text == SHOWN:
        return None
    numbers, (count, most) = tuple(map(int, text.split("."))), _numbers(ask)
    whole = ask.opening is not None or not ask.shares or sum(numbers) == _PERCENT
    return numbers if len(numbers) == count and max(numbers) <= most and whole else None


def _numbers(ask: Ask) -> tuple[int, int]:
    """Return how many numbers a guess has, and the largest that each can be."""
    if ask.opening is not None:
        return ask.opening.numbers
    return (len(ask.options), _PERCENT) if ask.shares else (1, len(ask.options) - 1)


def hide_letters(text: str) -> str:
    """Replace letters and digits, so that a text takes its room without being known; as in `course/lesson.js`."""
    return re.sub(r"\w", "e", text)


def how_to_guess(lesson: Lesson, ask: Ask) -> str:
    """Return how to guess."""
    if ask.opening is not None:
        return ask.opening.how
    if not ask.shares:
        return translate("Click your guess.")
    if lesson.sample is None:
        return translate("Drag the bars, or click the word that you think gets most.")
    return translate("Drag the bars, or click the line that you think gets most.")


def reply(ask: Ask, guess: tuple[int, ...]) -> Reply:
    """Reply to a guess that `read_guess` returned."""
    if ask.opening is not None:
        return ask.opening.replies[ask.opening.outcome(guess)]
    option = max(range(len(guess)), key=guess.__getitem__) if ask.shares else guess[0]
    return _replies(ask)[option]


def _replies(ask: Ask) -> tuple[Reply, ...]:
    if ask.opening is not None:
        return ask.opening.replies
    return tuple(Reply("right" if at in ask.right else "wrong", ask.said(at)) for at in range(len(ask.options)))


def question_data(ask: Ask, *, shown: bool, guess: str = "") -> dict[str, object]:
    """Describe a question to the browser, as JSON values; without the answer unless `shown`.

    The browser finds the reply to a guess among `truth.replies` (`replyTo` in `static/lesson/predict.js`).

    Args:
        guess: as in the URL; ignored unless it is a guess of this question.
    """
    key = repr((ask.question, ask.options, ask.source, shown))
    opening = ask.opening
    answer = {} if opening is None or not shown else {**opening.after()}
    return {
        "id": f"{zlib.crc32(key.encode('utf-8', 'replace'))}",
        "kind": "bars" if opening is None else opening.kind,
        # Without what the answer replaces, such as an image.
        "opening": {}
        if opening is None
        else {name: value for name, value in opening.before().items() if name not in answer},
        "how": "" if opening is None else opening.how,
        "bars": opening is None or opening.bars,
        "options": list(ask.options),
        "shares": ask.shares,
        "query": ask.query,
        "pressed": [bool(one) for one in ask.pressed] or [False] * len(ask.options),
        "numbers": list(_numbers(ask)),
        "guess": None if read_guess(ask, guess) is None else guess,
        "truth": {**_truth(ask), "opening": answer} if shown else None,
        "source": ask.source,
        "words": {
            "bars": translate("One bar per option"),
            "show": translate("Show answer"),
            "skip": translate("Skip guess"),
            "guess": translate("your guess"),
            "asks": translate("choose it"),
        },
    }


def _truth(ask: Ask) -> Mapping[str, object]:
    return {
        "lengths": list(ask.lengths),
        "written": list(ask.written),
        "right": sorted(ask.right),
        "replies": [{"mark": one.mark, "words": one.words} for one in _replies(ask)],
    }
