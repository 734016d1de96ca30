"""Measure the time from starting the process to the first, recorded picture and to the live one, split by cause."""

import itertools
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, Page

from benchmarks.measuring import Spread
from benchmarks.report import Benchmark, Result, Table
from benchmarks.serving import ROOT, VIEWPORT, chromium, serving

__all__ = ["BENCHMARK"]

# What happens between one point and the next.
_CAUSES = {
    "started": "",
    "torch:begins": "Python starts, and begins to load the model beside Streamlit",
    "load_folder:begins": "torch and transformers are imported, while the server begins to answer",
    "load_folder:ends": "the model is checked, loaded and probed",
    "pack:ends": "the sentence runs through it and is packed for the browser",
    "live": "it replaces the recorded one",
}
# Seconds that these may take on a quiet machine.
_MARKS = {"picture": 4.0, "live": 6.0}

_IS_PAINTED = "(canvas) => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(Boolean)"


def run(quick: bool) -> Result:
    """Start the app afresh a few times."""
    with chromium() as browser:
        starts = [_start(browser) for _ in range(1 if quick else 7)]
    points = list(_CAUSES)
    totals = _after(starts, "live")
    rows: list[list[str]] = []
    for before, after in itertools.pairwise(points):
        took = [start[after] - start[before] for start in starts]
        rows.append(_row(_CAUSES[after], took, totals))
    rows.append(_row("**from start to the live picture**", totals, totals))
    picture = _row("**the first picture, a recorded one, is drawn after**", _after(starts, "picture"), totals)
    page = _row("the page without its picture is visible after", _after(starts, "page"), totals)
    compared = _row("the badge shows the error against the model's own after", _after(starts, "verified"), totals)
    table = Table(("cause", "seconds", "share in %"), [*rows, picture, page, compared])
    named = {"picture": "first picture, a recorded one,", "live": "live picture"}
    remarks = [
        f"The target for the {named[point]} at most {most:.0f} seconds, is "
        f"{'reached' if (found := Spread.of(_after(starts, point)).median) <= most else 'missed'}: {found:.2f}."
        for point, most in _MARKS.items()
    ]
    return Result([table], remarks, packages=("playwright",))


def _after(starts: list[dict[str, float]], point: str) -> list[float]:
    """Return the seconds from each start to a point."""
    return [start[point] - start["started"] for start in starts]


def _row(cause: str, took: list[float], totals: list[float]) -> list[str]:
    share = Spread.of(100 * part / total for part, total in zip(took, totals, strict=True))
    return [cause, Spread.of(took).write("{:.2f}"), share.write("{:.0f}")]


def _start(browser: Browser) -> dict[str, float]:
    """Return the time of each point in one fresh start, in seconds since the epoch."""
    with tempfile.TemporaryDirectory() as folder:
        stamps = Path(folder) / "stamps"
        points = {"started": time.time()}
        program = [str(Path(__file__).with_name("clocked.py")), str(stamps), "run", str(ROOT / "app.py")]
        with serving(program) as address, browser.new_context(viewport=VIEWPORT) as context:
            page = context.new_page()
            page.goto(address, wait_until="commit")
            points["page"] = _when_there(page)
            points["picture"] = _when_drawn(page)
            points["live"] = _when_live(page)
            points["verified"] = _when_verified(page)
        for line in stamps.read_text().splitlines():
            name, moment = line.split()
            points.setdefault(name, float(moment))
    return points


def _when_there(page: Page) -> float:
    """Return the time when the page has its own contents, after Streamlit's grey boxes."""
    page.get_by_label("Sentence", exact=True).wait_for(timeout=60_000)
    return time.time()


def _when_drawn(page: Page) -> float:
    """Return the time when a head of the layer on the screen was painted."""
    cell = page.get_by_test_id("explorer-grid").locator('[aria-selected="true"] canvas')
    cell.wait_for(timeout=120_000)
    page.wait_for_function(_IS_PAINTED, arg=cell.element_handle(), timeout=60_000)
    return time.time()


def _when_live(page: Page) -> float:
    """Return the time when the page no longer marks its picture as recorded."""
    page.get_by_text("Recorded:").wait_for(state="detached", timeout=120_000)
    return time.time()


def _when_verified(page: Page) -> float:
    """Return the time when the page shows the live picture's error."""
    page.get_by_role("button", name="Verified").wait_for(timeout=60_000)
    return time.time()


BENCHMARK = Benchmark(
    title="From start to the first picture",
    method=(
        "The app is started seven times, each time as a new process. A browser that is already open requests the "
        "page, in a fresh profile, as soon as the server answers. A hook on imports and a wrapper around two "
        "functions record inside the server's process when it reached each point; the browser shows when something "
        "was visible. After the first start, files are in the operating system's cache. The times follow each other "
        "and add up to the whole, except for the last three rows, which overlap the others. Each figure is the "
        "median, with the smallest and the largest in brackets. Seconds depend on this machine; compare the shares."
    ),
    run=run,
)
