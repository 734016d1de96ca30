"""Measure an image in the browser: the time to its first overlay, and to the overlay of a patch under the pointer."""

import io
import random
import time
from collections.abc import Sequence

import torch
from PIL import Image
from playwright.sync_api import Browser, FilePayload, Locator, Page

import attention_viz as av
from attention_viz.inputs.media.shipped import SAMPLES
from benchmarks.measuring import Spread
from benchmarks.report import Benchmark, Result, Table, at_most
from benchmarks.serving import ROOT, chromium, serving
from benchmarks.stopwatch import CLOCK, LEAST_TOLD, PAUSE, Way, in_app, open_page

__all__ = ["BENCHMARK", "MARK_BEYOND", "MARK_POINTED"]

# Seconds, and milliseconds.
MARK_BEYOND, MARK_POINTED = 1.0, 32
_MODEL = "dinov2-small"
_ROUNDS, _UPLOADS, _SIDE = 12, 5, 16
_ACROSS = "from patch to patch"
_OUTSIDE = "from outside the image"

# The sentence above the picture names the patch, and the picture's own words do once it is painted.
_PATCH_SHOWN = """(canvas, [event, row, column]) => {
    const wanted = new RegExp(`[Pp]atch ${row}, ${column}(?![0-9])`);
    window.expect(() => wanted.test(canvas.getAttribute("aria-label")), event);
}"""
# A picture that wasn't there before, painted.
_FORGET = """() => {
    const find = (root) => [...root.querySelectorAll("*")].flatMap((one) => [
        ...(one.dataset?.testid === "picture" ? [one] : []),
        ...(one.shadowRoot ? find(one.shadowRoot) : []),
    ]);
    window.pictures = () => find(document);
    for (const one of window.pictures()) one.dataset.before = "";
}"""
_PAINTED = """() => window.pictures().some(
    (one) => one.dataset.before === undefined && one.getAttribute("aria-label")?.includes(" looks ")
)"""


def run(quick: bool) -> Result:
    """Open images and hover over image patches in the app."""
    model = av.load(_MODEL)
    assert isinstance(model, av.AttentionModel) and model.reader is not None
    app = ("-m", "streamlit", "run", str(ROOT / "app.py"))
    with chromium() as browser, serving(app) as ours:
        address = f"{ours}/?model={_MODEL}"
        beyond, forward = _first(model, browser, address, 1 if quick else _UPLOADS)
        pointed = _pointed(browser, address, 2 if quick else _ROUNDS)
    rows = [["a plain forward", forward.write()], ["until the first overlay, beyond that", beyond.write()]]
    tables = [Table(("a new image", "seconds"), rows, "The first overlay")]
    named = [[name, Spread.of(some).write("{:.0f}")] for name, some in pointed.items()]
    tables.append(Table(("the pointer moves to a patch", "milliseconds"), named, "A patch's overlay"))
    slowest = max(Spread.of(pointed[name]).median for name in (_ACROSS, _OUTSIDE))
    remarks = [
        at_most("the first overlay, beyond a forward, in seconds", beyond.median, MARK_BEYOND),
        at_most("a patch under the pointer, in milliseconds", slowest, MARK_POINTED, "{:.0f}"),
    ]
    return Result(tables, remarks, packages=("playwright",))


def _first(model: "av.AttentionModel", browser: Browser, address: str, rounds: int) -> tuple[Spread, Spread]:
    """Open new images, each after a plain forward of the same."""
    page = in_app(open_page(browser, address))
    spent = [(_forward(model, one), _brought(page, one)) for one in _pictures(rounds + 1)][1:]
    page.context.close()
    forwards = [forward for forward, _ in spent]
    return Spread.of([brought - forward for forward, brought in spent]), Spread.of(forwards)


def _pictures(count: int) -> Sequence[bytes]:
    """Return image files, each a part of a sample."""
    whole = Image.open(SAMPLES["astronaut"].path).convert("RGB")
    size = min(whole.size) - 8 * count
    files: list[bytes] = []
    for number in range(count):
        file = io.BytesIO()
        whole.crop((8 * number, 8 * number, 8 * number + size, 8 * number + size)).save(file, "PNG")
        files.append(file.getvalue())
    return files


def _forward(model: "av.AttentionModel", file: bytes) -> float:
    reader = model.reader
    assert reader is not None
    begun = time.perf_counter()
    tensors = model.runner.inputs(reader.read(av.Picture(file)).tensors)
    with torch.no_grad():
        model.hf_model(**tensors)
    return time.perf_counter() - begun


def _brought(page: Page, file: bytes) -> float:
    """Return the seconds from choosing the file to the painted frame with its overlay."""
    page.wait_for_timeout(8 * PAUSE)  # until the last one is verified
    page.locator('[class*="st-key-thing-"]').get_by_role("button").first.click()
    box = page.locator('input[type="file"]').first
    box.wait_for(state="attached")
    page.evaluate(_FORGET)
    begun = time.perf_counter()
    box.set_input_files(FilePayload(name="own.png", mimeType="image/png", buffer=file))
    page.wait_for_function(_PAINTED, timeout=60_000, polling="raf")
    return time.perf_counter() - begun


def _pointed(browser: Browser, address: str, rounds: int) -> dict[str, list[float]]:
    """Return milliseconds by the pointer's origin; and until the screen shows it, by the browser's own clock."""
    ways = {
        _OUTSIDE: _outside(in_app(open_page(browser, address))),
        _ACROSS: _across(in_app(open_page(browser, address))),
    }
    places = [(37 * turn) % _SIDE**2 for turn in range(1, rounds + 2)]
    for way in ways.values():
        way.milliseconds(places[0])  # the first time warms up
    figures = {name: [way.milliseconds(place) for place in places[1:]] for name, way in ways.items()}
    shown = (ways[_OUTSIDE].shown or [])[-rounds:]
    for way in ways.values():
        way.page.context.close()
    return figures | {f"{_OUTSIDE}, until the screen shows it (in steps of 8)": shown}


def _canvas(page: Page) -> Locator:
    canvas = page.get_by_test_id("picture")
    canvas.wait_for(timeout=60_000)
    page.wait_for_timeout(2000)  # the other layers are read one after another
    canvas.scroll_into_view_if_needed()
    return canvas


def _to(page: Page, canvas: Locator, place: int, event: str) -> None:
    """Move the pointer to a patch, at any moment of a frame."""
    box = canvas.bounding_box()
    assert box is not None
    row, column = divmod(place, _SIDE)
    canvas.evaluate(_PATCH_SHOWN, [event, row, column])
    time.sleep(random.Random(place).uniform(0.05, 0.1))
    page.mouse.move(box["x"] + (column + 0.5) * box["width"] / _SIDE, box["y"] + (row + 0.5) * box["height"] / _SIDE)


def _outside(page: Page) -> Way:
    canvas = _canvas(page)
    page.evaluate(CLOCK, LEAST_TOLD)

    def choose(place: int) -> None:
        page.mouse.move(2, 2)
        page.wait_for_timeout(PAUSE)  # the browser hears of it with a frame of its own
        page.evaluate("() => window.shown.splice(0)")
        _to(page, canvas, place, "pointerover")

    return Way(page, choose, shown=[])


def _across(page: Page) -> Way:
    canvas = _canvas(page)
    canvas.hover(position={"x": 4, "y": 4})
    return Way(page, lambda place: _to(page, canvas, place, "pointermove"))


BENCHMARK = Benchmark(
    title="An image in the browser",
    method=(
        "New images are opened with DINOv2-S (12 layers × 6 heads, 256 patches) in the app, in Chromium without a "
        "screen. Time runs from choosing the file to the first painted frame that shows the image with its overlay. "
        "The time of a plain forward of the same image, reading it included, is measured before in Python and "
        "subtracted. Then the pointer moves to image patches, from outside the image or from another patch, at any "
        "moment of a frame. This time runs from when the browser receives the event to the first painted frame with "
        "that patch's overlay. Each figure is the median of 5 images, or of 12 patches, with the smallest and the "
        "largest in brackets. A screen with 60 frames per second alone takes 8 to 25 ms from an event to the end of "
        "the next frame. Another row has the browser's own event timing, which ends when the frame is on the screen; "
        "without a graphics card, the processor draws it."
    ),
    run=run,
)
