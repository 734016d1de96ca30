"""The explorer stays where it is while the page runs again: what is taken away is built anew, and flickers."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.conftest import OpenPage
from tests.ui.written import written_on


@pytest.mark.parametrize("address", ["/?text=rain+falls+again", "/cross"])
def test_the_explorer_is_not_taken_away_for_another_head(
    page: OpenPage, idle: Callable[[Page], None], address: str
) -> None:
    screen = page(address)
    written = written_on(screen, idle)
    screen.get_by_test_id("explorer-grid").get_by_role("gridcell").nth(1).click()
    expect(screen.get_by_test_id("explorer-readout")).to_have_text("Layer 0 · Head 1")
    idle(screen)
    assert written.stays("attention_viz_explorer")
