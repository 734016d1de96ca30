"""A long text in a real browser: its map, its exact numbers, its line of tokens, its search."""

import re
from collections.abc import Callable

import pytest
import torch
from playwright.sync_api import Locator, Page, expect

from attention_viz.explorer import page as page_module
from attention_viz.trace.spelling import weight_text
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace
from tests.explorer.long_texts import QUERIES, long_trace
from tests.explorer.test_in_browser import INK, part


@pytest.fixture(scope="module")
def trace() -> Trace:
    return long_trace()


@pytest.fixture
def page(show: Callable[..., Page], trace: Trace, monkeypatch: pytest.MonkeyPatch) -> Page:
    monkeypatch.setattr(page_module, "MOST_IN_A_FILE", 1_000_000)
    shown = show(trace, layer=1, head=0)
    expect(part(shown, "blocks")).to_contain_text("The largest of each 3 × 3 weights")
    return shown


def stage(page: Page) -> Locator:
    return part(page, "heatmap").get_by_role("application")


def test_a_pair_is_picked_by_position_and_its_exact_number_told(page: Page, trace: Trace) -> None:
    row = trace.weights(1, 0)[700]
    key = int(row.argmax())
    for role, place in (("Query", 700), ("Key", key)):
        box = page.get_by_label(f"{role} token: a word or a position")
        box.fill(str(place))
        box.press("Enter")
    ranked = part(page, "search").locator("li button[data-head]")
    expect(ranked).to_have_count(2)  # both heads of the layer that is in the file
    for head in (0, 1):
        weight = float(trace.weights(1, head)[700, key])
        expect(ranked.filter(has_text=f"1·{head}")).to_contain_text(weight_text(weight))
    assert row[key] > 0.1


def test_what_is_typed_stays_when_the_page_has_run_anew(page: Page) -> None:
    box = page.get_by_label("Query token: a word or a position")
    before = box.input_value()
    box.fill("70")
    part(page, "bars").locator("li button").first.dispatch_event("click")
    expect(box).to_have_value("70")
    box.blur()
    expect(box).not_to_have_value("70")
    box.fill("700")
    box.press("Enter")
    expect(box).to_have_value(re.compile(r" 700$"))
    assert before != box.input_value()


def test_the_strongest_links_are_those_of_the_whole_text(page: Page, trace: Trace) -> None:
    weights = trace.weights(1, 0).clone().fill_diagonal_(0)
    # Between words: what is no word, and the first token, at which heads rest, are looked at by none.
    said = torch.tensor([any(sign.isalnum() for sign in text) for text in trace.key_tokens().texts])
    weights[~said[: len(weights)]], weights[:, ~said], weights[:, 0] = 0, 0, 0
    values, places = weights.flatten().sort(descending=True)
    assert part(page, "bars").locator("li .av-number").all_text_contents() == [f"{one:.2f}" for one in values[:16]]
    pairs = [divmod(int(place), weights.shape[1]) for place in places[:16]]
    links = part(page, "bars").locator("li .av-pair")
    assert links.all_text_contents() == [f"{query} → {key}" for query, key in pairs]


def test_the_line_of_tokens_has_few_of_them_and_turns_to_what_is_chosen(page: Page) -> None:
    line = part(page, "arcs").get_by_role("listbox")
    assert line.get_by_role("option").count() == 240
    told = part(page, "arcs").locator(".av-is-query")
    expect(told).to_be_in_viewport()  # what the sentence above tells of
    assert int(told.get_attribute("data-place") or 0) > 40  # far from where the line begins
    part(page, "bars").locator("li button").first.click()
    chosen = part(page, "arcs").locator('[aria-selected="true"]')
    expect(chosen.first).to_be_in_viewport()
    line.get_by_role("option").first.focus()
    page.keyboard.press("End")
    expect(page.locator(":focus")).to_have_attribute("aria-posinset", str(QUERIES))
    expect(page.locator(":focus")).to_be_in_viewport()


def test_scrolling_brings_the_tokens_that_come_into_sight(page: Page) -> None:
    scroller = part(page, "arcs").locator(".av-scroll")
    for share in (0.5, 0.9, 0.2):
        scroller.evaluate("(one, share) => { one.scrollLeft = share * one.scrollWidth; }", share)
        middle = """one => {
            const box = one.getBoundingClientRect();
            const token = one.getRootNode().elementsFromPoint(box.left + box.width / 2, box.top + 94)
                .map(found => found.closest(".av-token")).find(Boolean);
            return token ? Number(token.dataset.place) : -1;
        }"""
        page.wait_for_timeout(200)
        place = max(scroller.evaluate(middle), scroller.evaluate(middle.replace("width / 2", "width / 2 + 14")))
        assert abs(place / QUERIES - share) < 0.06


def test_a_part_has_run_from_blocks_of_its_own(page: Page) -> None:
    canvas = part(page, "heatmap").locator("canvas").first
    stage(page).press("+")
    expect(part(page, "blocks")).to_contain_text("The largest of each 2 × 2 weights (being computed)")
    coarse = canvas.evaluate(INK)
    expect(part(page, "blocks")).to_contain_text("The largest of each 2 × 2 weights; zoom in", timeout=90_000)
    assert canvas.evaluate(INK) != coarse


def test_zooming_in_draws_the_cells_themselves_with_their_numbers(page: Page) -> None:
    canvas = part(page, "heatmap").locator("canvas").first
    inks = [canvas.evaluate(INK)]
    for _ in range(5):
        stage(page).press("+")
        page.wait_for_timeout(50)
        inks.append(canvas.evaluate(INK))
    assert len(set(inks)) == 6


def test_the_mean_of_each_block_has_run_in_colours_of_its_own(page: Page) -> None:
    canvas = part(page, "heatmap").locator("canvas").first
    largest = canvas.evaluate(INK)
    page.get_by_role("radio", name="Mean").check()
    note = part(page, "blocks")
    expect(note).to_contain_text("The mean of each 3 × 3 weights, blocked ones left out")
    expect(note).to_contain_text(re.compile(r"the largest mean, 0\.\d+, the palest is a thousandth of it"))
    assert canvas.evaluate(INK) != largest
    shades = """canvas => {
        const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return new Set(new Uint32Array(data.buffer)).size;
    }"""
    assert canvas.evaluate(shades) > 50
    for _ in range(4):
        stage(page).press("+")
    expect(note).to_have_text("Each weight exact to 0.00001")


def test_hidden_tokens_are_in_no_block(
    show: Callable[..., Page], trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_module, "MOST_IN_A_FILE", 1_000_000)
    count = range(QUERIES)
    # What looks hardest is hidden, so that the largest weight in sight is another one even at two digits.
    hidden = trace.weights(1, 0).max(-1).values > 0.95
    axis = {"decoder": Tokens(tuple(map(str, count)), tuple(count), special=tuple(hidden.tolist()))}
    shown = show(trace.derived(queries=axis, keys=axis), layer=1, head=0)
    shown.get_by_label("Hide special tokens").check()
    note = part(shown, "blocks")
    expect(note).to_contain_text("The largest of each 3 × 3 weights, hidden ones left out; zoom in")
    shown.get_by_role("radio", name="Per head").check()
    most = f"{float(trace.weights(1, 0)[~hidden][:, ~hidden].max()):.2f}"
    assert most != f"{float(trace.weights(1, 0).max()):.2f}"
    expect(part(shown, "legend").locator(".av-ticks")).to_contain_text(most)


def test_a_head_whose_numbers_are_not_in_the_file_is_shown_in_small_and_told_of(page: Page) -> None:
    canvas = part(page, "heatmap").locator("canvas").first
    ink = canvas.evaluate(INK)
    page.get_by_role("gridcell", name="Layer 0 head 1", exact=True).click()
    expect(page.locator(".av-notes")).to_contain_text(
        "this file has full weights for layer 1 only; this head is a thumbnail"
    )
    assert canvas.evaluate(INK) != ink
    expect(part(page, "bars").locator("li")).to_have_count(0)
    page.get_by_role("gridcell", name="Layer 1 head 1", exact=True).click()
    expect(part(page, "bars").locator("li").first).to_be_visible()
    expect(part(page, "blocks")).to_contain_text("exact to 0.00001")


def test_the_kind_of_block_can_be_chosen_only_where_blocks_are_drawn(page: Page) -> None:
    kind = page.get_by_role("radio", name="Mean")
    expect(kind).to_be_enabled()
    for _ in range(3):
        page.get_by_role("button", name="Zoom in").click()
    expect(part(page, "blocks")).to_contain_text("Each weight exact")
    expect(kind).to_be_disabled()
    page.get_by_role("button", name="Show the whole matrix").click()
    expect(kind).to_be_enabled()
