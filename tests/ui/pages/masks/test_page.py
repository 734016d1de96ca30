"""The Masks page as a person uses it, in a real browser."""

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, quote_plus, urlsplit

import numpy
import pandas
import pytest
import torch
from playwright.sync_api import Locator, Page, expect

import attention_viz as av
from attention_viz.ui.address.cells import from_code, to_code
from tests.conftest import OpenPage, Recolour

Idle = Callable[[Page], None]


def choose(screen: Page, label: str, option: str | re.Pattern[str], idle: Idle) -> None:
    screen.get_by_role("combobox", name=re.compile(rf"(^|\W){label}$")).click()
    screen.get_by_role("option", name=option).first.click()
    idle(screen)


def weights(screen: Page) -> numpy.ndarray:
    """The matrix that the button "Weights (CSV)" hands out."""
    with screen.expect_download() as download:
        screen.get_by_role("button", name="Weights (CSV)").click()
    table = pandas.read_csv(io.BytesIO(download.value.path().read_bytes()), keep_default_na=False)
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


def test_with_a_causal_mask_the_csv_equals_transformers_given_the_same_mask(stay: OpenPage) -> None:
    from transformers import AutoModel, AutoTokenizer

    text = "The bank is steep, so it's dangerous to stand near it"
    screen = stay(f"/masks?mask=causal&layer=3&head=1&text={quote_plus(text)}")
    path = av.CATALOGUE["all-MiniLM-L6-v2"].path
    assert path is not None
    ids = AutoTokenizer.from_pretrained(path)(text, return_tensors="pt").input_ids
    n = ids.shape[1]
    added = torch.full((n, n), torch.finfo(torch.float32).min).triu(1)[None, None]
    model: Any = AutoModel.from_pretrained(path, attn_implementation="eager")
    with torch.no_grad():
        expected = model(input_ids=ids, attention_mask=added, output_attentions=True).attentions[3][0, 1]
    ours = weights(screen)
    assert abs(ours - expected.numpy()).max() <= 1e-5
    assert (ours[numpy.triu_indices(n, 1)] == 0).all()
    assert parameters(screen)["mask"] == "causal"


def test_the_pickers_change_the_numbers_and_the_address(page: OpenPage, stay: OpenPage, idle: Idle) -> None:
    screen = stay("/masks")
    causal = weights(screen)
    choose(screen, "Mask", re.compile("^window"), idle)
    screen.get_by_label("Window", exact=True).fill("3")
    screen.get_by_label("Window", exact=True).press("Enter")
    idle(screen)
    window = weights(screen)
    position = numpy.arange(9)
    assert ((window > 0) == (abs(position[:, None] - position) < 3)).all()
    assert (window != causal).any()
    choose(screen, "Blocks in", "only 5", idle)
    assert (weights(screen) > 0).all()
    assert {name: parameters(screen)[name] for name in ("mask", "window", "in_layer")} == {
        "mask": "window",
        "window": "3",
        "in_layer": "5",
    }
    again = page(urlsplit(screen.url)._replace(scheme="", netloc="").geturl())
    assert (weights(again) == weights(screen)).all()


def test_back_and_forward_show_what_the_address_says(page: OpenPage, idle: Idle) -> None:
    screen = page("/masks?mask=window&window=2")
    seen = [(weights(screen), parameters(screen))]
    screen.get_by_label("Window", exact=True).fill("4")
    screen.get_by_label("Window", exact=True).press("Enter")
    idle(screen)
    seen.append((weights(screen), parameters(screen)))
    choose(screen, "Blocks for", "only 3", idle)
    seen.append((weights(screen), parameters(screen)))
    choose(screen, "Mask", re.compile("^drawn"), idle)
    screen.get_by_role("button", name="Block", exact=True).click()
    idle(screen)
    drawn = weights(screen), parameters(screen)
    screen.go_back()
    idle(screen)
    seen.append((weights(screen), parameters(screen)))
    assert ("cells" in drawn[1], "cells" in seen[3][1]) == (True, False)
    for move, place in (("back", 2), ("back", 1), ("back", 0), ("forward", 1), ("forward", 2), ("forward", 3)):
        getattr(screen, f"go_{move}")()
        idle(screen)
        expected, asked = seen[place]
        assert parameters(screen) == asked
        assert (weights(screen) == expected).all()
    screen.go_forward()
    idle(screen)
    assert parameters(screen) == drawn[1]
    assert (weights(screen) == drawn[0]).all()


def test_a_prefix_is_open_to_everyone_and_more_of_it_opens_more(stay: OpenPage, idle: Idle) -> None:
    screen = stay("/masks?mask=prefix&prefix=2")
    position = numpy.arange(9)
    for prefix in (2, 5):
        screen.get_by_label("Prefix", exact=True).fill(str(prefix))
        screen.get_by_label("Prefix", exact=True).press("Enter")
        idle(screen)
        open_cells = (position[None] <= position[:, None]) | (position[None] < prefix)
        assert ((weights(screen) > 0) == open_cells).all()
        assert parameters(screen)["prefix"] == str(prefix)


def test_a_mask_for_one_head_leaves_the_others_as_they_were(stay: OpenPage, idle: Idle) -> None:
    screen = stay("/masks?mask=none")
    own = weights(screen)
    choose(screen, "Mask", re.compile("^causal"), idle)
    assert (weights(screen)[numpy.triu_indices(9, 1)] == 0).all()
    choose(screen, "Blocks for", "only 3", idle)
    # In the first layer nothing that a head reads has changed: head 4 is as it was, to the last digit.
    assert (weights(screen) == own).all()
    expect(screen.get_by_text("in the head on the screen it blocks nothing")).to_be_visible()
    choose(screen, "Head", "3", idle)
    assert (weights(screen)[numpy.triu_indices(9, 1)] == 0).all()
    choose(screen, "Mask", re.compile("^none"), idle)
    assert (weights(screen) > 0).all()


def test_padding_stands_in_the_shorter_row_and_nobody_looks_at_it(stay: OpenPage, idle: Idle) -> None:
    screen = stay("/masks?mask=padding&row=shorter&second=A+boat")
    matrix = weights(screen)
    assert (matrix[:, 4:] == 0).all()
    assert matrix[:, :4].sum(axis=1) == pytest.approx(1, abs=1e-5)
    expect(picture(screen, "after").get_by_text("padding", exact=True)).to_be_visible()
    screen.get_by_role("radio", name="longer").or_(screen.get_by_role("button", name="longer")).first.click()
    idle(screen)
    assert (weights(screen) > 0).all()
    assert parameters(screen)["row"] == "longer"


def test_our_own_module_takes_every_mask(stay: OpenPage, idle: Idle) -> None:
    screen = stay("/masks?mask=both&row=shorter&model=scratch&head=1&text=The+cat+sat+on+mat&second=The+cat")
    matrix = weights(screen)
    assert matrix.shape == (5, 5)
    assert ((matrix > 0) == (numpy.tri(5, dtype=bool) & (numpy.arange(5) < 2))).all()
    expect(screen.get_by_text(re.compile("^Verified"))).to_be_visible()


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


def test_cells_are_drawn_by_clicks_and_drags_without_a_switch_between_them(board: Page, idle: Idle) -> None:
    expected = numpy.zeros((5, 5), dtype=bool)
    board.mouse.click(*over(picture(board, "after"), 1, 3, 5))
    board.wait_for_url(re.compile("cells="))
    idle(board)
    expected[1, 3] = True
    assert (drawn(board, 5) == expected).all()
    drag(board, (4.2, 1.3), (2.7, -0.3), 5)
    idle(board)
    expected[3:, :2] = True
    assert (drawn(board, 5) == expected).all()
    assert ((weights(board) == 0) == expected).all()
    board.mouse.click(*over(picture(board, "after"), 1, 3, 5))
    idle(board)
    expected[1, 3] = False
    assert ((weights(board) == 0) == expected).all()


def test_quick_clicks_all_count(board: Page, idle: Idle) -> None:
    for place in [over(picture(board, "after"), row, 4, 5) for row in range(4)]:
        board.mouse.click(*place)
    for _ in range(40):  # each stroke is a run of the page, which a busy machine takes its time for
        idle(board)
        if "cells" in parameters(board) and drawn(board, 5).sum() >= 4:
            break
        board.wait_for_timeout(500)
    assert numpy.argwhere(drawn(board, 5)).tolist() == [[0, 4], [1, 4], [2, 4], [3, 4]]


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


def test_whole_rows_are_drawn_with_the_pickers_and_cleared(board: Page, idle: Idle) -> None:
    choose(board, "Who is looking", "0 The", idle)
    board.get_by_role("button", name="Block", exact=True).press("Enter")
    idle(board)
    assert (weights(board)[0] == 0).all()
    assert (weights(board)[1:] > 0).all()
    expect(board.get_by_text("“The” (row 0) has nothing left to look at")).to_be_visible()
    board.get_by_role("button", name="Clear").click()
    idle(board)
    assert (weights(board) > 0).all()
    assert "cells" not in parameters(board)


def test_a_drawing_that_blocks_everything_is_shown_as_rows_of_zeros(stay: OpenPage) -> None:
    code = to_code(numpy.ones((9, 9), dtype=bool))
    screen = stay(f"/masks?mask=drawn&cells={code}")
    assert not weights(screen).any()
    expect(screen.get_by_text("and 3 more have nothing left to look at")).to_be_visible()
    expect(screen.get_by_test_id("stAlert")).to_have_count(0)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("mask=window&window=0", "A window of 0 was asked for; it has to be 1"),
        ("mask=prefix&prefix=40", "A prefix of 40 was asked for; it has to be from 0 to the 9 positions"),
        ("mask=drawn&cells=3-eNqTSgEAARIAkg", "for 3 tokens; this text has 9"),
        ("mask=drawn&cells=%3Cb%3E", "is no drawing made here"),
        ("mask=padding&second=+", "The second sentence is empty"),
        ("mask=hat&in_layer=9", "The address asks for mask “hat”"),
    ],
)
def test_what_makes_no_mask_is_said_in_words_and_nothing_typed_is_lost(stay: OpenPage, address: str, said: str) -> None:
    screen = stay(f"/masks?{address}")
    expect(screen.get_by_test_id("stAlert").first).to_contain_text(said)
    expect(screen.get_by_label("Sentence", exact=True)).to_have_value("The bank of the river was flooded")


def test_the_demonstration_holds_the_numbers_of_the_head_on_the_screen(stay: OpenPage) -> None:
    screen = stay("/masks?model=scratch&head=1&text=The+cat+sat+on+mat&mask=causal")
    tables = screen.locator("table")
    expect(tables).to_have_count(2)
    some, nothing = tables.nth(0), tables.nth(1)
    expect(some.get_by_text("Leak 0: the row is exact.")).to_have_count(6)
    one = av.scratch("The cat sat on mat").attention(0).head(1)
    row = one.scaled[2]
    expect(nothing).to_contain_text(f"Leak {float(row.softmax(-1).max()):.3g}: the weights of no mask")
    expect(nothing).to_contain_text("Leak 0.2: every cell alike")
    expect(nothing.get_by_text("NaN")).to_have_count(3)


def test_a_file_is_looked_at_and_a_foreign_one_refused(page: OpenPage, idle: Idle, tmp_path: Path) -> None:
    path = tmp_path / "mine.safetensors"
    av.scratch("A trace of my own", d_model=12, heads=3, allowed=av.masks.causal(5)).save(path)
    screen = page("/masks")
    screen.get_by_role("button", name="Open a trace").click()
    (tmp_path / "other.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0{}      ")
    screen.locator("input[type=file]").last.set_input_files(tmp_path / "other.safetensors")
    idle(screen)
    expect(screen.get_by_test_id("stAlert").first).to_contain_text("can't be shown")
    screen.locator("input[type=file]").last.set_input_files(path)
    idle(screen)
    expect(screen.get_by_text("own mask here: causal (nobody looks ahead)")).to_be_visible()
    expect(screen.get_by_text("A trace from a file is a run that is over")).to_be_visible()


@pytest.mark.parametrize("words", [1, 10, 126])
def test_on_a_narrow_screen_nothing_sticks_out_at_any_length(stay: OpenPage, words: int) -> None:
    screen = stay(f"/masks?mask=both&row=shorter&text={'+'.join(['cat'] * words)}&second=a+boat", width=390, height=844)
    expect(picture(screen, "changed-outputs")).to_be_attached()
    assert screen.evaluate("document.documentElement.scrollWidth") <= 390
    main = screen.get_by_test_id("stMain")
    assert main.evaluate("element => element.scrollWidth <= element.clientWidth")


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("model=induction&text=x+y&mask=prefix&prefix=2", "the model blocks all these cells already"),
        ("model=induction&text=x+y&mask=causal", "the model blocks all these cells already"),
        ("mask=padding&row=longer&second=A+boat", "In this row there is no padding"),
    ],
)
def test_a_mask_that_changes_nothing_says_why(stay: OpenPage, address: str, why: str) -> None:
    screen = stay(f"/masks?{address}")
    expect(screen.get_by_text(re.compile(f"{why}.*it changes nothing here"))).to_be_visible()
    expect(screen.get_by_text("What changed, here and further on")).to_have_count(0)


def test_the_demonstration_says_where_its_row_is_made_up(stay: OpenPage) -> None:
    screen = stay("/masks?mask=none")
    expect(screen.get_by_text("For comparison, as no row above is blocked in part")).to_be_visible()
    screen = stay("/masks?mask=causal")
    expect(screen.get_by_text("A row that may look at 5 of 9")).to_be_visible()


def test_another_model_with_fewer_heads_is_told_and_the_mask_acts_in_all(stay: OpenPage, idle: Idle) -> None:
    screen = stay("/masks?mask=causal&in_head=11")
    expect(screen.get_by_text("head 11 only")).to_be_visible()
    choose(screen, "Model", "induction", idle)
    expect(screen.get_by_text("The mask was for head 11 only; induction has")).to_be_visible()
    assert "in_head" not in parameters(screen)


def test_what_is_cut_of_the_other_sentence_of_a_batch_is_shown(page: OpenPage) -> None:
    screen = page("/masks?mask=padding&text=hi&second=" + "+".join(["b"] * 700))
    expect(screen.get_by_text("The other sentence has 702 tokens")).to_be_visible()
