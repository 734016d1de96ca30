"""Run a server and a browser during a measurement."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

from playwright.sync_api import Browser, ViewportSize, sync_playwright

from scripts import serve
from scripts.browser import LAUNCH_FLAGS, NONE_FOUND, find, install

__all__ = ["Memory", "ask_where", "chromium", "serving"]

ROOT = Path(__file__).parents[1]
# One thread, as Python's faulthandler writes where it is.
_STACKS = re.compile(r"^(?:Current thread|Thread) 0x.*\n(?:  .*\n)+", re.MULTILINE)
VIEWPORT = ViewportSize(width=1360, height=860)


class Memory(threading.Thread):
    """Watches the memory of the processes started here until it is stopped.

    Attributes:
        own: their largest private memory in megabytes, which the system can't reclaim.
        files: the most megabytes of files, such as traces that rest on disk, that stood in memory for them; the
            system takes these pages back when it needs room.
        now: the megabytes of their own that they took when they were last looked at.
    """

    _PAUSE = 0.2  # seconds

    def __init__(self) -> None:
        """Begin with nothing."""
        super().__init__(daemon=True, name="memory")
        self.own = self.files = self.now = 0.0
        self._over = threading.Event()

    def __enter__(self) -> "Memory":
        """Begin to look."""
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Look no longer."""
        self._over.set()
        self.join()

    def run(self) -> None:
        """Read the memory from Linux."""
        while not self._over.wait(self._PAUSE):
            statuses = [_status(number) for number in _children(os.getpid())]
            self.now = sum(one.get("RssAnon", 0) for one in statuses) / 1e3
            self.own = max(self.own, self.now)
            self.files = max(self.files, sum(one.get("RssFile", 0) for one in statuses) / 1e3)


def _children(process: int) -> list[int]:
    found = list[int]()
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, path.read_text().split())
    return found


def _status(process: int) -> dict[str, int]:
    """Return the kilobytes of each kind of memory; none for a process that has ended."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return {}
    return {name: int(size) for name, size in re.findall(r"^(Rss\w+):\s+(\d+) kB", status, re.MULTILINE)}


@contextlib.contextmanager
def chromium() -> Generator[Browser]:
    """A Chromium without a screen."""
    found = find() or install()
    if found is None:
        raise RuntimeError(NONE_FOUND)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(LAUNCH_FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def serving(
    program: Sequence[str], environment: Mapping[str, str] | None = None, stood: list[str] | None = None
) -> Generator[str]:
    """Run a Streamlit program (the arguments after `python`) on its own port, and yield its URL."""
    port = serve.free_port()
    command = [sys.executable, *program, f"--server.port={port}", "--server.address=127.0.0.1"]
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **(environment or {})}, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            if not serve.wait_until_healthy(server, port):
                log.seek(0)
                raise RuntimeError(f"{' '.join(program)} did not start:\n{log.read().decode(errors='replace')}")
            yield f"http://127.0.0.1:{port}"
        finally:
            serve.stop(server)
            if stood is not None:
                log.seek(0)
                stood += _STACKS.findall(log.read().decode(errors="replace"))


def ask_where() -> None:
    """Make the app servers started here log a stack trace of each thread."""
    for number in _children(os.getpid()):
        with contextlib.suppress(OSError):
            if b"attention_viz.ui.process" in Path(f"/proc/{number}/cmdline").read_bytes():
                os.kill(number, signal.SIGUSR1)
