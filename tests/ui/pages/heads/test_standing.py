"""The atlas stays where it is while the page runs again: what is taken away is built anew, and loses the focus."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.conftest import OpenPage
from tests.ui.written import written_on


def test_the_atlas_is_not_taken_away_for_another_head(stay: OpenPage, idle: Callable[[Page], None]) -> None:
    page = stay("/heads?text=rain+falls+again")
    written = written_on(page, idle)
    page.locator('.av-atlas [data-layer="0"][data-head="1"]').click()
    expect(page.locator(".st-key-heads-one-title")).to_contain_text("Layer 0, head 1")
    idle(page)
    first = [written.stays("attention_viz_atlas")]
    written.deltas.clear()
    page.locator('.av-atlas [data-layer="0"][data-head="2"]').click()
    expect(page.locator(".st-key-heads-one-title")).to_contain_text("Layer 0, head 2")
    idle(page)
    assert [*first, written.stays("attention_viz_atlas")] == [True, True]


def test_a_sentence_of_several_lines_pushes_down_what_is_below(stay: OpenPage) -> None:
    page = stay("/heads", width=1280)
    claim, ways = (page.locator(f".st-key-heads-{name}") for name in ("claim", "view-row"))
    claim.locator("h3").evaluate("(h3, more) => h3.append(more)", " and nothing else that has a name" * 3)
    above, below = claim.locator("h3").bounding_box(), ways.bounding_box()
    assert above is not None and below is not None
    assert above["height"] > 40 and above["y"] + above["height"] <= below["y"] + 8
