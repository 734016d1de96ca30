"""From the keyboard: Tab goes through a page in the order in which it is read, and is caught nowhere."""

import pytest
from playwright.sync_api import Page

from tests.pages import OpenPage

# What has the focus, in components of ours, too: what it is called, and whether it can be seen.
FOCUSED = """() => {
    let one = document.activeElement;
    while (one?.shadowRoot?.activeElement) one = one.shadowRoot.activeElement;
    if (one === document.body) return null; // past the last there is
    const label = one.getAttribute("aria-label") || one.innerText || one.labels?.[0]?.innerText || one.tagName;
    const box = one.getBoundingClientRect();
    return [label.trim().split("\\n")[0], box.width > 0 && box.height > 0];
}"""

MENU = ("Explore", "Step by step", "Masks", "Heads", "Cross-attention", "Compare", "Learn")


def stops(page: Page, count: int) -> list[tuple[str, bool]]:
    """What Tab comes to, one after the other, from the top of the page."""
    page.evaluate("document.activeElement.blur(); getSelection().removeAllRanges(); scrollTo(0, 0)")
    found = []
    for _ in range(count):
        page.keyboard.press("Tab")
        focused = page.evaluate(FOCUSED)
        if focused is None:
            break
        found.append(tuple(focused))
    return found


@pytest.mark.parametrize(
    ("address", "then"),
    [
        ("/", ("Present", "Sentence", "Model", "Layer", "Head", "Options", "Export", "Verified")),
        ("/steps", ("Present", "Sentence", "Model", "Layer", "Head", "Options", "Export", "Verified")),
        (
            "/masks",
            (
                "Present",
                "Sentence",
                "Model",
                "Layer",
                "Head",
                "Mask",
                "Options",
                "Export",
                "Verified",
                "causal",
                "Difference",
            ),
        ),
        ("/heads", ("Present", "Sentence", "Model", "Layer", "Head", "Options", "Export", "Verified", "Roles")),
        ("/why?why=pair", ("Present", "Sentence", "Model", "Layer", "Head", "Options", "Export", "Verified")),
        (
            "/compare",
            ("Present", "Sentence", "Second sentence", "Model", "Layer", "Head", "Two sentences", "Options", "Export"),
        ),
        (
            "/learn",
            ("Present", "Sentence", "Lesson", "Options", "Export", "1. Why attention", "Next →"),
        ),
    ],
)
def test_tab_follows_the_order_in_which_a_page_is_read(stay: OpenPage, address: str, then: tuple[str, ...]) -> None:
    found = stops(stay(address), 36)
    assert all(seen for _, seen in found), found
    names = [name for name, _ in found]
    places = [next((at for at, name in enumerate(names) if wanted in name), -1) for wanted in MENU]
    assert places == sorted(places), names
    assert min(places) >= 0, names
    at = places[-1]
    for wanted in then:
        later = [place for place in range(at + 1, len(names)) if wanted.lower() in names[place].lower()]
        assert later, (wanted, names)
        at = later[0]
