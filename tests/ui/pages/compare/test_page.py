"""The Compare page as a person uses it, in a real browser; its numbers are the library's."""

import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

import attention_viz as av
from attention_viz.analysis.comparison.compare import Comparison
from attention_viz.analysis.comparison.head_divergences import divergences
from attention_viz.views.style.marks import LEAST
from tests.conftest import OpenPage

Idle = Callable[[Page], None]
RIVER, CITY = "The bank of the river was flooded", "The bank of the city was flooded"
VERIFIED = re.compile("^Verified")


def parameters(page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query, keep_blank_values=True).items()}


def numbers_in(page: Page, key: str) -> Locator:
    """What is written in the cells of a matrix."""
    return page.locator(f".st-key-compare-{key} .heatmap-label text").filter(has_text=re.compile(r"\d"))


def expect_numbers(page: Page, found: Comparison) -> None:
    """The difference's title, the sentence below it, and every cell are the comparison's."""
    expect(page.locator(".st-key-compare-difference .gtitle")).to_have_text(
        f"{found.mean:.3f} bits apart: second − first"
    )
    expect(page.get_by_text(f"rows that both have: {found.mean:.3f} bits")).to_be_visible()
    for key, matrix in (("left", found.weights), ("right", found.other_weights)):
        cells = numbers_in(page, key)
        # Where a text lacks a token nothing is written, nor where the weight is next to nothing.
        expected = [f"{weight:.2f}" for weight in matrix[matrix >= LEAST].tolist()]
        expect(cells).to_have_count(len(expected))
        assert sorted(cells.all_text_contents()) == sorted(expected)


def test_two_sentences_stand_side_by_side_with_their_difference_and_a_click_chooses_a_head(
    open_page: OpenPage, idle: Idle
) -> None:
    page = open_page("/compare")
    model = av.load("all-MiniLM-L6-v2")
    one, other = model.trace(RIVER), model.trace(CITY)
    expect_numbers(page, av.compare(one, other, 0, 4))
    expect(page.get_by_text(VERIFIED)).to_have_count(2)
    expect(page.get_by_text("Compared with each other: “river” and “city”.")).to_be_visible()
    tops = []
    for key in ("left", "right", "difference"):
        box = page.locator(f".st-key-compare-{key} .nsewdrag").bounding_box()
        assert box is not None and box["y"] + box["height"] <= 860
        tops.append(round(box["y"]))
    assert max(tops) - min(tops) <= 2
    # Both texts and all that is picked stand in one row, and the pictures begin below it.
    row = [page.get_by_label(name, exact=True) for name in ("Sentence", "Second sentence", "Model", "Layer", "Head")]
    row += [page.get_by_role("button", name=name, exact=True) for name in ("Two sentences", "Options")]
    middles = [box["y"] + box["height"] / 2 for box in (one.bounding_box() for one in row) if box is not None]
    assert len(middles) == len(row) and max(middles) - min(middles) <= 12
    title = page.locator(".st-key-compare-left .gtitle").bounding_box()
    assert title is not None and title["y"] <= 200
    assert parameters(page) | {"what": "sentences", "other": CITY, "text": RIVER} == parameters(page)
    apart = divergences(one, other)
    numbers = numbers_in(page, "heads").all_text_contents()
    assert sorted(numbers) == sorted(f"{value:.2f}" for value in apart.flatten().tolist())
    grid = page.locator(".st-key-compare-heads .nsewdrag")
    grid.scroll_into_view_if_needed()
    box = grid.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + (6 + 0.5) / 12 * box["width"], box["y"] + (5 + 0.5) / 6 * box["height"])
    page.wait_for_url(re.compile("layer=5&head=6"))
    idle(page)
    expect_numbers(page, av.compare(one, other, 5, 6))
    # A press on a cell chooses its pair; of the second text's own words, what stands there in the first.
    matrix = page.locator(".st-key-compare-right .nsewdrag")
    matrix.scroll_into_view_if_needed()
    box = matrix.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 6.5 / 10 * box["width"], box["y"] + 2.5 / 10 * box["height"])
    page.wait_for_url(re.compile("query=2&key=5"))
    idle(page)
    weights = f"“bank” looks at “river” {one.weights(5, 6)[2, 5]:.2f} in the first sentence; at “city” "
    expect(page.get_by_test_id("compare-claim")).to_contain_text(weights)
    # What is wrong with one side is told in its place, and the other stays.
    box_of_text = page.get_by_label("Second sentence", exact=True)
    box_of_text.fill("")
    box_of_text.press("Control+Enter")
    idle(page)
    expect(page.get_by_text("The difference appears once both sides can be shown")).to_be_visible()
    expect(numbers_in(page, "left")).to_have_count(one.weights(5, 6).numel())
    expect(page.locator(".st-key-compare-right")).to_have_count(0)


def test_the_slider_goes_through_the_training_beside_the_curve(open_page: OpenPage, idle: Idle) -> None:
    page = open_page("/compare?what=snapshots")
    text = parameters(page)["text"]
    assert (parameters(page)["model"], parameters(page)["moment"]) == ("induction", "400")
    traces = {step: av.load("induction", revision=f"step-{step}").trace(text) for step in (400, 425, 1200)}
    expect_numbers(page, av.compare(traces[400], traces[1200], 1, 1))
    points = page.locator(".st-key-compare-curve .scatterlayer .trace").first.locator(".point")
    expect(points).to_have_count(12)
    page.get_by_role("slider").press("ArrowRight")
    page.wait_for_url(re.compile("moment=425"))
    idle(page)
    expect_numbers(page, av.compare(traces[425], traces[1200], 1, 1))
    measured = av.head_table(traces[425]).loc[(1, 1), "induction"]
    expect(page.get_by_text(f"{measured:.3f} after 425 steps")).to_be_visible()


@pytest.mark.parametrize("address", ["/compare", "/compare?what=snapshots"])
def test_on_a_narrow_screen_nothing_sticks_out_and_the_whole_menu_is_seen(stay: OpenPage, address: str) -> None:
    page = stay(address, width=390, height=844)
    page.locator(".st-key-compare-difference .nsewdrag").wait_for()
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
