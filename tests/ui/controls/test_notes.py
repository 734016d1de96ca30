"""What is said behind "Options" can be read to its end, on a phone too."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.conftest import OpenPage

# Of each note the text, and how much wider or higher it is than its box.
CUT = """notes => notes.filter(note => note.checkVisibility()).map(note => {
    const seen = note.getBoundingClientRect(), range = document.createRange();
    range.selectNodeContents(note);
    const text = range.getBoundingClientRect();
    const right = Math.min(seen.right, innerWidth);
    const beyond = Math.max(text.right - right, seen.left - text.left, text.bottom - seen.bottom, -text.top);
    return [note.innerText, Math.round(beyond)];
})"""


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("model=induction&more=3", "The model generated the last 3 tokens"),
        ("model=all-MiniLM-L6-v2&second=A+boat+drifted", "were added around both"),
        ("model=all-MiniLM-L6-v2&special=off", "Nothing was added around the text"),
    ],
    ids=["goes on", "pair", "nothing"],
)
def test_no_note_about_the_text_is_cut_off(
    address: str, told: str, stay: OpenPage, idle: Callable[[Page], None]
) -> None:
    page = stay(f"/?text=the+bank&{address}")
    for width in (1360, 390):
        page.set_viewport_size({"width": width, "height": 844})
        idle(page)
        line = page.get_by_role("button", name=re.compile("^Sentence, model, layer and head"))
        if width < 640:
            line.click()
        page.get_by_role("button", name="Options", exact=True).click()
        expect(page.get_by_text(re.compile(told))).to_be_visible()
        notes = page.get_by_test_id("stPopoverBody").locator("[data-testid=stCaptionContainer] p").evaluate_all(CUT)
        assert any(told in text for text, _ in notes)
        assert [text for text, beyond in notes if beyond > 1] == []
        page.keyboard.press("Escape")
    line.click()  # the next test begins with the line
