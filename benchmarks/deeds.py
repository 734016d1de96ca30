"""Compare the processor time of actions, in server and browser, between two checkouts in turns.

Run as `python -m benchmarks.deeds BEFORE AFTER`, with the folders of two checkouts that share an environment.
"""

import argparse
import contextlib
import os
import re
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, CDPSession, Page

from benchmarks.serving import VIEWPORT, chromium
from scripts import serve

__all__ = ["main"]

_TEXT = "The bank of the river was flooded, and the bank gave the farmers a loan for the next year"
_TICKS = os.sysconf("SC_CLK_TCK")
_ROUNDS = 8
# A page rests when neither side has worked for so long, in milliseconds.
_REST, _LOOK = 1_200, 200


@dataclass
class _Side:
    """A checkout's app in a browser."""

    name: str
    server: "subprocess.Popen[bytes]"
    page: Page
    session: CDPSession

    def costs(self) -> tuple[float, float]:
        """Return the processor time so far: the server's and the page's, in milliseconds."""
        fields = Path(f"/proc/{self.server.pid}/stat").read_text().rsplit(")", 1)[1].split()
        metrics = {one["name"]: one["value"] for one in self.session.send("Performance.getMetrics")["metrics"]}
        return (int(fields[11]) + int(fields[12])) * 1000 / _TICKS, metrics["TaskDuration"] * 1000

    def rest(self) -> None:
        """Wait until neither side has worked for a while."""
        quiet, before = 0, self.costs()
        while quiet < _REST:
            self.page.wait_for_timeout(_LOOK)
            now = self.costs()
            quiet = quiet + _LOOK if now[0] - before[0] < 20 else 0
            before = now


def _head(side: _Side, number: int) -> None:
    grid = side.page.get_by_test_id("explorer-grid")
    grid.get_by_role("gridcell", name=f"Layer 1 head {number % 8}", exact=True).click()


def _picker(side: _Side, number: int) -> None:
    side.page.get_by_label("Layer", exact=True).first.click()
    side.page.get_by_role("option", name=f"Layer {number % 6}", exact=True).click()


def _finding(side: _Side, number: int) -> None:
    side.page.get_by_test_id("finding").nth(number % 3).click()


def _page(side: _Side, number: int) -> None:
    label = ("Masks", "Explore")[number % 2]
    side.page.get_by_role("link", name=label, exact=True).first.click()
    side.page.wait_for_url(re.compile("masks" if label == "Masks" else r"/\?"))


def _text(side: _Side, number: int) -> None:
    box = side.page.get_by_label("Sentence", exact=True).first
    box.fill(f"{_TEXT} {'again ' * (number % 4 + 1)}".strip())
    box.press("Enter")


# In their order: the page that they end on is Explore.
_DEEDS: dict[str, Callable[[_Side, int], None]] = {
    "another head": _head,
    "a finding": _finding,
    "a picker": _picker,
    "another text": _text,
    "another page": _page,
}


def main() -> None:
    """Print the median cost of each deed, before and after."""
    parser = argparse.ArgumentParser(description="Compare what deeds cost in two checkouts.")
    parser.add_argument("trees", nargs=2, type=Path)
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    arguments = parser.parse_args()
    with chromium() as browser, contextlib.ExitStack() as stack:
        sides = [stack.enter_context(_serving(browser, tree)) for tree in arguments.trees]
        found = {name: _measure(deed, sides, arguments.rounds) for name, deed in _DEEDS.items()}
    print(
        f"load {os.getloadavg()[0]:.1f}; medians of {arguments.rounds}, milliseconds of processor time: server, browser"
    )
    for name, costs in found.items():
        print(
            f"{name:13}",
            "   ".join(
                f"{side.name}: {server:6.0f} {page:6.0f}" for side, (server, page) in zip(sides, costs, strict=True)
            ),
        )


def _measure(deed: Callable[[_Side, int], None], sides: list[_Side], rounds: int) -> list[tuple[float, float]]:
    costs: list[list[tuple[float, float]]] = [[] for _ in sides]
    # The first two rounds warm up; an even number of rounds ends where it began.
    for number in range(rounds + 2):
        for side, kept in zip(sides, costs, strict=True):
            side.page.bring_to_front()
            side.rest()
            before = side.costs()
            deed(side, number)
            side.rest()
            kept.append(tuple(now - then for now, then in zip(side.costs(), before, strict=True)))  # pyright: ignore
    return [tuple(statistics.median(column) for column in zip(*kept[2:], strict=True)) for kept in costs]  # pyright: ignore


@contextlib.contextmanager
def _serving(browser: Browser, tree: Path) -> Generator[_Side]:
    port = serve.free_port()
    command = [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        "app.py",
        f"--server.port={port}",
        "--server.address=127.0.0.1",
    ]
    server = subprocess.Popen(
        command,
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        if not serve.wait_until_healthy(server, port):
            raise RuntimeError(f"the app of {tree} didn't start")
        page = browser.new_context(viewport=VIEWPORT).new_page()
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        page.goto(f"http://127.0.0.1:{port}/?text={_TEXT.replace(' ', '+')}")
        page.get_by_role("button", name="Verified").wait_for(timeout=180_000)
        yield _Side(tree.name, server, page, session)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(20)


if __name__ == "__main__":
    main()
