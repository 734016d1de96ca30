"""A text is run by Enter or by the button beside its box; until then what is drawn is marked as of the text before."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.conftest import OpenPage
from tests.ui.pages.explore.test_page import parameters


def test_enter_and_the_button_run_a_text_and_until_then_the_picture_is_pale(
    stay: OpenPage, idle: Callable[[Page], None]
) -> None:
    page = stay("/?model=coreference")
    whole, box = page.locator(".st-key-page"), page.get_by_label("Sentence", exact=True)
    run = page.get_by_role("button", name="Run", exact=True)
    expect(run).to_be_hidden()
    box.fill("The cat sat because it was tired, and " + "so it slept " * 60)
    expect(run).to_be_visible()
    # It lies over no word of a text that fills the box.
    button = run.bounding_box()
    assert button is not None
    ends = "box => box.getBoundingClientRect().right - parseFloat(getComputedStyle(box).paddingRight)"
    assert box.evaluate(ends) <= button["x"]
    expect(whole).to_have_attribute("data-not-run", "")
    expect(page.locator(".st-key-explorer")).to_have_css("opacity", "0.4")
    expect(page.get_by_test_id("InputInstructions").locator("visible=true")).to_have_count(0)
    expect(box).to_have_css("height", "112px")
    box.press("Enter")
    idle(page)
    expect(run).to_be_hidden()
    # The answer stands below the box, which is open again for whoever goes on in it.
    expect(box).to_be_focused()
    expect(box).to_have_css("height", "40px")
    assert box.evaluate("box => box.scrollTop") == 0  # the text's beginning
    assert parameters(page)["text"].endswith("so it slept ")
    box.fill("The river")
    expect(box).to_have_css("height", "112px")
    box.press("Shift+Enter")
    expect(box).to_have_css("height", "112px")
    box.press("Control+Enter")
    expect(box).to_have_css("height", "40px")
    idle(page)
    assert parameters(page)["text"] == "The river"
    box.fill("The river bank")
    run.click()
    idle(page)
    expect(run).to_be_hidden()
    assert parameters(page)["text"] == "The river bank"


def test_a_text_longer_than_its_box_goes_on_to_the_box_s_end(stay: OpenPage) -> None:
    page = stay("/masks?text=" + "+".join(["extraordinarily"] * 9))
    box = page.get_by_label("Sentence", exact=True)
    # On one line, which fades where it is cut; not broken before the word that would be cut.
    assert box.evaluate("box => box.scrollWidth > box.clientWidth && box.scrollHeight <= box.clientHeight")
    assert "linear-gradient" in box.evaluate("box => getComputedStyle(box).maskImage")
    box.focus()
    expect(box).to_have_css("mask-image", "none")
    assert box.evaluate("box => box.scrollWidth <= box.clientWidth")


def test_a_text_that_no_link_carries_is_there_again_when_the_page_is_loaded_again(
    open_page: OpenPage, idle: Callable[[Page], None]
) -> None:
    # Few tokens, so that it runs at once: the model has none for so long a word.
    page, long = open_page("/"), " ".join(["so" * 70] * 12)
    box = page.get_by_label("Sentence", exact=True)
    box.fill(long)
    box.press("Enter")
    idle(page)
    assert "text" not in parameters(page)
    page.reload()
    expect(box).to_have_value(long)
    idle(page)
    expect(page.get_by_text("Verified").first).to_be_visible()
    # An address that is opened means what it says.
    page.goto(page.url.partition("?")[0])
    expect(box).to_have_value("The bank of the river was flooded")
    box.fill("The river")
    box.press("Enter")
    idle(page)
    page.reload()
    expect(box).to_have_value("The river")


@pytest.mark.parametrize("tap", [True, False], ids=["tap", "click"])
def test_a_link_that_is_pressed_right_after_typing_takes_the_text_along(
    stay: OpenPage, idle: Callable[[Page], None], tap: bool
) -> None:
    page = stay("/?model=coreference&text=The+zebra+ran")
    box, link = page.get_by_label("Sentence", exact=True), page.get_by_role("link", name="Masks", exact=True)
    idle(page)
    box.fill("The cat slept")
    # A finger that taps presses and lets go at the same moment.
    link.click(delay=0 if tap else 100)
    expect(page).to_have_url(re.compile(r"/masks\?.*text=The\+cat\+slept"))
    idle(page)
    expect(page).to_have_url(re.compile(r"/masks\?.*text=The\+cat\+slept"))
    expect(box).to_have_value("The cat slept")
