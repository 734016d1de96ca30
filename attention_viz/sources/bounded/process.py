"""Ask a bounded process: each answer comes in time, or the process is killed.

An untrusted tokenizer, template or configuration is a program in effect: it may run forever, or take all memory.
"""

import os
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from attention_viz import errors
from attention_viz.errors import AttentionVizError
from attention_viz.sources.bounded.framing import Message, TooLong, pack, receive
from attention_viz.sources.bounded.image import NOT_FORKED
from attention_viz.sources.bounded.limits import Limits
from attention_viz.sources.bounded.starting import Started, prepare, start
from attention_viz.trace.kind import InputKind

__all__ = ["Broken", "Exceeded", "NotStarted", "Process", "ProcessEnded", "isolates", "prepare"]

# How long a process may take to be there, imports included, on a busy machine.
_STARTING = 90.0
# How often a waiting thread checks whether to go on, in seconds.
_LOOK = 0.25
# The signals by which Linux ends a process that exceeds a limit.
_ABORTED, _TOO_MUCH_TIME, _KILLED = -6, -24, -9
_SWITCH = "ATTENTION_VIZ_ISOLATE"
# Our errors that need no more than a message.
_PASSED_ON: tuple[type[AttentionVizError], ...] = (
    errors.ModelNotFound,
    *(kind.error for kind in InputKind),
)


def isolates() -> bool:
    """Return whether untrusted files are opened in separate processes; ATTENTION_VIZ_ISOLATE=off disables it."""
    content = os.environ.get(_SWITCH, "on").strip().lower()
    if content not in ("on", "off", "1", "0", "true", "false", "yes", "no"):
        raise ValueError(f"{_SWITCH} must be on or off; got {content!r}")
    return content in ("on", "1", "true", "yes")


class ProcessEnded(Exception):
    """A process ended before it answered; the message is a verb with its object, and the caller adds the subject."""


class Exceeded(ProcessEnded):
    """Its task took more memory, or more of the processor's time, than it may; a busy machine makes no difference."""


class NotStarted(ProcessEnded):
    """No process could be started, through no fault of its task."""


class Broken(Exception):
    """A request failed inside the process, which goes on; the message gives the error."""


class Process:
    """A bounded process that answers requests one by one; not for several threads at once."""

    def __init__(
        self,
        module: str,
        limits: Limits,
        starting: Callable[[str, Limits, str | None], Started] = start,
        image: str | None = None,
    ) -> None:
        """Start it; the first answer waits for the imports unless `prepare` was called earlier."""
        self._limits = limits
        try:
            self._started = starting(module, limits, image)
        except OSError as error:
            raise _not_started(error.errno) from None
        self._end = weakref.finalize(self, self._started.end)
        self._ready = False
        self._owner = os.getpid()

    @property
    def alive(self) -> bool:
        """Whether it can be asked; never in a fork of this process."""
        return self._end.alive and os.getpid() == self._owner

    def ask(
        self,
        request: Message,
        check: Callable[[], None] = lambda: None,
        *,
        seconds: float | None = None,
        longest: int | None = None,
    ) -> Message:
        """Return the answer, of at most `longest` bytes; an exception in `check` kills the process."""
        try:
            answer = self._exchange(request, check, self._within(seconds, longest))
        except BaseException:  # half of an answer may have come: nothing that follows could be read
            self.end()
            raise
        return _checked(answer.values, answer)

    def end(self) -> int | None:
        """Kill it now; return its exit status, if known."""
        return self._end() if self._end.alive else None

    def _within(self, seconds: float | None, longest: int | None) -> Limits:
        limits = self._limits
        less = limits.seconds if seconds is None else min(seconds, limits.seconds)
        shorter = limits.answer if longest is None else min(longest, limits.answer)
        return replace(limits, seconds=less, answer=shorter)

    def _exchange(self, request: Message, check: Callable[[], None], limits: Limits) -> Message:
        if not self.alive:
            raise ProcessEnded("has ended")
        if not self._ready:
            self._receive(replace(self._limits, seconds=_STARTING), check)
            self._ready = True
        self._started.channel.settimeout(limits.seconds)
        try:
            self._started.channel.sendall(pack(request))
        except TimeoutError:
            raise ProcessEnded(self._too_long(limits.seconds)) from None
        except OSError:
            raise self._stopped() from None
        answer = self._receive(limits, check)
        if "over" in answer.values:
            raise Exceeded(self._too_much_memory())
        return answer

    def _receive(self, limits: Limits, check: Callable[[], None]) -> Message:
        until = time.monotonic() + limits.seconds
        try:
            return receive(lambda count: self._exactly(count, until, check), limits.answer)
        except TimeoutError:
            raise ProcessEnded(self._too_long(limits.seconds)) from None
        except TooLong:
            raise ProcessEnded(f"gives an answer of more than {limits.answer / 1e6:.3g} MB") from None
        except (EOFError, OSError):
            raise self._stopped() from None
        except ValueError:
            raise ProcessEnded("gives an answer that can't be read") from None

    def _exactly(self, count: int, until: float, check: Callable[[], None]) -> bytes:
        parts = bytearray()
        while len(parts) < count:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._started.channel.settimeout(min(left, _LOOK))
            try:
                part = self._started.channel.recv(min(count - len(parts), 1_000_000))
            except TimeoutError:
                check()
                continue
            if not part:
                raise EOFError
            parts += part
        return bytes(parts)

    def _stopped(self) -> ProcessEnded:
        """Return the error that says why it ended by itself."""
        status = self.end()
        if status is not None and status >= NOT_FORKED:
            return _not_started(status - NOT_FORKED)
        if status == _ABORTED:
            return Exceeded(self._too_much_memory())
        if status == _TOO_MUCH_TIME:
            return Exceeded(self._too_long(self._limits.processor))
        return ProcessEnded("was ended from outside" if status == _KILLED else "ended without an answer")

    def _too_much_memory(self) -> str:
        return f"takes more than {self._limits.memory / 1e6:g} MB of memory"

    def _too_long(self, seconds: float) -> str:
        return f"takes longer than {seconds:g} seconds"


def _not_started(number: int | None) -> NotStarted:
    return NotStarted(f"can't start ({os.strerror(number) if number else 'the system refused'})")


def _checked(values: Any, answer: Message) -> Message:
    """Return the answer, or raise the error in it."""
    reason, kind = values.get("error"), values.get("kind")
    if reason is None:
        return answer
    ours = getattr(errors, kind, None) if isinstance(kind, str) and kind in errors.__all__ else None
    if ours in _PASSED_ON:
        raise ours(str(reason))
    raise Broken(str(reason))
