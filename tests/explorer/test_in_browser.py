"""The explorer in a real browser: what it draws can be read, controls work from the keyboard, nothing overflows."""

import itertools
import re
from collections.abc import Callable, Iterator

import pytest
import torch
from playwright.sync_api import Locator, Page, expect

import attention_viz as av
from attention_viz import AttentionModel
from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.trace.kept import KeptLayers
from attention_viz.trace.spelling import set_apart, spell
from attention_viz.trace.trace import Layer, Trace
from tests.explorer.conftest import WILD, self_attention, tokens, trace_of
from tests.shipped import shipped

Show = Callable[..., Page]

# A number that follows from every pixel of a canvas.
INK = """canvas => {
    const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return data.reduce((sum, byte) => (sum * 31 + byte) % 1000000007, 7);
}"""


def part(page: Page, name: str) -> Locator:
    return page.get_by_test_id(f"explorer-{name}")


def redrawn(canvas: Locator, before: int) -> int:
    """What a canvas's pixels come to once they are other ones: a drawing may take until the next frame."""
    # The page lets nobody else's script run in it, so wait_for_function can look only once.
    for _ in range(1500):
        if (ink := canvas.evaluate(INK)) != before:
            return ink
        canvas.page.wait_for_timeout(20)
    pytest.fail("nothing else is drawn")


def open_table(page: Page) -> list[list[str]]:
    """The table's cells as text, without its heading."""
    table = part(page, "table")
    if table.get_attribute("open") is None:
        table.locator("summary").click()
    table.locator("td").first.wait_for()
    return table.locator("tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )


def read(cell: str) -> str:
    """What is too small for three digits, and not 0, is told as such."""
    return "0.000" if cell == "<0.001" else cell


def assert_nothing_overflows(page: Page) -> None:
    width, room = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width <= room


def test_the_table_has_the_numbers_of_the_trace(show: Show, bank: Trace) -> None:
    page = show(bank, layer=0, head=4)
    rows = open_table(page)
    exact = bank.weights(0, 4)
    # A word that comes twice tells which one it is.
    assert [row[0] for row in rows] == ["[CLS]", "the₁", "bank", "of", "the₂", "river", "was", "flooded", "[SEP]"]
    for row, weights in zip(rows, exact, strict=True):
        assert [read(cell) for cell in row[1:]] == [f"{weight:.3f}" for weight in weights]
    assert rows[2][6] == "0.580"  # bank looks at river


def test_another_head_redraws_matrix_and_table(show: Show, bank: Trace) -> None:
    page = show(bank, layer=0, head=4)
    before, canvas = open_table(page), part(page, "heatmap").locator("canvas").first
    ink = canvas.evaluate(INK)
    page.get_by_role("gridcell", name="Layer 5 head 6", exact=True).click()
    expect(part(page, "readout")).to_have_text("Head 5·6")
    # The name changes with the click, the drawings with the next frame.
    row = part(page, "table").locator("tbody tr").nth(2)
    expect(row.locator("th, td").nth(6)).to_have_text(f"{bank.weights(5, 6)[2, 5]:.3f}")
    assert open_table(page) != before
    redrawn(canvas, ink)


def test_the_grid_is_walked_with_the_keyboard(show: Show, bank: Trace) -> None:
    page = show(bank, layer=0, head=4)
    cells = part(page, "grid").get_by_role("gridcell")
    assert cells.count() == 72
    assert part(page, "grid").locator('[role=gridcell][tabindex="0"]').count() == 1
    part(page, "grid").locator('[tabindex="0"]').focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowUp", "ArrowLeft", "ArrowDown"):
        page.keyboard.press(key)
    expect(part(page, "readout")).to_have_text("Head 1·5")
    page.keyboard.press("End")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("PageDown")
    expect(part(page, "readout")).to_have_text("Head 5·11")
    focused = part(page, "grid").locator(":focus")
    expect(focused).to_have_attribute("aria-label", "Layer 5 head 11")
    expect(focused).to_have_attribute("aria-selected", "true")


@pytest.mark.parametrize(("layers", "heads"), [(6, 12), (30, 9), (32, 32), (48, 64)])
def test_cells_of_any_number_of_heads_stand_apart_inside_their_place(show: Show, layers: int, heads: int) -> None:
    page = show(self_attention(3, layers=layers, heads=heads))
    place, matrix = (part(page, name).bounding_box() for name in ("grid", "heatmap"))
    assert place and matrix
    cells = part(page, "grid").get_by_role("gridcell")
    boxes = cells.evaluate_all(
        """cells => cells.map(cell => cell.getBoundingClientRect())
            .map(({x, y, width, height}) => [x, y, width, height])"""
    )
    assert len(boxes) == layers * heads
    least = 18 if layers * heads <= 1500 else 8
    assert all(width >= least and height >= least for _, _, width, height in boxes)
    assert all(place["x"] <= x and x + width <= place["x"] + place["width"] for x, _, width, _ in boxes)
    assert max(y + height for _, y, _, height in boxes) <= place["y"] + place["height"] + 1
    assert len({(x, y) for x, y, _, _ in boxes}) == len(boxes)
    for corners, size in (({x for x, *_ in boxes}, boxes[0][2]), ({y for _, y, *_ in boxes}, boxes[0][3])):
        assert all(other - one > size for one, other in itertools.pairwise(sorted(corners)))
    # The grid ends with the first screen, unless cells of 18 pixels are more than it holds; and the chosen head’s
    # matrix stands beside it.
    assert place["y"] + place["height"] <= 860 or layers * 18 > 860 - place["y"]
    assert place["x"] + place["width"] < matrix["x"] and matrix["y"] + matrix["height"] <= 860
    assert_nothing_overflows(page)


def test_pointing_at_a_token_shows_its_row_and_its_column(show: Show, bank: Trace) -> None:
    page = show(bank, layer=0, head=4)
    part(page, "arcs").get_by_role("option", name="bank").hover()
    bars = part(page, "bars")
    expect(bars.locator("h2").first).to_have_text("bank attends to")
    expect(bars.locator("li").first).to_have_text(re.compile(r"^river0\.58$"))
    expect(bars).to_contain_text("row sums to 1.000")
    expect(bars.locator("h2").nth(1)).to_have_text("Attending to bank")
    page.mouse.move(5, 5)
    expect(bars.locator("h2").first).to_have_text("Strongest links between words, in this head")


def test_a_token_is_pinned_and_read_out_from_the_keyboard(show: Show, bank: Trace) -> None:
    page = show(bank, layer=0, head=4)
    part(page, "arcs").locator('[role=option][tabindex="0"]').focus()
    for key in ("ArrowRight", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    expect(page.locator("p.av-live")).to_have_text("bank attends most to river, 0.58")
    expect(part(page, "arcs").locator('[aria-selected="true"]')).to_have_text("bank")
    page.keyboard.press("Escape")
    expect(part(page, "arcs").locator('[aria-selected="true"]')).to_have_count(0)


def test_pointing_at_a_cell_tells_its_exact_number_inside_the_window(show: Show, bank: Trace) -> None:
    page = show(bank, layer=0, head=4)
    stage = part(page, "heatmap").get_by_role("application")
    stage.focus()
    for key in ["ArrowDown"] * 3 + ["ArrowRight"] * 6:
        page.keyboard.press(key)
    expect(page.locator("p.av-live")).to_have_text(
        re.compile(r"^bank attends to the \(second\), 0\.\d{2}$|^bank attends to ")
    )
    box = stage.bounding_box()
    assert box is not None
    for x, y in ((0.3, 0.5), (0.6, 0.95)):
        page.mouse.move(box["x"] + box["width"] * x, box["y"] + box["height"] * y)
        tip = page.get_by_role("tooltip")
        expect(tip).to_have_text(re.compile(r"→.*(<0\.01|0\.\d{2}|1\.00)$"))
        edge = tip.bounding_box()
        assert edge is not None
        assert edge["x"] >= 0 and edge["x"] + edge["width"] <= 1360
        assert edge["y"] >= 0 and edge["y"] + edge["height"] <= 860


def test_heads_are_ranked_for_a_pair_and_choosing_one_shows_it(show: Show, bank: Trace) -> None:
    page = show(bank, layer=2, head=1)
    search = part(page, "search")
    search.get_by_label("Query token").select_option(label="bank")
    search.get_by_label("Key token").select_option(label="river")
    found = search.get_by_role("button")
    expect(found.first).to_have_text("0·40.58")
    expect(found.nth(1)).to_have_text("0·100.49")
    assert found.count() == 10
    found.nth(1).click()
    expect(part(page, "readout")).to_have_text("Head 0·10")


def test_choosing_a_cell_fills_the_search_and_repeated_words_tell_their_position(show: Show, bank: Trace) -> None:
    page = show(bank, layer=0, head=4)
    expect(part(page, "sentence")).to_have_text("“bank” looks at “river”: 0.58")
    search = part(page, "search")
    expect(search.get_by_label("Query token")).to_have_value("2")
    expect(search.get_by_label("Key token")).to_have_value("5")
    stage = part(page, "heatmap").get_by_role("application")
    stage.focus()
    for key in ["ArrowDown"] * 2 + ["ArrowRight"] * 4 + ["Enter"]:
        page.keyboard.press(key)
    expect(search.get_by_label("Query token")).to_have_value("1")
    expect(search.get_by_label("Key token").locator("option:checked")).to_have_text("the₂")


def test_the_sentence_is_about_the_head_on_the_screen_until_a_pair_is_chosen(show: Show, bank: Trace) -> None:
    page = show(bank, layer=0, head=4)
    river = "“bank” looks at “river”: 0.58"
    expect(part(page, "sentence")).to_have_text(river)
    page.get_by_role("gridcell", name="Layer 5 head 8", exact=True).click()
    # Of words alone, and no word with itself.
    weights = bank.weights(5, 8)[1:-1, 1:-1].clone().fill_diagonal_(0)
    query, key = divmod(int(weights.argmax()), weights.shape[1])
    words, place = bank.query_tokens().names[1:-1], page.get_by_test_id("explorer-claim").locator(".av-where")
    expect(place).to_have_text("layer 5, head 8")
    expect(part(page, "sentence")).to_contain_text(f"“{words[query]}”")
    expect(part(page, "sentence")).to_contain_text(f"“{words[key]}”: {weights.max():.2f}")
    part(page, "search").get_by_label("Query token").select_option(label="bank")
    part(page, "search").get_by_label("Key token").select_option(label="river")
    page.get_by_role("gridcell", name="Layer 0 head 4", exact=True).click()
    expect(part(page, "sentence")).to_have_text(river)
    page.get_by_role("gridcell", name="Layer 5 head 6", exact=True).click()
    expect(part(page, "sentence")).to_have_text(f"“bank” looks at “river”: {bank.weights(5, 6)[2, 5]:.2f}")


def test_a_finding_is_shown_while_it_is_pointed_at_and_kept_when_it_is_pressed(show: Show, bank: Trace) -> None:
    page = show(bank, layer=5, head=8)
    findings, found = page.get_by_test_id("finding"), av.findings(bank)
    expect(findings).to_have_count(len(found))
    before, place = part(page, "sentence").inner_text(), (5, 8)
    one = next(finding for finding in found if (finding.layer, finding.head) != place)
    button = findings.nth(found.index(one))
    button.hover()
    expect(part(page, "sentence")).to_have_text(one.text)
    expect(part(page, "readout")).to_have_text(f"Head {one.layer}·{one.head}")
    page.mouse.move(5, 855)
    expect(part(page, "sentence")).to_have_text(before)
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    page.mouse.move(5, 855)
    expect(part(page, "sentence")).to_have_text(one.text)


def test_a_finding_about_the_next_word_carries_what_its_head_writes_and_agrees_with_the_headline(show: Show) -> None:
    trace = shipped("lists").trace("reverse c a f :")
    page, found = show(trace), av.findings(trace)
    one = next(finding for finding in found if finding.effect is not None)
    assert one.effect is not None and one.effect < -0.5
    button = page.get_by_test_id("finding").nth(found.index(one))
    number = f"{one.effect:.2f}".replace("-", "−")
    expect(button).to_contain_text(f"▼ {number}")
    expect(button).to_contain_text(f"writes against “{one.word}”")
    button.click()
    page.mouse.move(5, 855)
    expect(part(page, "sentence")).to_have_text(one.text)
    expect(part(page, "sentence").locator(".av-effect.av-less")).to_have_text(number)
    expect(part(page, "aside")).to_contain_text(f"“{one.word}” over “{one.rival}”")
    expect(button).to_have_attribute("data-said", "")
    # What is pointed at is said, and no button claims it; the heads that link it are listed, too.
    key = part(page, "search").get_by_label("Key token")
    kept = key.input_value()
    page.get_by_test_id("explorer-arcs").get_by_role("option").nth(1).hover()
    expect(page.locator("[data-said]")).to_have_count(0)
    expect(part(page, "search").get_by_label("Query token")).to_have_value("1")
    page.mouse.move(5, 855)
    expect(key).to_have_value(kept)
    expect(button).to_have_attribute("data-said", "")


def test_a_head_is_shown_while_it_is_pointed_at(show: Show, bank: Trace) -> None:
    page = show(bank, layer=0, head=4)
    strongest = f"bank → river{bank.weights(0, 4)[2, 5]:.2f}"
    bars, readout = part(page, "bars"), part(page, "readout")
    # The second time the pointer comes back to the very place that it left.
    for _ in range(2):
        expect(bars).to_contain_text(strongest)
        page.get_by_role("gridcell", name="Layer 3 head 1", exact=True).hover()
        expect(readout).to_have_text("Head 3·1")
        expect(bars).not_to_contain_text(strongest)
        expect(page.get_by_role("gridcell", selected=True)).to_have_attribute("aria-label", "Layer 0 head 4")
        page.mouse.move(5, 855)
        expect(readout).to_have_text("Head 0·4")
    expect(bars).to_contain_text(strongest)


def test_a_text_of_one_word_searches_for_that_word(show: Show, model: AttentionModel) -> None:
    search = part(show(model.trace("bank")), "search")
    expect(search.get_by_label("Query token").locator("option:checked")).to_have_text("bank")
    expect(search.get_by_label("Key token").locator("option:checked")).to_have_text("bank")


def test_a_pair_is_only_called_blocked_once_every_layer_has_been_read(show: Show, many_kinds: Trace) -> None:
    search = part(show(many_kinds, stream="decoder"), "search")
    search.get_by_label("Query token").select_option("1")
    search.get_by_label("Key token").select_option("4")
    expect(search).to_contain_text("None: this cell is blocked.")


def test_without_special_tokens_the_page_says_what_rows_sum_to(show: Show, bank: Trace) -> None:
    page = show(bank, layer=0, head=4)
    expect(part(page, "sums")).to_be_hidden()
    page.get_by_label("Hide special tokens").check()
    sums = bank.weights(0, 4)[1:-1, 1:-1].sum(-1)
    expect(part(page, "sums")).to_contain_text(f"from {sums.min():.3f} to {sums.max():.3f}")
    assert len(open_table(page)) == len(bank.query_tokens()) - 2


@pytest.mark.parametrize(("scale", "ends"), [("0 to 1", ("0", "1")), ("Logarithmic", ("0.001", "1"))])
def test_the_legend_follows_the_scale(show: Show, bank: Trace, scale: str, ends: tuple[str, str]) -> None:
    page = show(bank, layer=0, head=4)
    page.get_by_role("radio", name=scale).check()
    name = f"Colours of the weights, from {ends[0]} to {ends[1]}"
    expect(part(page, "legend").get_by_role("img")).to_have_attribute("aria-label", name)
    expect(part(page, "legend")).not_to_contain_text("blocked")


def test_the_scale_to_the_maximum_tells_that_maximum(show: Show, bank: Trace) -> None:
    page = show(bank, layer=0, head=4)
    page.get_by_role("radio", name="Per head").check()
    most = f"{bank.weights(0, 4).max():.2f}"
    expect(part(page, "legend").locator(".av-ticks span").last).to_have_text(most)


def test_streams_are_switched_and_cross_attention_has_two_lines(show: Show, many_kinds: Trace) -> None:
    page = show(many_kinds)
    assert part(page, "arcs").get_by_role("listbox").count() == 1
    page.get_by_role("radio", name="cross").check()
    expect(part(page, "arcs").get_by_role("listbox")).to_have_count(2)
    expect(part(page, "legend")).to_contain_text("blocked")
    rows = open_table(page)
    exact = many_kinds.weights(0, 0, "cross")
    assert (len(rows), len(rows[0])) == (7, 14)
    assert rows[2][1:] == ["blocked"] * 13
    for row, weights, allowed in zip(rows, exact, many_kinds.attention(0, "cross").allowed[0], strict=True):
        for cell, weight, may in zip(row[1:], weights, allowed, strict=True):
            assert (cell != "blocked") == bool(may)
            assert not may or read(cell) == f"{weight:.3f}"


def test_a_strongest_link_pins_its_pair(show: Show, bank: Trace) -> None:
    page = show(bank, layer=0, head=4)
    part(page, "bars").get_by_role("button", name="bank → river").click()
    expect(part(page, "bars").locator("h2").first).to_have_text("bank attends to")
    expect(part(page, "search").get_by_label("Key token")).to_have_value("5")


def test_sinks_show_in_the_sum_of_a_row(show: Show, many_kinds: Trace) -> None:
    page = show(many_kinds, stream="decoder")
    part(page, "arcs").get_by_role("option", name="t3").hover()
    total = float(many_kinds.weights(0, 0, "decoder")[3].sum())
    assert total < 0.9995
    expect(part(page, "bars")).to_contain_text(f"row sums to {total:.3f}")


def test_no_piece_is_shown_as_the_tokenizer_writes_it(show: Show, many_kinds: Trace) -> None:
    page = show(many_kinds, stream="encoder")
    option = part(page, "arcs").locator("[role=option]", has_text="bank")
    expect(option).to_have_attribute("title", "·bank")
    said = page.evaluate(
        "[...document.querySelectorAll('.av-explorer *')].map(node => `${node.title} ${node.ariaLabel}`).join()"
    )
    assert "Ġ" not in said + page.locator(".av-explorer").inner_text()


def test_labels_that_break_pages_are_shown_and_harm_nothing(show: Show, many_kinds: Trace) -> None:
    page = show(many_kinds)
    assert page.locator("img, [onerror]").count() == 0
    shown = part(page, "arcs").get_by_role("option").all_text_contents()
    assert len(shown) == len(WILD)
    assert {
        "</script>",
        "<img␣src=x␣onerror=alert(1)>",
        "‿ing",
        "·bank",
        "↵",
        "∅",
        "◌\u0301x",
        "⟨U+202E⟩gnirts",
    } <= set(shown)
    # A heading that shows nothing is no heading: what can't be seen has the sign that it has in the picture.
    expected = [set_apart("".join(spell(label))) for label in WILD]
    assert [row[0] for row in open_table(page)] == expected
    headings = part(page, "table").locator("thead th").all_text_contents()
    assert headings[1:] == expected


@pytest.mark.parametrize(
    ("count", "dark", "width"), [(1, False, 1360), (25, True, 390), (128, True, 1360), (400, False, 390)]
)
def test_any_length_fits_any_width_in_light_and_dark(show: Show, count: int, dark: bool, width: int) -> None:
    trace = self_attention(count)
    page = show(trace, dark=dark, width=width)
    assert_nothing_overflows(page)
    expect(page.get_by_test_id("explorer")).to_have_attribute("data-theme", "dark" if dark else "light")
    assert part(page, "arcs").get_by_role("option").count() == count
    stage = part(page, "heatmap").locator("canvas").first.bounding_box()
    assert stage is not None and 0 < stage["width"] <= width
    rows = open_table(page)
    assert len(rows) == count
    assert_nothing_overflows(page)


def test_a_long_matrix_zooms_with_wheel_buttons_and_keys(show: Show) -> None:
    page = show(self_attention(128))
    heatmap = part(page, "heatmap")
    canvas, whole = heatmap.locator("canvas").first, heatmap.get_by_role("button", name="Show the whole matrix")
    ink = canvas.evaluate(INK)
    expect(whole).to_be_disabled()
    heatmap.get_by_role("button", name="Zoom in").click()
    expect(whole).to_be_enabled()
    closer = redrawn(canvas, ink)
    stage = heatmap.get_by_role("application")
    stage.focus()
    page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("+")
    redrawn(canvas, closer)
    page.keyboard.press("0")
    expect(whole).to_be_disabled()
    assert canvas.evaluate(INK) == ink
    stage.hover()
    page.mouse.wheel(0, -300)
    expect(whole).to_be_enabled()
    stage.dblclick()
    expect(whole).to_be_disabled()


@pytest.fixture
def drawn(show: Show, bank: Trace) -> Iterator[Page]:
    yield show(bank, layer=0, head=4)


def test_the_first_screen_holds_arcs_grid_and_matrix(drawn: Page) -> None:
    for name in ("arcs", "grid", "heatmap", "legend"):
        box = part(drawn, name).bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 760
    grid, heatmap = part(drawn, "grid").bounding_box(), part(drawn, "heatmap").bounding_box()
    assert grid is not None and heatmap is not None
    assert grid["x"] + grid["width"] <= heatmap["x"]
    assert grid["y"] == pytest.approx(heatmap["y"], abs=2)


def test_the_page_says_how_exact_it_is(drawn: Page) -> None:
    expect(drawn.get_by_test_id("explorer")).to_contain_text("rounded here by at most 0.00013; downloads are exact")


def test_a_fixed_theme_wins_over_the_system(bank: Trace, open_page: Callable[..., Page], tmp_path) -> None:
    from attention_viz.explorer import explore

    explore(bank, theme="dark").save_html(tmp_path / "dark.html")
    page = open_page((tmp_path / "dark.html").as_uri(), dark=False)
    expect(page.get_by_test_id("explorer")).to_have_attribute("data-theme", "dark")


# How often a line down the middle between two tokens meets an arc.
CROSSINGS = """([canvas, first, last]) => {
    const ratio = canvas.width / canvas.clientWidth, edge = canvas.getBoundingClientRect().x;
    const middle = (token) => { const box = token.getBoundingClientRect(); return box.x + box.width / 2 - edge; };
    const x = Math.round(ratio * (middle(first) + middle(last)) / 2);
    const {data} = canvas.getContext("2d").getImageData(x, 0, 1, canvas.height);
    const inked = Array.from({length: canvas.height}, (_, y) => data[4 * y + 3] > 0);
    return inked.filter((ink, y) => ink && !inked[y - 1]).length;
}"""


def test_two_tokens_that_look_at_each_other_have_two_arcs(show: Show) -> None:
    axis = {"encoder": tokens(("one", "other"))}
    identity = torch.eye(2)[None]
    call = av.attend(4 * identity, identity.flip(-1), identity)
    page = show(trace_of({"encoder": (Layer(call, "0"),)}, axis, axis))
    arcs = part(page, "arcs")
    line = arcs.get_by_role("option")
    drawn = arcs.locator("canvas.av-arcs")
    handles = [one.element_handle() for one in (drawn, line.nth(0), line.nth(1))]
    assert page.evaluate(CROSSINGS, handles) == 2
    expect(arcs).to_contain_text("arcs that go left are lower")


def test_a_repeated_token_tells_which_one_it_is_and_its_text_stays_the_token(show: Show, bank: Trace) -> None:
    words = part(show(bank, layer=0, head=4), "arcs").get_by_role("option")
    assert words.all_text_contents()[1:5] == ["the", "bank", "of", "the"]
    drawn = "token => getComputedStyle(token.querySelector('bdi'), '::after').content"
    assert [words.nth(place).evaluate(drawn) for place in (1, 2, 4)] == ['"1"', "none", '"2"']


def test_a_line_of_tokens_that_goes_on_fades_out_there(show: Show) -> None:
    arcs = part(show(self_attention(60), width=390), "arcs")
    expect(arcs).to_have_class(re.compile("av-more-after"))
    expect(arcs).not_to_have_class(re.compile("av-more-before"))
    arcs.locator(".av-scroll").evaluate("scroller => scroller.scrollTo(9999, 0)")
    expect(arcs).to_have_class(re.compile("av-more-before"))
    expect(arcs).not_to_have_class(re.compile("av-more-after"))


def test_layers_that_are_kept_are_called_by_their_numbers(show: Show) -> None:
    torch.manual_seed(0)
    whole = self_attention(5, layers=4)
    (stream,) = whole.streams
    layers = {stream: (whole.layers[stream][1], whole.layers[stream][3])}
    parts = (whole.queries, whole.keys, whole.output, whole.provenance)
    kept = Trace(layers, *parts, kept={stream: KeptLayers((1, 3), (0, 1, 2, 3))})
    page = show(kept, layer=3, head=1)
    expect(part(page, "grid").get_by_role("columnheader")).to_have_text(["Head", "1", "3"])
    expect(part(page, "grid").get_by_role("gridcell", selected=True)).to_have_accessible_name("Layer 3 head 1")
    expect(page.get_by_text("Head 3·1").first).to_be_visible()
    exact = [[f"{weight:.3f}" for weight in row] for row in kept.weights(3, 1)]
    assert [[read(cell) for cell in row[1:]] for row in open_table(page)] == exact
    part(page, "grid").get_by_role("gridcell", name="Layer 1 head 0").click()
    expect(page.get_by_text("Head 1·0").first).to_be_visible()
    exact = [[f"{weight:.3f}" for weight in row] for row in kept.weights(1, 0)]
    assert [[read(cell) for cell in row[1:]] for row in open_table(page)] == exact


def test_a_saved_page_of_a_text_with_an_image_shows_both_and_switches_between_them(show: Show) -> None:
    trace = shipped("shapes").trace("what colour is the circle ?", picture=av.Picture(SAMPLES["shapes-two"].path))
    page = show(trace, layer=1)
    line, picture = part(page, "arcs"), page.get_by_test_id("picture")
    row = trace.weights(1, 0, "decoder")[69]
    line.locator('[data-place="69"]').hover()
    expect(line.locator(".av-picture-chip")).to_have_attribute("data-weight", f"{float(row[1:65].sum()):.2f}")
    expect(page.get_by_label("decoder", exact=True)).to_be_checked()
    # The tower has no words, and the switch leads back.
    page.get_by_label("picture", exact=True).check()
    expect(line).to_have_count(0)
    expect(picture).to_have_count(1)
    expect(page.get_by_test_id("explorer-sentence")).to_contain_text("looks at one patch above it")
    # The row of the strongest link, by the tower's own weights.
    shown = [read(cells[-1]) for cells in open_table(page)]
    assert shown in [[f"{weight:.3f}" for weight in weights] for weights in trace.weights(1, 0, "picture")]
    assert shown not in [[f"{weight:.3f}" for weight in weights] for weights in trace.weights(1, 1, "picture")]
    page.get_by_label("decoder", exact=True).check()
    expect(line.locator(".av-picture-chip")).to_have_count(1)
    assert_nothing_overflows(page)
