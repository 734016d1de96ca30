"""Find a local Chromium for drawing pictures and testing pages.

Standard library only. ATTENTION_VIZ_BROWSER names another browser.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from attention_viz.errors import AttentionVizError

CHOICE = "ATTENTION_VIZ_BROWSER"
ON_THE_PATH = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge", "msedge")

# Where Chrome and Edge are installed without being on the path.
_ON_A_MAC = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
)
_ON_WINDOWS = (r"Google\Chrome\Application\chrome.exe", r"Microsoft\Edge\Application\msedge.exe")

# A browser in a container has no sandbox and no GPU, and one that shows a local page has nothing to fetch elsewhere.
LAUNCH_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def find() -> str | None:
    """Return the first headless browser that starts, or None; takes seconds."""
    return next(filter(starts, candidates()), None)


def at_hand() -> str | None:
    """Return the first existing browser at once, starting none, or None."""
    return next(filter(shutil.which, _named()), None)


def needed(what: str) -> str:
    """Return the browser that is `at_hand`, or raise an error."""
    browser = at_hand()
    if browser is None:
        chosen = os.environ.get(CHOICE)
        why = f"{CHOICE}={chosen} isn't a program" if chosen else "none was found"
        raise AttentionVizError(f"{what} needs Chrome, Chromium or Edge on this machine; {why}")
    return browser


def candidates() -> Iterator[str]:
    """List only the chosen browser; else installed ones, then Playwright's."""
    yield from _named()
    if os.environ.get(CHOICE):
        return
    # Another process asks, because Playwright refuses a second session in one that already runs it.
    ask = "from playwright.sync_api import sync_playwright as p\nwith p() as o: print(o.chromium.executable_path)"
    answer = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=False)
    if answer.returncode == 0:
        yield answer.stdout.strip()


def starts(browser: str) -> bool:
    """Return whether the browser really draws a page headless."""
    page = "data:text/html,<p>it%20draws</p>"
    command = [browser, "--headless", *LAUNCH_FLAGS, "--dump-dom", page]
    try:
        drawn = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return "it draws" in drawn.stdout


def _named() -> Iterator[str]:
    if chosen := os.environ.get(CHOICE):
        yield chosen
        return
    yield from filter(None, map(shutil.which, ON_THE_PATH))
    programs = filter(None, map(os.environ.get, ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")))
    elsewhere = (*_ON_A_MAC, *(os.path.join(folder, name) for folder in programs for name in _ON_WINDOWS))
    yield from (name for name in elsewhere if Path(name).is_file())
