"""Run tokenizers within bounds: they are untrusted programs whose patterns may run away on a text."""

import os
import queue
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attention_viz.errors import UnusableText, first_line
from attention_viz.inputs.isolated.asking import LONGEST_TEXT
from attention_viz.inputs.isolated.tokenizer import IsolatedTokenizer

if TYPE_CHECKING:
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

__all__ = ["LONGEST_TEXT", "SECONDS", "is_breakdown", "with_tokenizer"]

_Answer = TypeVar("_Answer")

# How long a tokenizer may take for a text.
SECONDS = 20.0

_Job = tuple[Callable[[], Any], "Future[Any]"]
_lines: "weakref.WeakKeyDictionary[PreTrainedTokenizerBase, _TokenizerThread]" = weakref.WeakKeyDictionary()
_lock = threading.Lock()


class _TokenizerThread:
    """A tokenizer's only thread: tokenizers keep state of the last request."""

    def __init__(self) -> None:
        self.jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        threading.Thread(target=_work, args=(self.jobs,), name="tokenizer", daemon=True).start()


def _work(jobs: "queue.SimpleQueue[_Job | None]") -> None:
    while (job := jobs.get()) is not None:
        work, future = job
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
        del job, work, future


def _forget_lines() -> None:
    """Reset in a fork, which lacks the threads that may have held the lock."""
    global _lock
    _lock = threading.Lock()
    _lines.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lines)


def with_tokenizer(model: str, tokenizer: "PreTrainedTokenizerBase", text: str, work: Callable[[], _Answer]) -> _Answer:
    """Run a tokenizer's work, one text at a time; other models' tokenizers aren't waited for.

    In this process it works in a thread, which can't be killed. Tokenizers of folders and the hub have processes of
    their own.
    """
    if len(text) > LONGEST_TEXT:
        raise UnusableText(
            f"the text has {len(text):,} characters; shorten it to the {LONGEST_TEXT:,} that {model}'s tokenizer takes"
        )
    if isinstance(tokenizer, IsolatedTokenizer):  # it has bounds of its own, and takes one text after the other
        return work()
    future: Future[_Answer] = Future()
    _line_of(tokenizer).jobs.put((work, future))
    if not wait([future], SECONDS).done:
        future.cancel()
        raise UnusableText(
            f"{model}'s tokenizer took longer than {SECONDS:g} seconds for this text or an earlier one; shorten it or "
            "choose another model"
        )
    try:
        return future.result()
    except MemoryError:
        raise
    except BaseException as error:
        if not (isinstance(error, Exception) or is_breakdown(error)):
            raise
        # Also for invalid settings, such as a maximum length that isn't a number.
        raise UnusableText(
            f"{model}'s tokenizer failed on this text: {type(error).__name__}: {first_line(error)}"
        ) from None


def is_breakdown(error: BaseException) -> bool:
    """Return whether a Rust tokenizer panicked: its error isn't an Exception and would end its caller."""
    return type(error).__name__ == "PanicException"


def _line_of(tokenizer: "PreTrainedTokenizerBase") -> _TokenizerThread:
    with _lock:
        line = _lines.get(tokenizer)
        if line is None:
            line = _lines[tokenizer] = _TokenizerThread()
            # With the tokenizer its thread ends; a job under way still holds it.
            weakref.finalize(tokenizer, line.jobs.put, cast("_Job | None", None))
        return line
