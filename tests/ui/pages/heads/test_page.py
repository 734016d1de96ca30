"""The Heads page as a person uses it, in a real browser."""

import io
import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlencode, urlsplit

import numpy
import pandas
import pytest
import torch
from playwright.sync_api import Locator, Page, expect

import attention_viz as av
from attention_viz.analysis.likeness import similarity
from attention_viz.analysis.metrics import metrics_in
from attention_viz.analysis.roles import roles_for
from attention_viz.models.model import AttentionModel
from attention_viz.trace.kind import Unit
from attention_viz.trace.spelling import weight_text
from attention_viz.trace.trace import Trace
from attention_viz.ui.address.cells import from_code
from attention_viz.views import head_map
from tests.conftest import OpenPage
from tests.pages import exported

Idle = Callable[[Page], None]
BANK, CAT = "The bank of the river was flooded", "The cat sat because it was tired."
# All that another test may have left: what an address doesn't name stays as it was.
PLAIN = {
    "text": BANK,
    "metric": "entropy",
    "view": "colours",
    "plot": "weights",
    "silence": "off",
    "beside": "previous",
    "search": "words",
    "query": "bank",
}
PLAIN |= {"key": "river", "layer": "0", "head": "4", "model": "all-MiniLM-L6-v2"}


def plain_but(**other: str) -> str:
    """The address of the plain page, but for what is given."""
    return f"/heads?{urlencode(PLAIN | other)}"


@pytest.fixture(scope="module")
def bank(minilm: AttentionModel) -> Trace:
    return minilm.trace(BANK)


@pytest.fixture(scope="module")
def table(bank: Trace) -> pandas.DataFrame:
    return av.head_table(bank)


def parameters(page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query, keep_blank_values=True).items()}


def across(table: pandas.DataFrame) -> pandas.DataFrame:
    """The heads in the atlas's order: row by row, with layers from left to right."""
    return table.sort_index(level=["head", "layer"])


def cell(page: Page, layer: int, head: int) -> Locator:
    return page.locator(f'[data-testid="atlas"] [data-layer="{layer}"][data-head="{head}"]')


def choose(page: Page, label: str, option: str, idle: Idle) -> None:
    page.get_by_role("combobox", name=re.compile(rf"(^|\W){label}$")).click()
    page.get_by_role("option", name=option, exact=True).click()
    idle(page)


def switch(page: Page, name: str, idle: Idle) -> None:
    page.get_by_role("radio", name=name, exact=True).click()
    idle(page)


def click_point(page: Page, key: str, number: int, idle: Idle) -> None:
    """Click one of the points of a scatter."""
    point = page.locator(f".st-key-{key} .scatterlayer .point").nth(number)
    point.wait_for()
    box = point.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    idle(page)


def chosen(page: Page) -> tuple[int, int]:
    told = parameters(page)
    return int(told["layer"]), int(told["head"])


def test_the_first_screen_shows_what_all_heads_do_and_the_chosen_one(
    open_page: OpenPage, bank: Trace, table: pandas.DataFrame
) -> None:
    page = open_page("/heads")
    expect(page.get_by_text(re.compile("^Verified"))).to_be_visible()
    for place in (page.get_by_test_id("atlas"), page.locator(".st-key-heads-one canvas").first):
        box = place.bounding_box()
        assert box is not None and box["y"] + box["height"] <= 860
    jobs = av.roles(bank)
    cells = page.locator('[data-testid="atlas"] .av-cell')
    expect(cells).to_have_count(72)
    jobs = across(jobs)
    written = [
        "" if role == "mixed" else f"{score:.2f}" for role, score in zip(jobs["role"], jobs["score"], strict=True)
    ]
    assert [one.strip() for one in cells.all_inner_texts()] == written
    named = sum(av.ROLES[role].job for role in jobs["role"])
    resting = (jobs["role"] == "first").sum()
    sinks = f"{resting} use [CLS] and [SEP] as sinks."
    claim = f"{named} of the 72 heads of all-MiniLM-L6-v2 have a clear role here; {sinks}"
    expect(page.get_by_role("heading", name=claim)).to_be_visible()
    names = page.locator(".av-role-name").evaluate_all("all => all.map(one => one.dataset.role)")
    # Roles that no head has come last, in a line each.
    assert names == sorted(roles_for(Unit.WORD), key=lambda name: name not in jobs["role"].tolist())
    vacant = page.locator(".av-vacant")
    expect(vacant).to_have_count(sum(name not in jobs["role"].tolist() for name in names))
    assert all((box := one.bounding_box()) is not None and box["height"] <= 30 for one in vacant.all())
    for name in names:
        ranked = jobs[jobs["role"] == name].sort_values("score", ascending=False, kind="stable").index[:5]
        card = page.locator(".av-role", has=page.locator(f'[data-role="{name}"]'))
        expect(card.locator(".av-count")).to_have_text(str((jobs["role"] == name).sum()))
        shown = card.locator(".av-best").evaluate_all("all => all.map(one => one.dataset.place)")
        assert shown == [f"{layer} {head}" for layer, head in ranked], name
    taken = pandas.read_csv(io.BytesIO(exported(page, "Head table (CSV)").path().read_bytes())).set_index(
        ["layer", "head"]
    )
    assert list(taken.columns) == list(table.columns)
    assert numpy.allclose(taken.to_numpy(), table.to_numpy(), atol=1e-5, equal_nan=True)


def test_a_role_lets_its_heads_stand_out_and_its_best_head_is_chosen_by_a_press(
    stay: OpenPage, idle: Idle, bank: Trace
) -> None:
    page = stay(plain_but(view="roles"))
    jobs = av.roles(bank)
    page.locator('[data-role="next"]').click()
    idle(page)
    assert parameters(page)["role"] == "next"
    dim = page.locator('[data-testid="atlas"] .av-cell.av-dim')
    expect(dim).to_have_count(int((jobs["role"] != "next").sum()))
    page.locator('[data-role="next"]').click()
    expect(dim).to_have_count(0)
    idle(page)
    assert "role" not in parameters(page)
    layer, head = jobs[jobs["role"] == "next"]["score"].idxmax()
    page.get_by_role("button", name=f"Layer {layer} head {head}: ").click()
    idle(page)
    assert chosen(page) == (layer, head)


def test_a_rows_token_chooses_its_strongest_key(stay: OpenPage, idle: Idle, bank: Trace) -> None:
    page = stay(plain_but(layer="0", head="4"))
    stage = page.locator(".st-key-heads-one .av-stage")
    box = stage.bounding_box()
    assert box is not None
    tokens = bank.query_tokens().labels
    # The lowest row is that of [SEP], and "flooded" is above it.
    low = box["y"] + box["height"] - 4 - 1.5 * (box["height"] - 68) / len(tokens)
    page.mouse.click(box["x"] + 20, low)
    idle(page)
    query = len(tokens) - 2
    assert parameters(page)["query"] == str(query)
    assert parameters(page)["key"] == str(int(bank.weights(0, 4)[query].argmax()))


def test_a_head_that_is_pointed_at_is_drawn_as_the_chosen_one_and_opens(
    stay: OpenPage, idle: Idle, bank: Trace
) -> None:
    page = stay(plain_but())
    cell(page, 3, 7).hover()
    card = page.get_by_role("group", name="Layer 3, head 7")
    matrix = card.get_by_role("img", name="Pattern: queries down")
    expect(matrix).to_be_visible()
    expect(card).to_contain_text("Queries ↓ Keys →")
    # Where the chosen head's matrix is, and as large: a click moves nothing.
    boxes = [
        one.bounding_box() for one in (matrix.locator("canvas").first, page.locator(".st-key-heads-one canvas").first)
    ]
    assert boxes[0] is not None and boxes[1] is not None
    assert all(abs(boxes[0][side] - boxes[1][side]) < 2 for side in ("x", "y", "width", "height"))
    own = page.locator(".heads-metrics")
    own.locator("summary").click()
    rows = av.head_table(bank).loc[(0, 4)]
    for name in metrics_in("softmax"):
        metric = av.METRICS[name]
        value = rows[name]
        row = own.get_by_role("row", name=re.compile(f"^{re.escape(metric.label)}"))
        expect(row).to_have_count(0 if numpy.isnan(value) else 1)
        if not numpy.isnan(value):
            expect(row).to_contain_text(f"{value:.2f}".replace("-", "−"))
    cell(page, 3, 7).hover()
    # It stands in the place of the chosen head, and covers nothing else; the pointer leaves, and that comes back.
    told, place = (one.bounding_box() for one in (card, page.locator(".st-key-heads-one-head")))
    assert told is not None and place is not None
    assert abs(told["x"] - place["x"]) < 1 and abs(told["width"] - place["width"]) < 1
    page.get_by_role("heading", level=3).first.hover()
    expect(card).to_be_hidden()
    address = page.get_by_role("link", name="In Explore").get_attribute("href") or ""
    assert {"layer": ["0"], "head": ["4"], "text": [BANK]}.items() <= parse_qs(urlsplit(address).query).items()
    assert urlsplit(address).path in ("", "/")
    cell(page, 3, 7).click()
    idle(page)
    assert chosen(page) == (3, 7)
    expect(page.locator(".st-key-heads-one-title").get_by_text("Layer 3, head 7")).to_be_visible()
    expect(card).to_be_hidden()
    expect(cell(page, 3, 7)).to_have_attribute("aria-selected", "true")
    # Once in many runs on a busy machine Streamlit puts the component in anew after the click; the focus is gone then.
    if not page.evaluate("document.activeElement?.shadowRoot?.activeElement?.dataset.head"):
        cell(page, 3, 7).focus()
    for key in ("ArrowDown", "ArrowLeft"):
        page.keyboard.press(key)
    expect(page.get_by_role("group", name="Layer 2, head 8")).to_be_visible()
    assert chosen(page) == (3, 7)
    page.keyboard.press("Enter")
    idle(page)
    assert chosen(page) == (2, 8)
    page.keyboard.press("Escape")
    expect(page.get_by_role("group", name="Layer 2, head 8")).to_be_hidden()
    cell(page, 5, 6).dblclick()
    page.wait_for_url(re.compile(r"/\?.*layer=5&head=6"))
    idle(page)
    expect(page.get_by_test_id("explorer")).to_be_visible()


def test_a_click_in_either_scatter_chooses_the_head(
    stay: OpenPage, idle: Idle, bank: Trace, table: pandas.DataFrame
) -> None:
    page = stay(plain_but(metric="previous", beside="entropy", view="scatter"))
    most = int(table["previous"].to_numpy().argmax())
    click_point(page, "heads-scatter", most, idle)
    assert chosen(page) == divmod(most, 12)
    points = head_map(bank).data[0]
    places = numpy.stack([points.x, points.y], axis=1)
    apart = numpy.linalg.norm(places[:, None] - places, axis=-1) + 9 * numpy.eye(len(places))
    alone = int(apart.min(axis=1).argmax())
    page = stay(plain_but(view="map"))
    click_point(page, "heads-map", alone, idle)
    assert chosen(page) == divmod(alone, 12)
    expect(page.locator(".st-key-heads-one .av-stage")).to_be_visible()


def test_a_metric_changes_the_colours_and_the_address_which_reproduces_them(
    stay: OpenPage, idle: Idle, table: pandas.DataFrame
) -> None:
    page = stay(plain_but())
    cells = page.locator('[data-testid="atlas"] .av-cell')
    choose(page, "Metric", "Previous token", idle)
    expect(cells).to_have_text([weight_text(value) for value in across(table)["previous"]], use_inner_text=True)
    switch(page, "Patterns", idle)
    assert parameters(page)["metric"] == "previous" and parameters(page)["view"] == "patterns"
    expect(cells.first.locator("canvas")).to_be_visible()
    expect(cells).to_have_text([""] * 72, use_inner_text=True)
    page.go_back()
    idle(page)
    expect(cells).to_have_text([weight_text(value) for value in across(table)["previous"]], use_inner_text=True)
    page.go_back()
    idle(page)
    expect(cells).to_have_text([weight_text(value) for value in across(table)["entropy"]], use_inner_text=True)


def test_heads_are_found_by_words_by_a_detector_and_by_a_drawn_pattern(
    stay: OpenPage, idle: Idle, bank: Trace, table: pandas.DataFrame
) -> None:
    page = stay(plain_but(query="flooded", key="mat"))
    expect(page.get_by_text("The word “mat” isn't in this text")).to_be_visible()
    switch(page, "Detector", idle)
    layer, head = table["previous"].idxmax()
    best = f"layer {layer}, head {head}: previous token {table['previous'].max():.3f}."
    expect(page.get_by_text(best)).to_be_visible()
    switch(page, "Pattern", idle)
    expect(page.get_by_text("Mark cells on the matrix")).to_be_visible()
    page.locator(".st-key-heads-one .nsewdrag").first.scroll_into_view_if_needed()
    area = page.locator(".st-key-heads-one .nsewdrag").first.bounding_box()
    assert area is not None
    page.mouse.click(area["x"] + 5.5 / 9 * area["width"], area["y"] + 2.5 / 9 * area["height"])
    page.wait_for_url(re.compile("pattern="))
    idle(page)
    cells = from_code(parameters(page)["pattern"], 9)
    assert numpy.argwhere(cells).tolist() == [[2, 5]]
    alike = similarity(bank, torch.from_numpy(cells).float())
    layer, head = divmod(int(alike.argmax()), 12)
    found = f"layer {layer}, head {head} is most similar to the pattern: {float(alike.max()):.3f}"
    expect(page.get_by_text(found)).to_be_visible()
    page.get_by_role("button", name="Strongest cells").click()
    idle(page)
    assert from_code(parameters(page)["pattern"], 9).sum() == 7  # each word's, without the two that were added
    page.get_by_role("button", name="Clear", exact=True).click()
    idle(page)
    assert "pattern" not in parameters(page)


def test_over_more_texts_numbers_are_means_and_words_are_looked_for_in_all(
    stay: OpenPage, idle: Idle, minilm: AttentionModel
) -> None:
    texts = ["A river bank.", "Nothing of the kind here."]
    page = stay(plain_but(texts="\n".join(texts)))
    traces = [minilm.trace(text) for text in (BANK, *texts)]
    mean = av.head_table(traces)
    cells = page.locator('[data-testid="atlas"] .av-cell')
    assert cells.all_inner_texts() == [weight_text(value) for value in across(mean)["entropy"]]
    expect(page.get_by_text("Numbers are means over 3 texts")).to_be_visible()
    top = av.find_heads(traces, "bank", "river").iloc[0]
    expect(page.get_by_text(f"2 of the 3 texts have both words. On these, layer {top['layer']:.0f}")).to_be_visible()
    cell(page, 1, 2).click()
    idle(page)
    told = f"{mean.loc[(1, 2), 'entropy']:.2f} ± {mean.loc[(1, 2), 'entropy_spread']:.2f}"
    expect(page.locator(".heads-metrics")).to_contain_text(told)


@pytest.mark.parametrize(
    ("address", "heads"),
    [
        ("model=induction&text=moon+ring+moon+ring&view=patterns", 8),
        ("model=scratch&text=boat&view=colours&heads=2", 2),
        ("model=translation&stream=cross&view=colours", None),
        ("model=translation&stream=cross&view=map", 0),
    ],
)
def test_other_models_are_shown(stay: OpenPage, address: str, heads: int | None) -> None:
    page = stay(f"/heads?{address}&metric=entropy&search=words")
    cells = page.locator('[data-testid="atlas"] .av-cell')
    if heads is None:
        table = av.head_table(av.load("translation").trace(parameters(page)["text"]), "cross")
        assert cells.all_inner_texts() == [weight_text(value) for value in across(table)["entropy"]]
    elif heads:
        expect(cells).to_have_count(heads)
    else:
        page.locator(".st-key-heads-map .nsewdrag").first.wait_for()


def test_on_a_narrow_screen_nothing_sticks_out(stay: OpenPage, idle: Idle) -> None:
    for words in (1, 300):
        page = stay(plain_but(text=" ".join(["boat"] * words), view="patterns"), width=390, height=844)
        expect(page.locator('[data-testid="atlas"] .av-cell')).to_have_count(72)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_test_id("atlas").scroll_into_view_if_needed()
    cell(page, 2, 11).focus()
    # The longer side of all heads goes down there.
    page.keyboard.press("ArrowUp")
    card = page.get_by_role("group", name="Layer 2, head 10").bounding_box()
    assert card is not None and card["x"] >= 0 and card["x"] + card["width"] <= 390
