"""The Masks page as a person uses it, in a real browser."""

import io
import re
from collections.abc import Callable
from typing import Literal
from urllib.parse import parse_qs, urlsplit

import numpy
import pandas
import pytest
from playwright.sync_api import Locator, Page, expect

from attention_viz.ui.address.cells import from_code
from tests.conftest import OpenPage, Recolour
from tests.pages import exported

Idle = Callable[[Page], None]


def choose(screen: Page, label: str, option: str | re.Pattern[str], idle: Idle) -> None:
    screen.get_by_role("combobox", name=re.compile(rf"(^|\W){label}$")).click()
    screen.get_by_role("option", name=option).first.click()
    idle(screen)


def weights(screen: Page) -> numpy.ndarray:
    """The matrix that the button "Weights (CSV)" hands out."""
    table = pandas.read_csv(io.BytesIO(exported(screen, "Weights (CSV)").path().read_bytes()), keep_default_na=False)
    return table.pivot(index="query", columns="key", values="weight").to_numpy()


def parameters(screen: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(screen.url).query, keep_blank_values=True).items()}


def picture(screen: Page, key: str) -> Locator:
    return screen.locator(f".st-key-{key}")


def over(plot: Locator, row: float, column: float, count: int) -> tuple[float, float]:
    """Where a cell's middle is on the screen."""
    area = plot.locator(".nsewdrag").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    assert box is not None
    return box["x"] + (column + 0.5) / count * box["width"], box["y"] + (row + 0.5) / count * box["height"]


def test_the_first_screen_shows_before_and_after_without_scrolling_in_light_and_dark(
    page: OpenPage, recolour: Recolour
) -> None:
    screen = page("/masks")
    for dark in (False, True):
        recolour(screen, dark)
        expect(screen.get_by_text(re.compile("^Verified before the mask"))).to_be_visible()
        boxes = [picture(screen, key).locator(".nsewdrag").first.bounding_box() for key in ("before", "after")]
        assert boxes[0] is not None and boxes[1] is not None
        assert boxes[0]["y"] == pytest.approx(boxes[1]["y"], abs=1)
        assert boxes[0]["y"] + boxes[0]["height"] <= 860
        expect(screen.get_by_text("It blocks 36 of 81 cells")).to_be_visible()
        expect(screen.get_by_text("own mask here: full (everyone may look at everyone)")).to_be_visible()
    named: dict[str, Literal["textbox", "combobox"]] = {"Sentence": "textbox", "Model": "combobox", "Mask": "combobox"}
    for label, role in named.items():
        name = re.compile(rf"(^|\W){label}$")
        expect(screen.get_by_role(role, name=name)).to_have_count(1)


def drawn(screen: Page, count: int) -> numpy.ndarray:
    """The blocked cells, from the address."""
    return from_code(parameters(screen).get("cells", ""), count)


def drag(screen: Page, start: tuple[float, float], end: tuple[float, float], count: int) -> None:
    screen.mouse.move(*over(picture(screen, "after"), *start, count))
    screen.mouse.down()
    screen.mouse.move(*over(picture(screen, "after"), *end, count), steps=8)
    screen.mouse.up()


@pytest.fixture
def board(stay: OpenPage) -> Page:
    """The page with nothing drawn yet, for five tokens of our own module."""
    return stay("/masks?mask=drawn&model=scratch&head=0&text=The+cat+sat+on+mat")


def comes_to(screen: Page, expected: numpy.ndarray, idle: Idle) -> bool:
    """Whether the drawn cells become these: each stroke is a run of the page, and a busy machine takes its time."""
    for _ in range(40):
        idle(screen)
        if "cells" in parameters(screen) and (drawn(screen, 5) == expected).all():
            return True
    return False


def test_cells_are_drawn_by_clicks_and_drags_without_a_switch_between_them(board: Page, idle: Idle) -> None:
    expected = numpy.zeros((5, 5), dtype=bool)
    board.mouse.click(*over(picture(board, "after"), 1, 3, 5))
    expected[1, 3] = True
    assert comes_to(board, expected, idle)
    drag(board, (4.2, 1.3), (2.7, -0.3), 5)
    expected[3:, :2] = True
    assert comes_to(board, expected, idle)
    assert ((weights(board) == 0) == expected).all()
    board.mouse.click(*over(picture(board, "after"), 1, 3, 5))
    expected[1, 3] = False
    assert comes_to(board, expected, idle)
    assert ((weights(board) == 0) == expected).all()


def test_quick_clicks_all_count(stay: OpenPage, idle: Idle) -> None:
    def click_down_a_column() -> bool:
        board = stay("/masks?mask=drawn&model=scratch&head=0&text=The+cat+sat+on+mat")
        for place in [over(picture(board, "after"), row, 4, 5) for row in range(4)]:
            board.mouse.click(*place)
        return comes_to(board, (numpy.arange(5)[:, None] < 4) & (numpy.arange(5) == 4), idle)

    # On a busy machine the picture may come to stand elsewhere between two clicks, once: a fault comes back.
    assert click_down_a_column() or click_down_a_column()


def test_a_click_counts_while_the_picture_is_drawn_anew(board: Page) -> None:
    places = [over(picture(board, "after"), row, 4, 5) for row in range(2)]
    board.mouse.click(*places[0])
    board.wait_for_url(re.compile("cells="))
    first = parameters(board)["cells"]
    cells = picture(board, "after").locator(".nsewdrag").first
    cells.evaluate("cells => cells.remove()")  # as Plotly does, for as long as it draws
    board.mouse.click(*places[1])
    board.wait_for_function("first => new URLSearchParams(location.search).get('cells') !== first", arg=first)
    assert numpy.argwhere(drawn(board, 5)).tolist() == [[0, 4], [1, 4]]


def test_cells_are_drawn_from_the_keyboard(board: Page, idle: Idle) -> None:
    pen = board.get_by_role("application", name=re.compile("^Draw by keyboard"))
    pen.focus()
    for pressed in ("ArrowDown", "ArrowDown", "ArrowRight", "Shift+ArrowDown", "Shift+ArrowRight"):
        board.keyboard.press(pressed)
    expect(pen).to_contain_text("“cat” to “sat” looking at “cat” to “sat”")
    board.keyboard.press(" ")
    board.wait_for_url(re.compile("cells="))
    idle(board)
    expected = numpy.zeros((5, 5), dtype=bool)
    expected[1:3, 1:3] = True
    assert ((weights(board) == 0) == expected).all()


@pytest.mark.parametrize("words", [1, 10, 126])
def test_on_a_narrow_screen_nothing_sticks_out_at_any_length(stay: OpenPage, words: int) -> None:
    screen = stay(f"/masks?mask=both&row=shorter&text={'+'.join(['cat'] * words)}&second=a+boat", width=390, height=844)
    expect(picture(screen, "changed-outputs")).to_be_attached()
    assert screen.evaluate("document.documentElement.scrollWidth") <= 390
    main = screen.get_by_test_id("stMain")
    assert main.evaluate("element => element.scrollWidth <= element.clientWidth")
