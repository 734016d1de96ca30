"""Many families of models tried one after the other: each within its time, in processes begun anew now and then."""

import contextlib
import logging
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, TypeVar

import torch
from transformers.utils import logging as transformers_logging

import attention_viz as av

__all__ = ["SCALES", "SEEN", "TooLongError", "at_most", "cell", "first_line", "tells", "tried"]

# What stands in docs/families.md above pictures and sound, which follow after texts.
SEEN = "# Pictures and sound"

_T = TypeVar("_T")
_Result = TypeVar("_Result")

# Families that one process tries before the next: what they leave in memory goes with it.
_EACH = 60
# From large to small: the first at which attention is neither uniform nor on one token only, so that a mistake shows.
SCALES = (8.0, 4.0, 2.0, 1.0)
_PEAKED = 0.97
# How much more than its even share the heaviest key has to get.
_UNIFORM = 1.4
_LARGEST_SCORE = 30


class TooLongError(BaseException):
    """No `Exception`, which a model's code or ours would take for a fault of the model."""


@contextlib.contextmanager
def at_most(seconds: int) -> Generator[None]:
    """Stop what takes longer.

    Raises:
        TooLongError: it did.
    """

    def stop(*_: object) -> None:
        raise TooLongError

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def tells(trace: av.Trace) -> bool:
    """Whether a mistake would show: attention neither uniform nor all on one token, no score drowned in rounding."""
    last = trace.attention(trace.layer_count(trace.streams[-1]) - 1, trace.streams[-1])
    heaviest = float(last.head(0).weights[-3:].amax(dim=-1).mean())
    calls = [layer.attention for stream in trace.streams for layer in trace.layers[stream]]
    largest = max(float(call.scaled.abs().max()) for call in calls)
    return _UNIFORM / last.shape[-1] < heaviest < _PEAKED and largest < _LARGEST_SCORE


def first_line(error: BaseException) -> str:
    """What an error of somebody else's says, not too long."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines)[:160]}"


def cell(text: str) -> str:
    """A text as it stands in a table."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def tried(one: Callable[[_T], _Result], chosen: Sequence[_T]) -> Iterator[_Result]:
    """What comes out for each, in their order, from as many processes as there are processors.

    Args:
        one: tries one.
        chosen: which are tried.
    """
    torch.set_num_threads(1)  # a process with threads can't be forked
    way: Any = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
    with multiprocessing.get_context(way).Pool(os.cpu_count(), _quiet, maxtasksperchild=_EACH) as pool:
        yield from pool.imap(one, chosen)


def _quiet() -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    transformers_logging.set_verbosity_error()
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
