"""Slides as a teacher goes through them before a class, in a real browser."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.conftest import OpenPage

# Where slides are drawn, wherever on the page.
SLIDES = """() => {
    const dialog = [...document.querySelectorAll("*")].map(one => one.shadowRoot?.querySelector("dialog.av-present"))
        .find(Boolean);"""

SMALLEST = (
    SLIDES
    + """
    const stage = dialog.querySelector(".av-stage");
    const scale = stage.getBoundingClientRect().width / stage.offsetWidth;
    const texts = one => [...one.childNodes].some(
        node => node.nodeType === Node.TEXT_NODE && node.textContent.trim());
    // A figure's labels are smaller, as on paper.
    const written = [...stage.querySelectorAll("*")].filter(
        one => one.getClientRects().length && !one.closest(".av-figure") && texts(one));
    // What is drawn may be drawn smaller than its stage, and turned.
    const scaled = one => {
        const drawn = one.getScreenCTM?.();
        return drawn ? Math.hypot(drawn.a, drawn.b) : scale;
    };
    return Math.min(...written.map(one => parseFloat(getComputedStyle(one).fontSize) * scaled(one)));
}"""
)

# Pairs of numbers that lie over each other, and parts of the picture that the keys cover.
COVERED = (
    SLIDES
    + """
    const told = name => [...dialog.querySelectorAll(name)].filter(one => getComputedStyle(one).opacity !== "0")
        .map(one => [one.textContent, one.getBoundingClientRect()]);
    const numbers = told(".av-number");
    const over = (one, other) => one.left < other.right && other.left < one.right
        && one.top + one.height / 5 < other.bottom - other.height / 5
        && other.top + other.height / 5 < one.bottom - one.height / 5;
    const keys = dialog.querySelector(".av-keys").getBoundingClientRect();
    return [
        ...numbers.flatMap(([text, one], at) => numbers.slice(at + 1).filter(([, other]) => over(one, other))
            .map(([other]) => `${text} over ${other}`)),
        ...[...numbers, ...told(".av-word"), ...told(".av-row")].filter(([, one]) => one.bottom > keys.top + 1)
            .map(([text]) => `${text} below the keys`),
    ];
}"""
)


def shown(page: Page) -> str | None:
    """Which slide the address names; asked of the page itself, since Playwright hears of it a moment later."""
    found: str | None = page.evaluate("new URLSearchParams(location.search).get('slide')")
    return found


def test_a_class_is_led_through_the_steps_and_the_roles_by_the_keys(
    stay: OpenPage, idle: Callable[[Page], None]
) -> None:
    for address, count, last in (
        ("/steps?model=all-MiniLM-L6-v2&text=The+bank+of+the+river&layer=0&head=4&query=2&key=5", 5, "adds most"),
        ("/heads?model=all-MiniLM-L6-v2&text=The+bank+of+the+river&layer=0&head=4&view=roles", 3, "looks at “river”"),
    ):
        page = stay(address, width=1280, height=720)
        idle(page)
        page.get_by_role("button", name="Present").click()
        dialog = page.locator("dialog.av-present")
        claim = dialog.locator("h1")
        asked = list[str]()
        for slide in range(1, 20):
            asked.append(claim.locator(".av-ask").inner_text())
            # A question shows no answer: no bar is marked but of the word that it names.
            for label in dialog.locator(".av-is-key .av-label").all():
                if label.inner_text().strip("·") not in asked[-1]:
                    expect(label).to_have_css("font-weight", "400")
            assert shown(page) == f"{slide}.1"
            assert page.evaluate(SMALLEST) >= 20
            page.keyboard.press("ArrowRight")
            assert shown(page) == f"{slide}.2"
            expect(claim.locator(".av-tell")).to_have_attribute("aria-hidden", "false")
            page.keyboard.press("ArrowRight")
            if shown(page) == f"{slide}.2":
                break
        assert len(asked) == len(set(asked)) >= count
        expect(claim.locator(".av-tell")).to_contain_text(last)
        page.keyboard.press("ArrowLeft")
        assert shown(page) == f"{len(asked)}.1"
        page.keyboard.down("Shift")
        expect(dialog.locator(".av-dot")).to_be_visible()
        page.keyboard.up("Shift")
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        assert shown(page) is None


@pytest.mark.parametrize(
    "address",
    [
        "/?text=Die+müde+Katze+schläft+auf+der+Straße+vor+dem+Bäcker&layer=0&head=6&query=1&key=10",
        "/masks?mask=causal&text=Die+müde+Katze+schläft+auf+der+Straße",
        "/?text=القطة+تجلس+على+السجادة+لأنها+متعبة&layer=2&head=9",
    ],
)
def test_numbers_stand_apart_above_the_keys_and_can_be_read_from_the_last_row(stay: OpenPage, address: str) -> None:
    page = stay(address, width=1280, height=720)
    page.get_by_role("button", name="Present").click()
    dialog = page.locator("dialog.av-present")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
        expect(dialog.locator(".av-tell")).to_have_attribute("aria-hidden", "false")
        page.wait_for_function("document.getAnimations().length === 0")
        assert page.evaluate(COVERED) == []
        assert page.evaluate(SMALLEST) >= 20
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_where_numbers_are_from_ends_above_the_keys_and_takes_the_same_room_without_them(stay: OpenPage) -> None:
    text = "It was a cold morning in the small town by the sea, and Anna walked slowly to the old library."
    page = stay(f"/?text={text.replace(' ', '+')}", width=1280, height=720)
    page.get_by_role("button", name="Present").click()
    dialog = page.locator("dialog.av-present")
    source, keys = dialog.locator(".av-source"), dialog.locator(".av-keys")
    expect(keys).to_be_visible()
    expect(source).to_have_css("-webkit-line-clamp", "1")
    with_keys = source.bounding_box()
    page.keyboard.press("?")
    expect(keys).to_be_hidden()
    expect(source).to_have_css("-webkit-line-clamp", "2")
    assert source.bounding_box() == with_keys
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_bars_below_a_table_keep_a_line_each(stay: OpenPage) -> None:
    # A long question and a table of five rows leave little room for four heads to choose from.
    address = "/learn?lesson=heads&text=Our+cat+sleeps+on+the+warm+stove&exercise_seed=7&slide=4.1"
    page = stay(address, width=1920, height=1080)
    dialog = page.locator("dialog.av-present")
    expect(dialog.locator(".av-below .av-row")).to_have_count(4)
    expect(dialog.locator(".av-given")).to_be_visible()
    boxes = [row.bounding_box() for row in dialog.locator(".av-row").all()]
    assert all(box is not None and box["height"] >= 44 for box in boxes)
    assert page.evaluate(COVERED) == []
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
