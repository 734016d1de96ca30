"""The Explore page as a person uses it, in a real browser."""

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pandas
import pytest
from playwright.sync_api import Locator, Page, expect
from safetensors.torch import load_file
from torch.testing import assert_close

import attention_viz as av
from tests.conftest import OpenPage, Recolour

BANK = "The bank of the river was flooded"
LINK = "/?model=all-MiniLM-L6-v2&text=The+bank+of+the+river+was+flooded&layer=0&head=4"
Idle = Callable[[Page], None]


def explorer(screen: Page) -> Locator:
    return screen.get_by_test_id("explorer")


def readout(screen: Page) -> Locator:
    return screen.get_by_test_id("explorer-readout")


def sentence(screen: Page) -> Locator:
    return screen.get_by_label("Sentence", exact=True)


def type_sentence(screen: Page, text: str, idle: Idle) -> None:
    sentence(screen).fill(text)
    sentence(screen).press("Control+Enter")
    idle(screen)


def choose(screen: Page, label: str, option: str, idle: Idle) -> None:
    screen.get_by_role("combobox", name=re.compile(rf"(^|\W){label}$")).click()
    screen.get_by_role("option", name=option, exact=True).click()
    idle(screen)


def downloaded(screen: Page, label: str) -> Path:
    with screen.expect_download() as download:
        screen.get_by_role("button", name=label).click()
    return download.value.path()


def weights_csv(screen: Page) -> pandas.DataFrame:
    return pandas.read_csv(io.BytesIO(downloaded(screen, "Weights (CSV)").read_bytes()), keep_default_na=False)


def parameters(screen: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(screen.url).query, keep_blank_values=True).items()}


def test_the_first_screen_answers_without_scrolling_in_light_and_dark(page: OpenPage, recolour: Recolour) -> None:
    screen = page("/")
    for dark in (False, True):
        recolour(screen, dark)
        expect(sentence(screen)).to_have_value(BANK)
        expect(readout(screen)).to_contain_text("Layer 0 · Head 4")
        expect(screen.get_by_text(re.compile("^Verified"))).to_be_visible()
        for part in ("explorer-arcs", "explorer-grid", "explorer-heatmap"):
            box = screen.get_by_test_id(part).bounding_box()
            assert box is not None
            assert box["y"] + box["height"] <= 860, f"{part} ends at {box['y'] + box['height']}"
        for label in ("Weights (CSV)", "Tensors (safetensors)", "Picture (SVG)", "Explorer (HTML)"):
            expect(screen.get_by_role("button", name=label)).to_be_in_viewport()
        found = screen.get_by_test_id("explorer-search").get_by_role("button").last.bounding_box()
        assert found is not None and found["y"] + found["height"] <= 860


def test_on_a_narrow_screen_the_arcs_stand_on_the_first_screen(stay: OpenPage) -> None:
    box = stay("/", width=390, height=844).get_by_test_id("explorer-arcs").bounding_box()
    assert box is not None and box["y"] + 130 <= 844


def test_back_and_forward_show_what_the_address_says(page: OpenPage, idle: Idle) -> None:
    screen = page(LINK)
    for layer, head in ((3, 1), (5, 6)):
        screen.get_by_test_id("explorer-grid").get_by_label(f"Layer {layer} head {head}", exact=True).click()
        screen.wait_for_url(re.compile(f"layer={layer}&head={head}"))
        idle(screen)
    type_sentence(screen, "A boat drifted past", idle)
    for step, layer, head, text in (
        (screen.go_back, 5, 6, BANK),
        (screen.go_back, 3, 1, BANK),
        (screen.go_back, 0, 4, BANK),
        (screen.go_forward, 3, 1, BANK),
        (screen.go_forward, 5, 6, BANK),
        (screen.go_forward, 5, 6, "A boat drifted past"),
    ):
        step()
        idle(screen)
        expect(readout(screen)).to_contain_text(f"Layer {layer} · Head {head}")
        expect(sentence(screen)).to_have_value(text)
        asked = parameters(screen)
        assert (asked["layer"], asked["head"], asked["text"]) == (str(layer), str(head), text)


def test_a_link_reproduces_the_screen_and_its_numbers(page: OpenPage) -> None:
    screen = page(LINK)
    table = weights_csv(screen)
    weight = table.set_index(["query_token", "key_token"])["weight"]
    assert weight["bank", "river"] == pytest.approx(0.580, abs=5e-4)
    assert weight["bank", "flooded"] == pytest.approx(0.164, abs=5e-4)
    assert parameters(screen) == {"model": "all-MiniLM-L6-v2", "text": BANK, "layer": "0", "head": "4"}


def test_the_csv_equals_plain_eager_transformers(stay: OpenPage, eager_weights: Callable[..., Any]) -> None:
    text = "The cat sat because it was tired."
    screen = stay("/?layer=5&head=11&text=The+cat+sat+because+it+was+tired.")
    table = weights_csv(screen)
    assert list(table.columns) == "stream layer head query query_token key key_token weight".split()
    expected = eager_weights(text)[5][0, 11]
    ours = table.pivot(index="query", columns="key", values="weight").to_numpy()
    assert abs(ours - expected.numpy()).max() <= 1e-5


def test_a_head_chosen_in_the_grid_reaches_address_pickers_and_downloads(stay: OpenPage, idle: Idle) -> None:
    screen = stay("/")
    screen.get_by_test_id("explorer-grid").get_by_label("Layer 3 head 1", exact=False).first.click()
    expect(readout(screen)).to_contain_text("Layer 3 · Head 1")
    screen.wait_for_url(re.compile("layer=3"))
    idle(screen)
    assert parameters(screen)["head"] == "1"
    table = weights_csv(screen)
    assert (table.layer.unique().tolist(), table["head"].unique().tolist()) == ([3], [1])


def test_the_pickers_reach_the_explorer(stay: OpenPage, idle: Idle) -> None:
    screen = stay("/")
    choose(screen, "Layer", "5", idle)
    choose(screen, "Head", "6", idle)
    expect(readout(screen)).to_contain_text("Layer 5 · Head 6")
    assert (parameters(screen)["layer"], parameters(screen)["head"]) == ("5", "6")


def test_a_new_sentence_keeps_layer_and_head(stay: OpenPage, idle: Idle) -> None:
    screen = stay("/?layer=2&head=7")
    type_sentence(screen, "A boat drifted past the old mill", idle)
    expect(readout(screen)).to_contain_text("Layer 2 · Head 7")
    assert parameters(screen)["text"] == "A boat drifted past the old mill"
    assert "mill" in set(weights_csv(screen).query_token)


def test_our_own_module_stands_beside_the_pretrained_one(stay: OpenPage, idle: Idle) -> None:
    screen = stay("/?text=The+cat+sat+on+mat")
    choose(screen, "Model", "scratch", idle)
    expect(screen.get_by_text(re.compile("^Verified"))).to_be_visible()
    before = weights_csv(screen).weight.tolist()
    assert len(before) == 25
    screen.get_by_label("Seed", exact=True).fill("3")
    screen.get_by_label("Seed", exact=True).press("Enter")
    idle(screen)
    assert weights_csv(screen).weight.tolist() != before
    assert parameters(screen)["seed"] == "3"


def test_a_width_that_the_heads_cannot_share_is_refused_in_words(stay: OpenPage) -> None:
    screen = stay("/?model=scratch&d_model=7&heads=2&text=The+cat")
    alert = screen.get_by_test_id("stAlert")
    expect(alert).to_contain_text("7")
    expect(alert).to_contain_text("2")
    expect(sentence(screen)).to_have_value("The cat")


def test_the_tensors_multiply_up_to_the_output(stay: OpenPage, tmp_path: Path) -> None:
    screen = stay(LINK)
    path = tmp_path / "tensors.safetensors"
    path.write_bytes(downloaded(screen, "Tensors (safetensors)").read_bytes())
    tensors = load_file(path)
    assert_close(tensors["query"] @ tensors["key"].T, tensors["scores"], atol=1e-5, rtol=1e-5)
    assert_close(tensors["masked"].softmax(-1), tensors["weights"], atol=1e-6, rtol=1e-5)
    assert_close(tensors["weights"] @ tensors["value"], tensors["output"], atol=1e-5, rtol=1e-5)


def test_the_picture_and_the_single_file_are_of_the_head_on_the_screen(
    page: OpenPage, stay: OpenPage, tmp_path: Path
) -> None:
    screen = stay("/?layer=5&head=6")
    picture = downloaded(screen, "Picture (SVG)").read_text()
    assert "layer 5, head 6" in picture
    assert picture.startswith("<svg")
    file = tmp_path / "explorer.html"
    file.write_bytes(downloaded(screen, "Explorer (HTML)").read_bytes())
    offline = page(file.as_uri())
    expect(readout(offline)).to_contain_text("Layer 5 · Head 6")


@pytest.mark.parametrize("text", ["", "   \n ", "\u200b\u0007"])
def test_a_text_with_nothing_to_read_gets_a_message_in_its_place(stay: OpenPage, idle: Idle, text: str) -> None:
    screen = stay("/")
    type_sentence(screen, text, idle)
    expect(screen.get_by_test_id("stAlert")).to_be_visible()
    expect(explorer(screen)).to_have_count(0)
    type_sentence(screen, "now a word", idle)
    expect(explorer(screen)).to_be_visible()


def test_one_token_is_drawn(stay: OpenPage) -> None:
    screen = stay("/?model=scratch&text=bank&head=0")
    expect(explorer(screen)).to_be_visible()
    assert weights_csv(screen).weight.tolist() == [1.0]


def test_three_thousand_words_name_the_limit_and_stay_in_the_box(page: OpenPage, idle: Idle) -> None:
    screen = page("/")
    text = " ".join(f"word{number}" for number in range(3000))
    type_sentence(screen, text, idle)
    alert = screen.get_by_test_id("stAlert")
    expect(alert).to_contain_text("512")
    expect(alert).to_contain_text("word")
    expect(sentence(screen)).to_have_value(text)
    expect(explorer(screen)).to_be_visible()
    assert "text" not in parameters(screen)
    expect(screen.get_by_text("too long for a link")).to_be_visible()


def test_text_is_data_whatever_it_is_made_of(stay: OpenPage, idle: Idle) -> None:
    screen = stay("/")
    markup = "<script>document.title='x'</script> <img src=x onerror=document.title='x'>"
    text = f"{markup} 👩‍👩‍👧 عربي e\u0301 \u202e =cmd() $x$ :red[y]"
    type_sentence(screen, text, idle)
    expect(explorer(screen)).to_be_visible()
    assert screen.title() != "x"
    assert not any(str(token).startswith(("=", "+", "-", "@")) for token in weights_csv(screen).query_token)


def test_an_address_edited_by_hand_is_answered_in_words(stay: OpenPage, idle: Idle) -> None:
    screen = stay("/?layer=99&head=-3&model=../../etc/passwd&text=kept")
    alert = screen.get_by_test_id("stAlert")
    for part in ("layer “99”", "head “-3”", "model “../../etc/passwd”"):
        expect(alert).to_contain_text(part)
    expect(sentence(screen)).to_have_value("kept")
    expect(explorer(screen)).to_be_visible()
    type_sentence(screen, "and it goes away", idle)
    expect(screen.get_by_test_id("stAlert")).to_have_count(0)


def test_a_trace_saved_elsewhere_can_be_opened_and_closed(page: OpenPage, idle: Idle, tmp_path: Path) -> None:
    path = tmp_path / "mine.safetensors"
    av.scratch("A trace of my own", d_model=12, heads=3, seed=5).save(path)
    screen = page("/")
    screen.get_by_role("button", name="Open a trace").click()
    screen.locator("input[type=file]").set_input_files(path)
    idle(screen)
    expect(screen.get_by_text("Shown from a file, which a link can't carry")).to_contain_text("A trace of my own")
    expect(sentence(screen)).to_have_value("A trace of my own")
    model = screen.get_by_role("combobox", name="Model")
    expect(model).to_have_value("scratch (a file)")
    expect(screen.locator(".st-key-pickers")).to_contain_text("1 layer × 3 heads")
    expect(screen.get_by_text(re.compile("^Not verified here"))).to_be_visible()
    assert weights_csv(screen).query_token.unique().tolist() == ["A", "trace", "of", "my", "own"]
    screen.get_by_role("button", name="Close it").click()
    idle(screen)
    expect(sentence(screen)).to_have_value(BANK)
    expect(model).to_have_value("all-MiniLM-L6-v2")


def test_a_file_that_is_no_trace_is_refused_in_words(page: OpenPage, idle: Idle, tmp_path: Path) -> None:
    path = tmp_path / "other.safetensors"
    path.write_bytes(b"not a safetensors file at all")
    screen = page("/")
    screen.get_by_role("button", name="Open a trace").click()
    screen.locator("input[type=file]").set_input_files(path)
    idle(screen)
    expect(screen.get_by_test_id("stAlert")).to_contain_text("can't be shown")
    expect(explorer(screen)).to_be_visible()


def test_on_a_narrow_screen_nothing_sticks_out_in_light_and_dark(page: OpenPage, recolour: Recolour) -> None:
    screen = page("/", width=390, height=844)
    for dark in (False, True):
        recolour(screen, dark)
        expect(explorer(screen)).to_be_visible()
        assert screen.evaluate("document.documentElement.scrollWidth") <= 390
        box = explorer(screen).bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390


def many_streams(path: Path) -> None:
    """A trace with two streams, of which the second has layers with more heads."""
    import torch

    def layer(heads: int, queries: int, keys: int) -> av.Layer:
        query, key = torch.randn(heads, queries, 4), torch.randn(heads, keys, 4)
        return av.Layer(av.attend(query, key, torch.randn(heads, keys, 4)), "0")

    source, target = (av.Tokens(tuple(text.split()), tuple(range(len(text.split())))) for text in ("a b c", "d e"))
    av.Trace(
        layers={"encoder": (layer(2, 3, 3),), "cross": (layer(2, 2, 3), layer(5, 2, 3))},
        queries={"encoder": source, "cross": target},
        keys={"encoder": source, "cross": source},
        output=torch.zeros(2, 4),
        provenance=av.Provenance(model="two streams", text="a b c"),
        fidelity=av.Fidelity(0.0, 0.0, 1e-5, "nothing"),
    ).save(path)


def test_every_stream_and_head_of_an_opened_trace_can_be_looked_at(page: OpenPage, idle: Idle, tmp_path: Path) -> None:
    path = tmp_path / "streams.safetensors"
    many_streams(path)
    screen = page("/?layer=3&head=7")
    screen.get_by_role("button", name="Open a trace").click()
    screen.locator("input[type=file]").set_input_files(path)
    idle(screen)
    explorer(screen).get_by_role("radio", name="cross").check()
    screen.get_by_test_id("explorer-grid").get_by_label("Layer 1 head 4").first.click()
    expect(readout(screen)).to_contain_text("Layer 1 · Head 4")
    screen.wait_for_timeout(400)
    idle(screen)
    expect(readout(screen)).to_contain_text("Layer 1 · Head 4")
    table = weights_csv(screen)
    assert set(table.stream) == {"cross"}
    assert (table.layer.unique().tolist(), table["head"].unique().tolist()) == ([1], [4])
    screen.get_by_role("button", name="Close it").click()
    idle(screen)
    assert (parameters(screen)["layer"], parameters(screen)["head"]) == ("3", "7")
    expect(readout(screen)).to_contain_text("Layer 3 · Head 7")
