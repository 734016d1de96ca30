"""A server and a browser for as long as something is measured with them."""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

from playwright.sync_api import Browser, ViewportSize, sync_playwright

from scripts import serve
from scripts.browser import LAUNCH_FLAGS, NONE_FOUND, find, install

__all__ = ["chromium", "serving"]

ROOT = Path(__file__).parents[1]
VIEWPORT = ViewportSize(width=1360, height=860)


@contextlib.contextmanager
def chromium() -> Generator[Browser]:
    """A Chromium without a screen.

    Raises:
        RuntimeError: none was found, and none could be installed.
    """
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
def serving(program: Sequence[str], environment: Mapping[str, str] | None = None) -> Generator[str]:
    """Run a Streamlit program (the arguments after `python`) on a port of its own; yields its address.

    Raises:
        RuntimeError: it didn't start; the message has what it printed.
    """
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
