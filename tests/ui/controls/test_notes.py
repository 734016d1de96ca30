"""What is said behind "Options" can be read to its end, on a phone too."""

import re
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.conftest import OpenPage, Server

# Of each note the text, and how much wider or higher it is than its box.
CUT = """notes => notes.filter(note => note.checkVisibility()).map(note => {
    const seen = note.getBoundingClientRect(), range = document.createRange();
    range.selectNodeContents(note);
    const text = range.getBoundingClientRect();
    const right = Math.min(seen.right, innerWidth);
    const beyond = Math.max(text.right - right, seen.left - text.left, text.bottom - seen.bottom, -text.top);
    return [note.innerText, Math.round(beyond)];
})"""


@pytest.fixture(scope="module")
def app_server(operated: Server) -> Server:
    return operated


@pytest.mark.parametrize("width", [390, 1360])
@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("model={chat}&chat=on", "The chat template added"),
        ("model={chat}&chat=on&more=3", "The model generated the last 3 tokens"),
        ("model=all-MiniLM-L6-v2&second=A+boat+drifted", "were added around both"),
        ("model=all-MiniLM-L6-v2&special=off", "Nothing was added around the text"),
    ],
    ids=["chat", "chat that goes on", "pair", "nothing"],
)
def test_no_note_about_the_text_is_cut_off(
    address: str, told: str, width: int, open_page: OpenPage, models: Path
) -> None:
    page = open_page(f"/?text=the+bank&{address.format(chat=quote(str(models / 'chat'), safe=''))}", width=width)
    if width < 640:
        page.get_by_role("button", name=re.compile("^Sentence, model, layer and head")).click()
    page.get_by_role("button", name="Options", exact=True).click()
    expect(page.get_by_text(re.compile(told))).to_be_visible()
    notes = page.get_by_test_id("stPopoverBody").locator("[data-testid=stCaptionContainer] p").evaluate_all(CUT)
    assert any(told in text for text, _ in notes)
    assert [text for text, beyond in notes if beyond > 1] == []
