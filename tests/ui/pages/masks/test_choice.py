"""What the Masks page decides: which cells are open, what is said, and what the address keeps."""

import base64
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import numpy
import pytest
import torch

import attention_viz as av
from attention_viz.ui import visit, widgets
from attention_viz.ui.address.cells import from_code, to_code
from attention_viz.ui.pages.masks.board import take_choice
from attention_viz.ui.pages.masks.page import MASK_CHOICES
from attention_viz.ui.visit import Visit
from tests.ui.screens import Screen

POSITION = numpy.arange(9)


@pytest.fixture(scope="module")
def screen() -> Screen:
    """One visitor, before the example's sentence: nine tokens for the model that opens."""
    return Screen().open("/masks?mask=none")


def example(screen: Screen, address: str) -> Screen:
    return screen.back_to(f"/masks?model=all-MiniLM-L6-v2&text=The+bank+of+the+river+was+flooded&{address}")


def test_a_decoder_opens_on_a_mask_that_changes_something(screen: Screen) -> None:
    text = "text=red+cat+blue+dog+red"
    window = screen.back_to(f"/masks?model=induction&{text}")
    assert window.address["mask"] == "window"
    assert screen.back_to(f"/masks?model=induction&{text}&mask=causal").address["mask"] == "causal"


def test_the_pickers_change_the_numbers_and_the_address(screen: Screen) -> None:
    causal = example(screen, "mask=causal").weights()
    window = screen.pick("Mask", "window").pick("Window", 3).weights()
    assert ((window > 0) == (abs(POSITION[:, None] - POSITION) < 3)).all()
    assert (window != causal).any()
    everywhere = screen.pick("Masked layers", 5).weights()
    assert (everywhere > 0).all()
    assert {"mask": "window", "window": "3", "in_layer": "5"}.items() <= screen.address.items()
    assert (example(screen, "mask=window&window=3&in_layer=5").weights() == everywhere).all()


def test_back_and_forward_show_what_the_address_says(screen: Screen) -> None:
    seen = [(example(screen, "mask=window&window=2").weights(), screen.address)]
    for label, value in (("Window", 4), ("Masked heads", 3), ("Mask", "drawn")):
        seen.append((screen.pick(label, value).weights(), screen.address))
    for place in (2, 1, 0, 1, 2, 3):
        expected, asked = seen[place]
        screen.back_to("/masks?" + "&".join(f"{name}={value}" for name, value in asked.items()))
        assert screen.address == asked
        assert (screen.weights() == expected).all()


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
    assert any("Can't open this file" in one for one in screen.open_trace(tmp_path / "other.safetensors").alerts)
    words = screen.open_trace(path).words
    assert "own mask here: causal" in words
    assert "A trace from a file can't be rerun" in words


def test_a_prefix_is_open_to_everyone_and_more_of_it_opens_more(screen: Screen) -> None:
    example(screen, "mask=prefix&prefix=2")
    for prefix in (2, 5):
        screen.pick("Prefix", prefix)
        open_cells = (POSITION[None] <= POSITION[:, None]) | (POSITION[None] < prefix)
        assert ((screen.weights() > 0) == open_cells).all()
        assert screen.address["prefix"] == str(prefix)


def test_a_mask_for_one_head_leaves_the_others_as_they_were(screen: Screen) -> None:
    own = example(screen, "mask=none&layer=0&head=4").weights()
    assert (screen.pick("Mask", "causal").weights()[numpy.triu_indices(9, 1)] == 0).all()
    # In the first layer nothing that a head reads has changed: head 4 is as it was, to the last digit.
    assert (screen.pick("Masked heads", 3).weights() == own).all()
    assert "it blocks nothing in the shown head" in screen.words
    assert (screen.pick("Head", 3).weights()[numpy.triu_indices(9, 1)] == 0).all()
    assert (screen.pick("Mask", "none").weights() > 0).all()


def test_padding_stands_in_the_shorter_row_and_nobody_looks_at_it(screen: Screen) -> None:
    matrix = example(screen, "mask=padding&row=shorter&batch=A+boat").weights()
    assert (matrix[:, 4:] == 0).all()
    assert matrix[:, :4].sum(axis=1) == pytest.approx(1, abs=1e-5)
    assert (screen.pick("Shown", "longer").weights() > 0).all()
    assert screen.address["row"] == "longer"


def test_a_decoder_predicts_after_the_shorter_text_and_not_after_its_padding(screen: Screen) -> None:
    screen.back_to("/masks?model=induction&mask=padding&row=shorter&text=moon+cheese+frog+ring&batch=moon+cheese")
    assert screen.channel("masks-board")["predicts"] == "Next token after “cheese” (position 2)"
    assert not screen.app.exception and not screen.app.error


def test_our_own_module_takes_every_mask(screen: Screen) -> None:
    address = "mask=both&row=shorter&model=scratch&head=1&text=The+cat+sat+on+mat&batch=The+cat"
    matrix = screen.back_to(f"/masks?{address}").weights()
    assert ((matrix > 0) == (numpy.tri(5, dtype=bool) & (numpy.arange(5) < 2))).all()
    assert "Verified" in screen.words


def test_a_drawing_that_blocks_everything_is_shown_as_rows_of_zeros(screen: Screen) -> None:
    example(screen, f"mask=drawn&cells={to_code(numpy.ones((9, 9), dtype=bool))}")
    assert not screen.weights().any()
    assert "and 3 more have no key left to attend to" in screen.words
    assert not screen.app.error and not screen.app.warning


@pytest.mark.parametrize(
    ("model", "address", "why"),
    [
        ("induction", "text=x+y&mask=prefix&prefix=2", "the model already blocks all these cells"),
        ("induction", "text=x+y&mask=causal", "the model already blocks all these cells"),
        ("all-MiniLM-L6-v2", "text=The+river&mask=padding&row=longer&batch=A", "This row has no padding"),
    ],
)
def test_a_mask_that_changes_nothing_says_why(screen: Screen, model: str, address: str, why: str) -> None:
    words = screen.back_to(f"/masks?{address}&model={model}").words
    assert why in words and "changes nothing here" in words
    run = screen.channel("masks-board")["run"]
    assert not any(run["outputs"]) and not any(map(any, run["heads"]))


def test_another_model_with_fewer_heads_is_told_and_the_mask_acts_in_all(screen: Screen) -> None:
    assert "head 11 only" in example(screen, "mask=causal&in_head=11").words
    screen.pick("Model", "induction")
    assert any("The mask was for head 11 only; induction has" in one for one in screen.warnings)
    assert "in_head" not in screen.address


def test_what_is_cut_of_the_other_sentence_of_a_batch_is_shown(screen: Screen) -> None:
    screen.back_to("/masks?model=all-MiniLM-L6-v2&mask=padding&text=hi&batch=" + "+".join(["b"] * 700))
    assert "The other sentence has 702 tokens" in screen.words


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Visit:
    """A visit in which the page takes what a browser sent."""
    own = Visit()
    monkeypatch.setattr(visit, "here", lambda: own)
    return own


def take(monkeypatch: pytest.MonkeyPatch, told: object) -> None:
    monkeypatch.setattr(widgets, "sent", lambda key, name: told)
    take_choice()


def test_what_was_painted_becomes_the_pages_choice(here: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = numpy.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=bool)
    told = {
        "mask": "drawn",
        "cells": base64.b64encode(numpy.packbits(blocked).tobytes()).decode(),
        "count": 3,
        "weights": "after",
    }
    take(monkeypatch, {**told, "in_layer": 1, "layer": 1, "head": 4, "query": 0, "key": 2})
    chosen, shared = here.selection.of(MASK_CHOICES), here.selection.shared
    assert (from_code(chosen.cells, 3) == blocked).all()
    assert (chosen.mask, chosen.weights, chosen.in_layer, chosen.in_head) == ("drawn", "after", 1, None)
    assert (shared.layer, shared.head, shared.query, shared.key) == (1, 4, 0, 2)


@pytest.mark.parametrize(
    "told",
    [
        None,
        "x",
        {"mask": "<b>", "window": "2", "layer": -1, "head": True},
        {"mask": "drawn", "cells": "!!", "count": 3},
        {"mask": "drawn", "cells": "AAA=", "count": 9},
        {"mask": "drawn", "cells": "AAA=", "count": 10**9},
        {"mask": "drawn", "cells": 7, "count": 3},
    ],
)
def test_what_is_no_mask_of_ours_changes_nothing(here: Visit, monkeypatch: pytest.MonkeyPatch, told: object) -> None:
    before = here.selection
    take(monkeypatch, told)
    assert here.selection.of(MASK_CHOICES) == before.of(MASK_CHOICES) and here.selection.shared == before.shared
