"""Announce long work, its size and duration first, then its progress."""

import sys
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter

from attention_viz.errors import AttentionVizWarning

Progress = Callable[[float], object]

# Seconds; what takes no longer is done before anybody has read about it.
_LONG = 10.0
_TELLING = 0.5
_UNITS = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))

_PACKAGE = __name__.partition(".")[0]
_unsaid: ContextVar[bool] = ContextVar("unsaid", default=False)


@contextmanager
def unsaid() -> Generator[None]:
    """Suppress announcements, for pages with their own; progress is still reported."""
    token = _unsaid.set(True)
    try:
        yield
    finally:
        _unsaid.reset(token)


def ahead(
    what: str,
    size: float,
    seconds: float,
    progress: Progress | None,
    unit: str = "rows",
    less: str = "layers=[…] takes fewer layers",
) -> Progress:
    """Announce work of over ten seconds by an `AttentionVizWarning`, and return its progress callback.

    Args:
        progress: takes the share done, 0 to 1; None prints lines on standard error.
        unit: "rows" or "bytes".
    """
    if seconds <= _LONG or _unsaid.get():
        return (lambda _share: None) if progress is None else progress
    phrase = size_in_words(size) if unit == "bytes" else f"{size:,.0f} {unit}"
    warnings.warn(
        f"{what}: {phrase}, which takes about {_lasting(seconds)} on two cores; {less}",
        AttentionVizWarning,
        stacklevel=_outside(),
    )
    return _Lines(what) if progress is None else progress


def _outside() -> int:
    """Count the stack levels up to the caller outside this package."""
    frame, level = sys._getframe(1), 1  # pyright: ignore[reportPrivateUsage] -- the only way to ask
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        frame, level = frame.f_back, level + 1
    return level


class _Lines:
    def __init__(self, what: str) -> None:
        self._what, self._tenth, self._since = what, 0, perf_counter()

    def __call__(self, share: float) -> None:
        tenth = int(share * 10 + 1e-9)
        if tenth <= self._tenth:
            return
        self._tenth = tenth
        spent = perf_counter() - self._since
        # What took no time at all says nothing of what is to come.
        more = f", about {_lasting(spent * (1 - share) / share)} to go" if share < 1 and spent > _TELLING else ""
        print(f"{self._what}: {tenth * 10} % done{more}", file=sys.stderr, flush=True)


def size_in_words(size: float) -> str:
    """Return a number of bytes as people write it."""
    return next((f"{size / of:,.1f} {name}" for name, of in _UNITS if size >= of), f"{size:.0f} bytes")


def _lasting(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 90 else f"{seconds / 60:.0f} minutes"
