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
from tests.shipped import shipped

Idle = Callable[[Page], None]
OWN = "/masks?mask=none&model=scratch&head=0&text=The+cat+sat+on+mat"


def weights(page: Page) -> numpy.ndarray:
    """The matrix that the button "Weights (CSV)" hands out."""
    table = pandas.read_csv(io.BytesIO(exported(page, "Weights (CSV)").path().read_bytes()), keep_default_na=False)
    return table.pivot(index="query", columns="key", values="weight").to_numpy()


def parameters(page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query, keep_blank_values=True).items()}


def claim(page: Page) -> Locator:
    return page.get_by_test_id("mask-claim")


def outputs(page: Page) -> Locator:
    return page.get_by_test_id("mask-outputs").locator("li")


def heads(page: Page) -> Locator:
    return page.get_by_role("grid", name=re.compile("^Weight moved"))


def over(page: Page, row: int, column: int) -> tuple[float, float]:
    """Where a cell's middle is on the screen: across from its row's token, below its column's."""
    boxes = [
        page.get_by_test_id("mask-sheet").locator(f"[data-{kind}='{place}']").bounding_box()
        for kind, place in (("row", row), ("column", column))
    ]
    assert boxes[0] is not None and boxes[1] is not None
    return boxes[1]["x"] + boxes[1]["width"] / 2, boxes[0]["y"] + boxes[0]["height"] / 2


def drawn(page: Page, count: int) -> numpy.ndarray:
    """The blocked cells, from the address."""
    return from_code(parameters(page).get("cells", ""), count)


@pytest.fixture
def board(stay: OpenPage) -> Page:
    """The page with nothing blocked yet, for five tokens of our own module."""
    page = stay(OWN)
    page.get_by_role("button", name="cell", exact=True).click()
    return page


def comes_to(page: Page, expected: numpy.ndarray, idle: Idle) -> bool:
    """Whether the drawn cells become these: each stroke is a run of the page, and a busy machine takes its time."""
    for _ in range(40):
        idle(page)
        if "cells" in parameters(page) and (drawn(page, 5) == expected).all():
            return True
    return False


def test_the_first_screen_shows_a_mask_and_what_it_did_in_light_and_dark(
    open_page: OpenPage, recolour: Recolour
) -> None:
    page = open_page("/masks")
    for dark in (False, True):
        recolour(page, dark)
        expect(page.get_by_text(re.compile("^Verified unmasked: "))).to_be_visible()
        expect(claim(page)).to_contain_text(re.compile("loses .* its output moves by"))
        for part in (page.get_by_test_id("mask-sheet"), heads(page), page.get_by_test_id("mask-whole")):
            box = part.bounding_box()
            assert box is not None and box["y"] + box["height"] <= 860
        expect(outputs(page)).to_have_count(9)
        expect(page.get_by_text("It blocks 36 of 81 cells")).to_be_visible()
        expect(page.get_by_text(re.compile("own mask here: full"))).to_be_visible()
    named: dict[str, Literal["textbox", "combobox"]] = {"Sentence": "textbox", "Model": "combobox", "Mask": "combobox"}
    for label, role in named.items():
        name = re.compile(rf"(^|\W){label}$")
        expect(page.get_by_role(role, name=name)).to_have_count(1)


def test_what_is_said_is_about_the_pair_that_was_chosen_elsewhere_where_it_is_cut(stay: OpenPage) -> None:
    page = stay("/masks?mask=causal&layer=0&head=4&query=2&key=7")
    expect(claim(page)).to_contain_text("“bank” loses “flooded” (")
    # What the mask leaves open isn't lost: the heaviest link that is cut is told of.
    page = stay("/masks?mask=causal&layer=0&head=4&query=5&key=2")
    expect(claim(page)).to_contain_text("“bank” loses “river” (0.58)")
    # The cell that is walked to has the sentence meanwhile: of what stays, and of what was cut.
    row = shipped("all-MiniLM-L6-v2").trace("The bank of the river was flooded").weights(0, 4)[5]
    page.get_by_role("application", name=re.compile("^Mask: ")).press("ArrowUp")
    kept = float(row[2] / row[:6].sum())
    expect(claim(page)).to_have_text(f"“river” looks at “bank”: {row[2]:.2f}; with the mask {kept:.2f}")
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    expect(claim(page)).to_contain_text(f"“river” loses “was” ({row[6]:.2f}) and looks more at “bank” (")
    page.keyboard.press("Tab")
    expect(claim(page)).to_contain_text("“bank” loses “river” (0.58)")


def test_a_mask_is_painted_by_cells_rows_and_columns_and_what_it_did_follows(board: Page, idle: Idle) -> None:
    expected = numpy.zeros((5, 5), dtype=bool)
    board.mouse.click(*over(board, 1, 3))
    # Before the model has run with it: our own module has one layer, whose scores no mask changes.
    expect(claim(board)).to_contain_text("“cat” loses “on”")
    expected[1, 3] = True
    assert comes_to(board, expected, idle)
    expect(claim(board)).to_contain_text(re.compile("its output moves by"))
    assert (weights(board)[expected] == 0).all()
    # A stroke chooses no pair for the other pages.
    assert not {"query", "key"} & parameters(board).keys()
    board.mouse.move(*over(board, 3, 0))
    expect(claim(board)).to_contain_text(re.compile(r"^“on” looks at .*: 0\.\d\d$"))
    board.mouse.down()
    board.mouse.move(*over(board, 3, 3), steps=2)
    # In the middle of a stroke nothing is told of the run before it.
    expect(board.locator(".av-tooltip")).to_contain_text("0, blocked")
    expect(claim(board)).to_contain_text("running the model")
    # What this head hands out is known without the model: of the row that is being blocked, and not grey.
    expect(board.get_by_role("heading", name="This head’s output moved by")).to_be_visible()
    expect(outputs(board).nth(3)).not_to_contain_text(re.compile(r"\D0 %"))
    expect(outputs(board).nth(0)).to_contain_text(re.compile(r"\D0 %"))
    expect(board.get_by_test_id("mask-outputs")).to_have_css("opacity", "1")
    expect(heads(board)).to_have_css("opacity", "0.35")
    board.mouse.up()
    expected[3, :4] = True
    assert comes_to(board, expected, idle)
    board.get_by_test_id("mask-sheet").locator("[data-column='4']").click()
    expected[:, 4] = True
    assert comes_to(board, expected, idle)
    expect(board.get_by_text("“on” (row 3) has no key left to attend to")).to_be_visible()
    board.get_by_role("button", name="row", exact=True).click()
    board.mouse.click(*over(board, 3, 2))
    expected[3] = False
    assert comes_to(board, expected, idle)
    assert ((weights(board) == 0) == expected).all()


def test_after_a_stroke_the_sentence_names_the_heaviest_link_that_is_cut(board: Page, idle: Idle) -> None:
    before, expected = weights(board), numpy.zeros((5, 5), dtype=bool)
    heaviest, lightest = (numpy.unravel_index(at, before.shape) for at in (before.argmax(), before.argmin()))
    names = "The", "cat", "sat", "on", "mat"
    for row, column in (heaviest, lightest):
        board.mouse.click(*over(board, int(row), int(column)))
        expected[row, column] = True
        assert comes_to(board, expected, idle)
        expect(claim(board)).to_contain_text(f"“{names[heaviest[0]]}” loses “{names[heaviest[1]]}”")
    # The cell that the pointer goes to next has the sentence again.
    board.mouse.move(*over(board, int(heaviest[0]), int(heaviest[1])))
    board.mouse.move(*over(board, int(lightest[0]), int(lightest[1])))
    expect(claim(board)).to_contain_text(f"“{names[lightest[0]]}” loses “{names[lightest[1]]}”")


def test_quick_clicks_all_count(board: Page, idle: Idle) -> None:
    for place in [over(board, row, 4) for row in range(4)]:
        board.mouse.click(*place)
    assert comes_to(board, (numpy.arange(5)[:, None] < 4) & (numpy.arange(5) == 4), idle)


def test_a_stroke_goes_on_while_the_page_answers_the_one_before(board: Page, idle: Idle) -> None:
    board.mouse.click(*over(board, 0, 2))
    board.mouse.move(*over(board, 1, 3))
    board.mouse.down()
    expected = numpy.zeros((5, 5), dtype=bool)
    expected[0, 2] = True
    assert comes_to(board, expected, idle)
    board.mouse.move(*over(board, 1, 4), steps=2)
    board.mouse.up()
    expected[1, 3:] = True
    assert comes_to(board, expected, idle)


def test_a_mask_is_painted_from_the_keyboard_and_gets_its_name_where_it_has_one(board: Page, idle: Idle) -> None:
    matrix = board.get_by_role("application", name=re.compile("^Mask"))
    matrix.focus()
    for pressed in ("ArrowRight", "ArrowRight", "Space", "ArrowDown", "ArrowRight", "Space"):
        board.keyboard.press(pressed)
    expected = numpy.zeros((5, 5), dtype=bool)
    expected[0, 1] = expected[1, 2] = True
    assert comes_to(board, expected, idle)
    for row, columns in ((0, (2, 3, 4)), (1, (3, 4)), (2, (3, 4)), (3, (4,))):
        for column in columns:
            board.mouse.click(*over(board, row, column))
    board.wait_for_url(re.compile("mask=causal"))
    idle(board)
    assert ((weights(board) > 0) == numpy.tri(5, dtype=bool)).all()


def test_a_head_that_is_pointed_at_is_looked_at_and_one_that_is_pressed_stays(stay: OpenPage, idle: Idle) -> None:
    page = stay("/masks?mask=window&window=2&layer=0&head=4")
    cell = heads(page).get_by_role("gridcell", name=re.compile("^Layer 2 head 6"))
    cell.hover()
    legend = page.locator(".av-mask-legend")
    expect(legend).to_contain_text("layer 2, head 6")
    page.mouse.move(5, 5)
    expect(legend).to_contain_text("layer 0, head 4")
    cell.click()
    page.wait_for_url(re.compile("layer=2.*head=6"))
    idle(page)
    expect(page.get_by_role("combobox", name="Head", exact=True)).to_have_value("Head 6")
    page.get_by_role("button", name="this head only").click()
    page.wait_for_url(re.compile("in_layer=2&in_head=6"))
    idle(page)
    expect(heads(page).get_by_role("gridcell", name=re.compile("^Layer 1 head 6: 0 %"))).to_be_visible()
    page.get_by_role("button", name="Before", exact=True).click()
    page.wait_for_url(re.compile("weights=before"))


@pytest.mark.parametrize("words", [1, 10, 126, 400])
def test_on_a_narrow_screen_nothing_sticks_out_at_any_length(stay: OpenPage, words: int) -> None:
    page = stay(f"/masks?mask=both&row=shorter&text={'+'.join(['cat'] * words)}&second=a+boat", width=390, height=844)
    expect(outputs(page).first).to_be_attached()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    main = page.get_by_test_id("stMain")
    assert main.evaluate("element => element.scrollWidth <= element.clientWidth")


def test_on_a_phone_both_pictures_stand_beside_each_other_above_the_mask(stay: OpenPage) -> None:
    page = stay("/masks?model=dinov2-small", width=390, height=844)
    places = [page.locator(f".st-key-masked-{one} .js-plotly-plot image").first for one in ("before", "after")]
    mask = page.get_by_test_id("mask-sheet")
    expect(mask).to_be_visible(timeout=60_000)
    first, second = (one.bounding_box() for one in places)
    below = mask.bounding_box()
    assert first is not None and second is not None and below is not None
    assert first["x"] + first["width"] <= second["x"] and abs(first["y"] - second["y"]) < 2
    assert first["width"] > 150 and below["y"] < 660


LEAVING = """(place, key) => {
    place.focus();
    place.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
    return [...place.getRootNode().querySelectorAll(".av-leaving")].map(ghost => {
        const {data} = ghost.getContext("2d").getImageData(0, 0, ghost.width, ghost.height);
        const seen = data.filter((_, at) => at % 4 === 3 && data[at] > 0).length;
        return [ghost.getAnimations()[0].effect.getTiming().duration, seen / (ghost.width * ghost.height)];
    });
}"""


def test_a_blocked_cell_leaves_and_none_does_if_the_system_asks(board: Page, idle: Idle) -> None:
    sheet = board.get_by_role("application", name=re.compile("^Mask"))
    ((duration, share),) = sheet.evaluate(LEAVING, " ")
    # One cell of 25, beside whose rows and columns are tokens.
    assert duration <= 200 and 0.02 < share < 0.04
    expect(board.locator(".av-leaving")).to_have_count(0)
    idle(board)
    assert sheet.evaluate(LEAVING, " ") == [], "an opened cell was nothing before"
    board.emulate_media(reduced_motion="reduce")
    assert sheet.evaluate(LEAVING, " ") == []


def test_notes_lie_over_no_badge_where_a_stream_is_chosen(stay: OpenPage) -> None:
    page = stay("/masks?model=shapes&stream=decoder&sample=nobody&layer=99", width=1360, height=860)
    notes, badge = page.locator(".st-key-notices-place button"), page.locator(".st-key-badge button")
    expect(page.locator(".st-key-stream")).to_be_visible()
    for width in (1340, 1360, 1440):
        page.set_viewport_size({"width": width, "height": 860})
        left, box = (notes.bounding_box() or {})["x"], badge.bounding_box()
        assert box is not None and box["x"] + box["width"] <= left
