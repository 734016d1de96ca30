"""A lesson's question as JSON for the browser, before and after its answer, and the guess as a URL has it."""

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from attention_viz.lesson.lesson import Ask
from attention_viz.lesson.translation import translate
from attention_viz.views.figures.seen import laid_over, png_data

__all__ = ["GUESS", "SHOWN", "Reply", "question_data", "read_guess", "reply"]

# In the URL instead of a guess: the answer is shown without one.
SHOWN = "shown"
GUESS = re.compile(r"shown|[0-9]{1,3}(\.[0-9]{1,3})*")
_PERCENT = 100


@dataclass(frozen=True)
class Reply:
    """The reply to a guess, in the current language."""

    right: bool
    words: str


def read_guess(ask: Ask, text: str) -> tuple[int, ...] | None:
    """Return a guess's whole numbers: one percentage per option, or one option; None if it isn't one."""
    if not GUESS.fullmatch(text) or text == SHOWN:
        return None
    numbers, count = tuple(map(int, text.split("."))), len(ask.options)
    if ask.shares:
        return numbers if len(numbers) == count and sum(numbers) == _PERCENT else None
    return numbers if len(numbers) == 1 and numbers[0] < count else None


def reply(ask: Ask, guess: tuple[int, ...]) -> Reply:
    """Reply to a guess that `read_guess` returned."""
    option = max(range(len(guess)), key=guess.__getitem__) if ask.shares else guess[0]
    return Reply(option in ask.right, ask.said(option))


def question_data(ask: Ask, *, shown: bool, guess: str = "") -> dict[str, object]:
    """Return what the browser draws, as JSON values; it has no answer unless `shown`.

    Args:
        guess: as in the URL; ignored unless it is a guess of this question.
    """
    key = repr((ask.question, ask.options, ask.source, shown))
    return {
        "id": f"{zlib.crc32(key.encode('utf-8', 'replace'))}",
        "options": list(ask.options),
        "shares": ask.shares,
        "query": ask.query,
        "pressed": [bool(one) for one in ask.pressed] or [False] * len(ask.options),
        "guess": None if read_guess(ask, guess) is None else guess,
        "truth": {"lengths": list(ask.lengths), "written": list(ask.written), "right": sorted(ask.right)}
        if shown
        else None,
        "source": ask.source,
        "words": _words(ask),
        "picture": _picture(ask, shown=shown) if ask.on_picture else None,
    }


def _words(ask: Ask) -> Mapping[str, str]:
    return {
        "bars": translate("Places of the image") if ask.on_picture else translate("One bar per option"),
        "show": translate("Show answer"),
        "skip": translate("Skip guess"),
        "guess": translate("your guess"),
        "asks": translate("block or unblock") if ask.on_picture else translate("choose it"),
    }


def _picture(ask: Ask, *, shown: bool) -> dict[str, object]:
    """Return the image, lit by the weights once shown, and its options' boxes in shares of it."""
    picture = ask.seen
    assert picture is not None and picture.seen.picture is not None, "the question is about an image"
    weights = np.array([one or 0.0 for one in picture.weights]).reshape(picture.down, picture.across)
    lit = weights if shown else np.ones_like(weights)
    down, across = picture.down, picture.across
    blocked = [at for at, one in enumerate(picture.weights) if one is None]
    return {
        "image": png_data(laid_over(picture.seen.picture.numpy(), lit, smooth=False)),
        "boxes": [
            [top / down, left / across, rows / down, columns / across] for top, left, rows, columns in picture.boxes
        ],
        "blocked": [shown and top * across + left in blocked for top, left, _, _ in picture.boxes],
    }
