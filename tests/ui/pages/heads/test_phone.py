"""The Heads page on a phone, in a real browser: what comes first, and what has room."""

from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from attention_viz.ui.pages.heads.choice import VIEWS
from tests.conftest import OpenPage
from tests.ui.pages.heads.test_page import plain_but


def box(found: Locator) -> dict[str, float]:
    place = found.bounding_box()
    assert place is not None
    return {"left": place["x"], "right": place["x"] + place["width"], "top": place["y"], "width": place["width"]}


def test_the_cards_of_the_roles_come_after_the_chosen_head_and_go_back_below_the_atlas_where_there_is_room(
    stay: OpenPage, idle: Callable[[Page], None]
) -> None:
    page = stay(plain_but(view="roles"), width=390, height=844)
    first, head, atlas = (
        page.get_by_role("group", name="Roles of heads"),
        page.locator(".st-key-heads-one-head"),
        page.get_by_test_id("atlas"),
    )
    expect(first.locator(".av-role")).to_have_count(9)
    assert box(atlas)["top"] < box(head)["top"] < box(first)["top"]
    # It does there what it does below the atlas.
    first.locator(".av-best").nth(1).click()
    page.wait_for_url("**layer=2&head=11**")
    idle(page)
    expect(first.locator('.av-best[aria-current="true"]')).to_have_count(1)
    page.set_viewport_size({"width": 1360, "height": 860})
    expect(atlas.locator(".av-role")).to_have_count(9)
    assert box(first)["top"] < box(head)["top"] + 400 and box(first)["right"] <= box(head)["left"]


def test_the_pickers_of_two_metrics_have_room_for_what_they_say(stay: OpenPage) -> None:
    for width in (390, 1360):
        page = stay(plain_but(view="scatter"), width=width, height=844)
        for name in ("Metric", "Against"):
            picker = page.get_by_role("combobox", name=name, exact=True)
            assert box(picker)["right"] <= width
            said = picker.evaluate("node => node.scrollWidth <= node.clientWidth && node.value")
            assert said in ("Entropy", "Previous token")
        ways = page.locator(".st-key-heads-view-row").get_by_test_id("stButtonGroup")
        assert all(box(one)["right"] <= width for one in ways.all())
        # They stand on a line that scrolls, on which each can be brought into sight.
        buttons = ways.locator("button").all()
        assert len(buttons) == len(VIEWS) + 1  # "Metrics" stands for three of them
        for one in buttons:
            one.scroll_into_view_if_needed()
            assert box(one)["left"] >= 0 and box(one)["right"] <= width
