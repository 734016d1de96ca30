"""Long texts, texts from right to left and bytes of characters in the line of tokens, in a real browser."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from attention_viz.trace.spelling import cut_characters
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace
from tests.explorer.conftest import layer, self_attention, trace_of
from tests.explorer.long_texts import long_trace
from tests.explorer.test_in_browser import part

Show = Callable[..., Page]


def text_of(labels: tuple[str, ...], spelling: str = "text") -> Trace:
    """One stream of these tokens."""
    axis = {"encoder": Tokens(labels, tuple(range(len(labels))), spelling=(spelling,) * len(labels))}
    return trace_of({"encoder": (layer(0, len(labels), len(labels)),)}, axis, axis)


def overview(page: Page) -> Locator:
    return part(page, "overview")


def end(page: Page) -> Locator:
    return part(page, "arcs").locator(".av-end")


def choose_far(page: Page, least: int = 100) -> tuple[str, str]:
    """Choose a listed link whose ends are that far apart; return its query and key as the list names them."""
    links = part(page, "bars").locator("li button")
    for link in links.all():
        query, key = link.locator(".av-word").all_text_contents()
        places = [int(re.sub(r"\D", "", word)) for word in (query, key)]
        if abs(places[0] - places[1]) >= least:
            link.click()
            return query, key
    raise AssertionError("no link is that long")


@pytest.mark.parametrize("width", [1360, 390])
def test_both_ends_of_a_long_link_are_one_press_away(show: Show, width: int) -> None:
    page = show(self_attention(400), width=width)
    query, key = choose_far(page)
    arcs = part(page, "arcs")
    overview(page).scroll_into_view_if_needed()
    expect(arcs.locator(".av-is-query")).to_be_in_viewport()
    expect(end(page)).to_have_count(1)
    expect(end(page)).to_have_accessible_name(f"Show the key, {key}")
    end(page).click()
    expect(arcs.locator(".av-is-key")).to_be_in_viewport(ratio=1)
    expect(end(page)).to_have_accessible_name(f"Show the query, {query}")
    box = end(page).bounding_box()
    assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= width
    end(page).click()
    expect(arcs.locator(".av-is-query")).to_be_in_viewport(ratio=1)
    # The overview has the whole text, and both ends in their colours.
    whole = overview(page).bounding_box()
    assert whole is not None and whole["x"] >= 0 and whole["x"] + whole["width"] <= width
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_window_on_the_text_moves_by_keys_presses_and_drags(show: Show) -> None:
    page = show(self_attention(400))
    window = page.get_by_role("slider", name="Part of the text in sight")
    line = part(page, "arcs").get_by_role("option")
    window.focus()
    page.keyboard.press("End")
    expect(window).to_have_attribute("aria-valuetext", re.compile("^tokens 3[0-9]+ to 400 of 400$"))
    expect(line.last).to_be_in_viewport()
    page.keyboard.press("Home")
    expect(window).to_have_attribute("aria-valuetext", re.compile("^tokens 1 to [0-9]+ of 400$"))
    expect(line.first).to_be_in_viewport()
    before = int(window.get_attribute("aria-valuenow") or 0)
    page.keyboard.press("ArrowRight")
    expect(window).not_to_have_attribute("aria-valuenow", str(before))
    box = overview(page).bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.click(box["x"] + 0.5 * box["width"], middle)
    expect(line.nth(199)).to_be_in_viewport()
    page.mouse.move(box["x"] + 0.5 * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.75 * box["width"], middle, steps=4)
    page.mouse.up()
    expect(line.nth(299)).to_be_in_viewport()
    # What scrolls the line moves the window.
    part(page, "arcs").locator(".av-scroll").evaluate("one => { one.scrollLeft = 0; }")
    expect(window).to_have_attribute("aria-valuenow", "1")


def test_a_text_that_fits_has_no_overview(show: Show) -> None:
    page = show(self_attention(6))
    expect(overview(page)).to_be_hidden()
    expect(end(page)).to_have_count(0)


def test_a_token_that_is_not_on_the_page_is_one_press_away(show: Show) -> None:
    trace = long_trace()
    page = show(trace, layer=1, head=0)
    expect(overview(page)).to_be_visible()
    _, key = choose_far(page, 400)
    page.mouse.move(0, 0)
    expect(part(page, "arcs").locator(".av-is-query")).to_be_in_viewport()
    expect(end(page)).to_contain_text(key)
    end(page).click()
    expect(part(page, "arcs").locator(".av-is-key")).to_be_in_viewport()


@pytest.mark.parametrize("words", [("القطة", "جلست", "على", "القطة", "bank"), ("הכלב", "הגדול", "רדף", "הכלב", "bank")])
def test_a_text_from_right_to_left_begins_at_the_right(show: Show, words: tuple[str, ...]) -> None:
    page = show(text_of(words))
    tokens = part(page, "arcs").get_by_role("option")
    boxes = [one.bounding_box() for one in tokens.all()]
    places = [box["x"] for box in boxes if box is not None]
    assert len(places) == len(words) and places == sorted(places, reverse=True)
    # Each word stands for itself, with its number inside: nothing around it is turned.
    names = part(page, "bars").locator(".av-word").all_text_contents()
    turned = [name for name in names if "bank" not in name]
    assert turned and all(name.startswith("\u2068") and name.endswith("\u2069") for name in turned)
    tokens.first.focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(":focus")).to_have_attribute("data-place", "1")


def test_a_long_text_from_right_to_left_opens_where_it_begins_and_scrolls_to_its_end(show: Show) -> None:
    page = show(text_of(tuple(f"كلمة{place}" for place in range(400))), width=390)
    tokens = part(page, "arcs").get_by_role("option")
    window = page.get_by_role("slider", name="Part of the text in sight")
    window.focus()
    page.keyboard.press("End")
    expect(tokens.last).to_be_in_viewport()
    band, left = overview(page).bounding_box(), window.bounding_box()
    assert band is not None and left is not None and left["x"] - band["x"] < 20
    page.keyboard.press("Home")
    expect(tokens.first).to_be_in_viewport()


def test_bytes_stand_over_their_character_and_half_a_one_says_so(show: Show) -> None:
    labels = ("Ġat", "à¸", "ģ", "Ġ", "ðŁĺ", "Ģ", "à¸")
    assert [one.text for one in cut_characters(labels, ["byte-level"] * 7)] == ["ก", "😀", ""]
    page = show(text_of(labels, "byte-level"))
    line = part(page, "arcs")
    thai, smile = line.get_by_role("group", name="ก"), line.get_by_role("group", name="😀")
    spoken = [one.get_attribute("aria-label") for one in line.get_by_role("option").all()]
    assert spoken[1].startswith("ก, bytes 1 to 2 of 3") and spoken[2] == "ก, byte 3 of 3"  # pyright: ignore
    assert spoken[6].startswith("part of a character, ⟨E0 B8⟩")  # pyright: ignore
    for group, first in ((thai, 1), (smile, 4)):
        expect(group.get_by_role("option")).to_have_count(2)
        bracket, pieces = (
            group.locator("> bdi").bounding_box(),
            [line.get_by_role("option").nth(place).bounding_box() for place in (first, first + 1)],
        )
        assert bracket is not None
        for box in pieces:
            assert box is not None and bracket["y"] >= box["y"] + box["height"] - 1
            assert bracket["x"] <= box["x"] + 1 and box["x"] + box["width"] <= bracket["x"] + bracket["width"] + 1
