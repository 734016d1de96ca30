"""ToolCalls of tools in threads of their own: a few at once, each with a time limit."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

import anyio

from attention_viz.errors import AttentionVizError
from attention_viz.serving.door import ANALYSES, FORWARDS, keep_turn, new_turn
from attention_viz.trace.ahead import unsaid

_Found = TypeVar("_Found")

# Of these, as many compute as `forwards_at_once` says; the others wait their turn.
_MOST_AT_ONCE = 8
# Seconds that stopped calls get to end before the process does.
_GRACE = 2.0


class CallStopped(BaseException):
    """A call was cancelled, took too long, or its client is gone. Another that waits for its model then loads it."""


class ToolCall:
    """A running call, which asks now and then whether its answer is still wanted."""

    def __init__(self) -> None:
        """Begin wanted."""
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Let the call end at its next question."""
        self._stopped.set()

    def still_wanted(self, *_: object) -> None:
        """Raise `CallStopped` if the answer isn't wanted any more."""
        if self._stopped.is_set():
            raise CallStopped


class ToolCalls:
    """Runs calls in threads, so that the protocol is answered meanwhile."""

    def __init__(self, seconds: int) -> None:
        """Begin without calls; each is stopped after this time, waiting included."""
        self._seconds = seconds
        self._free = anyio.Semaphore(_MOST_AT_ONCE)
        self._running = dict[threading.Thread, ToolCall]()

    async def run(self, work: Callable[[ToolCall], _Found]) -> _Found:
        """Return what `work` returns; raise an error after the time limit."""
        call = ToolCall()
        try:
            with anyio.move_on_after(self._seconds):
                await self._free.acquire()
                return await asyncio.wrap_future(self._start(call, work))
        finally:
            call.stop()
        raise AttentionVizError(f"stopped after {self._seconds} s, the limit; use a shorter text or a smaller model")

    def end(self) -> bool:
        """Stop all calls; return whether all ended soon."""
        running = list(self._running.items())
        for _, call in running:
            call.stop()
        for thread, _ in running:
            thread.join(_GRACE / len(running))
        return not any(thread.is_alive() for thread, _ in running)

    def _start(self, call: ToolCall, work: Callable[[ToolCall], _Found]) -> "Future[_Found]":
        future, loop = Future[_Found](), asyncio.get_running_loop()

        def run() -> None:
            try:
                if future.set_running_or_notify_cancel():
                    future.set_result(_in_turn(call, work))
            except BaseException as error:
                future.set_exception(error)
            finally:
                with contextlib.suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(self._ended, thread)

        # It ends with the process.
        thread = threading.Thread(target=run, name="call of a tool", daemon=True)
        self._running[thread] = call
        thread.start()
        return future

    def _ended(self, thread: threading.Thread) -> None:
        del self._running[thread]
        self._free.release()


def _in_turn(call: ToolCall, work: Callable[[ToolCall], _Found]) -> _Found:
    keep_turn(new_turn())
    with unsaid(), FORWARDS.telling(call.still_wanted), ANALYSES.telling(call.still_wanted):
        return work(call)
