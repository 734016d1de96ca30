"""What stands on the first screen: chips of what is not at its default push nothing, and a phone shows the answer."""

from collections.abc import Callable
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.conftest import OpenPage

Idle = Callable[[Page], None]
PICTURE = "dinov2-small"


def top(found: Locator) -> float:
    place = found.bounding_box()
    assert place is not None
    return place["y"]


def bottom(found: Locator) -> float:
    place = found.bounding_box()
    assert place is not None
    return place["y"] + place["height"]


# The widths of a desk and of a phone, with how high up on them a picture begins at least.
SCREENS = ((1360, 860, 200), (390, 844, 300))


@pytest.mark.parametrize("address", ["/?layer=0&head=1", f"/?model={PICTURE}", "/masks?layer=0&head=1"])
def test_chips_push_no_picture(stay: OpenPage, idle: Idle, address: str) -> None:
    def tops(page: Page) -> list[float]:
        found: list[float] = []
        for width, height, _ in SCREENS:
            page.set_viewport_size({"width": width, "height": height})
            idle(page)
            found.append(top(page.locator(".st-key-stage, .st-key-explorer").first))
        return found

    before = tops(stay(address))
    changed = "reading=rollout" if PICTURE in address else "special=off&words=on"
    page = stay(f"{address}{'&' if '?' in address else '?'}{changed}")
    expect(page.locator(".st-key-chips")).to_have_count(1)
    for (_, _, most), there, found in zip(SCREENS, before, tops(page), strict=True):
        assert found <= most and abs(found - there) <= 2


def test_chips_can_be_taken_off_on_a_phone_where_the_row_is_opened(stay: OpenPage, idle: Idle) -> None:
    page = stay("/?words=on", width=390, height=844)
    chip = page.get_by_role("button", name="Whole words ✕")
    fold = page.locator(".st-key-fold").get_by_role("button")
    expect(chip).to_be_hidden()
    expect(fold).to_contain_text("Whole words")
    fold.click()
    chip.click()
    idle(page)
    expect(fold).not_to_contain_text("Whole words")


def test_chips_stand_beside_what_is_said_and_cover_none_of_it(stay: OpenPage) -> None:
    for address, said in (
        ("/heads?special=off&words=on", ".st-key-heads-claim h3"),
        ("/compare?special=off&words=on", ".compare-claim"),
        ("/why?model=induction&text=moon+ring+moon&special=off", "[data-testid=why] .av-question"),
    ):
        page = stay(address)
        chips = page.locator(".st-key-chips button").first
        expect(page.locator(said)).to_be_visible()
        box, words = (
            chips.bounding_box(),
            page.locator(said).evaluate(
                "node => { const range = document.createRange(); range.selectNodeContents(node);"
                " const {right, top, bottom} = range.getBoundingClientRect(); return [right, top, bottom]; }"
            ),
        )
        assert box is not None
        assert words[0] <= box["x"] or words[2] <= box["y"] or box["y"] + box["height"] <= words[1], address


def test_whoever_asks_on_a_phone_whether_a_head_matters_sees_the_answer_at_once(open_page: OpenPage) -> None:
    page = open_page("/", width=390, height=844)
    page.get_by_test_id("explorer-matters").click()
    answer = page.locator(".st-key-heads-silence").get_by_text("the output moves by")
    expect(answer).to_be_visible()
    expect(page.get_by_test_id("atlas")).to_be_visible()
    assert bottom(answer) <= 844
    assert top(answer) < top(page.get_by_test_id("atlas"))


def test_the_masks_matrix_of_a_picture_is_on_a_phones_first_screen(stay: OpenPage) -> None:
    page = stay(f"/masks?model={PICTURE}", width=390, height=844)
    sheet = page.get_by_test_id("mask-sheet")
    expect(sheet).to_be_visible(timeout=60_000)
    pictures = [page.locator(f".st-key-masked-{one} .js-plotly-plot image").first for one in ("before", "after")]
    expect(pictures[1]).to_be_visible()
    assert top(sheet) < 540
    assert all(bottom(one) < top(sheet) for one in pictures)
    others = page.locator(".st-key-masked-others")
    assert top(others) > bottom(sheet)


def test_on_a_phone_a_sentence_is_cut_at_its_end_whichever_way_it_is_read(stay: OpenPage) -> None:
    for sentence, direction in (
        ("كتب الولد رسالة طويلة إلى صديقه", "rtl"),
        ("The bank of the river was flooded", "ltr"),
    ):
        text = stay(f"/?model=all-MiniLM-L6-v2&text={quote(sentence)}&head=0", width=390).locator(".st-key-fold .text")
        expect(text).to_have_text(sentence)
        expect(text).to_have_css("direction", direction)
