"""Where things stand on every page, from the first moment on, in a real browser."""

import re
from collections.abc import Callable, Iterable

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.conftest import OpenPage, Server
from tests.pages import LISTEN

PAGES = ("/", "/steps", "/masks", "/heads", "/why", "/cross", "/?model=lists", "/learn")

# Until its style is there the page is one pixel high. Notes the frame in which the style comes, from its beginning to
# that of the next.
STYLED = """(() => {
    const watch = () => {
        const styled = document.querySelector(".st-key-page")?.getBoundingClientRect().height > 1;
        if (!styled) return void requestAnimationFrame(watch);
        window.styledFrom = performance.now();
        requestAnimationFrame(() => { window.styledTo = performance.now(); });
    };
    requestAnimationFrame(watch);
})()"""

# How far what was on the screen moved, each time weighed by how much of the screen moved. In the frame that brings the
# style, the browser cuts what was there before by the new bounds of the page, not by the pixel that it had: it counts
# as moved what nobody has seen, and the more so the later the style comes.
SHIFTS = """() => new Promise(resolve => {
    const unseen = ({startTime}) => startTime >= window.styledFrom && startTime < window.styledTo;
    const tell = entries => resolve(
        entries.reduce((sum, entry) => sum + (unseen(entry) ? 0 : entry.value), 0));
    new PerformanceObserver(list => tell(list.getEntries())).observe({type: "layout-shift", buffered: true});
    setTimeout(() => tell([]), 250); // what was noted comes with the next frame
})"""


# Whatever takes longer than a hundredth of a second to change, as far down as there are components.
MOVING = """() => {
    const all = root => [...root.querySelectorAll("*")].flatMap(
        one => [one, ...(one.shadowRoot ? all(one.shadowRoot) : [])]
    );
    const long = times => times.split(",").some(one => parseFloat(one) > 0.01);
    return all(document).filter(one => {
        const style = getComputedStyle(one);
        return long(style.transitionDuration) || (style.animationName !== "none" && long(style.animationDuration));
    }).map(one => one.outerHTML.slice(0, 120));
}"""


def box(part: Locator) -> dict[str, float]:
    found = part.bounding_box()
    assert found is not None
    return {"left": found["x"], "top": found["y"], "bottom": found["y"] + found["height"], "width": found["width"]}


def test_nothing_jumps_while_a_page_arrives(browser: Browser, app_server: Server, idle: Callable[[Page], None]) -> None:
    def arrived(page: Page, address: str, width: int) -> float:
        page.set_viewport_size({"width": width, "height": 844})
        page.goto(app_server.address + address)
        # What comes last; on a phone the badge stands behind a line.
        page.get_by_text(re.compile("^Verified|^Show answer$")).first.wait_for(timeout=90_000, state="attached")
        idle(page)
        found: float = page.evaluate(SHIFTS)
        return found

    def shifts(places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], float]:
        # In a browser that knows none of the app's scripts, so that each kind of widget arrives for itself once.
        context = browser.new_context()
        page = context.new_page()
        page.add_init_script(f"{LISTEN};{STYLED}")
        found = {place: arrived(page, *place) for place in places}
        context.close()
        return {place: shift for place, shift in found.items() if shift >= 0.1}

    found = shifts((address, width) for address in PAGES for width in (390, 1360))
    # A machine busy with other tests may paint between any two parts, now and then: a fault of the page's own comes
    # back each time.
    for _ in range(3):
        found = shifts(found) if found else {}
    assert not found


def test_nothing_moves_where_the_system_asks_for_no_motion(stay: OpenPage) -> None:
    for address in ("/", "/heads", "/learn", "/compare"):
        page = stay(address)
        assert page.evaluate(MOVING), "nothing that moves is there to be stopped"
        page.emulate_media(reduced_motion="reduce")
        still = page.evaluate(MOVING)
        page.emulate_media(reduced_motion="no-preference")
        assert not still, address


def test_without_motion_a_list_opens_and_chooses_nothing_by_itself(stay: OpenPage) -> None:
    page = stay("/heads?metric=entropy&view=colours")
    page.emulate_media(reduced_motion="reduce")
    metric = page.get_by_role("combobox", name="Metric")
    metric.click()
    expect(page.get_by_role("option", name="Entropy", exact=True)).to_be_visible()
    expect(metric).to_have_value("Entropy")
    page.keyboard.press("Escape")
    page.emulate_media(reduced_motion="no-preference")


@pytest.mark.parametrize("address", PAGES[:3])
def test_on_a_narrow_screen_the_row_is_a_line_that_opens(stay: OpenPage, address: str) -> None:
    page = stay(address, width=390, height=844)
    line = page.get_by_role("button", name=re.compile("^Sentence, model, layer and head"))
    line.click()
    expect(line).to_have_attribute("aria-expanded", "true")
    # Sentence and model have a line each.
    parts = [page.get_by_role("combobox", name=name, exact=True) for name in ("Layer", "Head")]
    boxes = [box(one) for one in (*parts, page.get_by_role("button", name="Options", exact=True))]
    assert box(page.get_by_role("combobox", name="Model", exact=True))["bottom"] <= boxes[0]["top"]
    assert max(one["top"] for one in boxes) - min(one["top"] for one in boxes) <= 12
    assert boxes[0]["left"] < boxes[1]["left"] < boxes[2]["left"]
    line.click()  # the next test begins with the line


@pytest.mark.parametrize("address", ["/masks?mask=window", "/masks?mask=prefix"])
def test_on_a_narrow_screen_the_number_of_a_mask_stands_below_its_picture(stay: OpenPage, address: str) -> None:
    page = stay(address, width=390, height=844)
    mask = re.search("mask=(.*)", address)
    assert mask is not None
    picture, number = page.locator(f"[data-mask={mask[1]}]"), page.get_by_role("group", name=mask[1], exact=True)
    assert box(picture)["bottom"] <= box(number)["top"] and box(number)["bottom"] <= 844


def test_a_text_too_long_for_a_link_pushes_nothing_down(open_page: OpenPage, idle: Callable[[Page], None]) -> None:
    def below() -> float:
        """How far below the menu the pickers stand, wherever the page was scrolled to."""
        return box(page.locator(".st-key-pickers"))["top"] - box(page.locator(".st-key-menu"))["top"]

    page = open_page("/")
    before = below()
    # Few tokens, so that it runs at once: the model has none for so long a word.
    page.get_by_label("Sentence", exact=True).fill(" ".join(["boat" * 35] * 12))
    page.get_by_label("Sentence", exact=True).press("Control+Enter")
    idle(page)
    expect(page.get_by_role("status").filter(has_text="A link leaves this text out")).to_be_attached()
    assert below() == before
    assert box(page.get_by_test_id("explorer-search").get_by_role("button").first)["bottom"] <= 880


# What is drawn first on each page: arcs, words, cells, bars.
PICTURES = {
    "/": ".av-arcs",
    "/steps": ".av-between",
    "/masks": ".av-sheet",
    "/heads": ".av-atlas .av-cells",
    "/cross": ".av-arcs",
    "/compare": ".av-texts",
    "/why": "[data-testid=why]",
    "/learn": "[class*=st-key-learn-bars]",
}


@pytest.mark.parametrize("path", PICTURES)
def test_the_picture_begins_high_up_and_a_note_pushes_it_no_lower(
    stay: OpenPage, idle: Callable[[Page], None], path: str
) -> None:
    # Of the course, a text of one word is what there is a note about.
    page = stay(f"{path}?text=boat" if path == "/learn" else f"{path}?layer=99")
    picture = page.locator(PICTURES[path]).first
    assert box(picture)["top"] <= 260
    note = page.locator(".st-key-notices-place").get_by_role("button")
    expect(note).to_contain_text("Example instead" if path == "/learn" else "URL adjusted")
    page.set_viewport_size({"width": 390, "height": 844})
    idle(page)
    assert box(picture)["top"] <= 500
    assert box(note)["left"] + box(note)["width"] <= 390
    note.click()
    told = "so the course uses its example" if path == "/learn" else "The URL asks for layer “99”."
    expect(page.get_by_test_id("stPopoverBody")).to_contain_text(told)
    page.keyboard.press("Escape")


@pytest.mark.parametrize("words", [7, 128])
def test_the_title_of_a_colour_bar_stands_clear_of_its_first_number(stay: OpenPage, words: int) -> None:
    page = stay(f"/heads?model=scratch&search=pattern&text={'+'.join(['boat'] * words)}")
    bar = page.locator(".st-key-heads-one .colorbar")
    expect(bar.locator(".cbaxis text")).to_have_count(5)
    numbers = [box(number)["top"] for number in bar.locator(".cbaxis text").all()]
    assert box(bar.locator(".cbtitle text").first)["bottom"] + 3 <= min(numbers)


def test_on_a_narrow_screen_a_shape_keeps_its_brackets(stay: OpenPage) -> None:
    page = stay("/steps?model=scratch&text=the+cat+sat&step=embeddings", width=390, height=844)
    # What stands in one piece of a formula is never parted by a line's end.
    bases = page.locator("p", has_text="Shape").locator(".katex-html .base")
    expect(bases.nth(1)).to_be_visible()  # formulas are set a little after the page has come to rest
    pieces = bases.all_inner_texts()
    assert [piece.strip()[-1] for piece in pieces[-2:]] == ["×", ")"]
