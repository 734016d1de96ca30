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


def step(page: Page, label: str) -> Locator:
    return page.get_by_role("radio", name=label, exact=True)


def test_the_steps_stand_in_order_as_text_and_the_matrix_on_the_first_screen(stay: OpenPage, idle: Idle) -> None:
    page = stay("/steps?step=embeddings&query=2")
    expect(step(page, LABELS[-1])).to_be_visible()
    text = page.inner_text("body")
    places = [text.index(label) for label in LABELS]
    assert places == sorted(places)
    for label in ("Sentence", "Model", "Layer", "Head"):
        expect(page.get_by_label(label, exact=True)).to_have_count(1)
    expect(page.get_by_text(re.compile("^Verified"))).to_be_visible()
    for label in ("Embeddings", "Query", "Scores", "Heads joined"):
        step(page, label).click()
        idle(page)
        box = page.get_by_test_id("chart").locator(".av-stage").first.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 860, label
    expect(page.get_by_test_id("pipeline")).to_be_visible()
    assert not page.locator(".js-plotly-plot").count()
    table = page.get_by_test_id("arithmetic")
    assert table.evaluate("table => table.scrollHeight <= table.clientHeight"), "a sum's terms are all in sight"


def test_the_pipeline_tells_chooses_and_opens(stay: OpenPage, idle: Idle) -> None:
    page = stay("/steps?query=2&key=5", height=860)
    shown, reading = page.get_by_test_id("pipeline"), page.get_by_test_id("pipeline-reading")
    expect(page.get_by_test_id("pipeline-claim")).to_have_text(re.compile("^bank takes 0.58 .* from river"))
    box = reading.bounding_box()
    assert box is not None and box["y"] + box["height"] <= 860, "all of it is on the first screen"
    titles = shown.locator(".av-title").all_text_contents()
    assert [one for one in titles if one in LABELS] == LABELS
    # The numbers that stand there are one sum: six terms, and the rest by sign.
    terms = [float(one.replace("−", "-")) for one in shown.locator(".av-term").all_text_contents()]
    score, scaled = (float(one) for one in shown.locator(".av-big").all_text_contents())
    assert len(terms) == 8 and abs(sum(terms) - score) < 0.05 and abs(score / 32**0.5 - scaled) < 0.01
    # Pointing writes one line, and Tab does the same.
    shown.get_by_role("img", name=re.compile("^dimension 6:")).first.hover()
    expect(reading).to_contain_text(re.compile(r"2\.53 × 3\.46 = \+8\.74.*from query, key to scores"))
    # Pressing a lane chooses its key, here and in the address; Back takes it back.
    lane = shown.get_by_role("button", name=re.compile("^flooded: enters"))
    lane.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("pipeline-claim")).to_have_text(re.compile("^bank takes 0.16 .* from flooded"))
    page.wait_for_url(re.compile("key=7"))
    idle(page)
    expect(lane).to_be_focused()
    # The small grid opens the whole matrix, at the pair, and Back the pipeline.
    shown.get_by_role("button", name="Weights: the whole matrix").press("Enter")
    page.wait_for_url(re.compile("step=weights"))
    idle(page)
    expect(page.get_by_test_id("total")).to_have_text("0.16367")
    page.go_back()
    idle(page)
    page.go_back()
    idle(page)
    expect(page.get_by_test_id("pipeline-claim")).to_contain_text("from river")
    assert "key=5" in page.url


def test_the_pipeline_ends_in_the_sentences_vector_and_a_decoders_in_its_next_words(stay: OpenPage, idle: Idle) -> None:
    page = stay("/steps?query=2&key=5", height=860)
    shown, reading = page.get_by_test_id("pipeline"), page.get_by_test_id("pipeline-reading")
    total = shown.get_by_role("img", name=re.compile("^largest change")).first
    expect(total).to_be_attached()
    titles = shown.locator(".av-title").all_text_contents()
    assert titles[-2:] == ["The rest", "Sentence vector"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 1360
    total.hover(force=True)
    expect(reading).to_contain_text(re.compile(r"dimension \d+: .* = .*from heads joined to after the norm"))
    page.evaluate(GO, "/steps?model=induction&text=red+cat+blue+dog+red&query=5&key=2")
    idle(page)
    words = shown.get_by_role("img", name=re.compile(": probability "))
    expect(words).to_have_count(5)
    shares = [float(one.get_attribute("aria-label").rpartition(" ")[2]) for one in words.all()]  # pyright: ignore[reportOptionalMemberAccess]
    assert shares == sorted(shares, reverse=True) and 0 < sum(shares) <= 1.0001


def test_a_drawer_opens_in_words_closes_by_escape_and_gives_the_focus_back(stay: OpenPage, idle: Idle) -> None:
    page = stay("/steps?query=2&key=5", height=860)
    opener = page.get_by_test_id("pipeline").get_by_role("button", name="Weights: the whole matrix")
    waiting, drawer = page.get_by_text("Reading the matrix from the run"), page.locator(".st-key-steps-drawer")
    # Closed before the page has filled it, it stays closed.
    opener.click()
    page.keyboard.press("Escape")
    expect(waiting.or_(drawer).filter(visible=True)).to_have_count(0)
    expect(opener).to_be_focused()
    idle(page)
    expect(drawer).to_have_count(0)
    opener.click()
    expect(waiting.or_(drawer).filter(visible=True).first).to_be_visible()
    idle(page)
    expect(drawer.get_by_test_id("chart")).to_be_visible()
    expect(drawer.get_by_role("button", name="Close")).to_be_focused()
    column, box = opener.bounding_box(), drawer.bounding_box()
    assert column is not None and box is not None and box["y"] > column["y"] + column["height"]
    # Beside the row's lanes, which stay in sight.
    lanes = page.locator(".av-flowchart .av-lane").first.bounding_box()
    assert lanes is not None and 0 <= box["x"] < box["x"] + box["width"] <= lanes["x"]
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(opener).to_be_focused()
    idle(page)
    expect(drawer).to_have_count(0)
    assert "step=pipeline" in page.url


@pytest.mark.parametrize("words", [25, 400])
def test_both_rows_of_words_scroll_as_one_and_the_chosen_ones_are_in_sight(stay: OpenPage, words: int) -> None:
    page = stay(f"/steps?query={words}&key=1&text={'+'.join(f'boat river{at % 7}' for at in range(words // 2))}")
    frame = page.locator(".av-pair-words")
    box = frame.bounding_box()
    chosen = [one.bounding_box() for one in frame.locator("[aria-pressed=true]").all()]
    assert box is not None and len(chosen) == 2
    for one in chosen:
        assert one is not None and box["x"] <= one["x"] and one["x"] + one["width"] <= box["x"] + box["width"] + 1
    line = page.locator(".av-link.av-told").bounding_box()
    ends = sorted(one["x"] + one["width"] / 2 for one in chosen if one is not None)
    assert line is not None and abs(line["x"] - ends[0]) < 8 and abs(line["x"] + line["width"] - ends[1]) < 8
    frame.evaluate("frame => frame.scrollBy(60, 0)")
    rows = [row.locator("button").first.bounding_box() for row in frame.locator(".av-words").all()]
    assert rows[0] is not None and rows[1] is not None and rows[0]["x"] == rows[1]["x"]


MOVING = "stage => stage.getAnimations({subtree: true}).filter(one => one.effect.getTiming().duration === 180).length"


def test_a_change_of_the_pair_moves_and_nothing_does_if_the_system_asks(stay: OpenPage) -> None:
    page = stay("/steps?query=2&key=5")
    stage = page.locator(".av-flowchart")
    assert stage.evaluate(MOVING) == 0, "nothing moves on arrival"
    for wanted in ("no-preference", "reduce"):
        page.emulate_media(reduced_motion=wanted)
        # Both in one turn of the browser: what moves is over in a moment.
        word = page.locator(".av-key-words button").nth(3 if wanted == "reduce" else 7).element_handle()
        moved = stage.evaluate(f"(stage, word) => {{ word.click(); return ({MOVING})(stage); }}", word)
        assert (moved > 0) == (wanted == "no-preference")


def test_a_click_on_a_cell_opens_it(stay: OpenPage, idle: Idle) -> None:
    page = stay(f"{CAT}&step=scores&query=2&key=2")
    before = page.get_by_test_id("total").inner_text()
    stage = page.get_by_test_id("chart").locator(".av-stage")
    stage.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("query=3.*key=2"))
    idle(page)
    assert page.get_by_test_id("total").inner_text() != before


def test_another_text_has_run_whole_while_a_place_of_the_one_before_has_the_focus(stay: OpenPage, idle: Idle) -> None:
    page = stay("/steps?text=the+cat+sat+down&query=5&key=5")
    shown = page.get_by_test_id("pipeline")
    shown.get_by_role("button", name=re.compile("enters the softmax")).last.focus()
    page.evaluate(GO, "/steps?text=rain&query=1&key=2")
    idle(page)
    expect(page.get_by_test_id("pipeline-claim")).to_have_text(re.compile("^rain takes"))
    expect(shown.get_by_role("button", name=re.compile("enters the softmax"))).to_have_count(3)
    assert [one for one in shown.locator(".av-title").all_text_contents() if one in LABELS] == LABELS


def test_the_line_below_does_not_take_the_pointer_from_what_it_tells_of(stay: OpenPage) -> None:
    """On a phone's width it lies over the pipeline, and takes another row for a long formula."""
    page = stay("/steps?query=2&key=5", width=390, height=860)
    reading = page.get_by_test_id("pipeline-reading")
    place = page.locator(".av-hit[aria-label^='weight = e^']").last
    place.evaluate("place => place.scrollIntoView({block: 'center'})")
    low, at = reading.bounding_box(), place.bounding_box()
    assert low is not None and at is not None
    page.mouse.move(195, 430)
    page.mouse.wheel(0, at["y"] + at["height"] - low["y"])
    page.wait_for_function(
        f"place => Math.abs(place.getBoundingClientRect().bottom - {low['y']}) < 2", arg=place.element_handle()
    )
    page.mouse.move(at["x"] + at["width"] / 2, low["y"] - 4)
    expect(reading).to_contain_text("e^")
    assert all(in_frames(place, "place.matches(':hover')"))
    assert (now := reading.bounding_box()) is not None and now["y"] < low["y"] - 4, "it lies over nothing"


def test_back_leads_to_the_page_that_one_came_from_at_once(open_page: OpenPage, idle: Idle) -> None:
    page = open_page("/?model=coreference")
    idle(page)
    page.get_by_role("button", name=re.compile("^How was")).click()
    # The page writes what it opens on into the address after it.
    expect(page).to_have_url(re.compile(r"/steps\?.*step="))
    idle(page)
    page.go_back()
    expect(page).to_have_url(re.compile(r"/\?model=coreference"))
    expect(page.get_by_test_id("explorer-sentence")).to_be_visible()
    # So it is between pages that the menu leads to, and no address mixes what two pages keep.
    for name in ("Masks", "Heads"):
        page.get_by_role("link", name=name, exact=True).click()
        expect(page).to_have_url(re.compile(rf"/{name.lower()}\?model=coreference"))
        idle(page)
    for place in (r"/masks\?(?!.*metric).*mask=", r"/\?model=coreference(?!.*mask)"):
        page.go_back()
        expect(page).to_have_url(re.compile(place))
        idle(page)


def test_the_keyboard_walks_the_steps_and_back_takes_one_back(stay: OpenPage, idle: Idle) -> None:
    page = stay(f"{CAT}&step=query")
    page.get_by_role("button", name="Next").focus()
    page.keyboard.press("Enter")
    idle(page)
    expect(step(page, "Key")).to_be_checked()
    page.get_by_role("button", name="Back").press("Enter")
    idle(page)
    expect(step(page, "Query")).to_be_checked()
    page.go_back()
    idle(page)
    expect(step(page, "Key")).to_be_checked()
    assert "step=key" in page.url


def test_all_steps_stand_under_each_other_and_formulas_of_other_families_can_be_set(
    open_page: OpenPage, idle: Idle, tmp_path: Path
) -> None:
    page = open_page("/steps?model=scratch&text=the+cat&all=yes")
    for label in LABELS:
        expect(page.get_by_role("heading", name=label, exact=True)).to_have_count(1)
    expect(page.get_by_test_id("chart")).to_have_count(len(LABELS))
    for family, label in (("gemma2", "Soft-capped"), ("t5 encoder", "Biased"), ("gpt_oss", "Rotated")):
        path = tmp_path / "mine.safetensors"
        wrapped(family).trace_ids(ids(3)).save(path)
        page.get_by_role("button", name="Open a trace").click()
        page.locator("input[type=file]").set_input_files(path)
        # All steps are drawn, one after the other: on a busy machine that takes longer than anything else here.
        expect(page.get_by_role("heading", name=label, exact=True)).to_be_visible(timeout=90_000)
        idle(page)
        expect(page.locator(".katex").first).to_be_visible()
        expect(page.locator(".katex-error")).to_have_count(0)


@pytest.mark.parametrize(("words", "dark", "width"), [(2, True, 390), (12, False, 390), (128, True, 1360)])
def test_any_length_fits_the_screen(stay: OpenPage, words: int, dark: bool, width: int) -> None:
    text = "+".join(["boat"] * words)
    page = stay(f"/steps?model=scratch&step=weights&query={words - 1}&text={text}", dark=dark, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for locator in (page.locator(".st-key-steps-drawer"), page.get_by_test_id("chart").first):
        box = locator.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
