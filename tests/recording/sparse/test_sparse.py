"""Sparse attention is shown as tokens by tokens: the weights that make the model's own output of its own values."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

import attention_viz as av
from attention_viz.errors import UnsupportedModel
from attention_viz.recording.sparse import hearing, reading
from attention_viz.recording.sparse.cells import Cells
from attention_viz.recording.sparse.positions import Positions
from attention_viz.recording.sparse.reading import Reading
from attention_viz.recording.sparse.turn import Turn, TurnRun
from tests.models.families import built, ids, run
from tests.recording.sparse.cases import (
    FULL,
    LENGTHS,
    LONGFORMER,
    PROPHETNET,
    SPARSE,
    sparse,
    weights_by_one_hot,
    wrapped_sparse,
)


def inputs_of(count: int, padded: str) -> tuple[Tensor, Tensor]:
    mask = torch.ones(1, count, dtype=torch.long)
    if padded != "unpadded":
        mask[:, slice(None, 2) if padded == "left" else slice(-2, None)] = 0
    return ids(count), mask


def traced(family: str, count: int, padded: str = "unpadded") -> tuple[av.Trace, dict[str, Tensor]]:
    """A text's trace, and its inputs."""
    tokens, mask = inputs_of(count, padded)
    wrapped = wrapped_sparse(family)
    target = ids(5, start=7) if "cross" in wrapped.streams else None
    given = {"input_ids": tokens, "attention_mask": mask}
    more = {} if target is None else {"decoder_input_ids": target}
    return wrapped.trace_ids(tokens, mask, decoder_input_ids=target), given | more


@pytest.mark.parametrize("padded", ["unpadded", "left", "right"])
@pytest.mark.parametrize(("family", "count"), [(name, count) for name in SPARSE for count in LENGTHS[name]])
def test_weights_are_those_that_one_hot_values_show(family: str, count: int, padded: str) -> None:
    if count < 4 and padded != "unpadded":
        pytest.skip("padding leaves nothing of so short a text")
    trace, given = traced(family, count, padded)
    assert trace.fidelity.ok, trace.fidelity
    assert trace.provenance.route == "interception"
    own = weights_by_one_hot(sparse(family), SPARSE[family][3], given, count)
    stream, mask = trace.streams[0], given["attention_mask"][0].bool()
    rows, columns = (torch.ones(len(one)).bool() for one in (trace.query_tokens(stream), trace.key_tokens(stream)))
    rows[:count] = columns[:count] = mask
    assert trace.layer_count(stream) == len(own)
    for layer, theirs in zip(trace.layer_numbers(stream), own, strict=True):
        ours = trace.attention(layer, stream).weights
        torch.testing.assert_close(ours[:, rows], theirs[:, rows], rtol=0, atol=1e-5)
        torch.testing.assert_close(ours[:, rows].sum(-1), torch.ones(len(ours), int(rows.sum())))
        assert not bool(ours[:, rows][..., ~columns].any())
        # A shifted window would show.
        assert count < 3 or float((ours[:, rows] - theirs.roll(1, -1)[:, rows]).abs().max()) > 0.1


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
    return replace(cells, columns=cells.columns.roll(1, -1), times=cells.times.roll(1, -1))


def _shifted_rows(cells: Cells) -> Cells:
    return replace(cells, rows=cells.rows.roll(1, -1))


def _shifted_heads(cells: Cells) -> Cells:
    return replace(cells, columns=cells.columns.roll(1, 0), rows=cells.rows.roll(1, 0))


def check_refused(family: str, name: str, wrong: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> None:
    count = LENGTHS[family][-1]
    assert traced(family, count)[0].fidelity.ok
    monkeypatch.setattr(reading, name, wrong)
    with pytest.raises((UnsupportedModel, IndexError)):
        _ = traced(family, count)


@pytest.mark.parametrize("spoil", [_shifted_windows, _shifted_rows, _shifted_heads])
@pytest.mark.parametrize("family", SPARSE)
def test_cells_in_wrong_places_are_refused(
    family: str, spoil: Callable[[Cells], Cells], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = reading.cells_of

    def wrong(turn: Turn, first: TurnRun) -> Cells:
        return spoil(right(turn, first))

    check_refused(family, "cells_of", wrong, monkeypatch)


@pytest.mark.parametrize("family", SPARSE)
def test_tokens_named_one_off_are_refused(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = reading.positions_of

    def wrong(turn: Turn, first: TurnRun, cells: Cells, count: int) -> Positions:
        found = right(turn, first, cells, count)
        (rows, own), (columns, slots) = found.queries, found.keys
        shifted = [
            range(one.start - 1, one.stop - 1) if one.start else range(1, one.stop + 1) for one in (rows, columns)
        ]
        return replace(found, queries=(shifted[0], own), keys=(shifted[1], slots))

    check_refused(family, "positions_of", wrong, monkeypatch)


@pytest.mark.parametrize("family", SPARSE)
def test_a_head_that_is_left_out_is_found(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right, count = hearing.read, LENGTHS[family][-1]

    def wrong(turn: Turn, count: int) -> Reading:
        found = right(turn, count)
        value = found.attention.value.clone()
        value[0] = 0
        return replace(found, attention=replace(found.attention, value=value))

    assert traced(family, count)[0].fidelity.ok
    monkeypatch.setattr(hearing, "read", wrong)
    assert not traced(family, count)[0].fidelity.ok


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


def test_slots_are_named_by_the_tokens_that_they_sum_or_by_numbers() -> None:
    summaries, own = (traced(name, 13)[0] for name in ("longt5, summaries", "pegasus_x"))
    assert len(summaries.query_tokens()) == 13
    assert summaries.key_tokens().names[13:] == ("block 0–3", "block 4–7", "block 8–11")
    assert not any(traced("longt5, summaries", 3)[0].key_tokens().slots)
    numbers = tuple(f"global token {number}" for number in range(3))
    assert own.query_tokens("encoder").names[13:] == own.key_tokens("encoder").names[13:] == numbers
    assert own.query_tokens("decoder").slots == (None,) * 5


def test_a_summary_is_the_block_that_its_name_says() -> None:
    """Changing a token moves the key of its own block alone; those left over are in the last one."""
    wrapped, tokens = wrapped_sparse("longt5, summaries"), ids(13)
    before = wrapped.trace_ids(tokens).attention(0).key[:, 13:]
    for at in range(13):
        other = tokens.clone()
        other[0, at] += 1
        after = wrapped.trace_ids(other).attention(0).key[:, 13:]
        moved = (after != before).any(-1).any(0)
        assert moved.nonzero().flatten().tolist() == [min(at // 4, 2)]


@pytest.mark.parametrize("family", ["longt5, summaries", "pegasus_x", "prophetnet"])
def test_a_blocked_slot_is_blocked_in_the_model(family: str) -> None:
    before = traced(family, 13)[0]
    stream = before.streams[0]
    weights = before.attention(0, stream).weights[..., 13:]
    query, slot = divmod(int(weights.amax(0).argmax()), weights.shape[-1])
    assert float(weights[:, query, slot].max()) > 0.1
    tokens, mask = inputs_of(13, "unpadded")
    target = ids(5, start=7) if "cross" in before.streams else None
    edits = (av.Block(query, 13 + slot, layer=0, stream=stream),)
    after = wrapped_sparse(family).trace_ids(tokens, mask, decoder_input_ids=target, edits=edits)
    assert not bool(after.attention(0, stream).weights[:, query, 13 + slot].any())
    assert not torch.allclose(before.output, after.output)


def test_prophetnets_predictions_are_rows_of_its_decoder_and_of_cross_attention() -> None:
    model = built("ProphetNetForConditionalGeneration", "ProphetNetConfig", PROPHETNET)
    trace = av.wrap(model).trace_ids(ids(13), decoder_input_ids=ids(3, start=7))
    assert trace.fidelity.ok, trace.fidelity
    names = tuple(f"prediction {ahead} at {at}" for ahead in (1, 2) for at in range(3))
    assert trace.query_tokens("decoder").names[3:] == trace.key_tokens("decoder").names[3:] == names
    assert trace.query_tokens("cross").names[3:] == names and len(trace.key_tokens("cross")) == 13
    texts = {"input_ids": ids(13), "decoder_input_ids": ids(3, start=7)}
    given = run(model, **texts, output_attentions=True, use_cache=False)
    weights = trace.attention(1, "decoder").weights
    torch.testing.assert_close(weights[:, :3, :3], given["decoder_attentions"][1][0], rtol=0, atol=1e-6)
    for ahead, theirs in enumerate(given["decoder_ngram_attentions"][1][0]):
        rows = slice(3 + 3 * ahead, 6 + 3 * ahead)
        torch.testing.assert_close(weights[:, rows, :3], theirs[..., :3], rtol=0, atol=1e-6)
        torch.testing.assert_close(weights[:, rows, rows], theirs[..., 3:], rtol=0, atol=1e-6)
    crossing = given["cross_attentions"][0][0].softmax(-1)  # it returns logits
    torch.testing.assert_close(trace.attention(0, "cross").weights, crossing, rtol=0, atol=1e-6)


def test_every_copy_of_bigbirds_first_block_counts() -> None:
    """Where transformers would choose random blocks while training, a model in use reads the first again."""
    trace, _ = traced("big_bird", 23)
    call = trace.attention(0)
    assert call.bias is not None
    assert torch.allclose(call.bias[:, 8:12, :2], torch.tensor(3.0).log())
    assert not bool(call.bias[:, :2].any())


@pytest.mark.parametrize("family", FULL)
def test_texts_decide_whether_bigbird_attends_sparsely(family: str) -> None:
    short, long, again = (traced(family, count)[0] for count in (13, FULL[family] + 1, 13))
    assert torch.equal(short.attention(0, "encoder").weights, again.attention(0, "encoder").weights)
    for trace, is_sparse in ((short, False), (long, True)):
        allowed = trace.attention(0, "encoder").allowed
        assert trace.fidelity.ok
        assert (allowed is not None and not bool(allowed.all())) == is_sparse
    assert wrapped_sparse(family).limit == 64


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
