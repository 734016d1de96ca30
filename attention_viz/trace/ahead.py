"""What takes long says so first: how large it is and how long it may take, and then how far it is."""

import sys
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter

from attention_viz.errors import AttentionVizWarning

__all__ = ["Progress", "ahead", "unsaid"]

Progress = Callable[[float], object]

# Seconds; what takes no longer is done before anybody has read about it.
_LONG = 10.0
_TELLING = 0.5
_UNITS = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))

_PACKAGE = __name__.partition(".")[0]
_unsaid: ContextVar[bool] = ContextVar("unsaid", default=False)


@contextmanager
def unsaid() -> Generator[None]:
    """Within it nothing is said, for a page that tells of its work in its own way; a progress is still told."""
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
    less: str = "layers=[…] takes some layers only",
) -> Progress:
    """Say of some work that it takes long, where it does, before it begins.

    Args:
        progress: who is told which share is done, from 0 to 1; of long work, by default, lines on standard error.
        unit: of the size: "rows", or "bytes".

    Returns:
        What has to be told how far the work is.

    Warns:
        AttentionVizWarning: it takes more than ten seconds.
    """
    if seconds <= _LONG or _unsaid.get():
        return (lambda _share: None) if progress is None else progress
    phrase = _in_bytes(size) if unit == "bytes" else f"{size:,.0f} {unit}"
    warnings.warn(
        f"{what}: {phrase}, which takes about {_lasting(seconds)} on two cores; {less}",
        AttentionVizWarning,
        stacklevel=_outside(),
    )
    return _Lines(what) if progress is None else progress


def _outside() -> int:
    """How far above the line that warns stands the one outside this package that asked for the work."""
    frame, level = sys._getframe(1), 1  # pyright: ignore[reportPrivateUsage] -- the only way to ask
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        frame, level = frame.f_back, level + 1
    return level


class _Lines:
    """Says on standard error each time that another tenth is done."""

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


def _in_bytes(size: float) -> str:
    return next((f"{size / of:,.1f} {name}" for name, of in _UNITS if size >= of), f"{size:.0f} bytes")


def _lasting(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 90 else f"{seconds / 60:.0f} minutes"
