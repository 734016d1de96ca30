"""The Step by step page as a person uses it, in a real browser."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.conftest import OpenPage
from tests.models.families import ids, wrapped
from tests.pages import GO, in_frames

CAT = "/steps?model=scratch&text=The+cat+sat+on+mat"
LABELS = [*"Embeddings Query Key Value Scores Scaled Allowed Weights Output".split(), "Heads joined"]
Idle = Callable[[Page], None]


def step(screen: Page, label: str) -> Locator:
    return screen.get_by_role("radio", name=label, exact=True)


def test_the_steps_stand_in_order_as_text_and_the_matrix_on_the_first_screen(stay: OpenPage, idle: Idle) -> None:
    screen = stay("/steps?step=embeddings&query=2")
    expect(step(screen, LABELS[-1])).to_be_visible()
    text = screen.inner_text("body")
    places = [text.index(label) for label in LABELS]
    assert places == sorted(places)
    for label in ("Sentence", "Model", "Layer", "Head"):
        expect(screen.get_by_label(label, exact=True)).to_have_count(1)
    expect(screen.get_by_text(re.compile("^Verified"))).to_be_visible()
    for label in ("Embeddings", "Query", "Scores", "Heads joined"):
        step(screen, label).click()
        idle(screen)
        box = screen.locator(".js-plotly-plot").first.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 860, label
    table = screen.get_by_test_id("arithmetic")
    assert table.evaluate("table => table.scrollHeight <= table.clientHeight"), "a sum's terms are all in sight"


def test_the_pipeline_tells_chooses_and_opens(stay: OpenPage, idle: Idle) -> None:
    screen = stay("/steps?query=2&key=5", height=860)
    shown, reading = screen.get_by_test_id("pipeline"), screen.get_by_test_id("pipeline-reading")
    expect(screen.get_by_test_id("pipeline-claim")).to_have_text(re.compile("^bank takes 58 % .* from river"))
    box = reading.bounding_box()
    assert box is not None and box["y"] + box["height"] <= 860, "all of it is on the first screen"
    titles = shown.locator(".av-title").all_text_contents()
    assert [one for one in titles if one in LABELS] == LABELS
    # The numbers that stand there are one sum: six terms, and the rest as one.
    terms = [float(one.replace("−", "-")) for one in shown.locator(".av-term").all_text_contents()]
    score, scaled = (float(one) for one in shown.locator(".av-big").all_text_contents())
    assert len(terms) == 7 and abs(sum(terms) - score) < 0.05 and abs(score / 32**0.5 - scaled) < 0.01
    # Pointing writes one line, and Tab does the same.
    shown.get_by_role("img", name=re.compile("^dimension 6:")).first.hover()
    expect(reading).to_contain_text(re.compile(r"2\.53 × 3\.46 = \+8\.74.*from query, key to scores"))
    # Pressing a lane chooses its key, here and in the address; Back takes it back.
    lane = shown.get_by_role("button", name=re.compile("^flooded: enters"))
    lane.focus()
    screen.keyboard.press("Enter")
    expect(screen.get_by_test_id("pipeline-claim")).to_have_text(re.compile("^bank takes 16 % .* from flooded"))
    screen.wait_for_url(re.compile("key=7"))
    idle(screen)
    expect(lane).to_be_focused()
    # The small grid opens the whole matrix, at the pair, and Back the pipeline.
    shown.get_by_role("button", name="Weights: the whole matrix").press("Enter")
    screen.wait_for_url(re.compile("step=weights"))
    idle(screen)
    expect(screen.get_by_test_id("total")).to_have_text("0.16367")
    screen.go_back()
    idle(screen)
    screen.go_back()
    idle(screen)
    expect(screen.get_by_test_id("pipeline-claim")).to_contain_text("from river")
    assert "key=5" in screen.url


def test_a_click_on_a_cell_opens_it(stay: OpenPage, idle: Idle) -> None:
    screen = stay(f"{CAT}&step=scores")
    before = screen.get_by_test_id("total").inner_text()
    area = screen.locator(".js-plotly-plot .nsewdrag").first.bounding_box()
    assert area is not None
    screen.mouse.click(area["x"] + area["width"] * 0.5, area["y"] + area["height"] * 0.7)
    screen.wait_for_url(re.compile("query=3.*key=2"))
    idle(screen)
    assert screen.get_by_test_id("total").inner_text() != before


def test_another_text_has_run_whole_while_a_place_of_the_one_before_has_the_focus(stay: OpenPage, idle: Idle) -> None:
    screen = stay("/steps?text=the+cat+sat+down&query=5&key=5")
    shown = screen.get_by_test_id("pipeline")
    shown.get_by_role("button", name=re.compile("enters the softmax")).last.focus()
    screen.evaluate(GO, "/steps?text=rain&query=1&key=2")
    idle(screen)
    expect(screen.get_by_test_id("pipeline-claim")).to_have_text(re.compile("^rain takes"))
    expect(shown.get_by_role("button", name=re.compile("enters the softmax"))).to_have_count(3)
    assert [one for one in shown.locator(".av-title").all_text_contents() if one in LABELS] == LABELS


def test_the_line_below_does_not_take_the_pointer_from_what_it_tells_of(stay: OpenPage) -> None:
    """On a phone's width it lies over the pipeline, and takes another row for a long formula."""
    screen = stay("/steps?query=2&key=5", width=390, height=860)
    reading = screen.get_by_test_id("pipeline-reading")
    place = screen.locator(".av-hit[aria-label^='weight = e^']").last
    place.evaluate("place => place.scrollIntoView({block: 'center'})")
    low, at = reading.bounding_box(), place.bounding_box()
    assert low is not None and at is not None
    screen.mouse.wheel(0, at["y"] + at["height"] - low["y"])
    screen.wait_for_function(
        f"place => Math.abs(place.getBoundingClientRect().bottom - {low['y']}) < 2", arg=place.element_handle()
    )
    screen.mouse.move(at["x"] + at["width"] / 2, low["y"] - 4)
    expect(reading).to_contain_text("e^")
    assert all(in_frames(place, "place.matches(':hover')"))
    assert (now := reading.bounding_box()) is not None and now["y"] < low["y"] - 4, "it lies over nothing"


def test_back_leads_to_the_page_that_one_came_from_at_once(page: OpenPage, idle: Idle) -> None:
    screen = page("/?model=coreference")
    idle(screen)
    screen.get_by_role("button", name=re.compile("^How was")).click()
    # The page writes what it opens on into the address after it.
    expect(screen).to_have_url(re.compile(r"/steps\?.*step="))
    idle(screen)
    screen.go_back()
    expect(screen).to_have_url(re.compile(r"/\?model=coreference"))
    expect(screen.get_by_test_id("explorer-sentence")).to_be_visible()
    # So it is between pages that the menu leads to, and no address mixes what two pages keep.
    for name in ("Masks", "Heads"):
        screen.get_by_role("link", name=name, exact=True).click()
        expect(screen).to_have_url(re.compile(rf"/{name.lower()}\?model=coreference"))
        idle(screen)
    for place in (r"/masks\?(?!.*metric).*mask=", r"/\?model=coreference(?!.*mask)"):
        screen.go_back()
        expect(screen).to_have_url(re.compile(place))
        idle(screen)


def test_the_keyboard_walks_the_steps_and_back_takes_one_back(stay: OpenPage, idle: Idle) -> None:
    screen = stay(f"{CAT}&step=query")
    screen.get_by_role("button", name="Next").focus()
    screen.keyboard.press("Enter")
    idle(screen)
    expect(step(screen, "Key")).to_be_checked()
    screen.get_by_role("button", name="Back").press("Enter")
    idle(screen)
    expect(step(screen, "Query")).to_be_checked()
    screen.go_back()
    idle(screen)
    expect(step(screen, "Key")).to_be_checked()
    assert "step=key" in screen.url


def test_all_steps_stand_under_each_other(stay: OpenPage) -> None:
    screen = stay(f"{CAT}&all=yes")
    for label in LABELS:
        expect(screen.get_by_role("heading", name=label, exact=True)).to_have_count(1)
    expect(screen.locator(".js-plotly-plot")).to_have_count(len(LABELS))


def test_formulas_of_other_families_can_be_set(page: OpenPage, idle: Idle, tmp_path: Path) -> None:
    screen = page("/steps?model=scratch&text=the+cat&all=yes")
    for family, label in (("gemma2", "Soft-capped"), ("t5 encoder", "Biased"), ("gpt_oss", "Rotated")):
        path = tmp_path / "mine.safetensors"
        wrapped(family).trace_ids(ids(9)).save(path)
        screen.get_by_role("button", name="Open a trace").click()
        screen.locator("input[type=file]").set_input_files(path)
        # All steps are drawn, one after the other: on a busy machine that takes longer than anything else here.
        expect(screen.get_by_role("heading", name=label, exact=True)).to_be_visible(timeout=90_000)
        idle(screen)
        expect(screen.locator(".katex").first).to_be_visible()
        expect(screen.locator(".katex-error")).to_have_count(0)


@pytest.mark.parametrize(("words", "dark", "width"), [(2, True, 390), (12, False, 390), (128, True, 1360)])
def test_any_length_fits_the_screen(stay: OpenPage, words: int, dark: bool, width: int) -> None:
    text = "+".join(["boat"] * words)
    screen = stay(f"/steps?model=scratch&step=weights&query={words - 1}&text={text}", dark=dark, width=width)
    assert screen.evaluate("document.documentElement.scrollWidth") <= width
    numbers = screen.get_by_test_id("window").locator("td")
    expect(numbers.last).to_be_attached()
    assert numbers.count() <= 81
    for locator in (screen.locator(".js-plotly-plot").first, screen.get_by_test_id("window")):
        box = locator.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width


def test_the_chosen_cell_is_in_sight_on_any_screen(stay: OpenPage) -> None:
    for width in (390, 1360):
        screen = stay("/steps?step=scores&query=2&key=8", width=width, height=844)
        table = screen.get_by_test_id("window")
        outer, chosen = table.bounding_box(), table.locator("td.steps-chosen").bounding_box()
        assert outer is not None and chosen is not None
        assert chosen["x"] + chosen["width"] <= outer["x"] + outer["width"] <= width
