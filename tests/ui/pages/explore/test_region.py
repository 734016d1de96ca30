"""Patches that nobody may look at: written in few letters, run, and told beside what was looked at before."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from attention_viz.ui.pages.explore.region import patches_of, to_runs
from tests.conftest import OpenPage
from tests.ui.screens import Screen

PICTURE = "/?model=dinov2-small&layer=11&head=0&query=0&key=1"


@pytest.mark.parametrize(("patches", "code"), [([3, 4, 5, 9], "3-5.9"), ([7], "7"), ([0, 2, 1, 1, 255], "0-2.255")])
def test_patches_are_written_in_runs_and_read_again(patches: list[int], code: str) -> None:
    assert to_runs(patches) == code
    assert patches_of(code, 256) == sorted(set(patches))


@pytest.mark.parametrize("code", ["", "x", "3-", "1.", "256", "0-255", "5-3", "-1", "1" * 9])
def test_what_is_no_list_of_patches_of_this_picture_is_none(code: str) -> None:
    assert patches_of(code, 256) is None


def test_nobody_looks_at_what_is_blocked_and_it_is_told_what_is_looked_at_instead() -> None:
    screen = Screen().open(f"{PICTURE}&blocked=100-103.116-119")
    assert screen.address["blocked"] == "100-103.116-119"
    weights = screen.weights()
    assert (weights[:, [101 + one for one in range(4)]] == 0).all() and weights.sum() == pytest.approx(257, abs=1e-3)
    assert "8 patches are blocked for all positions, layers and heads. In this head, the class token gave" in (
        screen.words
    )
    assert screen.press("Unblock").address.get("blocked") is None
    assert screen.weights()[:, 101].sum() > 0


def test_a_press_blocks_what_the_head_looks_at_and_another_picture_begins_without() -> None:
    screen = Screen().open(PICTURE)
    (button,) = [one for one in screen.all("button") if one.label == "Block these patches"]
    screen.press(button.label)
    assert screen.address["blocked"]
    assert "blocked" not in screen.press("Sample – an astronaut").address


def test_an_address_that_blocks_what_is_not_there_is_told() -> None:
    screen = Screen().open(f"{PICTURE}&blocked=300")
    assert any("Allowed here: numbers below 256" in one for one in screen.alerts)


def test_the_parts_of_a_patch_s_weight_add_up_to_one(stay: OpenPage, idle: Callable[[Page], None]) -> None:
    # Hundreds of its weights are so small that each by itself counts as 0 in the browser.
    page = stay("/?model=dinov2-small&layer=2&head=5&query=0&key=1")
    parts = page.locator("section, div").filter(has=page.get_by_role("heading", name="Attends to")).last
    expect(parts.get_by_role("listitem").last).to_contain_text("the other patches")
    idle(page)
    told = [float(one.get_attribute("title") or "nan") for one in parts.locator("li .av-number").all()]
    assert len(told) >= 3 and sum(told) == pytest.approx(1, abs=0.0015)
