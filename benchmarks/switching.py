"""Measure how long another head takes to appear: our component in the browser, against a round trip to the server."""

import itertools
import random
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

import numpy as np
from playwright.sync_api import Browser, Locator, Page

import attention_viz as av
from benchmarks.measuring import Spread, ratios
from benchmarks.passages import PASSAGES, cut
from benchmarks.report import Benchmark, Result, Table, at_most
from benchmarks.serving import ROOT, chromium, serving
from benchmarks.stopwatch import CLOCK, LEAST_TOLD, PAUSE, Way, in_app, open_page

__all__ = ["BENCHMARK"]

_LENGTHS = (24, 64, 128)
_PLOTLY = "Streamlit's selectbox and a Plotly heatmap"
_FILE = "our component, in an HTML file"
_APP = "our component, in the app"
_POINTED = "our component, in the app, hovering over a head"
_SEEN = f"{_POINTED}, until the screen shows it (in steps of 8)"
_FINDING = "our component, in the app, clicking a finding"
_SLIDE = "our component, in the app, turning a slide with a key"
# Milliseconds.
_MARKS = {_POINTED: 32, _FINDING: 100, _SLIDE: 100}

_ROUNDS = 12
_CELL_CHOSEN = "(cell) => window.expect(() => cell.getAttribute('aria-selected') === 'true')"

# The sentence above the picture names the head, and is written together with it.
_HEAD_SHOWN = """(cell) => {
    const where = cell.getRootNode().querySelector("[data-testid=explorer-claim] .av-where");
    window.expect(() => where.textContent === `layer 0, head ${cell.dataset.head}`, "pointerover");
}"""

_FINDING_SHOWN = """(button) => {
    const where = button.getRootNode().querySelector("[data-testid=explorer-claim] .av-where");
    const wanted = button.querySelector(".av-quiet").textContent;
    window.expect(() => button.getAttribute("aria-pressed") === "true" && where.textContent === wanted);
    button.click();
}"""

# The slide or its answer that the key leads to: what is written, and whether it is asked or told.
_SLIDE_SHOWN = """(dialog) => {
    const stage = dialog.querySelector(".av-stage");
    const before = `${stage.dataset.at} ${stage.dataset.step}`;
    const drawn = () => stage.querySelector(".av-picture").childElementCount > 0;
    window.expect(() => `${stage.dataset.at} ${stage.dataset.step}` !== before && drawn(), "keydown");
}"""

_PLOT_CHANGED = """(title) => {
    const picture = () => document.querySelector(".js-plotly-plot .hm image")?.getAttribute("href");
    const before = picture();
    window.expect(() => {
        const shown = document.querySelector(".js-plotly-plot .gtitle")?.textContent;
        return shown === title && picture() && picture() !== before;
    });
}"""


def run(quick: bool) -> Result:
    """Choose heads in turns on all pages, at every length."""
    model = av.load("all-MiniLM-L6-v2")
    assert isinstance(model, av.AttentionModel) and model.tokenizer is not None
    rows: list[list[str]] = []
    slowest = dict.fromkeys(_MARKS, 0.0)
    app = ("-m", "streamlit", "run", str(ROOT / "app.py"))
    with tempfile.TemporaryDirectory() as folder, chromium() as browser, serving(app) as ours:
        for length in (12,) if quick else _LENGTHS:
            text = cut(model.tokenizer, PASSAGES[0], length)
            figures = _take_turns(browser, ours, model.trace(text), text, Path(folder), 2 if quick else _ROUNDS)
            found = {name: Spread.of(some) for name, some in figures.items()}
            rows += [
                [f"{length}", name, spread.write("{:.0f}"), ratios(figures[_PLOTLY], figures[name]).write("{:.1f}")]
                for name, spread in found.items()
            ]
            slowest = {name: max(before, found[name].median) for name, before in slowest.items()}
    columns = ("tokens", "another head appears in", "milliseconds", "Plotly's ÷ this")
    remarks = [
        at_most(name.removeprefix(f"{_APP}, "), slowest[name], mark, "{:.0f} ms") for name, mark in _MARKS.items()
    ]
    return Result([Table(columns, rows)], remarks, packages=("playwright",))


def _take_turns(
    browser: Browser, ours: str, trace: av.Trace, text: str, folder: Path, rounds: int
) -> dict[str, list[float]]:
    """Return milliseconds by way; heads one after another, the same on each page."""
    file, weights = folder / "page.html", folder / "weights.npz"
    av.explore(trace).save_html(file)
    np.savez(weights, weights=trace.attention(0).weights.numpy(), tokens=trace.query_tokens().labels)
    page = ("-m", "streamlit", "run", str(Path(__file__).with_name("plotly_page.py")))
    with serving(page, {"BENCHMARK_WEIGHTS": str(weights)}) as plotly:
        address = f"{ours}/?model=all-MiniLM-L6-v2&layer=0&head=0&text={quote(text)}"
        ways = {
            _PLOTLY: _plotly(open_page(browser, plotly)),
            _FILE: _component(open_page(browser, file.as_uri())),
            _APP: _component(in_app(open_page(browser, address))),
            _POINTED: _pointed(in_app(open_page(browser, address))),
            _FINDING: _findings(in_app(open_page(browser, address))),
            _SLIDE: _slides(in_app(open_page(browser, address))),
        }
        heads = [1 + turn % (trace.head_count(0) - 1) for turn in range(rounds + 1)]
        figures = {name: [way.milliseconds(head) for head in heads[:1]] for name, way in ways.items()}
        for name in figures:
            figures[name].clear()  # the first time warms up
        for head in heads[1:]:
            for name, way in ways.items():
                figures[name].append(way.milliseconds(head))
        shown = ways[_POINTED].shown or []
        figures[_SEEN] = shown[-rounds:]
        _close(ways.values())
    return figures


def _close(ways: Iterable[Way]) -> None:
    for way in ways:
        way.page.context.close()


def _cell(page: Page, head: int) -> Locator:
    return page.get_by_test_id("explorer-grid").locator(f'[data-layer="0"][data-head="{head}"]')


def _wait(page: Page) -> None:
    _cell(page, 0).wait_for(timeout=60_000)
    page.wait_for_timeout(2000)  # the other layers are read one after another


def _component(page: Page) -> Way:
    def choose(head: int) -> None:
        _cell(page, head).evaluate(_CELL_CHOSEN)
        _cell(page, head).click()

    _wait(page)
    return Way(page, choose)


def _pointed(page: Page) -> Way:
    """Move the pointer from outside, at any moment of a frame, as a hand does."""
    chance = random.Random(0)

    def choose(head: int) -> None:
        box = _cell(page, head).bounding_box()
        assert box is not None
        page.mouse.move(2, 2)
        page.wait_for_timeout(PAUSE)  # the browser hears of it with a frame of its own
        page.evaluate("() => window.shown.splice(0)")
        _cell(page, head).evaluate(_HEAD_SHOWN)
        time.sleep(chance.uniform(0.05, 0.1))
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

    _wait(page)
    page.evaluate(CLOCK, LEAST_TOLD)
    return Way(page, choose, shown=[])


def _findings(page: Page) -> Way:
    """Click them one after another as a finger does: without hovering, which would show them already."""
    buttons = page.get_by_test_id("finding")
    turns = itertools.count()

    def choose(_head: int) -> None:
        buttons.nth(next(turns) % buttons.count()).evaluate(_FINDING_SHOWN)

    _wait(page)
    buttons.nth(buttons.count() - 1).click()
    return Way(page, choose)


def _slides(page: Page) -> Way:
    """Show each slide's question and then its answer; start again after the last."""
    dialog = page.locator("dialog.av-present")

    def choose(_head: int) -> None:
        before = page.url
        dialog.evaluate(_SLIDE_SHOWN)
        page.keyboard.press("ArrowRight")
        if page.url == before:
            page.keyboard.press("Home")

    _wait(page)
    page.get_by_role("button", name="Present").click()
    dialog.locator(".av-picture").wait_for()
    return Way(page, choose)


def _plotly(page: Page) -> Way:
    def choose(head: int) -> None:
        page.get_by_role("combobox").click()
        option = page.get_by_role("option", name=str(head), exact=True)
        option.wait_for()
        page.evaluate(_PLOT_CHANGED, f"Head {head}")
        option.click()

    page.locator(".js-plotly-plot .hm image").wait_for(timeout=60_000)
    return Way(page, choose)


BENCHMARK = Benchmark(
    title="Switching heads in the browser",
    method=(
        "Measures how soon another head of all-MiniLM-L6-v2 appears in Chromium without a screen. Time starts when "
        "the browser receives the click, and ends with the first painted frame that shows the other head. For "
        "hovering, time starts when the resting pointer moves to the head at any moment. Findings, which are in "
        "several layers, are clicked as with a finger. A key turns the slides of the same page, first to the question "
        "and then to its answer. Our component already has all weights. It is compared with the lightest possible "
        "Streamlit page, a selectbox and a Plotly heatmap: its weights are in the server's memory, and no model is "
        "loaded. The same heads are chosen on all pages in turns. Each figure is the median of 12 rounds, with the "
        "smallest and the largest in brackets; ratios are taken within a round. A screen with 60 frames per second "
        "alone takes 8 to 25 ms from a click to the end of the next frame. A frame ends when the page has submitted "
        "it. For hovering, another row has the browser's own Event Timing, which ends when the frame is on the "
        "screen; without a graphics card, the processor draws it."
    ),
    run=run,
)
