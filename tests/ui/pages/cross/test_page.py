"""The Cross-attention page as a person uses it, in a real browser."""

import functools
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect
from safetensors.torch import load_file
from torch.testing import assert_close

from attention_viz.trace.trace import Trace
from tests.conftest import OpenPage, Recolour
from tests.shipped import shipped
from tests.ui.pages.explore.test_page import (
    choose,
    downloaded,
    explorer,
    parameters,
    readout,
    weights_csv,
)

Idle = Callable[[Page], None]

SENTENCE = "the boy finds the key and he sells it"
FRENCH = "le garçon trouve la clé et il la vend"
# Thirty words, of which the model knows all.
LONG = " ".join(["the small boy finds the red key and he sells it"] * 3)[: -len(" he sells it")]


@functools.cache
def translated(text: str = SENTENCE, target: str | None = None) -> Trace:
    return shipped("translation").trace(text, target=target)


def sentence(screen: Page) -> Locator:
    return screen.get_by_role("textbox", name="Sentence", exact=True)


def type_sentence(screen: Page, text: str, idle: Idle) -> None:
    sentence(screen).fill(text)
    sentence(screen).press("Control+Enter")
    idle(screen)


def alignment(screen: Page) -> list[list[str]]:
    rows = screen.get_by_test_id("alignment").locator("tbody tr")
    return [row.locator("th, td").all_inner_texts() for row in rows.all()]


def said(screen: Page) -> str:
    return screen.get_by_test_id("said").inner_text()


def type_target(screen: Page, text: str, idle: Idle) -> None:
    screen.get_by_label("Target").fill(text)
    screen.get_by_label("Target").press("Control+Enter")
    idle(screen)


def test_an_empty_address_shows_an_example_on_the_first_screen_in_light_and_dark(
    page: OpenPage, recolour: Recolour
) -> None:
    screen = page("/cross")
    for dark in (False, True):
        recolour(screen, dark)
        expect(sentence(screen)).to_have_value(SENTENCE)
        expect(screen.get_by_role("combobox", name="Model")).to_have_value("translation")
        expect(screen.get_by_text(re.compile("^Verified"))).to_be_visible()
        assert said(screen) == FRENCH
        for name in ("explorer-arcs", "explorer-grid", "explorer-heatmap", "alignment"):
            box = screen.get_by_test_id(name).bounding_box()
            assert box is not None and box["y"] + box["height"] <= 860, name
        for label in ("Weights (CSV)", "Tensors (safetensors)", "Picture (SVG)", "Explorer (HTML)"):
            expect(screen.get_by_role("button", name=label)).to_be_in_viewport()


def test_the_table_says_which_word_each_word_comes_from(stay: OpenPage) -> None:
    screen = stay("/cross")
    found = {word: source for word, source, _ in alignment(screen)}
    assert {"garçon": "boy", "trouve": "finds", "clé": "key", "vend": "sells"}.items() <= found.items()
    weights = translated().weights(0, 1, "cross")
    assert [float(weight) for _, _, weight in alignment(screen)] == pytest.approx(weights.amax(-1).tolist(), abs=5e-4)
    expect(screen.get_by_text("Each row is named by the word that this step produces")).to_be_visible()


def test_the_csv_holds_the_weights(stay: OpenPage, idle: Idle) -> None:
    screen = stay("/cross")
    choose(screen, "Head", "2", idle)
    table = weights_csv(screen)
    assert set(table.stream) == {"cross"}
    ours = table.pivot(index="query", columns="key", values="weight").to_numpy()
    assert abs(ours - translated().weights(0, 2, "cross").numpy()).max() <= 1e-6
    assert table.query_token[table.key == 0].tolist() == [*FRENCH.split(), "</s>"]


def test_the_other_downloads_are_of_the_head_on_the_screen(page: OpenPage, stay: OpenPage, tmp_path: Path) -> None:
    screen = stay("/cross?head=3")
    path = tmp_path / "tensors.safetensors"
    path.write_bytes(downloaded(screen, "Tensors (safetensors)").read_bytes())
    tensors = load_file(path)
    assert_close(tensors["query"] @ tensors["key"].T, tensors["scores"], atol=1e-5, rtol=1e-5)
    assert_close(tensors["weights"], translated().weights(0, 3, "cross"), atol=1e-6, rtol=1e-5)
    assert "cross layer 0, head 3" in downloaded(screen, "Picture (SVG)").read_text()
    file = tmp_path / "explorer.html"
    file.write_bytes(downloaded(screen, "Explorer (HTML)").read_bytes())
    offline = page(file.as_uri())
    expect(readout(offline)).to_contain_text("Layer 0 · Head 3")
    expect(offline.get_by_label("Tokens that look (queries)")).to_contain_text("garçon")


def test_what_it_is_told_to_say_names_the_rows(stay: OpenPage, idle: Idle) -> None:
    screen = stay("/cross")
    type_target(screen, "la fille vend la clé", idle)
    assert [row[0] for row in alignment(screen)] == ["la", "fille", "vend", "la", "clé", "</s>"]
    expect(screen.get_by_text("Told to say")).to_be_visible()
    assert parameters(screen)["target"] == "la fille vend la clé"
    ours = weights_csv(screen).pivot(index="query", columns="key", values="weight").to_numpy()
    expected = translated(SENTENCE, "la fille vend la clé").weights(0, 1, "cross").numpy()
    assert abs(ours - expected).max() <= 1e-6
    type_target(screen, "", idle)
    assert said(screen) == FRENCH


def test_a_link_reproduces_the_screen(page: OpenPage, stay: OpenPage, idle: Idle) -> None:
    screen = stay("/cross")
    type_sentence(screen, "the girl sees a red house", idle)
    type_target(screen, "la fille voit une maison", idle)
    screen.get_by_test_id("explorer-grid").get_by_label("Layer 0 head 3", exact=True).click()
    screen.wait_for_url(re.compile("head=3"))
    idle(screen)
    again = page(screen.url[screen.url.index("/cross") :])
    assert alignment(again) == alignment(screen)
    assert said(again) == "la fille voit une maison"
    expect(sentence(again)).to_have_value("the girl sees a red house")
    expect(readout(again)).to_contain_text("Layer 0 · Head 3")
    assert parameters(again) == parameters(screen)


def test_another_model_is_told_in_words_and_loses_nothing(page: OpenPage, idle: Idle) -> None:
    screen = page("/cross?model=all-MiniLM-L6-v2&text=my+own+words")
    expect(screen.get_by_test_id("stAlert")).to_contain_text("translation (a toy encoder–decoder)")
    expect(sentence(screen)).to_have_value("my own words")
    expect(explorer(screen)).to_have_count(0)
    screen.get_by_role("button", name=re.compile("^Show translation")).click()
    idle(screen)
    assert said(screen) == FRENCH
    screen.go_back()
    idle(screen)
    expect(sentence(screen)).to_have_value("my own words")


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("/cross?text=", "the text is empty"),
        ("/cross?target=" + "cl%C3%A9+" * 60, "the model can say at most 32"),
        ("/?model=translation&text=the+wizard", "doesn't know 1 word of the sentence"),
        ("/?model=coreference&text=the+wizard", "and reads “[UNK]” (unknown) instead"),
        ("/cross?text=the+boy+is+a+wizard+%F0%9F%91%A9", "doesn't know 2 words of the sentence"),
        ("/cross?text=the+boy&target=le+wizard", "doesn't know 1 word of the target"),
        ("/cross?text=" + "the+boy+" * 180, "reads 32 at once"),
        ("/cross?layer=99", "layer “99”"),
        ("/cross?head=4", "head “4”"),
        ("/cross?stream=foo", "stream “foo”"),
    ],
)
def test_what_cannot_be_had_is_told_in_words(stay: OpenPage, address: str, told: str) -> None:
    expect(stay(address).get_by_test_id("stAlert").first).to_contain_text(re.compile(re.escape(told), re.IGNORECASE))


def test_text_is_data_whatever_it_is_made_of(stay: OpenPage, idle: Idle) -> None:
    screen = stay("/cross")
    markup = "<img src=x onerror=document.title='x'> <b>the</b> $x$ :red[y] 👩‍👩‍👧"
    type_sentence(screen, markup, idle)
    type_target(screen, f"la {markup}"[:60], idle)
    assert screen.title() != "x"
    assert "<img" in said(screen)
    expect(explorer(screen)).to_be_visible()


@pytest.mark.parametrize("text", [SENTENCE, LONG], ids=["short", "thirty words"])
def test_on_a_narrow_screen_nothing_sticks_out(stay: OpenPage, text: str) -> None:
    screen = stay("/cross?text=" + text.replace(" ", "+"), width=390, height=844)
    assert screen.evaluate("document.documentElement.scrollWidth") <= 390
    order = [screen.get_by_test_id(name).bounding_box() for name in ("said", "explorer-arcs", "alignment")]
    tops = [box["y"] for box in order if box]
    assert tops == sorted(tops) and len(tops) == 3
    assert tops[1] <= 844
