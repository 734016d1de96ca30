"""Questions that are answered by a gesture, in a real browser: with a pointer, with keys, and by a link."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.conftest import OpenPage
from tests.ui.pages.learn.test_page import parameters

TEXT = "text=The+bank+of+the+river+was+flooded"


def ask(stay: OpenPage, name: str, **size: int) -> tuple[Page, Locator]:
    """A lesson before its answer, and its question."""
    page = stay(f"/learn?lesson={name}&{TEXT}", **size)
    box = page.get_by_test_id("prediction")
    expect(box.get_by_role("button", name="Skip guess")).to_be_visible()
    expect(box.get_by_role("button", name="Show answer")).to_be_disabled()
    return page, box


def answer(page: Page, box: Locator, reply: str) -> dict[str, str]:
    """Show the answer, and return what the address has then; the reply begins as it should."""
    box.get_by_role("button", name="Show answer").click()
    expect(page.locator(".st-key-learn-step-predict")).to_contain_text(re.compile(reply))
    expect(box).to_have_attribute("data-shown", "true")
    return parameters(page)


def centre(one: Locator) -> tuple[float, float]:
    area = one.bounding_box()
    assert area is not None
    return area["x"] + area["width"] / 2, area["y"] + area["height"] / 2


def drag(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=6)
    page.mouse.up()


def test_a_word_is_dragged_to_its_place_on_the_map(stay: OpenPage) -> None:
    page, box = ask(stay, "vectors")
    handle = box.get_by_role("slider", name="Place of “bank”")
    # Where the reader sees it: right under the word.
    river = centre(box.locator("text", has_text="river"))
    drag(page, centre(handle), (river[0] + 30, river[1] + 25))
    expect(handle).to_have_attribute("aria-valuetext", "nearest to river")
    guess = answer(page, box, "^✓ Right: you put “bank” nearest to “river”")["guess"]
    assert re.fullmatch(r"\d+\.\d+", guess)
    # The reader's place is dashed, the word's own filled, and a bar for each other word.
    expect(box.locator(".av-was")).to_have_count(1)
    expect(box.locator("circle.av-own")).to_have_count(1)
    expect(box.locator(".av-bars li")).to_have_count(6)
    expect(box.locator(".av-bars li[data-best=true]")).to_have_text(re.compile("river"))


def test_a_word_is_moved_by_keys_and_the_link_brings_the_guess_back(stay: OpenPage) -> None:
    page, box = ask(stay, "vectors")
    handle = box.get_by_role("slider", name="Place of “bank”")
    handle.focus()
    for _ in range(4):
        handle.press("ArrowUp")
    expect(handle).to_have_attribute("aria-valuenow", "50")
    guess = answer(page, box, "^(Not quite|Nearly|✓ Right)")["guess"]
    assert guess == "50.34"
    page = stay(f"/learn?lesson=vectors&{TEXT}&guess={guess}")
    circle = page.get_by_test_id("prediction").locator("circle.av-was")
    expect(circle).to_have_attribute("cx", "170")
    # A bar that is pressed asks for its word.
    page.get_by_test_id("prediction").get_by_role("button", name="river").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("“river” is most like")
    assert parameters(page)["guess"] == "shown"


def test_a_query_is_turned_and_its_score_is_kept_back(stay: OpenPage) -> None:
    page, box = ask(stay, "scores")
    handle = box.get_by_role("slider", name="Direction of the query")
    score = box.locator(".av-sum b")
    expect(box.locator(".av-sum")).to_have_text("130° from the key")
    handle.focus()
    for _ in range(14):
        handle.press("ArrowRight")
    expect(box.locator(".av-sum")).to_have_text("60° from the key")
    expect(handle).to_have_attribute("aria-valuetext", "60° from the key")
    expect(score).to_have_count(0)
    assert answer(page, box, "^✓ Right: the cosine of 60° is a half")["guess"] == "60"
    expect(page.get_by_role("heading", level=1)).to_contain_text("in the model the angle is 60.3°: 28.56")
    expect(score).to_have_text("28.56")
    page, box = ask(stay, "scores")
    field = box.locator(".av-field").bounding_box()
    assert field is not None
    middle = field["x"] + field["width"] / 2, field["y"] + field["width"] * 150 / 340
    drag(page, centre(box.get_by_role("slider")), (middle[0], middle[1] + 90))
    # Straight down is 115° from a key that points 25° upwards.
    expect(box.get_by_role("slider")).to_have_attribute("aria-valuetext", re.compile(r"^11[45]° from the key"))
    answer(page, box, "^Not quite: the score follows")
    expect(box.locator("line.av-was")).to_have_count(1)


def test_scores_are_set_until_the_shares_are_right(stay: OpenPage) -> None:
    page, box = ask(stay, "softmax")
    sliders = box.get_by_role("slider")
    expect(sliders).to_have_count(3)
    first = sliders.nth(0)
    first.focus()
    # ln(0.58 ÷ 0.26) is 0.8, and ln(0.16 ÷ 0.26) is −0.5.
    for _ in range(8):
        first.press("ArrowRight")
    for _ in range(5):
        sliders.nth(1).press("ArrowLeft")
    expect(first).to_have_attribute("aria-valuetext", "0.8, share 0.58")
    expect(box.locator(".av-slid[data-hit=true]")).to_have_count(3)
    assert answer(page, box, "^✓ Right. Many settings are")["guess"] == "58.45.50"
    expect(sliders.first).to_be_disabled()
    expect(box.locator(".av-slid b").first).to_have_text("5.05")
    page, box = ask(stay, "softmax")
    area = box.get_by_role("slider").first.bounding_box()
    assert area is not None
    page.mouse.click(area["x"] + area["width"] * 0.9, area["y"] + area["height"] / 2)
    answer(page, box, "^Not quite. “river” is to have 3.5 times")


def test_skipped_sliders_stand_at_the_scores_of_the_model(stay: OpenPage) -> None:
    _, box = ask(stay, "softmax")
    box.get_by_role("button", name="Skip guess").click()
    expect(box).to_have_attribute("data-shown", "true")
    expect(box.locator(".av-slid b")).to_have_count(3)
    lowest = 5
    for row in box.locator(".av-slid").all():
        score, share = row.locator(".av-number").all_inner_texts()
        slider = row.get_by_role("slider")
        expect(slider).to_have_attribute("aria-valuetext", f"{score}, share {share}")
        stands, most = float(slider.input_value()), float(slider.get_attribute("max") or "")
        assert stands / 10 - lowest == pytest.approx(float(score.replace("−", "-")), abs=0.006)
        assert stands <= most


def test_a_mask_is_painted_by_strokes_and_by_keys(stay: OpenPage) -> None:
    page, box = ask(stay, "masks")
    cells = [[box.locator(f'[data-row="{row}"][data-column="{column}"]') for column in range(9)] for row in range(9)]
    for row in range(8):
        drag(page, centre(cells[row][row + 1]), centre(cells[row][8]))
    expect(box.locator("[aria-pressed=true]")).to_have_count(36)
    # One of them is opened again, by keys.
    cells[0][0].focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    expect(cells[0][1]).to_have_attribute("aria-pressed", "false")
    expect(cells[0][1]).to_have_attribute("aria-label", "[CLS] → the₁: open")
    found = answer(page, box, "^Nearly: only the row of “\\[CLS\\]” is wrong")
    assert found["guess"] == "508.508.504.496.480.448.384.256.0"
    expect(box.locator("[data-wrong=true]")).to_have_count(1)
    page = stay(f"/learn?lesson=masks&{TEXT}&guess=510.508.504.496.480.448.384.256.0")
    expect(page.locator(".st-key-learn-step-predict")).to_contain_text("✓ Right: every cell")


def test_lines_are_drawn_by_clicks_and_by_keys(stay: OpenPage) -> None:
    page, box = ask(stay, "cross")
    written, read = (
        box.get_by_role("group", name=name, exact=True).get_by_role("button") for name in ("translation", "source")
    )
    expect(written).to_have_count(9)
    for at in range(3):
        written.nth(at).click()
        read.nth(at).click()
    # What comes next is chosen by itself; keys go from word to word, and over to the other text.
    expect(written.nth(3)).to_have_attribute("aria-pressed", "true")
    written.nth(3).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(written.nth(3)).to_have_attribute("aria-label", "la₁: linked to the₂")
    for at, to in ((4, 4), (5, 5), (6, 6), (7, 7), (8, 8)):
        written.nth(at).click()
        read.nth(to).click()
    expect(box.locator("line")).to_have_count(9)
    assert answer(page, box, "^Nearly: 7 of 9 lines. “la₂” looks most at “it”")["guess"] == "0.1.2.3.4.5.6.7.8"
    expect(box.locator("line.av-own")).to_have_count(9)
    expect(box.locator("line.av-was")).to_have_count(2)


def test_a_place_of_the_image_is_pressed_or_reached_by_keys(stay: OpenPage) -> None:
    page, box = ask(stay, "picture")
    image = box.get_by_role("list", name="Places of the image").bounding_box()
    assert image is not None
    page.mouse.click(image["x"] + image["width"] * 6.5 / 8, image["y"] + image["height"] * 3.5 / 8)
    place = box.get_by_role("button", name="row 4, column 7")
    expect(place).to_have_attribute("aria-pressed", "true")
    assert answer(page, box, "^✓ Right: row 4, column 7 has most")["guess"] == "30"
    expect(box.locator("[data-best=true] .av-number")).to_have_text("0.14")
    page, box = ask(stay, "picture")
    box.get_by_role("button", name="row 1, column 1").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(box.get_by_role("button", name="row 2, column 2")).to_have_attribute("aria-pressed", "true")
    answer(page, box, "^Not quite: your place has")
    expect(box.locator("li u")).to_have_count(1)


@pytest.mark.parametrize("name", ["vectors", "scores", "softmax", "masks", "cross", "picture", "where"])
def test_a_gesture_fits_a_phone_and_stays_where_it_is(name: str, stay: OpenPage) -> None:
    page, box = ask(stay, name, width=390, height=844)
    drawn = box.locator(".av-gesture")
    before = drawn.bounding_box()
    assert before is not None and before["x"] >= 0 and before["x"] + before["width"] <= 390
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page, box = ask(stay, name, width=1360, height=860)
    before = box.locator(".av-gesture").bounding_box()
    box.get_by_role("button", name="Skip guess").click()
    expect(box).to_have_attribute("data-shown", "true")
    after = box.locator(".av-gesture").bounding_box()
    assert before is not None and after is not None
    assert (before["x"], before["width"]) == (after["x"], after["width"])
