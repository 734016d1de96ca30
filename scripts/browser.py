"""Finds a Chromium that starts, for tests and benchmarks that look at pages; as a program, installs one if need be.

Standard library only. The environment variable ATTENTION_VIZ_BROWSER names a browser of one's own.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

CHOICE = "ATTENTION_VIZ_BROWSER"
ON_THE_PATH = ("chromium", "chromium-browser", "google-chrome")

# A browser in a container has no sandbox and no GPU, and one that tests a local page has nothing to fetch elsewhere.
LAUNCH_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)

NONE_FOUND = f"""No browser that starts was found, and none could be installed.
Install Chromium or Google Chrome (on Debian: apt install chromium), or name one: {CHOICE}=/path/to/chromium"""


def find() -> str | None:
    """The first browser that starts without a screen, or None."""
    return next(filter(starts, candidates()), None)


def candidates() -> Iterator[str]:
    """Where a browser may be: the one chosen, and only that; else those on the path, then Playwright's own."""
    if chosen := os.environ.get(CHOICE):
        yield chosen
        return
    yield from filter(None, map(shutil.which, ON_THE_PATH))
    # Another process asks, because Playwright refuses a second session in one that already runs it.
    ask = "from playwright.sync_api import sync_playwright as p\nwith p() as o: print(o.chromium.executable_path)"
    told = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=False)
    if told.returncode == 0:
        yield told.stdout.strip()


def starts(browser: str) -> bool:
    """Whether the browser draws a page without a screen, not just whether its file is there."""
    page = "data:text/html,<p>it%20draws</p>"
    command = [browser, "--headless", *LAUNCH_FLAGS, "--dump-dom", page]
    try:
        drawn = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return "it draws" in drawn.stdout


def install() -> str | None:
    """Install a browser by the first way that leaves one that starts: Playwright's download, then Debian's package."""
    as_root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    apt_get = [*as_root, "apt-get"]
    ways = {
        "Playwright's Chromium": [[sys.executable, "-m", "playwright", "install", "chromium"]],
        "Debian's chromium package": [[*apt_get, "update"], [*apt_get, "install", "-y", "chromium"]],
    }
    for name, commands in ways.items():
        print(f"No browser that starts; trying {name} ...", flush=True)
        if all(map(succeeds, commands)) and (browser := find()):
            return browser
    return None


def succeeds(command: list[str]) -> bool:
    """Run one installation step quietly, for ten minutes at most."""
    nobody_asked = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        subprocess.run(
            command, env=nobody_asked, stdin=subprocess.DEVNULL, capture_output=True, timeout=600, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return True


def main() -> None:
    """Print which browser will be used, installing one where there is none."""
    browser = find()
    if browser is None and (chosen := os.environ.get(CHOICE)):
        sys.exit(f"{CHOICE}={chosen} is not a browser that starts. Correct it, or unset it to have one found.")
    browser = browser or install()
    if browser is None:
        sys.exit(NONE_FOUND)
    print(f"Pages are looked at with {browser}.")


if __name__ == "__main__":
    main()
