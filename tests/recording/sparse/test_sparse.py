"""Sparse attention is shown as tokens by tokens: the weights that make the model's own output of its own values."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

import attention_viz as av
from attention_viz.errors import UnsupportedModel
from attention_viz.recording.sparse import hearing, reading
from attention_viz.recording.sparse.reading import Cells, Reading
from attention_viz.recording.sparse.turn import Turn, TurnRun
from tests.models.families import built, ids, run
from tests.recording.sparse.cases import LONGFORMER, PAIR, SPARSE, T5, sparse, weights_by_one_hot, wrapped_sparse


def inputs_of(count: int, padded: str) -> tuple[Tensor, Tensor]:
    mask = torch.ones(1, count, dtype=torch.long)
    if padded != "unpadded":
        mask[:, slice(None, 2) if padded == "left" else slice(-2, None)] = 0
    return ids(count), mask


@pytest.mark.parametrize(("count", "padded"), [(1, "unpadded"), (3, "unpadded"), (13, "left"), (13, "right")])
@pytest.mark.parametrize("family", SPARSE)
def test_weights_are_those_that_one_hot_values_show(family: str, count: int, padded: str) -> None:
    tokens, mask = inputs_of(count, padded)
    model, wrapped = sparse(family), wrapped_sparse(family)
    given = {"input_ids": tokens, "attention_mask": mask}
    target = ids(5, start=7) if "cross" in wrapped.streams else None
    more = {} if target is None else {"decoder_input_ids": target}
    trace = wrapped.trace_ids(tokens, mask, decoder_input_ids=target)
    assert trace.fidelity.ok, trace.fidelity
    assert trace.provenance.route == "interception"
    own = weights_by_one_hot(model, SPARSE[family][3], given | more, count)
    (stream, *_), real = trace.streams, mask[0].bool()
    assert trace.layer_count(stream) == len(own)
    for layer, theirs in zip(trace.layer_numbers(stream), own, strict=True):
        ours = trace.attention(layer, stream).weights
        torch.testing.assert_close(ours[:, real], theirs[:, real], rtol=0, atol=1e-5)
        torch.testing.assert_close(ours[:, real].sum(-1), torch.ones(len(ours), int(real.sum())))
        assert not bool(ours[:, real][..., ~real].any())
        # A shifted window would show.
        assert count < 3 or float((ours[:, real] - theirs.roll(1, -1)[:, real]).abs().max()) > 0.1


@pytest.mark.parametrize("padded", ["unpadded", "left", "right"])
def test_longformers_weights_are_those_it_returns(padded: str) -> None:
    tokens, mask = inputs_of(13, padded)
    given = run(sparse("longformer"), input_ids=tokens, attention_mask=mask, output_attentions=True)["attentions"]
    trace, real = wrapped_sparse("longformer").trace_ids(tokens, mask), mask[0].bool()
    for layer, windows in enumerate(given):
        theirs = torch.zeros(2, 13, 13)
        for query in range(13):
            for column in range(5):
                if 0 <= query + column - 2 < 13:
                    theirs[:, query, query + column - 2] = windows[0, :, query, column]
        torch.testing.assert_close(trace.attention(layer).weights[:, real], theirs[:, real], rtol=0, atol=1e-6)
        assert float(theirs[:, real].amax(-1).mean()) < 0.99, "attention tells nothing here"


def test_edits_change_what_the_model_computes() -> None:
    model = wrapped_sparse("longformer")
    before, after = model.trace_ids(ids(13)), model.trace_ids(ids(13), edits=(av.Block(5, 4, layer=0),))
    assert bool((before.attention(0).weights[:, 5, 4] > 0).all())
    assert not bool(after.attention(0).weights[:, 5, 4].any())
    assert not torch.allclose(before.output, after.output)


def _shifted_windows(cells: Cells) -> Cells:
    return replace(cells, columns=cells.columns.roll(1, -1))


def _shifted_rows(cells: Cells) -> Cells:
    return replace(cells, rows=cells.rows.roll(1, -1))


def _shifted_heads(cells: Cells) -> Cells:
    return replace(cells, columns=cells.columns.roll(1, 0), rows=cells.rows.roll(1, 0))


@pytest.mark.parametrize("spoil", [_shifted_windows, _shifted_rows, _shifted_heads])
def test_cells_in_wrong_places_are_refused(spoil: Callable[[Cells], Cells], monkeypatch: pytest.MonkeyPatch) -> None:
    right = reading.cells_of

    def wrong(turn: Turn, first: TurnRun) -> Cells:
        return spoil(right(turn, first))

    monkeypatch.setattr(reading, "cells_of", wrong)
    with pytest.raises(UnsupportedModel, match=r"longformer .*LongformerSelfAttention"):
        av.wrap(sparse("longformer"))


def test_a_head_that_is_left_out_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    right = hearing.read

    def wrong(turn: Turn, count: int) -> Reading:
        found = right(turn, count)
        value = found.attention.value.clone()
        value[0] = 0
        return replace(found, attention=replace(found.attention, value=value))

    monkeypatch.setattr(hearing, "read", wrong)
    with pytest.raises(UnsupportedModel, match=r"longformer .*output off"):
        av.wrap(sparse("longformer"))


def test_global_tokens_have_heads_of_their_own() -> None:
    """Longformer's classifier lets the first token attend to all, by projections of its own."""
    model = built("LongformerForSequenceClassification", "LongformerConfig", LONGFORMER)
    tokens, mask = inputs_of(13, "right")
    trace = av.wrap(model).trace_ids(tokens, mask)
    assert trace.fidelity.ok, trace.fidelity
    given = run(model, input_ids=tokens, attention_mask=mask, output_attentions=True)
    for layer, theirs in enumerate(given["global_attentions"]):
        weights = trace.attention(layer).weights
        assert len(weights) == 4
        torch.testing.assert_close(weights[2:, 0], theirs[0, :, :13, 0], rtol=0, atol=1e-6)
        assert not bool(weights[2:, 1:].any()) and not bool(weights[:2, 0].any())
        local = given["attentions"][layer][0]  # the global token's weight, then the window's
        torch.testing.assert_close(weights[:2, 8, 0], local[:, 8, 0], rtol=0, atol=1e-6)
        torch.testing.assert_close(weights[:2, 8, 6:11], local[:, 8, 1:], rtol=0, atol=1e-6)


def test_several_rounds_of_buckets_are_refused_with_what_is_needed() -> None:
    name, config, sizes, _ = SPARSE["reformer, buckets"]
    with pytest.raises(UnsupportedModel, match="in several rounds and weighs them; use a model with one round"):
        av.wrap(built(name, config, sizes | {"num_hashes": 2}))


@pytest.mark.parametrize(
    ("model_class", "config_class", "sizes", "reason"),
    [
        (
            "LongT5EncoderModel",
            "LongT5Config",
            T5 | {"encoder_attention_type": "transient-global", "global_block_size": 4},
            r"attends to .* positions, but the text has 11 tokens: some are summaries or global tokens",
        ),
        ("PegasusXModel", "PegasusXConfig", PAIR | {"block_size": 4, "num_global_tokens": 3}, "global tokens"),
    ],
)
def test_positions_that_are_not_the_texts_are_refused(
    model_class: str, config_class: str, sizes: dict[str, object], reason: str
) -> None:
    with pytest.raises(UnsupportedModel, match=reason):
        av.wrap(built(model_class, config_class, sizes))


def test_rollout_weighs_a_row_by_the_heads_that_it_has() -> None:
    model = built("LongformerForSequenceClassification", "LongformerConfig", LONGFORMER)
    tokens, mask = inputs_of(13, "right")
    trace = av.wrap(model).trace_ids(tokens, mask)
    shares = torch.eye(13, dtype=torch.float64)
    for layer in trace.layer_numbers():
        weights = trace.attention(layer).weights.double()
        rows = (weights[:2] + weights[2:]).mean(dim=0) + torch.eye(13, dtype=torch.float64)
        shares = (rows / rows.sum(dim=-1, keepdim=True)) @ shares
    torch.testing.assert_close(av.rollout(trace)[-1].double(), shares, rtol=0, atol=1e-6)
    flows = av.flow(trace, layers=[0], queries=[0])[0, 0]
    torch.testing.assert_close(flows, av.rollout(trace)[0, 0], rtol=0, atol=1e-6)
