"""Time a text with an image in the app: its first figure, and thirty visitors with drawings of their own."""

import asyncio
import random
import statistics
import time
from collections.abc import Sequence
from itertools import product
from typing import Any

import torch
from playwright.sync_api import Locator, Page

import attention_viz as av
from attention_viz.inputs.media.drawn import MOST_SHAPES, name_of
from attention_viz.inputs.media.shapes import COLOURS, COLUMNS, DRAWN, ROWS, SHAPES, Shape, draw_shapes
from attention_viz.inputs.media.shipped import SAMPLES
from benchmarks.measuring import on_one_thread
from benchmarks.report import Benchmark, Result, Table, at_most
from benchmarks.serving import ROOT, VIEWPORT, chromium, serving
from benchmarks.visitor import Answer, Visitor

__all__ = ["BENCHMARK"]

_MODEL, _VISITORS, _MARK = "shapes", 30, 1.0
_QUESTION = "what colour is the {} ?"
_PAGES = ("Step by step", "Masks", "Heads", "Compare", "Learn")
# Whether the canvas shows another image, lit, than before.
_INK = """canvas => {
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return data.reduce((sum, byte) => (sum * 31 + byte) % 1000000007, 7);
}"""

_Answers = dict[str, list[Answer]]


def run(quick: bool) -> Result:
    """Measure both; a quick run has three visitors and no browser."""
    plain = _plain(1 if quick else 25)
    drawings = _drawings(3 if quick else _VISITORS)
    in_full = {"STREAMLIT_CLIENT_SHOW_ERROR_DETAILS": "full"}
    program = ("-m", "attention_viz.ui.process", "run", str(ROOT / "app.py"))
    with serving(program, in_full) as address:
        answers = asyncio.run(_together(address, drawings))
        figures = [] if quick else _in_browser(address)
    errors = [f"{step}: {error}" for step, each in answers.items() for one in each for error in one.errors]
    if errors:
        raise RuntimeError(f"{len(errors)} errors, such as {'; '.join(errors[:5])}")
    rows = [_row(step, [one.seconds for one in each]) for step, each in answers.items()]
    tables = [Table(("what was opened", "times", "median", "slowest"), rows, f"{len(drawings)} visitors at once")]
    total = sum(map(len, answers.values()))
    remarks = [f"No error in {total} runs of {len(drawings)} visitors.", f"A plain run takes {plain:.3f} s."]
    if figures:
        first = Table(("from the press to the figure", "times", "median", "slowest"), [_row("a sample", figures)])
        beyond = max(figures) - plain
        remarks.append(at_most("the slowest figure beyond a plain run", beyond, _MARK, "{:.2f} s"))
        tables.insert(0, first)
    return Result(tables, remarks, packages=("websockets",))


def _plain(rounds: int) -> float:
    """Return the median seconds of the model's own run of a question, reading the image included."""
    model = av.load(_MODEL)
    assert isinstance(model, av.AttentionModel) and model.reader is not None
    from attention_viz.inputs.media.beside import Beside

    took = list[float]()
    with on_one_thread(), torch.no_grad():
        for _ in range(rounds + 1):
            began = time.perf_counter()
            given = Beside(_QUESTION.format("circle"), (draw_shapes(DRAWN["shapes-two"]),))
            model.hf_model(**model.runner.inputs(model.reader.read(given).tensors))
            took.append(time.perf_counter() - began)
    return statistics.median(took[1:])


def _drawings(count: int) -> list[tuple[Shape, ...]]:
    """Return drawings, all different, so that none is answered from another's cache."""
    chance, found = random.Random(0), dict[str, tuple[Shape, ...]]()
    while len(found) < count:
        some = chance.randint(1, MOST_SHAPES)
        looks = chance.sample(list(product(COLOURS, SHAPES)), some)
        places = chance.sample(list(product(ROWS, COLUMNS)), some)
        shapes = tuple(Shape(*look, *place) for look, place in zip(looks, places, strict=True))
        found[name_of(shapes)] = shapes
    return list(found.values())


async def _together(address: str, drawings: Sequence[tuple[Shape, ...]]) -> _Answers:
    together: _Answers = {}
    for found in await asyncio.gather(*(_walk(address, shapes) for shapes in drawings)):
        for step, answer in found.items():
            together.setdefault(step, []).append(answer)
    return together


async def _walk(address: str, shapes: tuple[Shape, ...]) -> dict[str, Answer]:
    """Open a drawing with a question, then every page that shows both."""
    parameters = {"model": _MODEL, "text": _QUESTION.format(shapes[0].shape), "picture": name_of(shapes)}
    visitor = Visitor(address, parameters)
    await visitor.come()
    try:
        found = {"Explore, all at once on a fresh server": await visitor.open()}
        for label in _PAGES:
            found[label] = await visitor.follow(label)
        return found
    finally:
        await visitor.leave()


def _in_browser(address: str) -> list[float]:
    """Return the seconds from each sample's press to its figure, none of which was shown before."""
    with chromium() as browser:
        page = browser.new_page(viewport=VIEWPORT)
        page.goto(f"{address}/?model={_MODEL}&text={_QUESTION.format('circle')}")
        picture = page.get_by_test_id("picture")
        picture.wait_for()
        page.get_by_role("button", name="shapes-two.png").click()
        buttons = [page.get_by_role("button", name=f"Sample – {SAMPLES[name].shows}") for name in DRAWN]
        buttons[-1].wait_for()
        return [_pressed(page, picture, button) for button in buttons[1:]]


def _pressed(page: Page, picture: Locator, button: Locator) -> float:
    # The light moves under the pointer.
    before: Any = picture.evaluate(_INK)
    began = time.perf_counter()
    button.click()
    while picture.evaluate(_INK) == before:
        page.wait_for_timeout(5)
    return time.perf_counter() - began


def _row(step: str, took: Sequence[float]) -> list[str]:
    return [step, str(len(took)), f"{statistics.median(took):.2f} s", f"{max(took):.2f} s"]


BENCHMARK = Benchmark(
    title="A text with an image",
    method=(
        f"{_VISITORS} visitors, each with their own drawing and question, open Explore with the model `{_MODEL}` at "
        f"the same moment on a fresh server. Then each opens {', '.join(_PAGES[:-1])} and {_PAGES[-1]} without a "
        "pause. A visitor is a connection like a browser's that draws nothing. Then a Chromium without a screen "
        "presses each sample that it hasn't shown, beside the question: seconds run from the press to the redrawn "
        "image. A plain run is the median of 25 runs of the model itself on one thread, reading the image included. "
        "Visitors, browser and server share the machine. The benchmark fails if a page shows an error."
    ),
    run=run,
)
