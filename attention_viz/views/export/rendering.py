"""Draw figures in a local browser: one at a time, limited, always ended.

Kaleido starts the browser. Its page holds plotly's plotly.js and has no network access.
"""

import asyncio
import contextlib
import logging
import os
import signal
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from attention_viz.errors import AttentionVizError
from attention_viz.views.export.browsers import CHOICE, needed

# Draws a Plotly figure (as plain values) in a format ("svg", "png", "pdf"), so many dots to a pixel.
Draw = Callable[[dict[str, Any], str, float], Awaitable[bytes]]

_Made = TypeVar("_Made")

# Seconds: for others' pictures before ours, for ours with the browser's start, and for the browser to close by itself.
_LONGEST_WAIT, _LONGEST_DRAWING, LONGEST_CLOSING = 60.0, 100.0, 15.0

# Where nobody listens: a browser that wants anything from a network is told so at once. Files need no proxy.
_NO_NETWORK = "127.0.0.1:9"

_one_at_a_time = threading.Lock()


def rendered(
    what: str, work: Callable[[Draw], Awaitable[_Made]], *, wait: float = _LONGEST_WAIT, limit: float = _LONGEST_DRAWING
) -> _Made:
    """Run drawing work in its own browser, with limits in seconds to wait for others and to draw."""
    browser = needed(what)
    if not _one_at_a_time.acquire(timeout=wait):
        raise AttentionVizError(f"can't draw {what}: other pictures took more than {wait:.0f} seconds; try again")
    try:
        return _in_a_thread(what, browser, work, limit)
    finally:
        _one_at_a_time.release()


def _in_a_thread(what: str, browser: str, work: Callable[[Draw], Awaitable[_Made]], limit: float) -> _Made:
    """Run in another thread, since notebooks have an event loop here."""
    done: list[_Made] = []
    failed: list[Exception] = []

    def run() -> None:
        try:
            done.append(asyncio.run(_drawn(browser, work, limit)))
        except Exception as error:
            failed.append(error)

    # A daemon, so that Ctrl-C doesn't wait for it: the browser ends when the program that it speaks with does.
    thread = threading.Thread(target=run, name="attention_viz picture", daemon=True)
    thread.start()
    thread.join()
    if not done:
        raise _refusal(what, browser, limit, failed[0])
    return done[0]


async def _drawn(browser: str, work: Callable[[Draw], Awaitable[_Made]], limit: float) -> _Made:
    from kaleido import Kaleido

    # Only now, as the logger is of choreographer's own class once kaleido has imported it.
    logging.getLogger("choreographer.channels.pipe").addFilter(_of_use)
    kaleido = Kaleido(path=browser, timeout=limit, mathjax=False, proxy_server=_NO_NETWORK)

    async def draw(figure: dict[str, Any], form: str, scale: float) -> bytes:
        layout = figure["layout"]
        size = {"width": layout["width"], "height": layout["height"]}
        return await kaleido.calc_fig(figure, opts={"format": form, "scale": scale, **size})  # pyright: ignore[reportArgumentType] -- its options are narrower in words than in code

    clock = asyncio.timeout(limit)
    try:
        async with clock:
            await kaleido.open()
            made = await work(draw)
        await asyncio.wait_for(kaleido.close(), LONGEST_CLOSING)
    except BaseException as error:
        with contextlib.suppress(Exception):
            await asyncio.wait_for(kaleido.close(), LONGEST_CLOSING)
        _kill(kaleido)
        # Where it is stopped while it opens, the browser is said to have ended by itself.
        if clock.expired():
            raise TimeoutError from error
        raise
    return made


def _of_use(record: logging.LogRecord) -> bool:
    """Skip half messages of closing browsers, for which choreographer prints tracebacks."""
    return not record.getMessage().startswith("JSONError decoding message")


def _kill(kaleido: Any) -> None:
    """End the browser's whole process group."""
    process = getattr(kaleido, "subprocess", None)
    if process is None:
        return
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    with contextlib.suppress(Exception):
        process.wait(timeout=LONGEST_CLOSING)


def _refusal(what: str, browser: str, limit: float, error: Exception) -> AttentionVizError:
    if isinstance(error, AttentionVizError):
        return error
    if isinstance(error, TimeoutError):
        return AttentionVizError(f"can't draw {what}: {browser} took more than {limit:.0f} seconds")
    from choreographer import errors  # heavy, and only here

    # Which of these it is depends on whether the program ends before it is spoken to or while it is.
    if isinstance(error, errors.BrowserFailedError | errors.BrowserClosedError | errors.ChannelClosedError):
        reason = "it ended at its start, or while it drew"
    else:
        reason = str(error.args[0] if error.args else type(error).__name__).rstrip(".")
    return AttentionVizError(f"{browser} can't draw {what}: {reason}; choose another with {CHOICE}")
