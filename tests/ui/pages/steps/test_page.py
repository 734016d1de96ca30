"""The Step by step page as a person uses it, in a real browser."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import torch
from playwright.sync_api import Locator, Page, expect
from safetensors.torch import load, save_file
from torch import Tensor
from torch.testing import assert_close

import attention_viz as av
from tests.conftest import OpenPage
from tests.shipped import shipped

STEEP = "The bank is steep, so it's dangerous to stand near it"
CAT = "/steps?model=scratch&text=The+cat+sat+on+mat"
LABELS = [*"Embeddings Query Key Value Scores Scaled Allowed Weights Output".split(), "Heads joined"]
Idle = Callable[[Page], None]


def tensors(screen: Page) -> dict[str, Tensor]:
    with screen.expect_download() as download:
        screen.get_by_role("button", name="Tensors (safetensors)").click()
    return load(Path(download.value.path()).read_bytes())


def total(screen: Page) -> float:
    """The chosen cell's number, as it stands on the page."""
    return float(screen.get_by_test_id("total").inner_text().replace("−", "-").replace("∞", "inf"))


def step(screen: Page, label: str) -> Locator:
    return screen.get_by_role("radio", name=label, exact=True)


def go_to(screen: Page, label: str, idle: Idle) -> None:
    step(screen, label).click()
    idle(screen)


def choose(screen: Page, label: str, option: str, idle: Idle) -> None:
    screen.get_by_role("combobox", name=re.compile(rf"(^|\W){label}$")).click()
    screen.get_by_role("option", name=option, exact=True).click()
    idle(screen)


def parameters(screen: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(screen.url).query).items()}


def cells(screen: Page, table: str) -> list[str]:
    found = screen.get_by_test_id(table).locator("td")
    expect(found.last).to_be_attached()
    return found.all_inner_texts()


def test_the_steps_stand_in_order_as_text(stay: OpenPage) -> None:
    screen = stay("/steps")
    expect(step(screen, LABELS[-1])).to_be_visible()
    text = screen.inner_text("body")
    places = [text.index(label) for label in LABELS]
    assert places == sorted(places)
    for label in ("Sentence", "Model", "Layer", "Head"):
        expect(screen.get_by_label(label, exact=True)).to_have_count(1)
    expect(screen.get_by_text(re.compile("^Verified"))).to_be_visible()


def test_a_pretrained_head_multiplies_up_step_by_step(stay: OpenPage, eager_weights: Callable[..., Any]) -> None:
    screen = stay(f"/steps?layer=3&head=1&step=weights&query=14&key=2&text={STEEP.replace(' ', '+')}")
    found = tensors(screen)
    assert all(tensor.ndim == 2 for tensor in found.values())
    for name in ("query", "key", "value"):
        made = found["embeddings"] @ found[f"{name}_weight"] + found[f"{name}_bias"]
        assert_close(made, found[name], atol=1e-5, rtol=1e-5)
    assert_close(found["query"] @ found["key"].T, found["scores"], atol=1e-5, rtol=1e-5)
    assert_close(found["scores"] / 32**0.5, found["scaled"], atol=1e-5, rtol=1e-5)
    assert_close(found["masked"].softmax(-1), found["weights"], atol=1e-6, rtol=1e-5)
    assert_close(found["weights"] @ found["value"], found["output"], atol=1e-5, rtol=1e-5)
    expected = eager_weights(STEEP)[3][0, 1]
    assert_close(found["weights"], expected, atol=1e-5, rtol=1e-5)
    assert total(screen) == pytest.approx(expected[14, 2].item(), abs=1e-5)


def test_a_cell_can_be_checked_by_hand_with_the_numbers_on_the_screen(stay: OpenPage) -> None:
    screen = stay(f"{CAT}&step=scores&query=3&key=1")
    numbers = [float(cell.replace("−", "-")) for cell in cells(screen, "arithmetic") if cell]
    products = [numbers[place : place + 3] for place in range(0, len(numbers) - 1, 3)]
    assert len(products) == 4
    for query, key, product in products:
        assert query * key == pytest.approx(product, abs=1e-4)
    assert sum(product for *_, product in products) == pytest.approx(total(screen), abs=1e-4)


def test_a_link_reproduces_step_cell_and_switches(page: OpenPage, stay: OpenPage, idle: Idle) -> None:
    screen = stay(f"{CAT}&heads=2&d_model=8")
    go_to(screen, "Weights", idle)
    choose(screen, "Query token", "3 · on", idle)
    choose(screen, "Key token", "1 · cat", idle)
    choose(screen, "Scale", "none", idle)
    choose(screen, "Notation", "K Qᵀ", idle)
    address = screen.url[screen.url.index("/steps") :]
    again = page(address)
    assert total(again) == total(screen)
    assert parameters(again) == parameters(screen)
    assert {"step": "weights", "query": "3", "key": "1", "scale": "none"}.items() <= parameters(again).items()
    expect(step(again, "Weights")).to_be_checked()
    expect(again.get_by_text("Not as the model: no scale")).to_be_visible()


def test_the_scale_changes_the_weight_on_the_page_and_in_the_file(stay: OpenPage, idle: Idle) -> None:
    screen = stay(f"{CAT}&step=weights&query=3&key=3")
    before, as_run = total(screen), tensors(screen)
    expect(screen.get_by_text("Not as the model")).to_have_count(0)
    for option, factor in (("none", 1.0), ("√d_model", 8**-0.5)):
        choose(screen, "Scale", option, idle)
        found = tensors(screen)
        assert_close(found["weights"], (as_run["scores"] * factor).softmax(-1))
        assert total(screen) == pytest.approx(found["weights"][3, 3].item(), abs=1e-5)
        assert total(screen) != before
    assert "as the model did" in screen.get_by_test_id("statistics").inner_text()


def test_the_precision_rounds_the_numbers_on_the_page_and_in_the_file(stay: OpenPage, idle: Idle) -> None:
    screen = stay(f"{CAT}&step=weights&query=3&key=3")
    before = total(screen)
    choose(screen, "Precision", "bfloat16", idle)
    found = tensors(screen)["weights"]
    assert found.dtype == torch.bfloat16
    assert total(screen) == pytest.approx(found[3, 3].item(), abs=1e-5)
    assert 0 < abs(total(screen) - before) < 0.01


def test_the_notation_turns_the_shape_and_keeps_the_number(stay: OpenPage, idle: Idle) -> None:
    screen = stay(f"{CAT}&step=query&query=3&dimension=1")
    before = total(screen)
    expect(screen.get_by_text("5 queries × 4 dimensions")).to_be_visible()
    choose(screen, "Notation", "tokens as columns (Qᵀ K)", idle)
    expect(screen.get_by_text("4 dimensions × 5 queries")).to_be_visible()
    assert total(screen) == before
    expect(screen.locator(".katex").first).to_be_visible()


def test_half_the_bits_round_more_than_bfloat16s_do_not(stay: OpenPage, idle: Idle) -> None:
    screen = stay(f"{CAT}&step=scores&query=3&key=3")
    exact, rounded = total(screen), {}
    for option in ("float16", "bfloat16"):
        choose(screen, "Precision", option, idle)
        rounded[option] = abs(total(screen) - exact)
    assert 0 < rounded["float16"] < rounded["bfloat16"]


def test_keys_down_turns_the_numbers_of_scores_and_weights(stay: OpenPage, idle: Idle) -> None:
    screen = stay(f"{CAT}&step=scores&query=3&key=1")
    before, number = cells(screen, "window"), total(screen)
    choose(screen, "Notation", "K Qᵀ", idle)
    after = cells(screen, "window")
    assert after != before
    assert after == [before[5 * column + row] for row in range(5) for column in range(5)]
    assert total(screen) == number


def test_the_window_of_numbers_follows_the_chosen_cell(stay: OpenPage) -> None:
    text = "+".join(f"w{number}" for number in range(30))
    found = av.scratch(text.replace("+", " ")).attention(0).head(1).scores
    for query, rows in ((0, slice(0, 9)), (20, slice(16, 25)), (29, slice(21, 30))):
        screen = stay(f"/steps?model=scratch&step=scores&query={query}&text={text}")
        numbers = [float(cell.replace("−", "-")) for cell in cells(screen, "window")]
        assert numbers == pytest.approx(found[rows, :9].flatten().tolist(), abs=6e-4)  # three digits


def test_the_statistics_beside_the_scale_are_those_of_the_weights(stay: OpenPage) -> None:
    screen = stay(f"{CAT}&step=weights&query=3&scale=none")
    numbers = [float(cell) for cell in cells(screen, "statistics")]
    for weights, (entropy, largest, gradient) in (
        (tensors(screen)["weights"][3], numbers[:3]),
        (av.scratch("The cat sat on mat").weights(0, 1)[3], numbers[6:9]),
    ):
        p = weights.double()
        assert entropy == pytest.approx(-(p * p.log()).sum().item(), abs=1e-4)
        assert largest == pytest.approx(p.max().item(), abs=1e-4)
        assert gradient == pytest.approx((p.diag() - p.outer(p)).norm().item(), abs=1e-4)


def test_wide_heads_without_a_scale_saturate(stay: OpenPage, idle: Idle) -> None:
    screen = stay(f"{CAT}&step=weights&scale=none&d_model=512")
    largest, gradient = (float(cell) for cell in cells(screen, "statistics")[4:6])
    assert largest > 0.95
    assert gradient < 0.1
    choose(screen, "Scale", "√d_k", idle)
    assert float(cells(screen, "statistics")[4]) < 0.8


def test_another_sentence_keeps_the_place_that_is_open(stay: OpenPage, idle: Idle) -> None:
    screen = stay(f"{CAT}&step=scores&query=3&key=1")
    before = total(screen)
    screen.get_by_label("Sentence", exact=True).fill("A boat drifted by slowly")
    screen.get_by_label("Sentence", exact=True).press("Control+Enter")
    idle(screen)
    assert total(screen) == pytest.approx(tensors(screen)["scores"][3, 1].item(), abs=1e-5) != before
    assert {"query": "3", "key": "1", "scale": "model"}.items() <= parameters(screen).items()


def test_our_own_module_shows_three_stages_of_attention(stay: OpenPage, idle: Idle) -> None:
    screen = stay(f"{CAT}&step=weights&query=3&key=1&variant=plain")
    found = tensors(screen)
    x = found["embeddings"]
    assert_close(found["weights"], (x @ x.T).softmax(-1))
    plain = total(screen)
    choose(screen, "Variant", "Single head", idle)
    assert tensors(screen)["query"].shape == (5, 8)
    assert total(screen) != plain
    expect(screen.get_by_text(re.compile("^Verified"))).to_be_visible()


def test_a_wider_head_changes_the_weights(stay: OpenPage, idle: Idle) -> None:
    screen = stay(f"{CAT}&step=weights&query=3&key=3&scale=none")
    before = total(screen)
    screen.get_by_role("slider", name="d_k").press("ArrowRight")
    idle(screen)
    assert parameters(screen)["d_model"] == "10"
    assert tensors(screen)["query"].shape == (5, 5)
    assert total(screen) != before


def test_positions_are_a_part_of_what_enters(stay: OpenPage, idle: Idle) -> None:
    screen = stay(f"{CAT}&query=2&dimension=0")
    found = tensors(screen)
    assert_close(found["embeddings_word_vector"] + found["embeddings_position"], found["embeddings"])
    choose(screen, "Positions", "none", idle)
    assert total(screen) == pytest.approx(found["embeddings_word_vector"][2, 0].item(), abs=1e-5)


def test_a_click_on_a_cell_opens_it(stay: OpenPage, idle: Idle) -> None:
    screen = stay(f"{CAT}&step=scores")
    area = screen.locator(".js-plotly-plot .nsewdrag").first.bounding_box()
    assert area is not None
    screen.mouse.click(area["x"] + area["width"] * 0.5, area["y"] + area["height"] * 0.7)
    screen.wait_for_url(re.compile("query=3.*key=2"))
    idle(screen)
    assert total(screen) == pytest.approx(tensors(screen)["scores"][3, 2].item(), abs=1e-5)


def test_the_keyboard_walks_the_steps(stay: OpenPage, idle: Idle) -> None:
    screen = stay(f"{CAT}&step=query")
    screen.get_by_role("button", name="Next").focus()
    screen.keyboard.press("Enter")
    idle(screen)
    expect(step(screen, "Key")).to_be_checked()
    screen.get_by_role("button", name="Back").press("Enter")
    idle(screen)
    expect(step(screen, "Query")).to_be_checked()


def test_all_steps_stand_under_each_other(stay: OpenPage) -> None:
    screen = stay(f"{CAT}&all=yes")
    for label in LABELS:
        expect(screen.get_by_role("heading", name=label, exact=True)).to_have_count(1)
    expect(screen.locator(".js-plotly-plot")).to_have_count(len(LABELS))


def test_an_address_edited_by_hand_is_answered_in_words(stay: OpenPage, idle: Idle) -> None:
    screen = stay(f"{CAT}&step=softmax&query=99&scale=-1&precision=int8&variant=x&notation=y")
    alert = screen.get_by_test_id("stAlert")
    for part in ("step “softmax”", "query “99”", "scale “-1”", "precision “int8”", "variant “x”", "notation “y”"):
        expect(alert).to_contain_text(part)
    go_to(screen, "Scores", idle)
    expect(screen.get_by_test_id("stAlert")).to_have_count(0)


def test_back_and_forward_show_what_the_address_says(page: OpenPage, idle: Idle) -> None:
    screen = page(f"{CAT}&step=scores&query=3&key=1")
    first = total(screen)
    go_to(screen, "Weights", idle)
    second = total(screen)
    choose(screen, "Key token", "4 · mat", idle)
    third = total(screen)
    choose(screen, "Scale", "none", idle)
    fourth = total(screen)
    assert len({first, second, third, fourth}) == 4
    shown = {
        1: (first, "scores", "1", "model"),
        2: (second, "weights", "1", "model"),
        3: (third, "weights", "4", "model"),
        4: (fourth, "weights", "4", "none"),
    }
    for move, place in (("back", 3), ("back", 2), ("back", 1), ("forward", 2), ("forward", 3), ("forward", 4)):
        getattr(screen, f"go_{move}")()
        idle(screen)
        number, name, key, scale = shown[place]
        assert total(screen) == number
        asked = parameters(screen)
        assert (asked["step"], asked["query"], asked["key"], asked["scale"]) == (name, "3", key, scale)
        expect(step(screen, name.capitalize())).to_be_checked()


def test_back_from_all_steps_at_once_shows_one_again(page: OpenPage, idle: Idle) -> None:
    screen = page(f"{CAT}&step=scores&query=3&key=1")
    screen.get_by_text("All at once").click()
    idle(screen)
    expect(screen.get_by_test_id("total")).to_have_count(0)
    screen.go_back()
    idle(screen)
    expect(screen.get_by_test_id("total")).to_have_count(1)
    assert parameters(screen)["all"] == "no"
    screen.go_forward()
    idle(screen)
    expect(screen.get_by_test_id("total")).to_have_count(0)
    assert parameters(screen)["all"] == "yes"


@pytest.mark.parametrize("step", ["Embeddings", "Query", "Scores", "Heads joined"])
def test_the_first_screen_shows_the_matrix_without_scrolling(stay: OpenPage, step: str) -> None:
    name = {"Heads joined": "joined"}.get(step, step.lower())
    screen = stay(f"/steps?step={name}&query=2")
    box = screen.locator(".js-plotly-plot").first.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 860


def test_a_file_that_is_no_trace_is_refused_and_the_page_stays(page: OpenPage, idle: Idle, tmp_path: Path) -> None:
    save_file({"weights": torch.ones(2, 2)}, tmp_path / "other.safetensors")
    screen = page(f"{CAT}&step=scores&query=3&key=1")
    before = total(screen)
    screen.get_by_role("button", name="Open a trace").click()
    screen.locator("input[type=file]").set_input_files(tmp_path / "other.safetensors")
    idle(screen)
    expect(screen.get_by_test_id("stAlert")).to_contain_text("This can't be shown")
    assert total(screen) == before


def test_a_width_that_the_heads_cannot_share_is_refused_in_words(stay: OpenPage) -> None:
    screen = stay("/steps?model=scratch&d_model=7&heads=2&text=The+cat&step=scores&query=1")
    expect(screen.get_by_test_id("stAlert")).to_contain_text("7")
    assert {"step": "scores", "query": "1"}.items() <= parameters(screen).items()


def test_a_trace_from_a_file_opens_and_says_what_it_does_not_know(page: OpenPage, idle: Idle, tmp_path: Path) -> None:
    path = tmp_path / "mine.safetensors"
    model = shipped("all-MiniLM-L6-v2")
    model.trace("A trace of my own").save(path)
    screen = page("/steps?step=query&query=2")
    screen.get_by_role("button", name="Open a trace").click()
    screen.locator("input[type=file]").set_input_files(path)
    idle(screen)
    expect(screen.get_by_text(re.compile("^Not verified here"))).to_be_visible()
    expect(screen.get_by_text("which isn't known here")).to_be_visible()
    assert total(screen) == pytest.approx(tensors(screen)["query"][2, 0].item(), abs=1e-5)


@pytest.mark.parametrize(("words", "dark", "width"), [(2, True, 390), (12, False, 390), (128, True, 1360)])
def test_any_length_fits_the_screen(stay: OpenPage, words: int, dark: bool, width: int) -> None:
    text = "+".join(["boat"] * words)
    screen = stay(f"/steps?model=scratch&step=weights&query={words - 1}&text={text}", dark=dark, width=width)
    assert total(screen) == pytest.approx(tensors(screen)["weights"][-1, 0].item(), abs=1e-5)
    assert screen.evaluate("document.documentElement.scrollWidth") <= width
    assert len(cells(screen, "window")) <= 81
    for locator in (screen.locator(".js-plotly-plot").first, screen.get_by_test_id("window")):
        box = locator.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width


def test_tokens_as_columns_are_called_columns(stay: OpenPage) -> None:
    screen = stay(f"{CAT}&step=weights&notation=keys+down")
    expect(screen.get_by_text("Each query's column became shares")).to_be_visible()
    expect(screen.get_by_text("sum of exp over the column")).to_be_visible()


def test_the_chosen_cell_is_in_sight_on_any_screen(stay: OpenPage) -> None:
    for width in (390, 1360):
        screen = stay("/steps?step=scores&query=2&key=8", width=width, height=844)
        table = screen.get_by_test_id("window")
        outer, chosen = table.bounding_box(), table.locator("td.steps-chosen").bounding_box()
        assert outer is not None and chosen is not None
        assert chosen["x"] + chosen["width"] <= outer["x"] + outer["width"] <= width


def test_every_term_of_the_joined_heads_is_in_sight(stay: OpenPage) -> None:
    table = stay("/steps?step=joined").get_by_test_id("arithmetic")
    assert table.evaluate("table => table.scrollHeight <= table.clientHeight")
    terms = [float(row.locator("td").last.inner_text().replace("−", "-")) for row in table.locator("tr").all()[1:]]
    assert sum(terms[:-1]) == pytest.approx(terms[-1], abs=1e-4)
    assert len(terms) == 12 + 1 + 1
