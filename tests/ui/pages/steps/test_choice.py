"""What the Step by step page decides: which numbers stand there, by which words, and what the address keeps."""

import html
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load, save_file
from torch import Tensor
from torch.testing import assert_close

import attention_viz as av
from attention_viz.explorer.packet import read_packet
from tests.shipped import shipped
from tests.ui.screens import Screen

STEEP = "The bank is steep, so it's dangerous to stand near it"
LABELS = ("Embeddings", "Query", "Key", "Value", "Scores", "Scaled", "Allowed", "Weights", "Output", "Heads joined")
CAT = "/steps?model=scratch&text=The+cat+sat+on+mat&heads=2&d_model=8"


@pytest.fixture(scope="module")
def screen() -> Screen:
    """One visitor, who looks at one thing after the other."""
    return Screen().open("/steps")


def tensors(screen: Screen) -> dict[str, Tensor]:
    return load(screen.download("Tensors (safetensors)"))


def number(written: str) -> float:
    return float(written.replace("−", "-").replace("∞", "inf"))


def total(screen: Screen) -> float:
    """The chosen cell's number, as it stands on the page."""
    (found,) = re.findall(r'data-testid="total">(.*?)</b>', "\n".join(screen.written))
    return number(found)


def cells(screen: Screen, table: str) -> list[str]:
    return [html.unescape(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", screen.part(table))]


def numbers(screen: Screen, table: str) -> list[float]:
    return [number(cell) for cell in cells(screen, table) if cell]


def test_a_pretrained_head_multiplies_up_step_by_step(screen: Screen, eager_weights: Callable[..., Any]) -> None:
    place = "layer=3&head=1&step=weights&query=14&key=2"
    screen.back_to(f"/steps?model=all-MiniLM-L6-v2&{place}&text={STEEP.replace(' ', '+')}")
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


def matrix(screen: Screen, step: str) -> tuple[dict[str, Any], Tensor]:
    """What stands before the numbers of the drawer's matrix, and they."""
    ending = f"-steps-picture-{step}"
    (sent,) = [one.proto.bytes for one in screen.all("bidi_component") if one.proto.id.endswith(ending)]
    header, body = read_packet(sent)
    at, size = header["values"]
    values = torch.frombuffer(bytearray(body[at : at + size]), dtype=torch.float32)
    return header, values.view(len(header["rows"]), len(header["columns"]))


def pipeline(screen: Screen) -> tuple[dict[str, Any], dict[str, Any]]:
    """What stands before the numbers that the pipeline is sent, and what it is told through its channel."""
    (sent,) = [one.proto.bytes for one in screen.all("bidi_component") if one.proto.id.endswith("-steps-pipeline")]
    return read_packet(sent)[0], screen.channel("steps-pipeline")


def test_the_page_opens_as_a_pipeline_of_the_chosen_pair_with_the_steps_below(screen: Screen) -> None:
    screen.back_to("/steps?model=all-MiniLM-L6-v2&text=The+bank+of+the+river+was+flooded&layer=0&head=4&query=2&key=5")
    header, told = pipeline(screen)
    assert (told["query"], told["key"], told["terms"]) == (2, 5, 6)
    assert (header["layer"], header["head"], header["d_k"]) == (0, 4, 32)
    assert [label for _, label in header["steps"]] == [*LABELS]
    assert screen.address["step"] == screen.picker("Step").value == "pipeline"
    assert list(screen.picker("Step").options) == ["Pipeline", *LABELS]
    assert not screen.all("plotly_chart")
    screen.pick("Named terms", 3)
    assert pipeline(screen)[1]["terms"] == 3 and screen.address["terms"] == "3"


def test_a_switch_changes_what_the_pipeline_shows(screen: Screen) -> None:
    screen.back_to(f"{CAT}&query=3&key=1")
    assert pipeline(screen)[0]["scale"] == pytest.approx(4**-0.5)
    screen.pick("Scale", "none")
    assert pipeline(screen)[0]["scale"] == 1 and "Differs from the model: no scale" in screen.words


def test_of_a_long_text_the_pipeline_is_sent_the_chosen_row_only(screen: Screen) -> None:
    screen.back_to(f"/steps?model=all-MiniLM-L6-v2&query=300&key=7&text={'+'.join(['boat'] * 400)}")
    header, told = pipeline(screen)
    assert header["queries"] == [300] and 7 in header["keys"] and len(header["keys"]) <= 13
    assert (told["query"], told["key"]) == (300, 7)


def test_a_cell_can_be_checked_by_hand_with_the_numbers_on_the_screen(screen: Screen) -> None:
    screen.back_to(f"{CAT}&step=scores&query=3&key=1")
    found = numbers(screen, "arithmetic")
    products = [found[place : place + 3] for place in range(0, len(found) - 1, 3)]
    assert len(products) == 4
    for query, key, product in products:
        assert query * key == pytest.approx(product, abs=1e-4)
    assert sum(product for *_, product in products) == pytest.approx(total(screen), abs=1e-4)


def test_a_link_reproduces_step_cell_and_switches(screen: Screen) -> None:
    screen.back_to(CAT).pick("Step", "weights").pick("Query token", 3).pick("Key token", 1)
    screen.pick("Scale", "none").pick("Notation", "keys down")
    again = Screen().open("/steps?" + "&".join(f"{name}={value}" for name, value in screen.address.items()))
    assert total(again) == total(screen)
    assert again.address == screen.address
    assert {"step": "weights", "query": "3", "key": "1", "scale": "none"}.items() <= again.address.items()
    assert again.picker("Step").value == "weights"
    assert "Differs from the model: no scale" in again.words


def test_the_scale_changes_the_weight_on_the_page_and_in_the_file(screen: Screen) -> None:
    screen.back_to(f"{CAT}&step=weights&query=3&key=3")
    before, as_run = total(screen), tensors(screen)
    assert "Differs from the model" not in screen.words
    for option, factor in (("none", 1.0), ("d_model", 8**-0.5)):
        found = tensors(screen.pick("Scale", option))
        assert_close(found["weights"], (as_run["scores"] * factor).softmax(-1))
        assert total(screen) == pytest.approx(found["weights"][3, 3].item(), abs=1e-5)
        assert total(screen) != before
    assert "as the model did" in screen.part("statistics")


def test_the_precision_rounds_the_numbers_on_the_page_and_in_the_file(screen: Screen) -> None:
    before = total(screen.back_to(f"{CAT}&step=weights&query=3&key=3"))
    found = tensors(screen.pick("Precision", "bfloat16"))["weights"]
    assert found.dtype == torch.bfloat16
    assert total(screen) == pytest.approx(found[3, 3].item(), abs=1e-5)
    assert 0 < abs(total(screen) - before) < 0.01


def test_half_the_bits_round_more_than_bfloat16s_do_not(screen: Screen) -> None:
    exact = total(screen.back_to(f"{CAT}&step=scores&query=3&key=3"))
    rounded = {option: abs(total(screen.pick("Precision", option)) - exact) for option in ("float16", "bfloat16")}
    assert 0 < rounded["float16"] < rounded["bfloat16"]


def test_the_notation_turns_the_shape_and_keeps_the_number(screen: Screen) -> None:
    before = total(screen.back_to(f"{CAT}&step=query&query=3&dimension=1"))
    assert "5 queries × 4 dimensions" in screen.words
    screen.pick("Notation", "columns")
    assert "4 dimensions × 5 queries" in screen.words
    assert total(screen) == before
    screen.back_to(f"{CAT}&step=scores&query=3&key=1")
    before, (header, scores) = total(screen), matrix(screen, "scores")
    assert header["titles"] == ["Queries", "Keys"] and header["chosen"] == [3, 1] and header["colours"]
    header, turned = matrix(screen.pick("Notation", "keys down"), "scores")
    assert header["titles"] == ["Keys", "Queries"] and header["chosen"] == [1, 3] and not header["colours"]
    assert_close(turned, scores.T)
    assert not torch.equal(turned, scores)
    assert total(screen) == before
    words = screen.pick("Step", "weights").words
    assert "Each query's column became weights" in words and "sum of exp over the column" in words


def test_the_drawer_has_the_whole_matrix_of_a_step_and_a_very_long_texts_part_around_the_cell(screen: Screen) -> None:
    for count, query, rows in ((30, 20, slice(0, 30)), (510, 500, slice(110, 510))):
        text = "+".join(f"w{number}" for number in range(count))
        screen.back_to(f"/steps?model=scratch&step=scores&query={query}&key=0&head=1&d_model=8&heads=2&text={text}")
        header, found = matrix(screen, "scores")
        expected = av.scratch(text.replace("+", " "), d_model=8, heads=2).attention(0).head(1).scores
        assert_close(found, expected[rows, : rows.stop - rows.start], atol=1e-6, rtol=1e-5)
        assert header["chosen"] == [query - rows.start, 0] and not screen.all("plotly_chart")


def test_the_statistics_beside_the_scale_are_those_of_the_weights(screen: Screen) -> None:
    screen.back_to(f"{CAT}&step=weights&query=3&scale=none&head=1")
    found = numbers(screen, "statistics")
    for weights, (entropy, largest, gradient) in (
        (tensors(screen)["weights"][3], found[:3]),
        (av.scratch("The cat sat on mat").weights(0, 1)[3], found[6:9]),
    ):
        p = weights.double()
        assert entropy == pytest.approx(-(p * p.log()).sum().item(), abs=1e-4)
        assert largest == pytest.approx(p.max().item(), abs=1e-4)
        assert gradient == pytest.approx((p.diag() - p.outer(p)).norm().item(), abs=1e-4)


def test_wide_heads_without_a_scale_saturate(screen: Screen) -> None:
    screen.back_to(f"{CAT.replace('d_model=8', 'd_model=512')}&step=weights&scale=none")
    largest, gradient = numbers(screen, "statistics")[4:6]
    assert largest > 0.95
    assert gradient < 0.1
    assert numbers(screen.pick("Scale", "model"), "statistics")[4] < 0.8


def test_another_sentence_opens_the_pair_that_its_head_is_told_by(screen: Screen) -> None:
    before = total(screen.back_to(f"{CAT}&step=scores&query=3&key=1"))
    screen.pick("Sentence", "A boat drifted by slowly")
    scores, place = tensors(screen)["scores"], [int(screen.address[name]) for name in ("query", "key")]
    assert total(screen) == pytest.approx(scores[*place].item(), abs=1e-5) != before
    assert screen.address["scale"] == "model"


def test_our_own_module_shows_three_stages_of_attention(screen: Screen) -> None:
    found = tensors(screen.back_to(f"{CAT}&step=weights&query=3&key=1&variant=plain"))
    x = found["embeddings"]
    assert_close(found["weights"], (x @ x.T).softmax(-1))
    plain = total(screen)
    assert tensors(screen.pick("Variant", "single"))["query"].shape == (5, 8)
    assert total(screen) != plain
    assert "Verified" in screen.words


def test_a_wider_head_changes_the_weights(screen: Screen) -> None:
    before = total(screen.back_to(f"{CAT}&step=weights&query=3&key=3&scale=none"))
    screen.pick("d_k", 5)
    assert screen.address["d_model"] == "10"
    assert tensors(screen)["query"].shape == (5, 5)
    assert total(screen) != before


def test_positions_are_a_part_of_what_enters(screen: Screen) -> None:
    found = tensors(screen.back_to(f"{CAT}&step=embeddings&query=2&dimension=0"))
    assert_close(found["embeddings_word_vector"] + found["embeddings_position"], found["embeddings"])
    screen.pick("Positions", "none")
    assert total(screen) == pytest.approx(found["embeddings_word_vector"][2, 0].item(), abs=1e-5)


def test_an_address_edited_by_hand_is_answered_in_words(screen: Screen) -> None:
    screen.back_to(f"{CAT}&step=softmax&query=99&scale=-1&precision=int8&variant=x&notation=y")
    for part in ("step “softmax”", "query “99”", "scale “-1”", "precision “int8”", "variant “x”", "notation “y”"):
        assert any(part in one for one in screen.warnings)
    assert not screen.pick("Step", "scores").warnings


def test_back_and_forward_show_what_the_address_says(screen: Screen) -> None:
    seen = [(total(screen.back_to(f"{CAT}&step=scores&query=3&key=1")), screen.address)]
    for label, value in (("Step", "weights"), ("Key token", 4), ("Scale", "none")):
        seen.append((total(screen.pick(label, value)), screen.address))
    assert len({shown for shown, _ in seen}) == 4
    for place in (2, 1, 0, 1, 2, 3):
        expected, asked = seen[place]
        screen.back_to("/steps?" + "&".join(f"{name}={value}" for name, value in asked.items()))
        assert (total(screen), screen.address) == (expected, asked)
        assert screen.picker("Step").value == asked["step"]
    screen.pick("All at once", True)
    assert 'data-testid="total"' not in "\n".join(screen.written) and screen.address["all"] == "yes"
    screen.back_to("/steps?" + "&".join(f"{name}={value}" for name, value in seen[3][1].items()))
    assert total(screen) == seen[3][0] and screen.address["all"] == "no"


def test_a_width_that_the_heads_cannot_share_is_refused_in_words(screen: Screen) -> None:
    screen.back_to("/steps?model=scratch&d_model=7&heads=2&text=The+cat&step=scores&query=1")
    assert any("7" in one for one in screen.alerts)
    assert {"step": "scores", "query": "1"}.items() <= screen.address.items()


def test_a_file_that_is_no_trace_is_refused_and_the_page_stays(screen: Screen, tmp_path: Path) -> None:
    save_file({"weights": torch.ones(2, 2)}, tmp_path / "other.safetensors")
    before = total(screen.back_to(f"{CAT}&step=scores&query=3&key=1"))
    screen.open_trace(tmp_path / "other.safetensors")
    assert any("Can't open this file" in one for one in screen.alerts)
    assert total(screen) == before


def test_a_trace_from_a_file_opens_and_says_what_it_does_not_know(tmp_path: Path) -> None:
    path = tmp_path / "mine.safetensors"
    shipped("all-MiniLM-L6-v2").trace("A trace of my own").save(path)
    screen = Screen().open("/steps?step=query").open_trace(path).pick("Query token", 2)
    assert "Not verified here" in screen.words
    assert "which isn't known here" in html.unescape(screen.words)
    assert total(screen) == pytest.approx(tensors(screen)["query"][2, 0].item(), abs=1e-5)


def test_every_term_of_the_joined_heads_is_there(screen: Screen) -> None:
    screen.back_to("/steps?model=all-MiniLM-L6-v2&text=The+bank+of+the+river+was+flooded&step=joined")
    rows = re.findall(r"<tr>(.*?)</tr>", screen.part("arithmetic"))[1:]
    terms = [number(re.findall(r"<td[^>]*>(.*?)</td>", row)[-1]) for row in rows]
    assert sum(terms[:-1]) == pytest.approx(terms[-1], abs=1e-4)
    assert len(terms) == 12 + 1 + 1
