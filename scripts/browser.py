"""Find a Chromium that starts, for tests and benchmarks of pages; as a program, install one if needed.

Standard library only. The environment variable ATTENTION_VIZ_BROWSER names your own browser.
"""

import os
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # run as a program, a script knows its own folder only

from attention_viz.views.export.browsers import CHOICE, LAUNCH_FLAGS, candidates, find, starts

__all__ = ["CHOICE", "LAUNCH_FLAGS", "NONE_FOUND", "candidates", "find", "install", "starts"]

NONE_FOUND = f"""No browser that starts was found, and none could be installed.
Install Chromium or Google Chrome (on Debian: apt install chromium), or name one: {CHOICE}=/path/to/chromium"""


def install() -> str | None:
    """Install a browser that starts: from Playwright's download, else from Debian's package."""
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
    """Print the browser to use; install one if there is none."""
    browser = find()
    if browser is None and (chosen := os.environ.get(CHOICE)):
        sys.exit(f"{CHOICE}={chosen} is not a browser that starts. Correct it, or unset it to find one.")
    browser = browser or install()
    if browser is None:
        sys.exit(NONE_FOUND)
    print(f"Using the browser {browser}.")


if __name__ == "__main__":
    main()
