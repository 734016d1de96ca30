"""Measure the explorer as a widget of JupyterLab: seconds to the first picture and to a head, and bytes sent."""

import re
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Locator, Page

from benchmarks.report import Benchmark, Result, Table, at_most
from benchmarks.serving import chromium
from scripts.jupyterlab import Lab, jupyterlab, write_notebook

__all__ = ["BENCHMARK"]

_TEXTS = {"all-MiniLM-L6-v2": 12, "SmolLM2-135M-Instruct": 400}
_FIRST, _HEAD = 3.0, 0.5
_HEADS = ((1, 2), (2, 5), (4, 3))
# Longer than the pause of a reader who walks through heads.
_REST = 1.0


def run(quick: bool) -> Result:
    """Open both models' texts in one notebook each."""
    rows, first, head = list[list[str]](), 0.0, 0.0
    for model, length in list(_TEXTS.items())[: 1 if quick else None]:
        found = _measure(model, length)
        rows.append([model, str(length), *(write for write in found[0])])
        first, head = max(first, found[1]), max(head, found[2])
    columns = (
        *("model", "tokens", "first picture, s", "findings, s", "a head, s"),
        *("first widget, kB", "second, kB", "saved notebook, kB"),
    )
    remarks = [at_most("the first picture", first, _FIRST, "{:.1f} s"), at_most("a head", head, _HEAD, "{:.1f} s")]
    return Result([Table(columns, rows)], remarks, packages=("anywidget", "jupyterlab", "playwright"))


def _measure(model: str, length: int) -> tuple[list[str], float, float]:
    cells = (
        "import attention_viz as av\nfrom benchmarks.passages import PASSAGES, cut\n"
        f"model = av.load({model!r})\ntrace = model.trace(cut(model.tokenizer, PASSAGES[0], {length}))",
        "one = av.explore(trace)\none",
        "other = av.explore(trace)\nother",
    )
    with tempfile.TemporaryDirectory() as folder, jupyterlab(Path(folder)) as address, chromium() as browser:
        write_notebook(Path(folder) / "a.ipynb", *cells)
        page, sizes = browser.new_page(viewport={"width": 1360, "height": 1000}), list[int]()
        page.set_default_timeout(120_000)
        page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: sizes.append(len(frame))))
        lab = Lab(page, address, "a.ipynb")
        lab.run(0)
        first, findings, bytes_first = _open(lab, 1, sizes)
        heads = [_choose(page, lab.explorer(1), *place) for place in _HEADS]
        _, _, bytes_second = _open(lab, 2, sizes)
        time.sleep(_REST)
        page.evaluate("jupyterapp.commands.execute('docmanager:save')")
        saved = (Path(folder) / "a.ipynb").stat().st_size
    head = sorted(heads)[len(heads) // 2]
    seconds = [f"{one:.2f}" for one in (first, findings, head)]
    return [*seconds, *(f"{size / 1000:.0f}" for size in (bytes_first, bytes_second, saved))], first, head


def _open(lab: Lab, at: int, sizes: list[int]) -> tuple[float, float, int]:
    """Return seconds from the run of a cell to the drawn head and to the findings, and the bytes received."""
    before, began = len(sizes), time.perf_counter()
    lab.begin(at)
    explorer = lab.explorer(at)
    explorer.get_by_test_id("explorer-bars").locator("li").first.wait_for()
    drawn = time.perf_counter() - began
    explorer.get_by_test_id("finding").first.wait_for()
    return drawn, time.perf_counter() - began, sum(sizes[before:])


def _choose(page: Page, explorer: Locator, layer: int, head: int) -> float:
    """Return seconds from a click to the head's numbers."""
    time.sleep(_REST)
    cell = explorer.get_by_role("gridcell", name=re.compile(f"^Layer {layer} head {head}$"))
    cell.scroll_into_view_if_needed()
    bars = explorer.get_by_test_id("explorer-bars")
    changed = "([bars, before]) => bars.querySelector('li') && bars.textContent !== before"
    given = [bars.element_handle(), bars.text_content()]
    began = time.perf_counter()
    cell.click()
    page.wait_for_function(changed, arg=given, polling="raf")
    return time.perf_counter() - began


BENCHMARK = Benchmark(
    "The explorer in a notebook",
    "JupyterLab, its kernel and Chromium run on one machine. A cell shows `av.explore(trace)`. The first picture is "
    "complete with the numbers of the opening head. Small pictures of the other heads and findings may follow. A head "
    "is the median of three clicks. Bytes are those of the page's websockets, base64 and JSON included. The second "
    "widget shows the same trace; its code is on the page already. The notebook is saved with both.",
    run,
)
