"""The card of a head that is pointed at, where the page has no place for it."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.conftest import OpenPage
from tests.ui.pages.heads.test_page import cell, plain_but


def test_a_strip_of_the_chosen_head_ends_when_its_place_comes_back_unheard(
    stay: OpenPage, idle: Callable[[Page], None]
) -> None:
    page = stay(plain_but())
    # While a page is drawn anew after a choice, the place that tells of a head may be missing for a moment.
    page.evaluate("document.head.append(Object.assign(document.createElement('style'), {id: 'gone'}))")
    page.evaluate("document.getElementById('gone').textContent = '.st-key-heads-one-head {display: none !important}'")
    cell(page, 3, 7).click()
    idle(page)
    strip = page.get_by_role("group", name="Layer 3, head 7")
    expect(strip).to_have_class(re.compile("av-strip"))
    page.evaluate("document.getElementById('gone').remove()")
    expect(strip).to_be_hidden()
