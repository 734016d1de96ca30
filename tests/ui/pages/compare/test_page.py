"""The Compare page as a person uses it, in a real browser; its numbers are the library's."""

import re
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

import attention_viz as av
from attention_viz.analysis.comparison.compare import Comparison
from attention_viz.analysis.findings.regions import connected
from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.trace.spelling import weight_text
from attention_viz.ui.address import State
from attention_viz.ui.pages.compare.choice import CompareChoice
from attention_viz.ui.pages.compare.claims import RowClaims
from tests.conftest import OpenPage

Idle = Callable[[Page], None]
RIVER, CITY = "The bank of the river was flooded", "The bank of the city was flooded"
VERIFIED = re.compile("^Verified")


def parameters(page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query, keep_blank_values=True).items()}


def claim_in(page: Page) -> Locator:
    return page.get_by_test_id("compare-claim")


def word_of(page: Page, place: int) -> Locator:
    """A token of the row, which asks when it is pointed at or pressed."""
    return page.get_by_test_id("compare-row").locator(f".av-names[data-query='{place}']")


def expect_row(page: Page, found: Comparison, place: int) -> None:
    """The bars' numbers are the row's weights, up for the first text and down for the second."""
    for side, matrix in (("up", found.weights), ("down", found.other_weights)):
        numbers = page.get_by_test_id("compare-row").locator(f".av-{side} b")
        expect(numbers).to_have_text([weight_text(weight) for weight in matrix[place].float().tolist()])


def sentences(found: Comparison) -> list[str]:
    claims = RowClaims(CompareChoice(other=CITY), replace(State(), text=RIVER), found)
    return ["".join(text for text, _ in claims.row(place).phrase) for place in range(len(found.queries))]


def test_a_word_that_is_pointed_at_or_pressed_asks_at_once_and_a_head_of_the_map_is_chosen(
    open_page: OpenPage, idle: Idle
) -> None:
    page = open_page(f"/compare?model=all-MiniLM-L6-v2&text={RIVER.replace(' ', '+')}&layer=0&head=4")
    model = av.load("all-MiniLM-L6-v2")
    one, other = model.trace(RIVER), model.trace(CITY)
    found = av.compare(one, other, 0, 4)
    told = sentences(found)
    expect(claim_in(page)).to_have_text(told[2])
    assert told[2] == "“bank” looks at “river”: 0.58. With “city” it turns to “flooded”: 0.37"
    expect_row(page, found, 2)
    # Both texts are there in full, the changed word marked in each.
    lines = page.get_by_test_id("compare").locator(".av-texts li")
    expect(lines).to_have_count(2)
    expect(lines.locator("mark")).to_have_text(["river", "city"])
    expect(page.locator(".av-pairs .av-differs .av-name")).to_have_text(["river", "city"])
    top = page.get_by_test_id("compare-row").bounding_box()
    for place, sentence in enumerate(told):
        word_of(page, place).hover()
        expect(claim_in(page)).to_have_text(sentence)
        expect_row(page, found, place)
    assert page.get_by_test_id("compare-row").bounding_box() == top, "pointing moves nothing"
    page.locator(".av-rank").hover()
    expect(claim_in(page)).to_have_text(told[2])
    word_of(page, 7).click()
    expect(claim_in(page)).to_have_text(told[7])
    page.wait_for_url(re.compile("query=7"))
    word_of(page, 7).press("ArrowLeft")
    expect(claim_in(page)).to_have_text(told[6])
    page.wait_for_url(re.compile("query=6"))
    idle(page)
    expect(page.locator(".av-rank")).to_contain_text("layer 0, head 4, the 6th most different of 72")
    page.locator(".av-rank").get_by_role("button", name="5·2").click()
    page.wait_for_url(re.compile("layer=5&head=2"))
    idle(page)
    expect(page.locator(".av-rank")).to_contain_text("layer 5, head 2, differs most of 72")
    page.get_by_test_id("compare").locator("[data-layer='5'][data-head='6']").click()
    page.wait_for_url(re.compile("layer=5&head=6"))
    idle(page)
    expect_row(page, av.compare(one, other, 5, 6), 6)
    assert not page.locator(".stPlotlyChart").count()


def test_a_head_that_is_pointed_at_on_the_map_shows_its_row_until_the_pointer_leaves(open_page: OpenPage) -> None:
    page = open_page(f"/compare?model=all-MiniLM-L6-v2&text={RIVER.replace(' ', '+')}&layer=0&head=4&query=2&key=6")
    model = av.load("all-MiniLM-L6-v2")
    one, other = model.trace(RIVER), model.trace(CITY)
    kept = claim_in(page).text_content() or ""
    expect_row(page, av.compare(one, other, 0, 4), 2)
    cells = page.get_by_test_id("compare").locator(".av-distances .av-cell")
    cells.and_(page.locator("[data-layer='5'][data-head='2']")).hover()
    found = av.compare(one, other, 5, 2)
    expect_row(page, found, 2)
    strongest = [weight_text(float(matrix[2].nan_to_num().max())) for matrix in (found.weights, found.other_weights)]
    expect(claim_in(page)).to_have_text(f"bank → [CLS]: {strongest[0]}. With “city” → [CLS]: {strongest[1]}")
    assert parameters(page)["layer"] == "0", "nothing is chosen yet"
    page.locator(".av-texts").hover()
    expect(claim_in(page)).to_have_text(kept)
    # A number is written only where it says something: from a tenth of the largest on.
    bits = av.head_divergences(one, other)["divergence"]
    written = [text for text in cells.locator("span").all_text_contents() if text]
    assert sorted(written) == sorted(weight_text(one) for one in bits if one >= bits.max() / 10)


def test_two_images_are_lit_and_told_of_in_words_patch_by_patch(open_page: OpenPage) -> None:
    page = open_page("/compare?model=dinov2-small")
    assert (parameters(page)["layer"], parameters(page)["head"]) == ("10", "4"), "the head of the other pages"
    expect(claim_in(page)).to_have_text(re.compile(r"^The patch .*\. In the second image it "))
    assert not re.search(r"\d, \d", claim_in(page).text_content() or ""), "a place in words, no row and column"
    expect(page.get_by_test_id("compare-row")).to_be_hidden()
    photos = page.get_by_test_id("compare-pictures").locator("figure")
    expect(photos).to_have_count(2)
    expect(photos.locator(".av-marks-query")).to_have_count(2)
    # The left photo's numbers are the sums over what its contours enclose.
    model = av.load("dinov2-small")
    trace = model.trace(av.Picture(SAMPLES["chelsea"].path))
    photos.first.locator("canvas").press("Enter")
    page.wait_for_url(re.compile("query="))
    row = trace.weights(10, 4)[int(parameters(page)["query"]), 1:].reshape(16, 16)
    inside = row >= row.max() / 2
    sums = [float(sum(row[at] for at in region)) for region in connected(inside)]
    expect(photos.first.locator(".av-region-mark")).to_have_count(len(sums))
    shown = photos.first.locator(".av-region-mark").all_text_contents()
    assert len(sums) == 2 and sorted(shown) == sorted(map(weight_text, sums))
    # An arrow key shows the next patch in both.
    place = (int(parameters(page)["query"]) - 1) % 16
    photos.first.locator("canvas").press("ArrowRight")
    for mark in photos.locator(".av-marks-query").all():
        expect(mark).to_have_attribute("style", re.compile(rf"left: {100 * (place + 1) / 16:g}%"))


def test_the_matrices_unfold_and_what_is_wrong_with_a_side_is_told(open_page: OpenPage, idle: Idle) -> None:
    page = open_page("/compare?model=scratch&text=the+cat+sat&other=the+cat+ran&layer=0&head=0")
    expect(claim_in(page)).to_be_visible()
    page.get_by_text("All rows", exact=True).click()
    for key in ("left", "right", "difference"):
        expect(page.locator(f".st-key-compare-{key} canvas").first).to_be_visible()
    expect(page.get_by_text("Compared with each other: “sat” and “ran”.")).to_be_visible()
    box_of_text = page.get_by_label("Second sentence", exact=True)
    box_of_text.fill("")
    box_of_text.press("Control+Enter")
    idle(page)
    expect(page.get_by_text("The difference appears once both sides can be shown")).to_be_visible()
    expect(page.locator(".st-key-compare-left canvas").first).to_be_visible()


def test_the_slider_goes_through_the_training_above_the_curve(open_page: OpenPage, idle: Idle) -> None:
    page = open_page("/compare?what=snapshots")
    text = parameters(page)["text"]
    assert (parameters(page)["model"], parameters(page)["moment"]) == ("induction", "400")
    traces = {step: av.load("induction", revision=f"step-{step}").trace(text) for step in (400, 425, 1200)}
    claim_in(page).wait_for()
    before = claim_in(page).text_content() or ""
    page.get_by_role("slider").press("ArrowRight")
    page.wait_for_url(re.compile("moment=425"))
    idle(page)
    expect(claim_in(page)).not_to_have_text(before)
    page.locator(".st-key-compare-training, .st-key-compare-curve").first.scroll_into_view_if_needed()
    points = page.locator(".st-key-compare-curve .scatterlayer .trace").first.locator(".point")
    expect(points).to_have_count(12, timeout=60_000)
    measured = av.head_table(traces[425]).loc[(1, 1), "induction"]
    expect(page.get_by_text(f"{measured:.3f} after 425 steps")).to_be_visible()


@pytest.mark.parametrize("address", ["/compare", "/compare?what=snapshots"])
def test_on_a_narrow_screen_nothing_sticks_out_and_the_whole_menu_is_seen(stay: OpenPage, address: str) -> None:
    page = stay(address, width=390, height=844)
    page.get_by_test_id("compare-row").locator(".av-column").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for link in page.locator(".st-key-menu a").all():
        box = link.bounding_box()
        assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= 390


def test_notes_lie_over_neither_badge(stay: OpenPage) -> None:
    """Of texts that were cut there are both, in a row that is full without them."""
    cut = "rain+falls+on+the+old+bridge+" * 100
    page = stay(f"/compare?model=all-MiniLM-L6-v2&text={cut}one&second={cut}two", width=1360, height=860)
    badges = page.locator(".st-key-compare-badges").get_by_role("button", name=VERIFIED)
    expect(badges).to_have_count(2)
    notes = page.locator(".st-key-notices-place button")
    for width in (1280, 1360, 1440):
        page.set_viewport_size({"width": width, "height": 860})
        left = (notes.bounding_box() or {})["x"]
        for badge in badges.get_by_text(VERIFIED).all():
            box = badge.bounding_box()
            assert box is not None and box["x"] + box["width"] <= left
