"""What axe-core finds on each page: nothing that keeps somebody from using it."""

import re
from pathlib import Path
from typing import Any

import axe_playwright_python
import pytest
from playwright.sync_api import Page, expect

from tests.conftest import OpenPage, Recolour
from tests.views.style.test_theme import contrast

# axe-core itself, as the wheel axe-playwright-python carries it: nothing has to be fetched while tests run.
AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text("utf-8")
RUN = """rules => axe.run(document, {
    resultTypes: ["violations"], ...(rules.length ? {runOnly: {type: "rule", values: rules}} : {}),
}).then(found => found.violations)"""
# What fades in is paler than it will be.
STILL = """() => document.getAnimations().every(one =>
    one.playState !== "running" || one.effect.getComputedTiming().endTime === Infinity)"""
# What dark differs by from light is colours alone: of the same parts, by the same names, in the same order.
OF_COLOURS = ["color-contrast", "link-in-text-block"]
# As little text as shows everything that a page has: what is checked for each cell and each mark is the same for all.
FEW = "model=scratch&text=the+cat+sat"


# Every component and every kind of mark is on one of these, which are looked at in the dark, too.
DARK = (
    "/",
    f"/steps?{FEW}&all=yes",
    f"/masks?{FEW}&mask=drawn",
    f"/heads?{FEW}",
    "/compare?what=snapshots&model=induction&text=moon+ring+moon",
    "/learn?lesson=masks&slide=2.1&text=the+cat+sat+down",
    "/learn?test=before",
    "/why?model=induction&text=moon+ring+moon",
)
LIGHT = (
    f"/steps?{FEW}",
    f"/steps?{FEW}&step=weights&query=2",
    f"/masks?{FEW}",
    f"/compare?{FEW}",
    "/learn?lesson=scores&text=the+cat+sat+down",
    "/cross?model=translation&text=the+boy+finds+it",
    f"/cross?{FEW}",
)


def assert_open_to_all(page: Page, dark: bool = False) -> None:
    """Nothing that axe calls serious: all of it in light, and in the dark what depends on colours."""
    page.wait_for_function(STILL)
    found: list[dict[str, Any]] = page.evaluate(RUN, OF_COLOURS if dark else [])
    grave = [one for one in found if one["impact"] in ("serious", "critical")]
    told = [f"{one['id']}: {node['html'][:200]}" for one in grave for node in one["nodes"]]
    assert not told, "\n".join(["in the dark" if dark else "in light", *told])


@pytest.mark.parametrize("address", (*LIGHT, *DARK))
def test_no_page_shuts_anybody_out_in_light_or_dark(stay: OpenPage, recolour: Recolour, address: str) -> None:
    # Each of those in both colours begins as the one before it ends: a page that changes its colours is drawn anew.
    first = address in DARK and DARK.index(address) % 2 == 1
    page = stay(address, dark=first)
    page.evaluate(AXE)
    assert_open_to_all(page, first)
    if address in DARK:
        recolour(page, not first)
        assert_open_to_all(page, not first)
    pictures: list[str] = page.get_by_test_id("stPlotlyChart").evaluate_all("every => every.map(one => one.ariaLabel)")
    assert all(re.search(r"[a-z].*\d", said or "") for said in pictures), pictures


def test_what_a_filled_button_says_can_be_read_in_light_and_dark(stay: OpenPage, recolour: Recolour) -> None:
    page = stay("/heads?model=coreference")
    for dark in (False, True):
        recolour(page, dark)
        words = page.get_by_role("button", name="Ablate head")
        colours = words.evaluate("one => [getComputedStyle(one).color, getComputedStyle(one).backgroundColor]")
        ink, ground = ("#" + "".join(f"{int(part):02x}" for part in re.findall(r"\d+", one)[:3]) for one in colours)
        assert contrast(ink, ground) >= 4.5, "in the dark" if dark else "in light"


def test_a_link_of_the_menu_shows_that_the_keyboard_is_on_it(stay: OpenPage) -> None:
    page = stay(f"/?{FEW}")
    link = page.locator(".st-key-menu a", has_text="Masks")
    assert link.evaluate("one => getComputedStyle(one).outlineStyle") == "none"
    page.locator(".st-key-menu a", has_text="Step by step").focus()
    page.keyboard.press("Tab")
    assert link.evaluate("one => document.activeElement === one")
    assert link.evaluate("one => getComputedStyle(one).outlineStyle") == "solid"


def test_the_tab_key_goes_through_an_open_menu_where_its_button_stands(stay: OpenPage) -> None:
    page = stay("/")
    where = """() => [document.activeElement.closest('[data-testid="stPopoverBody"]') !== null,
        document.activeElement.innerText.split("\\n")[0]]"""
    button = page.get_by_role("button", name="Options")
    button.focus()
    page.keyboard.press("Enter")
    # All of it is there, and what stands behind the button.
    expect(page.get_by_test_id("stPopoverBody").get_by_role("switch", name="Whole words")).to_be_visible()
    expect(page.get_by_role("button", name="Export")).to_be_enabled()
    page.keyboard.press("Tab")
    inside = [page.evaluate(where)]
    assert inside[0][0]
    page.keyboard.press("Shift+Tab")
    assert page.evaluate(where) == [False, "Options"]
    page.keyboard.press("Tab")
    while inside[-1][0]:
        page.keyboard.press("Tab")
        inside.append(page.evaluate(where))
    # All of it was passed, and what comes next is what stands behind the button.
    assert len(inside) > 2 and inside[-1] == [False, "Export"]
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("stPopoverBody")).to_be_hidden()
