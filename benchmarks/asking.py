"""Measure how long the Why page takes to answer a click, against the command line."""

import subprocess
import sys
import time
from urllib.parse import quote_plus

from playwright.sync_api import Locator, Page

from benchmarks.measuring import Spread, ratios
from benchmarks.report import Benchmark, Result, Table
from benchmarks.serving import ROOT, VIEWPORT, chromium, serving

__all__ = ["BENCHMARK"]

_MODEL = "SmolLM2-135M-Instruct"
_STORY = "When Mary and John went to the {}, John gave a drink to"
_PLACES = ("store", "park", "beach", "school", "station", "market")
_COMMAND = "the command line"
_PAGE = "*Why “Mary”?* clicked on Explore, to the page with the number, the sum and the map"
_OTHER = "another word to subtract"
_HEAD = "another head"
_MARK = 1.5  # seconds

# The browser's own clock, from when it received the press.
_LISTEN = """() => {
    window.began = null;
    document.addEventListener("click", (event) => { window.began = event.timeStamp; }, {capture: true, once: true});
}"""


def run(quick: bool) -> Result:
    """Ask in turns, one text after the other; the first of several doesn't count."""
    texts = [_STORY.format(place) for place in _PLACES[: 1 if quick else None]]
    found: dict[str, list[float]] = {name: [] for name in (_COMMAND, _PAGE, _OTHER, _HEAD)}
    app = ("-m", "streamlit", "run", str(ROOT / "app.py"))
    with chromium() as browser, serving(app) as ours:
        page = browser.new_context(viewport=VIEWPORT).new_page()
        for text in texts:
            for name, seconds in {_COMMAND: _command(text), **_presses(page, ours, text)}.items():
                found[name].append(seconds)
    counted = {name: figures[1:] or figures for name, figures in found.items()}
    rows = [
        [name, Spread.of(some).write("{:.2f}"), ratios(counted[_COMMAND], some).write("{:.0f}")]
        for name, some in counted.items()
    ]
    slowest = max(Spread.of(some).median for name, some in counted.items() if name != _COMMAND)
    reached = "reached" if slowest <= _MARK else "missed"
    remark = f"The target for the page's answers, at most {_MARK} s, is {reached}: {slowest:.2f} s."
    columns = ("asked by", "answer in seconds", "the command line's ÷ this")
    return Result([Table(columns, rows)], [remark], packages=("playwright",))


def _command(text: str) -> float:
    began = time.perf_counter()
    asked = ("why", "--model", _MODEL, "--text", text, "--token", "Mary", "--against", "John")
    subprocess.run([sys.executable, "-m", "attention_viz", *asked], check=True, capture_output=True, cwd=ROOT)
    return time.perf_counter() - began


def _presses(page: Page, ours: str, text: str) -> dict[str, float]:
    page.goto(f"{ours}/?model={_MODEL}&text={quote_plus(text)}")
    # What comes last on the page.
    page.get_by_text("Promotes:").wait_for(timeout=120_000)
    question = page.locator(".av-question")
    answered = _timed(page, page.get_by_role("button", name="Why “Mary”?"), question)
    page.get_by_text("lost by ablation", exact=False).nth(1).wait_for(timeout=60_000)
    page.get_by_role("button", name="Verified").wait_for(timeout=60_000)
    page.get_by_role("combobox", name="and not").click()
    option = page.get_by_role("option").nth(1)
    other = _timed(page, option, question.filter(has_text=option.inner_text()))
    page.get_by_role("button", name="Verified").wait_for(timeout=60_000)
    head = _timed(page, page.locator('[data-head="24 4"]').first, page.get_by_text("Layer 24, head 4").first)
    return {_PAGE: answered, _OTHER: other, _HEAD: head}


def _timed(page: Page, button: Locator, shown: Locator) -> float:
    """Return the seconds from the click to its result on the screen."""
    page.evaluate(_LISTEN)
    button.click()
    shown.wait_for(timeout=60_000)
    return float(page.evaluate("performance.now() - window.began")) / 1000


BENCHMARK = Benchmark(
    title="Why, in the browser",
    method=(
        f"Measures how soon you get an answer after asking on Explore why {_MODEL} predicts a word. Time runs in "
        "Chromium without a screen, from when the browser receives the click to when the answer is on the screen. It "
        "is compared with `attention-viz why`, which decomposes the same number but loads the model first. Five texts "
        "of 14 tokens take turns, each asked about for the first time. Each figure is the median, with the smallest "
        "and the largest in brackets; ratios are taken within a text."
    ),
    run=run,
)
