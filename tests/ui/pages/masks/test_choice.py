"""What the Masks page decides: which cells are open, what is said, and what the address keeps."""

from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import numpy
import pytest
import torch

import attention_viz as av
from attention_viz.ui.address.cells import from_code, to_code
from tests.ui.screens import Screen

POSITION = numpy.arange(9)


@pytest.fixture(scope="module")
def screen() -> Screen:
    """One visitor, before the example's sentence: nine tokens for the model that opens."""
    return Screen().open("/masks?mask=none")


def example(screen: Screen, address: str) -> Screen:
    return screen.back_to(f"/masks?model=all-MiniLM-L6-v2&text=The+bank+of+the+river+was+flooded&{address}")


def test_the_pickers_change_the_numbers_and_the_address(screen: Screen) -> None:
    causal = example(screen, "mask=causal").matrix("after")
    window = screen.pick("Mask", "window").pick("Window", 3).matrix("after")
    assert ((window > 0) == (abs(POSITION[:, None] - POSITION) < 3)).all()
    assert (window != causal).any()
    everywhere = screen.pick("Blocks in", 5).matrix("after")
    assert (everywhere > 0).all()
    assert {"mask": "window", "window": "3", "in_layer": "5"}.items() <= screen.address.items()
    assert (example(screen, "mask=window&window=3&in_layer=5").matrix("after") == everywhere).all()


def test_back_and_forward_show_what_the_address_says(screen: Screen) -> None:
    seen = [(example(screen, "mask=window&window=2").matrix("after"), screen.address)]
    for label, value in (("Window", 4), ("Blocks for", 3), ("Mask", "drawn")):
        seen.append((screen.pick(label, value).matrix("after"), screen.address))
    seen.append((screen.press("Block").matrix("after"), screen.address))
    assert ["cells" in address for _, address in seen] == [False, False, False, False, True]
    for place in (3, 2, 1, 0, 1, 2, 3, 4):
        expected, asked = seen[place]
        screen.back_to("/masks?" + "&".join(f"{name}={value}" for name, value in asked.items()))
        assert screen.address == asked
        assert (screen.matrix("after") == expected).all()


def test_with_a_causal_mask_the_csv_equals_transformers_given_the_same_mask(screen: Screen) -> None:
    from transformers import AutoModel, AutoTokenizer

    text = "The bank is steep, so it's dangerous to stand near it"
    screen.back_to(f"/masks?model=all-MiniLM-L6-v2&mask=causal&layer=3&head=1&text={quote_plus(text)}")
    path = av.CATALOGUE["all-MiniLM-L6-v2"].path
    assert path is not None
    ids = AutoTokenizer.from_pretrained(path)(text, return_tensors="pt").input_ids
    n = ids.shape[1]
    added = torch.full((n, n), torch.finfo(torch.float32).min).triu(1)[None, None]
    model: Any = AutoModel.from_pretrained(path, attn_implementation="eager")
    with torch.no_grad():
        expected = model(input_ids=ids, attention_mask=added, output_attentions=True).attentions[3][0, 1]
    ours = screen.weights()
    assert abs(ours - expected.numpy()).max() <= 1e-5
    assert (ours[numpy.triu_indices(n, 1)] == 0).all()
    assert screen.address["mask"] == "causal"


def test_a_file_is_looked_at_and_a_foreign_one_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.safetensors"
    av.scratch("A trace of my own", d_model=12, heads=3, allowed=av.masks.causal(5)).save(path)
    screen = Screen().open("/masks?mask=none")
    (tmp_path / "other.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0{}      ")
    assert any("can't be shown" in one for one in screen.open_trace(tmp_path / "other.safetensors").alerts)
    words = screen.open_trace(path).words
    assert "own mask here: causal (nobody looks ahead)" in words
    assert "A trace from a file is a run that is over" in words


def test_a_prefix_is_open_to_everyone_and_more_of_it_opens_more(screen: Screen) -> None:
    example(screen, "mask=prefix&prefix=2")
    for prefix in (2, 5):
        screen.pick("Prefix", prefix)
        open_cells = (POSITION[None] <= POSITION[:, None]) | (POSITION[None] < prefix)
        assert ((screen.matrix("after") > 0) == open_cells).all()
        assert screen.address["prefix"] == str(prefix)


def test_a_mask_for_one_head_leaves_the_others_as_they_were(screen: Screen) -> None:
    own = example(screen, "mask=none&layer=0&head=4").matrix("after")
    assert (screen.pick("Mask", "causal").matrix("after")[numpy.triu_indices(9, 1)] == 0).all()
    # In the first layer nothing that a head reads has changed: head 4 is as it was, to the last digit.
    assert (screen.pick("Blocks for", 3).matrix("after") == own).all()
    assert "in the head on the screen it blocks nothing" in screen.words
    assert (screen.pick("Head", 3).matrix("after")[numpy.triu_indices(9, 1)] == 0).all()
    assert (screen.pick("Mask", "none").matrix("after") > 0).all()


def test_padding_stands_in_the_shorter_row_and_nobody_looks_at_it(screen: Screen) -> None:
    matrix = example(screen, "mask=padding&row=shorter&batch=A+boat").matrix("after")
    assert (matrix[:, 4:] == 0).all()
    assert matrix[:, :4].sum(axis=1) == pytest.approx(1, abs=1e-5)
    assert (screen.pick("Shown", "longer").matrix("after") > 0).all()
    assert screen.address["row"] == "longer"


def test_our_own_module_takes_every_mask(screen: Screen) -> None:
    address = "mask=both&row=shorter&model=scratch&head=1&text=The+cat+sat+on+mat&batch=The+cat"
    matrix = screen.back_to(f"/masks?{address}").matrix("after")
    assert ((matrix > 0) == (numpy.tri(5, dtype=bool) & (numpy.arange(5) < 2))).all()
    assert "Verified" in screen.words


def test_whole_rows_are_drawn_with_the_pickers_and_cleared(screen: Screen) -> None:
    screen.back_to("/masks?mask=drawn&model=scratch&head=0&text=The+cat+sat+on+mat")
    screen.pick("Who is looking", 0).press("Block")
    matrix = screen.matrix("after")
    assert (matrix[0] == 0).all() and (matrix[1:] > 0).all()
    assert (from_code(screen.address["cells"], 5)[0]).all()
    assert "“The” (row 0) has nothing left to look at" in screen.words
    assert (screen.press("Clear").matrix("after") > 0).all()
    assert "cells" not in screen.address


def test_a_drawing_that_blocks_everything_is_shown_as_rows_of_zeros(screen: Screen) -> None:
    example(screen, f"mask=drawn&cells={to_code(numpy.ones((9, 9), dtype=bool))}")
    assert not screen.matrix("after").any()
    assert "and 3 more have nothing left to look at" in screen.words
    assert not screen.app.error and not screen.app.warning


def test_the_demonstration_holds_the_numbers_of_the_head_on_the_screen(screen: Screen) -> None:
    screen.back_to("/masks?model=scratch&head=1&text=The+cat+sat+on+mat&mask=causal")
    some, nothing = [one.value for one in screen.app.markdown if one.value.startswith("| added")]
    assert some.count("Leak 0: the row is exact.") == 6
    row = av.scratch("The cat sat on mat").attention(0).head(1).scaled[2]
    assert f"Leak {float(row.softmax(-1).max()):.3g}: the weights of no mask" in nothing
    assert "Leak 0.2: every cell alike" in nothing
    assert nothing.count("NaN") == 3


def test_the_demonstration_says_where_its_row_is_made_up(screen: Screen) -> None:
    assert "For comparison, as no row above is blocked in part" in example(screen, "mask=none").words
    assert "A row that may look at 5 of 9" in example(screen, "mask=causal").words


@pytest.mark.parametrize(
    ("model", "address", "why"),
    [
        ("induction", "text=x+y&mask=prefix&prefix=2", "the model blocks all these cells already"),
        ("induction", "text=x+y&mask=causal", "the model blocks all these cells already"),
        ("all-MiniLM-L6-v2", "text=The+river&mask=padding&row=longer&batch=A", "In this row there is no padding"),
    ],
)
def test_a_mask_that_changes_nothing_says_why(screen: Screen, model: str, address: str, why: str) -> None:
    words = screen.back_to(f"/masks?{address}&model={model}").words
    assert why in words and "it changes nothing here" in words
    assert "What changed, here and further on" not in words


def test_another_model_with_fewer_heads_is_told_and_the_mask_acts_in_all(screen: Screen) -> None:
    assert "head 11 only" in example(screen, "mask=causal&in_head=11").words
    screen.pick("Model", "induction")
    assert any("The mask was for head 11 only; induction has" in one for one in screen.warnings)
    assert "in_head" not in screen.address


def test_what_is_cut_of_the_other_sentence_of_a_batch_is_shown(screen: Screen) -> None:
    screen.back_to("/masks?model=all-MiniLM-L6-v2&mask=padding&text=hi&batch=" + "+".join(["b"] * 700))
    assert "The other sentence has 702 tokens" in screen.words
