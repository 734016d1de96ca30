"""The teacher's key: it opens the Class page; a key made from it opens the answer sheet."""

import functools
import hashlib
import hmac
import threading
import time
from collections import deque

from attention_viz.errors import AttentionVizError
from attention_viz.serving.settings import SETTINGS

__all__ = ["WRONG_TRIES", "answers_key", "has_key", "is_answers_key", "is_teacher"]

# Wrong keys in so many seconds, of all visitors together: a new session costs nothing.
_MOST_WRONG, _SECONDS = 30, 60
_LETTERS = 16
# So that a key from a projected link doesn't lead back to the teacher's.
_ROUNDS = 200_000

WRONG_TRIES = deque[float](maxlen=_MOST_WRONG)
_lock = threading.Lock()


def has_key() -> bool:
    """Return whether the server has a teacher's key."""
    return bool(SETTINGS.teacher)


def is_teacher(key: str) -> bool:
    """Return whether a key is the teacher's; raise `AttentionVizError` after too many wrong ones."""
    now = time.monotonic()
    with _lock:
        if len(WRONG_TRIES) == _MOST_WRONG and now - WRONG_TRIES[0] < _SECONDS:
            raise AttentionVizError(f"visitors typed {_MOST_WRONG} wrong keys within a minute; try again in a minute")
        right = has_key() and _same(key.strip(), SETTINGS.teacher)
        if not right:
            WRONG_TRIES.append(now)
    return right


def answers_key() -> str:
    """Return the key of the answer sheet, for a URL."""
    return _derived(SETTINGS.teacher)


def is_answers_key(key: str) -> bool:
    """Return whether a URL's key opens the answer sheet."""
    return has_key() and _same(key, answers_key())


def _same(one: str, other: str) -> bool:
    """Compare in a time that doesn't depend on the letters."""
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode())


@functools.cache
def _derived(key: str) -> str:
    return hashlib.pbkdf2_hmac("sha256", key.encode(), b"attention_viz answer sheet", _ROUNDS).hex()[:_LETTERS]
