"""A mask inside the model, measured against plain transformers and plain torch given the same mask."""

from typing import Any

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

import attention_viz as av
from attention_viz.edits.effects import moved_output, moved_weight
from attention_viz.errors import ShapeError, TraceError, UnusableText
from attention_viz.explorer.limits import LONGEST_DRAWN
from attention_viz.inputs.check import trace_filled
from attention_viz.scratch.model import Scratch
from attention_viz.ui.address import State
from attention_viz.ui.address.cells import from_code, to_code
from attention_viz.ui.address.codec import read, write
from attention_viz.ui.address.kinds import fits_link
from attention_viz.ui.pages.masks.page import MASKS, MaskChoice, edits

BANK = "The bank of the river was flooded"
SHORT = "A boat drifted by"


@pytest.fixture
def model(minilm: av.AttentionModel) -> av.AttentionModel:
    return minilm


@pytest.fixture(scope="module")
def plain(eager_minilm: Any) -> tuple[Any, Any]:
    """The same model without anything of ours."""
    from transformers import AutoTokenizer

    return eager_minilm, AutoTokenizer.from_pretrained(av.CATALOGUE["all-MiniLM-L6-v2"].path)


def eager(plain: tuple[Any, Any], ids: torch.Tensor, allowed: torch.Tensor) -> Any:
    """Plain transformers with a 4-D mask to be added."""
    added = torch.zeros(allowed.shape).masked_fill(~allowed, torch.finfo(torch.float32).min)[None, None]
    with torch.no_grad():
        return plain[0](input_ids=ids, attention_mask=added, output_attentions=True)


@pytest.mark.parametrize("mask", ["causal", "window", "prefix"])
def test_weights_of_every_layer_and_the_output_are_those_of_transformers_given_the_mask(
    mask: str, model: av.AttentionModel, plain: tuple[Any, Any]
) -> None:
    ids = plain[1](BANK, return_tensors="pt").input_ids
    (edit,) = edits(MaskChoice(mask, window=3, prefix=4), model.trace(BANK).query_tokens())
    trace = model.trace(BANK, edits=[edit])
    expected = eager(plain, ids, edit.allowed)
    for layer in range(6):
        assert_close(trace.attention(layer).weights, expected.attentions[layer][0], atol=1e-5, rtol=0)
    assert_close(trace.output, expected.last_hidden_state[0], atol=1e-4, rtol=1e-4)


def test_a_mask_on_padding_gives_the_weights_of_a_batch_with_its_attention_mask(
    model: av.AttentionModel, plain: tuple[Any, Any]
) -> None:
    batch = plain[1]([BANK, SHORT], padding=True, return_tensors="pt")
    with torch.no_grad():
        expected = plain[0](**batch, output_attentions=True)
    length = batch.input_ids.shape[1]
    for row, text in enumerate((BANK, SHORT)):
        tokens = trace_filled(model, text, length).query_tokens()
        assert tokens.ids == tuple(batch.input_ids[row].tolist())
        assert tokens.padding == tuple((batch.attention_mask[row] == 0).tolist())
        trace = trace_filled(model, text, length, edits(MaskChoice("padding"), tokens))
        assert trace.provenance.text == text
        for layer in range(6):
            assert_close(trace.attention(layer).weights, expected.attentions[layer][row], atol=1e-5, rtol=0)


def test_our_own_module_fills_up_a_row_and_keeps_the_weights_of_the_short_sentence() -> None:
    own = Scratch(d_model=12, heads=3)
    open_to_all = trace_filled(own, "The cat sat", 5)
    tokens = open_to_all.query_tokens()
    assert tokens.labels == ("The", "cat", "sat", "[PAD]", "[PAD]")
    assert tokens.padding == (False, False, False, True, True)
    assert open_to_all.weights(0, 1)[:, 3:].min() > 0
    masked = trace_filled(own, "The cat sat", 5, edits(MaskChoice("padding"), tokens))
    assert masked.weights(0, 1)[:, 3:].max() == 0
    assert_close(masked.weights(0, 1)[:3, :3], own.trace("The cat sat").weights(0, 1))


def test_a_row_is_filled_up_and_never_cut() -> None:
    with pytest.raises(ShapeError, match=r"3 tokens; got 2"):
        trace_filled(Scratch(), "The cat sat", 2)
    with pytest.raises(UnusableText):
        trace_filled(Scratch(), " ", 4)


def test_padding_and_causal_block_what_either_blocks() -> None:
    tokens = trace_filled(Scratch(), "The cat sat", 5).query_tokens()
    (both,) = edits(MaskChoice("both"), tokens)
    assert av.masks.recognise(both.allowed) == av.masks.Pattern("causal", padding=(3, 4))


@pytest.mark.parametrize("mask", MASKS)
def test_blocked_cells_are_exactly_nought_and_rows_sum_to_one_or_nought(mask: str) -> None:
    blocked = numpy.zeros((5, 5), dtype=bool)
    blocked[1] = blocked[3, 2] = True
    tokens = trace_filled(Scratch(), "The cat sat", 5).query_tokens()
    added = edits(MaskChoice(mask, cells=to_code(blocked)), tokens)
    weights = trace_filled(Scratch(), "The cat sat", 5, added).weights(0, 1)
    assert all((weights[~edit.allowed] == 0).all() for edit in added)
    total = weights.sum(dim=-1)
    assert torch.all((total - 1).abs().lt(1e-6) | (total == 0))
    assert (total == 0).any() == (mask == "drawn")


def test_in_one_layer_and_head_nothing_before_changes_and_something_after_does(model: av.AttentionModel) -> None:
    before = model.trace(BANK)
    after = model.trace(BANK, edits=[av.Allow(av.masks.causal(9), layer=2, head=7)])
    for layer in range(2):
        assert torch.equal(after.attention(layer).weights, before.attention(layer).weights)
    others = [head for head in range(12) if head != 7]
    assert torch.equal(after.attention(2).weights[others], before.attention(2).weights[others])
    moved = moved_weight(before, after)
    assert moved[:2].max() == 0
    assert (moved[2] > 0).nonzero().flatten().tolist() == [7]
    assert moved[3:].min() > 0
    assert moved_output(before, after).max() > 1e-3


def test_moved_weight_is_the_total_variation_distance_averaged_over_real_queries() -> None:
    own = Scratch(d_model=12, heads=3)
    before = trace_filled(own, "The cat sat", 5)
    after = trace_filled(own, "The cat sat", 5, edits(MaskChoice("padding"), before.query_tokens()))
    by_hand = (before.attention(0).weights - after.attention(0).weights).abs().sum(-1)[:, :3].mean(-1) / 2
    assert_close(moved_weight(before, after)[0], by_hand)


def test_a_row_that_lost_everything_counts_as_wholly_moved() -> None:
    before = av.scratch("The cat sat")
    nothing = Scratch().trace("The cat sat", edits=[av.Allow(torch.zeros(3, 3, dtype=torch.bool))])
    assert_close(moved_weight(before, nothing), torch.ones(1, 2))
    assert_close(moved_output(before, nothing), torch.ones(3))


def test_runs_of_different_texts_are_not_compared() -> None:
    with pytest.raises(TraceError, match="same tokens"):
        moved_weight(av.scratch("one two"), av.scratch("one three"))
    with pytest.raises(TraceError, match="equal shapes"):
        moved_output(av.scratch("one two"), av.scratch("one"))


@settings(max_examples=60)
@given(st.integers(1, 30), st.integers(0, 2**32), st.sampled_from([0.0, 0.05, 0.5, 1.0]))
def test_a_drawing_survives_the_address(count: int, seed: int, share: float) -> None:
    blocked = numpy.random.default_rng(seed).random((count, count)) < share
    code = to_code(blocked)
    choice = MaskChoice("drawn", cells=code)
    again, notices = read(MaskChoice(), write(choice), State())
    assert (again, notices) == (choice, [])
    assert (from_code(again.cells, count) == blocked).all()


def test_a_drawing_of_the_longest_text_stays_a_short_link() -> None:
    causal = numpy.triu(numpy.ones((LONGEST_DRAWN, LONGEST_DRAWN), dtype=bool), 1)
    assert fits_link(to_code(causal))


@given(st.text(max_size=60))
def test_cells_of_someone_else_are_refused_in_words(code: str) -> None:
    try:
        assert from_code(code, 4).shape == (4, 4)
    except ShapeError as error:
        assert "cells" in str(error)


@pytest.mark.parametrize(
    "code", ["4", "4-", "-", "x-eNpj", "4-AAAA", "0-eNpj", "9999-eNpj", "4-" + "A" * 5000, "４-eNpj"]
)
def test_a_broken_code_names_what_came(code: str) -> None:
    with pytest.raises(ShapeError, match="can't read the cells"):
        from_code(code, 4)


def test_a_small_code_that_unfolds_to_much_is_refused() -> None:
    import base64
    import zlib

    bomb = base64.urlsafe_b64encode(zlib.compress(bytes(10**7), 9)).decode().rstrip("=")
    with pytest.raises(ShapeError, match="can't read the cells “4-"):
        from_code(f"4-{bomb}", 4)


def test_a_drawing_for_another_length_says_both_lengths() -> None:
    with pytest.raises(ShapeError, match="for 3 tokens; this text has 5"):
        from_code(to_code(numpy.eye(3, dtype=bool)), 5)


@pytest.mark.parametrize(
    "choice",
    [
        MaskChoice("none"),
        MaskChoice("window", window=0),
        MaskChoice("prefix", prefix=7, in_layer=3),
        MaskChoice("both", batch="x\ny &=?", row="longer", in_layer=0, in_head=11),
        MaskChoice("causal", in_head=0),
    ],
)
def test_an_address_reproduces_the_mask(choice: MaskChoice) -> None:
    assert read(MaskChoice(), write(choice), State()) == (choice, [])


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("mask", "x"),
        ("mask", ""),
        ("window", "-1"),
        ("window", "3.5"),
        ("prefix", "１"),
        ("row", "3"),
        ("in_layer", "6"),
        ("in_head", "all"),
    ],
)
def test_a_part_of_the_address_that_cannot_be_had_is_named(name: str, given: str) -> None:
    others = {part: "5" for part in ("window", "prefix") if part != name}
    choice, (notice,) = read(MaskChoice(), {**others, name: given}, State())
    assert choice == MaskChoice(**{part: 5 for part in others})
    assert name in notice
    assert f"“{given}”" in notice


def test_an_edited_run_carries_the_fidelity_of_the_unedited(model: av.AttentionModel) -> None:
    after = model.trace(BANK, edits=[av.Allow(av.masks.causal(9))])
    assert after.fidelity.ok
    assert after.fidelity.reference.endswith("before the edits")
    assert after.fidelity.output_error is not None
