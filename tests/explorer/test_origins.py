"""Two sentences, and what a decoder says of its own, are told apart: in lines, in the legend's words, to the ear."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

import attention_viz as av
from attention_viz.explorer import pack
from attention_viz.explorer.packet import read_packet
from attention_viz.inputs.media.shapes import DRAWN, draw_shapes
from attention_viz.trace.trace import Trace
from tests.shipped import shipped

Show = Callable[..., Page]


@pytest.fixture(scope="module")
def pair(model: av.AttentionModel) -> Trace:
    return model.trace("The bank", "of the river")


@pytest.fixture(scope="module")
def continued() -> Trace:
    *_, trace = shipped("induction").generate("moon cheese frog moon", 2)
    return trace


def token(page: Page, name: str) -> Locator:
    return page.get_by_test_id("explorer-arcs").get_by_role("option", name=name, exact=True)


def test_the_browser_is_told_which_tokens_belong_where(pair: Trace, continued: Trace, bank: Trace) -> None:
    assert read_packet(pack(pair))[0]["axes"][0]["sentences"] == [[1, 2], [4, 5, 6]]
    assert read_packet(pack(continued))[0]["axes"][0]["generated"] == [5, 6]
    (axis,) = read_packet(pack(bank))[0]["axes"]
    assert set(axis) == {"labels", "spelling", "special", "padding"}


def test_a_generated_token_shows_the_probability_that_it_had(show: Show, continued: Trace) -> None:
    expected = shipped("induction").chances(continued)["probability"].to_list()
    assert read_packet(pack(continued))[0]["axes"][0]["chances"] == pytest.approx(expected, rel=1e-3)
    assert "chances" not in read_packet(pack(av.merge_words(continued)))[0]["axes"][0]
    page = show(continued)
    titles = page.get_by_test_id("explorer-arcs").locator(".av-token").evaluate_all("all => all.map(one => one.title)")
    typed, made = titles[:-2], titles[-2:]
    assert made == [
        f"{word}, generated with probability {one:.2f}" for word, one in zip(("cheese", "frog"), expected, strict=True)
    ]
    assert not any("generated" in one for one in typed)


def test_each_token_of_a_pair_says_its_sentence(show: Show, pair: Trace) -> None:
    page = show(pair)
    for name in ("bank, first sentence", "river, second sentence", "the (occurrence 2), second sentence"):
        expect(token(page, name)).to_be_visible()
    lines = [
        token(page, name).evaluate("node => getComputedStyle(node).textDecorationStyle")
        for name in ("bank, first sentence", "river, second sentence")
    ]
    assert lines == ["solid", "dashed"]
    legend = page.get_by_test_id("explorer-legend")
    expect(legend).to_contain_text("first sentence")
    expect(legend).to_contain_text("second sentence")
    page.get_by_test_id("explorer-table").locator("summary").click()
    caption = page.get_by_test_id("explorer-table").locator("caption")
    expect(caption).to_contain_text("first sentence: positions 1 to 2; second sentence: positions 4 to 6")


def test_what_the_model_says_is_marked_as_its_own(show: Show, continued: Trace) -> None:
    page = show(continued, layer=1, head=1)
    expect(page.get_by_test_id("explorer-legend")).to_contain_text("generated")
    expect(page.get_by_test_id("explorer-arcs").get_by_role("option", name="generated")).to_have_count(2)


def test_a_single_sentence_needs_no_words_for_it(show: Show, bank: Trace) -> None:
    page = show(bank)
    expect(token(page, "river")).to_be_visible()
    expect(page.get_by_test_id("explorer-legend")).not_to_contain_text("sentence")


def test_words_generated_beside_an_image_are_marked_and_its_patches_arent() -> None:
    picture = draw_shapes(DRAWN["shapes-two"])
    *_, trace = shipped("shapes").generate("<image>what is red ?", 2, picture=picture)
    assert trace.provenance.generated == 2
    header = read_packet(pack(trace))[0]
    words = len(trace.query_tokens("decoder"))
    axes = {len(one["labels"]): one for one in header["axes"]}
    assert axes.keys() == {64, words}
    assert axes[words]["generated"] == [words - 2, words - 1] and "generated" not in axes[64]
