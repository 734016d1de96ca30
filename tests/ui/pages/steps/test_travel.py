"""A number travels from a page's matrix to its place in Step by step."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.conftest import OpenPage

Idle = Callable[[Page], None]

# Notes what moves, where it begins, and where it would be at its end. On a busy machine the number waits for as long as
# the page takes. No other page may be opened after it in the same place.
WATCH = """() => {
    const wait = window.setTimeout;
    window.setTimeout = (act, time, ...more) => time === 2000 ? 0 : wait(act, time, ...more);
    const animate = Element.prototype.animate;
    const middle = box => [box.left + box.width / 2, box.top + box.height / 2];
    window.travels = [];
    Element.prototype.animate = function (frames, timing) {
        const motion = animate.call(this, frames, timing);
        if (this.dataset.testid !== "travelling-number") return motion;
        const from = middle(this.getBoundingClientRect());
        motion.currentTime = timing.duration - 0.01;
        const to = middle(this.getBoundingClientRect());
        motion.currentTime = 0;
        window.travels.push({text: this.textContent, from, to, duration: timing.duration});
        return motion;
    };
}"""


def middle(place: Locator) -> tuple[float, float]:
    box = place.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def near(one: Any, other: Any) -> bool:
    return all(abs(a - b) < 3 for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("width", [1360, 390])
def test_the_number_travels_from_its_cell_to_its_place(open_page: OpenPage, idle: Idle, width: int) -> None:
    page = open_page("/?layer=0&head=4&query=2&key=5", width=width, height=860)
    how, cell = page.get_by_test_id("explorer-how"), page.locator(".av-chosen-cell")
    expect(how).to_have_text("How was 0.58 computed?")
    # On a phone the matrix is below the screen: the number leaves from the sentence.
    start = middle(cell if width > 720 else page.locator(".av-claim-number").first)
    page.evaluate(WATCH)
    how.click()
    expect(page.get_by_test_id("pipeline-claim")).to_contain_text("takes 0.58")
    idle(page)
    travels = page.evaluate("travels")
    assert [(one["text"], one["duration"] <= 200) for one in travels] == [("0.58", True)]
    weight = page.locator(".av-flowchart text.av-strong", has_text=re.compile(r"^0\.58$"))
    there = weight if width > 720 else page.get_by_test_id("pipeline-claim").locator(".av-claim-number")
    assert near(travels[0]["from"], start) and near(travels[0]["to"], middle(there)), travels
    expect(page.get_by_test_id("travelling-number")).to_have_count(0)


def test_a_signed_number_travels_too(open_page: OpenPage, idle: Idle) -> None:
    page = open_page("/?model=recall-mamba&layer=0&head=0&query=5&key=2", height=860)
    how = page.get_by_test_id("explorer-how")
    expect(how).to_have_text("How was the weight 0.60 computed?")
    page.evaluate(WATCH)
    how.click()
    expect(page.get_by_test_id("pipeline-claim")).to_contain_text("carries 0.60")
    idle(page)
    travels = page.evaluate("travels")
    assert [one["text"] for one in travels] == ["0.60"]
    weight = page.locator(".av-flowchart text.av-strong", has_text=re.compile(r"^0\.60$"))
    assert near(travels[0]["to"], middle(weight)), travels


def test_nothing_travels_if_the_system_asks_for_less_motion(open_page: OpenPage, idle: Idle) -> None:
    page = open_page("/?layer=0&head=4&query=2&key=5")
    page.emulate_media(reduced_motion="reduce")
    page.evaluate(WATCH)
    # In the same turn of the browser: what travels would float at once.
    floats = page.get_by_test_id("explorer-how").evaluate(
        "how => { how.click(); return document.querySelectorAll('[data-testid=travelling-number]').length; }"
    )
    expect(page.get_by_test_id("pipeline-claim")).to_contain_text("takes 0.58")
    idle(page)
    assert floats == 0 and page.evaluate("travels") == []


def test_a_number_that_never_arrives_is_gone(open_page: OpenPage) -> None:
    page = open_page("/?layer=0&head=4&query=2&key=5")
    floating = page.get_by_test_id("travelling-number")
    # The page is never asked for, as where the connection is lost.
    page.evaluate("WebSocket.prototype.send = () => {}")
    page.get_by_test_id("explorer-how").click()
    expect(floating).to_have_text("0.58")
    expect(floating).to_have_count(0)
    expect(page.get_by_test_id("explorer-sentence")).to_be_visible()
