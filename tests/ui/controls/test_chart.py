"""Grids and bars in a browser: numbers, clicks and keys; and what Python takes from one."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import streamlit
import torch
from playwright.sync_api import Page, expect

from attention_viz.errors import ShapeError
from attention_viz.explorer import chart_source
from attention_viz.explorer.chart_payload import Bars, Grid, pack_bars, pack_grid
from attention_viz.explorer.packet import read_packet
from attention_viz.ui.controls import chart
from tests.explorer.conftest import WILD

# A stand-in for Streamlit: the element that it gives a component, and the arguments that it calls it with.
HOST = """async ({html, css, js, width}) => {
    const load = (text) => import(URL.createObjectURL(new Blob([text], {type: "text/javascript"})));
    const draw = (await load(js)).default;
    const root = document.body.appendChild(document.createElement("div"));
    root.style.width = width;
    root.innerHTML = `<style>${css}</style>${html}`;
    window.heard = [];
    const mounting = {parentElement: root, setStateValue() {}, setTriggerValue: (...told) => heard.push(told)};
    window.call = (data) => draw({...mounting, data: Uint8Array.from(data)});
}"""


@pytest.fixture
def host(open_page: Callable[..., Page], tmp_path: Path) -> Page:
    file = tmp_path / "page.html"
    file.write_text("<!DOCTYPE html><meta charset=utf-8>")
    page = open_page(file.as_uri(), width=800)
    html, css, js = chart_source()
    page.evaluate(HOST, {"html": html, "css": css, "js": js, "width": "700px"})
    return page


def show(host: Page, packed: bytes) -> None:
    host.evaluate("bytes => call(bytes)", list(packed))


def test_keys_choose_cells_and_tell_exact_numbers(host: Page) -> None:
    values = torch.rand(4, 5, generator=torch.Generator().manual_seed(1))
    values[2, 3] = float("nan")
    shut = torch.zeros(4, 5, dtype=torch.bool)
    shut[1, 1] = True
    grid = Grid(values, [*"abcd"], [*"vwxyz"], "Queries", "Keys", blocked=shut, words="Weights.")
    show(host, pack_grid(grid, clicks=True))
    stage, tooltip = host.get_by_role("application"), host.get_by_role("tooltip")
    assert (stage.get_attribute("aria-label") or "").startswith("Weights. ")
    stage.focus()
    for key, says in (("ArrowUp", f"a→v{values[0, 0]:.6g}"), ("ArrowDown", f"b→v{values[1, 0]:.6g}")):
        host.keyboard.press(key)
        expect(tooltip).to_have_text(says)
    host.keyboard.press("ArrowRight")
    expect(tooltip).to_have_text("b→wblocked")
    host.keyboard.press("Enter")
    host.keyboard.press("End")
    assert host.evaluate("heard") == [["press", {"row": 1, "column": 1}]]
    host.get_by_text("Show table").click()
    wanted = [f"{number:.6g}" for number in values.flatten().tolist()]
    wanted[6], wanted[13] = "blocked", "nothing"
    assert host.locator("td").all_text_contents() == wanted


def test_clicks_choose_the_cell_under_them_and_colours_follow_the_numbers(host: Page) -> None:
    values = np.array([[0.0, 1.0], [-1.0, 0.5]])
    show(host, pack_grid(Grid(values, ["", ""], ["", ""], scale="signed", colours=False), clicks=True))
    canvas = host.locator(".av-stage canvas").first
    # No labels: cells of 56 pixels, from 10 right of the canvas and 10 below the line for labels.
    left, top, size = 10, 22, 56
    red = [
        canvas.evaluate("(one, [x, y]) => one.getContext('2d').getImageData(x, y, 1, 1).data[0]", [x, y])
        for y in (top + size - 6, top + 2 * size - 6)
        for x in (left + size - 6, left + 2 * size - 6)
    ]
    # 0 is paper; the sizes that are equal are equally far from it; grey is darker than nothing, purple too.
    assert red[0] > 250 and red[1] < red[3] < red[0] and red[2] < red[0]
    canvas.click(position={"x": left + 1.5 * size, "y": top + 0.5 * size})
    assert host.evaluate("heard") == [["press", {"row": 0, "column": 1}]]
    expect(host.get_by_role("tooltip")).to_have_text("1")


def test_a_head_without_a_softmax_is_coloured_in_equal_steps_for_equal_factors(host: Page) -> None:
    pixels = list[list[int]]()
    # Four decades from the largest size down: a tenth has three quarters of its colour.
    for grid in (
        Grid(np.array([[1.0, 0.1], [-1.0, -0.01]]), ["", ""], ["", ""], scale="mixed", colours=False),
        Grid(np.array([[1.0, 0.75], [-1.0, -0.5]]), ["", ""], ["", ""], scale="signed", colours=False),
    ):
        show(host, pack_grid(grid, clicks=False))
        canvas = host.locator(".av-stage canvas").first
        read = "(one, [x, y]) => [...one.getContext('2d').getImageData(x, y, 1, 1).data]"
        pixels += [canvas.evaluate(read, [10 + x, 22 + y]) for y in (50, 106) for x in (50, 106)]
    assert np.abs(np.subtract(pixels[:4], pixels[4:])).max() <= 2
    assert len({tuple(one) for one in pixels[:4]}) == 4


def test_new_bytes_leave_element_and_focus_in_place_and_400_tokens_fit(host: Page) -> None:
    big = np.random.default_rng(0).random((400, 400))
    show(host, pack_grid(Grid(big, [*map(str, range(400))], [*map(str, range(400))]), clicks=False))
    host.evaluate("window.before = document.querySelector('.av-stage')")
    host.locator(".av-stage").focus()
    host.keyboard.press("ArrowDown")
    host.keyboard.press("Enter")
    host.get_by_text("Show table").click()
    expect(host.locator("tbody tr")).to_have_count(1)
    host.locator(".av-stage").focus()
    show(host, pack_grid(Grid(big[:3, :3], [*"abc"], [*"abc"]), clicks=False))
    assert host.evaluate("document.activeElement === before") and host.evaluate("heard") == []
    expect(host.locator("tbody tr")).to_have_count(3)


def test_labels_are_text_whole_and_on_their_side(host: Page) -> None:
    labels = [*WILD, "w" * 300]
    show(host, pack_bars(Bars(labels, [*np.linspace(0, 1, len(labels))], title="<b>x</b>", chosen=1), clicks=True))
    assert host.locator(".av-word").all_text_contents() == labels
    assert host.locator("h2").text_content() == "<b>x</b>" and not host.locator("img, b").count()
    for row in host.locator("li").all():
        word, track, number = (row.locator(f".av-{part}").bounding_box() for part in ("word", "track", "number"))
        assert word and track and number
        assert word["x"] + word["width"] <= track["x"] and track["x"] + track["width"] <= number["x"]
    assert host.evaluate("document.documentElement.scrollWidth <= innerWidth")
    host.get_by_role("button").nth(2).focus()
    host.keyboard.press("Enter")
    assert host.evaluate("heard") == [["press", 2]]
    expect(host.get_by_role("button").nth(2)).to_have_attribute("aria-pressed", "true")


def test_bars_are_as_long_as_their_numbers(host: Page) -> None:
    show(host, pack_bars(Bars([*"abc"], [-2.0, 1.0, 0.001], signed=True), clicks=False))
    box = "one => (({x, width}) => [x, width])(one.getBoundingClientRect())"
    start, width = host.locator(".av-track").first.evaluate(box)
    fills = [one.evaluate(box) for one in host.locator(".av-fill").all()[:2]]
    assert fills == [pytest.approx([start, width / 2], abs=1), pytest.approx([start + width / 2, width / 4], abs=1)]
    assert host.locator(".av-number").all_text_contents() == ["−2.00", "1.00", "<0.01"]
    host.locator("li").nth(2).hover()
    expect(host.get_by_role("tooltip")).to_have_text("0.001")


def test_numbers_arrive_as_exactly_as_they_are() -> None:
    numbers = np.array([[1 / 3, float("nan")], [1e-9, -7.25]])
    for values, kind in ((numbers, "<f8"), (numbers.astype(np.float32), "<f4")):
        header, body = read_packet(pack_grid(Grid(values, [*"ab"], [*"cd"], scale="size"), clicks=False))
        offset, length = header["values"]
        got = np.frombuffer(body[offset : offset + length], kind).reshape(2, 2)
        np.testing.assert_array_equal(got, values)
        assert header["largest"] == 7.25
    with pytest.raises(ShapeError, match="2 rows and 1 columns"):
        pack_grid(Grid(numbers, [*"ab"], ["c"]), clicks=False)


FIT, HIGH, TRUE = {"row": 1, "column": 2}, {"row": 9, "column": 0}, {"row": True, "column": 0}


@pytest.mark.parametrize("told", [FIT, HIGH, TRUE, 3, -1, None])
def test_a_page_takes_only_cells_and_bars_that_are_there(told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Any] = []
    monkeypatch.setattr(streamlit, "session_state", {"c": SimpleNamespace(press=told)})

    def press(**how: Any) -> None:
        how["on_press_change"]()

    monkeypatch.setattr(chart, "draw_chart", press)
    chart.show_grid(Grid(np.ones((2, 3)), [*"ab"], [*"cde"]), "c", heard.append)
    chart.show_bars(Bars([*"abc"], [1, 1, 1]), "c", heard.append)
    assert heard == ([(1, 2)] if told == FIT else [])
