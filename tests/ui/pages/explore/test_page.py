"""The Explore page as a person uses it, in a real browser."""

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote_plus, urlsplit

import pandas
import torch
from playwright.sync_api import Locator, Page, expect
from safetensors.torch import load_file
from torch.testing import assert_close

import attention_viz as av
from attention_viz.models.model import AttentionModel
from tests.conftest import OpenPage, Recolour
from tests.pages import exported, open_menu

BANK = "The bank of the river was flooded"
Idle = Callable[[Page], None]


def explorer(page: Page) -> Locator:
    return page.get_by_test_id("explorer")


def readout(page: Page) -> Locator:
    return page.get_by_test_id("explorer-readout")


def sentence(page: Page) -> Locator:
    return page.get_by_label("Sentence", exact=True)


def type_sentence(page: Page, text: str, idle: Idle) -> None:
    sentence(page).fill(text)
    sentence(page).press("Control+Enter")
    idle(page)


def choose(page: Page, label: str, option: str, idle: Idle) -> None:
    page.get_by_role("combobox", name=re.compile(rf"(^|\W){label}$")).click()
    page.get_by_role("option", name=option, exact=True).click()
    idle(page)


def downloaded(page: Page, label: str) -> Path:
    return exported(page, label).path()


def weights_csv(page: Page) -> pandas.DataFrame:
    return pandas.read_csv(io.BytesIO(downloaded(page, "Weights (CSV)").read_bytes()), keep_default_na=False)


def parameters(page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query, keep_blank_values=True).items()}


def test_the_first_screen_answers_without_scrolling_in_light_and_dark(open_page: OpenPage, recolour: Recolour) -> None:
    page = open_page("/")
    for dark in (False, True):
        recolour(page, dark)
        expect(sentence(page)).to_have_value(BANK)
        expect(readout(page)).to_contain_text("Head 0·4")
        expect(page.get_by_text(re.compile("^Verified"))).to_be_visible()
        for part in ("explorer-arcs", "explorer-grid", "explorer-heatmap"):
            box = page.get_by_test_id(part).bounding_box()
            assert box is not None
            assert box["y"] + box["height"] <= 860, f"{part} ends at {box['y'] + box['height']}"
        for label in ("Weights (CSV)", "Tensors (safetensors)", "Picture (SVG)", "Explorer (HTML)"):
            expect(open_menu(page, "Export").get_by_role("button", name=label)).to_be_in_viewport()
        page.keyboard.press("Escape")
        found = page.get_by_test_id("explorer-search").get_by_role("button").first.bounding_box()
        assert found is not None and found["y"] + found["height"] <= 860


def test_a_head_chosen_in_the_grid_and_a_text_typed_are_gone_back_to(stay: OpenPage, idle: Idle) -> None:
    page = stay("/?model=all-MiniLM-L6-v2&text=The+bank+of+the+river+was+flooded&layer=0&head=4")
    page.get_by_test_id("explorer-grid").get_by_label("Layer 3 head 1", exact=True).click()
    page.wait_for_url(re.compile("layer=3&head=1"))
    idle(page)
    table = weights_csv(page)
    assert (table.layer.unique().tolist(), table["head"].unique().tolist()) == ([3], [1])
    expect(page.get_by_role("combobox", name=re.compile("Layer$"))).to_have_value("Layer 3")
    type_sentence(page, "A boat drifted past", idle)
    for step, layer, head, text in (
        (page.go_back, 3, 1, BANK),
        (page.go_back, 0, 4, BANK),
        (page.go_forward, 3, 1, BANK),
        (page.go_forward, 3, 1, "A boat drifted past"),
    ):
        step()
        idle(page)
        expect(readout(page)).to_contain_text(f"Head {layer}·{head}")
        expect(sentence(page)).to_have_value(text)
        asked = parameters(page)
        assert (asked["layer"], asked["head"], asked["text"]) == (str(layer), str(head), text)


def test_every_file_is_of_the_head_on_the_screen(
    open_page: OpenPage, stay: OpenPage, eager_weights: Callable[..., Any], tmp_path: Path
) -> None:
    page = stay("/?layer=5&head=11&text=The+cat+sat+because+it+was+tired.")
    table = weights_csv(page)
    columns = "stream layer head query query_token key key_token weight query_written key_written"
    assert list(table.columns) == columns.split()
    expected = eager_weights("The cat sat because it was tired.")[5][0, 11]
    ours = table.pivot(index="query", columns="key", values="weight").to_numpy()
    assert abs(ours - expected.numpy()).max() <= 1e-5
    tensors = load_file(downloaded(page, "Tensors (safetensors)"))
    assert_close(tensors["query"] @ tensors["key"].T, tensors["scores"], atol=1e-5, rtol=1e-5)
    assert_close(tensors["masked"].softmax(-1), tensors["weights"], atol=1e-6, rtol=1e-5)
    assert_close(tensors["weights"] @ tensors["value"], tensors["output"], atol=1e-5, rtol=1e-5)
    assert_close(tensors["weights"], expected, atol=1e-5, rtol=1e-4)
    picture = downloaded(page, "Picture (SVG)").read_text()
    assert picture.startswith("<svg") and "layer 5, head 11" in picture
    file = tmp_path / "explorer.html"
    file.write_bytes(downloaded(page, "Explorer (HTML)").read_bytes())
    offline = open_page(file.as_uri())
    expect(readout(offline)).to_contain_text("Head 5·11")


def test_text_is_data_whatever_it_is_made_of(stay: OpenPage, idle: Idle) -> None:
    page = stay("/")
    markup = "<script>document.title='x'</script> <img src=x onerror=document.title='x'>"
    text = f"{markup} 👩‍👩‍👧 عربي e\u0301 \u202e =cmd() $x$ :red[y]"
    type_sentence(page, text, idle)
    expect(explorer(page)).to_be_visible()
    assert page.title() != "x"
    assert not any(str(token).startswith(("=", "+", "-", "@")) for token in weights_csv(page).query_token)


def test_a_file_that_is_no_trace_is_refused_and_a_trace_saved_elsewhere_is_opened_and_closed(
    open_page: OpenPage, idle: Idle, tmp_path: Path
) -> None:
    other, mine = tmp_path / "other.safetensors", tmp_path / "mine.safetensors"
    other.write_bytes(b"not a safetensors file at all")
    av.scratch("A trace of my own", d_model=12, heads=3, seed=5).save(mine)
    page = open_page("/")
    page.get_by_role("button", name="Open a trace").click()
    page.locator("input[type=file]").set_input_files(other)
    idle(page)
    expect(page.get_by_test_id("stAlert")).to_contain_text("Can't open this file")
    expect(explorer(page)).to_be_visible()
    page.locator("input[type=file]").last.set_input_files(mine)
    idle(page)
    file = page.get_by_role("button", name="From a file")
    file.click()
    expect(page.get_by_test_id("stPopoverBody")).to_contain_text("A trace of my own")
    page.keyboard.press("Escape")
    expect(sentence(page)).to_have_value("A trace of my own")
    model = page.get_by_role("combobox", name="Model")
    expect(model).to_have_value("scratch (a file)")
    expect(open_menu(page, "Options")).to_contain_text("1 layer × 3 heads")
    page.keyboard.press("Escape")
    expect(page.get_by_text(re.compile("^Not verified here"))).to_be_visible()
    assert weights_csv(page).query_token.unique().tolist() == ["A", "trace", "of", "my", "own"]
    file.click()
    page.get_by_role("button", name="Close it").click()
    idle(page)
    expect(sentence(page)).to_have_value(BANK)
    expect(model).to_have_value("all-MiniLM-L6-v2")


def test_on_a_narrow_screen_nothing_sticks_out_in_light_and_dark(open_page: OpenPage, recolour: Recolour) -> None:
    page = open_page("/", width=390, height=844)
    arcs = page.get_by_test_id("explorer-arcs").bounding_box()
    assert arcs is not None and arcs["y"] + 130 <= 844, "they stand on the first screen"
    for dark in (False, True):
        recolour(page, dark)
        expect(explorer(page)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        box = explorer(page).bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390


def test_of_a_long_text_the_numbers_of_each_head_that_is_chosen_come_from_the_server(
    open_page: OpenPage, smollm2: av.AttentionModel
) -> None:
    """Its bytes hold small pictures alone: the numbers of each head are handed over beside it."""
    text = " ".join(f"Bird {count} sings in tree {count % 7}." for count in range(34))
    trace = smollm2.trace(text)
    page = open_page(f"/?model=SmolLM2-135M-Instruct&text={quote_plus(text)}&layer=3&head=2")
    for layer, head in ((3, 2), (11, 5)):
        page.get_by_test_id("explorer-grid").get_by_label(f"Layer {layer} head {head}", exact=True).click()
        expect(page.get_by_test_id("explorer-blocks")).to_have_text("Each weight exact to 0.00001")
        # Between words: neither signs nor the first token, at which heads rest, are looked at.
        said = torch.tensor([any(sign.isalnum() for sign in label) for label in trace.query_tokens().texts])
        weights = trace.weights(layer, head).clone().fill_diagonal_(0)
        weights[~said], weights[:, ~said], weights[:, 0] = 0, 0, 0
        best = weights.flatten().sort(descending=True).values[:5]
        links = page.get_by_test_id("explorer-bars").locator("li .av-number")
        expect(links).to_contain_text([f"{weight:.2f}" for weight in best])
    # To find the link that slides begin with takes as long as the head itself: it waits until somebody wants them.
    expect(page.locator(".st-key-slides")).to_have_count(0)
    page.get_by_role("button", name="Present").click()
    expect(page.locator("dialog.av-present")).to_contain_text("layer 11, head 5", ignore_case=True)
    beside = open_page(page.url)
    expect(beside.locator("dialog.av-present")).to_contain_text("layer 11, head 5", ignore_case=True)


def test_a_word_pressed_is_told_by_what_it_looks_at_in_headline_address_and_on_the_next_page(
    stay: OpenPage, idle: Idle, minilm: AttentionModel
) -> None:
    text = "The+cat+sat+on+the+mat+because+it+was+tired"
    page = stay(f"/?model=all-MiniLM-L6-v2&text={text}&layer=3&head=1")
    claim = page.get_by_test_id("explorer-sentence")
    expect(claim).to_contain_text("“it” looks back at “cat”")
    weights = minilm.trace(text.replace("+", " ")).weights(3, 1)
    mat = 6
    words = [key for key in range(1, 11) if key != mat]
    best = max(words, key=lambda key: float(weights[mat, key]))
    token = page.get_by_test_id("explorer-arcs").get_by_role("option", name="mat")
    token.click()
    page.mouse.move(5, 5)
    expect(claim).to_contain_text(f"“mat” looks at “{text.lower().split('+')[best - 1]}”")
    expect(page).to_have_url(re.compile(f"query={mat}&key={best}"))
    idle(page)
    page.go_back()
    expect(claim).to_contain_text("“it” looks back at “cat”")
    expect(token).to_have_attribute("aria-selected", "false")
    idle(page)
    token.click()
    page.get_by_test_id("explorer-matters").click()
    page.get_by_role("button", name="More on Heads").click()
    expect(page).to_have_url(re.compile(rf"/heads\?.*query={mat}&key={best}.*silence=on"))
    idle(page)
    page.go_back()
    expect(claim).to_contain_text("“mat” looks at")
    expect(page).not_to_have_url(re.compile("/heads"))
