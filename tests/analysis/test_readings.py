"""Readings as traces: their numbers are those of the functions behind them, and what they are is told everywhere."""

from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

import attention_viz as av
from attention_viz.analysis.readings import READINGS, read
from attention_viz.errors import TraceError
from attention_viz.explorer import pack
from attention_viz.explorer.packet import read_packet
from attention_viz.models.model import AttentionModel
from attention_viz.operation import masks
from attention_viz.trace.given.from_weights import attention_of, shares
from attention_viz.trace.trace import Trace
from attention_viz.views.style.captions import caption
from tests.models.families import ids, wrapped
from tests.shipped import shipped

TEXT = "The tokenizer unbelievably splits words"


@pytest.fixture(scope="module")
def minilm() -> AttentionModel:
    model = shipped("all-MiniLM-L6-v2")
    assert isinstance(model, AttentionModel)
    return model


def test_given_weights_are_the_calls_and_an_open_cell_of_zero_is_not_blocked() -> None:
    weights = torch.tensor([[[0.25, 0.75, 0.0], [0.0, 0.0, 0.0]]])
    allowed = torch.tensor([[True, True, True], [True, True, False]])
    call = attention_of(weights, allowed)
    assert_close(call.weights, weights)
    assert call.allowed is allowed and call.output.shape == (1, 2, 0)
    assert_close(shares(4 * weights), weights.double())


def test_norms_and_gradients_are_divided_by_their_rows_sums(minilm: AttentionModel) -> None:
    trace = minilm.trace(TEXT)
    for name, numbers in (
        ("norm", [av.norm_weighted(minilm, trace, layer) for layer in range(6)]),
        ("gradient", av.gradient(minilm, trace)),
    ):
        found = read(name, trace, minilm)
        for layer, one in enumerate(numbers):
            assert_close(found.attention(layer).weights, shares(one).float(), rtol=1e-5, atol=1e-6)
        assert found.provenance.reading == name and found.fidelity.reference.endswith(READINGS[name].label)
        assert torch.equal(found.output, trace.output)
    assert read("raw", trace) is trace


def test_rollout_and_flow_have_one_matrix_a_layer() -> None:
    trace = wrapped("mistral").trace_ids(ids(9))
    rolled, flowed = read("rollout", trace), read("flow", trace)
    assert rolled.head_count(2) == flowed.head_count(2) == 1
    flows = av.flow(trace)
    for layer, rows in enumerate(av.rollout(trace)):
        assert_close(rolled.weights(layer, 0), rows, rtol=1e-5, atol=1e-6)
        assert_close(flowed.weights(layer, 0), flows[layer] / flows[layer].sum(-1, keepdim=True), rtol=1e-5, atol=1e-6)
    # A window of 4: each layer reaches three tokens further back, and never ahead.
    for layer, reach in enumerate((4, 7, 10)):
        window = masks.combine(masks.causal(9), masks.sliding_window(9, reach))
        assert torch.equal(rolled.weights(layer, 0) > 0, window)
        allowed = rolled.attention(layer).allowed
        assert allowed is not None and torch.equal(allowed[0], window)


def test_a_row_that_raised_nothing_stays_zeros_and_open() -> None:
    model = wrapped("llama")
    trace = model.trace_ids(ids(7))
    last = read("gradient", trace).attention(trace.layer_count() - 1)
    assert not last.weights[:, :-1].any()
    sums = last.weights[:, -1].sum(-1)
    assert (sums > 0).any()
    assert_close(sums, (sums > 0).float())
    assert last.allowed is not None and torch.equal(last.allowed.expand(last.shape)[0], masks.causal(7))


def test_one_stream_of_an_encoder_decoder_is_read_and_cross_attention_has_no_rollout() -> None:
    model = shipped("translation")
    assert isinstance(model, AttentionModel)
    trace = model.trace("the boy finds the key")
    found = read("norm", trace, model, "cross")
    assert found.streams == ("cross",) and found.query_tokens() == trace.query_tokens("cross")
    assert_close(found.attention(0).weights.sum(-1), torch.ones(found.attention(0).shape[:2]))
    assert read("raw", trace, stream="cross").streams == ("cross",)
    for name in ("rollout", "flow"):
        assert read(name, trace, stream="decoder").head_count(0) == 1
        with pytest.raises(TraceError, match=f"{name} needs .*; cross-attention has .* two different rows"):
            read(name, trace, stream="cross")


def test_what_a_reading_needs_and_is_not_there_is_refused_by_name(minilm: AttentionModel, tmp_path: Path) -> None:
    trace = minilm.trace("The bank")
    trace.save(tmp_path / "trace.safetensors")
    file = Trace.load(tmp_path / "trace.safetensors")
    with pytest.raises(TraceError, match="needs the model's matrix W_O"):
        read("norm", file)
    with pytest.raises(TraceError, match="needs a trained model; traces from files have none"):
        read("gradient", file)
    with pytest.raises(TraceError, match="our own module is untrained"):
        read("gradient", av.scratch("the cat sat"))
    assert read("rollout", file).head_count(0) == 1
    with pytest.raises(TraceError, match=f"'chance'; choose {', '.join(READINGS)}$"):
        read("chance", trace)
    with pytest.raises(TraceError, match="already read as rollout"):
        read("norm", read("rollout", trace), minilm)


def test_our_own_module_can_be_read_but_for_its_gradients() -> None:
    module = av.load("scratch")
    trace = module.trace("the cat sat")
    assert_close(read("rollout", trace).weights(0, 0), av.rollout(trace)[0])
    assert read("norm", trace, module).head_count(0) == trace.head_count(0)


def test_words_can_be_merged_in_a_reading(minilm: AttentionModel) -> None:
    trace = minilm.trace(TEXT)
    merged = av.merge_words(read("rollout", trace))
    assert merged.query_tokens().labels == av.merge_words(trace).query_tokens().labels
    assert_close(merged.weights(5, 0).sum(-1), torch.ones(7))
    assert merged.provenance.reading == "rollout" and len(merged.provenance.edits) == 2


def test_the_reading_is_told_in_files_pictures_and_the_explorer(minilm: AttentionModel, tmp_path: Path) -> None:
    trace = minilm.trace("The bank")
    assert header(trace)["reading"] is None and caption(trace, 0, 4, "encoder").endswith("layer 0, head 4")
    rolled, normed = read("rollout", trace), read("norm", trace, minilm)
    assert header(rolled)["reading"] == {"label": "Rollout", "together": True}
    assert header(normed)["reading"] == {"label": "Norms", "together": False}
    assert caption(rolled, 0, 0, "encoder").endswith("layer 0, all heads together · Rollout")
    assert caption(normed, 0, 4, "encoder").endswith("layer 0, head 4 · Norms")
    assert "Norms, rows divided by their sums" in av.views.heatmap_svg(normed, 0, 4)
    normed.save(tmp_path / "trace.safetensors")
    assert Trace.load(tmp_path / "trace.safetensors").provenance.reading == "norm"


def header(trace: Trace) -> dict[str, object]:
    return read_packet(pack(trace))[0]


def test_the_raw_reading_of_one_of_three_streams_keeps_what_stands_around_its_calls() -> None:
    model = shipped("translation")
    trace = model.trace("the boy finds the key")
    alone = read("raw", trace, None, "cross")
    assert alone.streams == ("cross",)
    assert alone.layer(0).embeddings is not None and alone.layer(0).source is not None
    assert alone.differentiable
