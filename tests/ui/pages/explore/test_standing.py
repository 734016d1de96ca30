"""The explorer stays where it is while the page runs again: what is taken away is built anew, and flickers."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.conftest import OpenPage
from tests.ui.written import written_on


@pytest.mark.parametrize("address", ["/?text=rain+falls+again", "/cross"])
def test_the_explorer_is_not_taken_away_for_another_head(
    stay: OpenPage, idle: Callable[[Page], None], address: str
) -> None:
    page = stay(address)
    written = written_on(page, idle)
    page.get_by_test_id("explorer-grid").locator('[data-layer="0"][data-head="1"]').click()
    expect(page.get_by_test_id("explorer-readout")).to_have_text("Head 0·1")
    idle(page)
    assert written.stays("attention_viz_explorer")


def test_a_button_names_the_whole_word_whose_number_it_shows(stay: OpenPage) -> None:
    page = stay("/?text=Die+B%C3%A4nke+am+Flu%C3%9F+waren+schon+grau&layer=0&head=0&query=&key=")
    first = page.get_by_test_id("finding").first
    expect(first).to_contain_text("die → fluß")
    first.click()
    # The sentence above says the same, and beside it what the pair of tokens alone has.
    expect(page.get_by_test_id("explorer-sentence")).to_contain_text("“die” looks at “fluß”: 0.69")
    expect(first).to_contain_text("0.69")
    expect(page.get_by_test_id("explorer-aside")).to_have_text("for whole words; this pair of tokens has 0.63")
    # A piece by itself says that it goes on with a word.
    expect(page.get_by_test_id("explorer-bars").locator(".av-pair").first).to_have_text("die → ‿ß")
