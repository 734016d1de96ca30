"""Hybrids' traces: the layers without a softmax are a stream of their own, exact and checked."""

from typing import Any

import pytest
import torch

import attention_viz as av
from attention_viz.errors import TraceError, UnsupportedModel
from attention_viz.operation.token_mixer import TokenMixer
from tests.recording.mixers.hybrids import build

IDS = (torch.arange(30)[None] * 7) % 97


def trace_of(name: str, **options: Any) -> av.Trace:
    return av.wrap(build(name)).trace_ids(IDS, **options)


def test_a_hybrid_has_its_mixers_by_the_models_own_numbers() -> None:
    trace = trace_of("qwen3_next")
    assert trace.streams == ("decoder", "mixer")
    assert (trace.layer_numbers("decoder"), trace.layer_numbers("mixer")) == ((1,), (0,))
    mixer = trace.attention(0, stream="mixer")
    assert isinstance(mixer, av.TokenMixer) and mixer.kind == "gated delta"
    weights = trace.weights(0, 3, stream="mixer")
    assert weights.shape == (30, 30) and bool((weights < 0).any()) and not weights.triu(1).any()
    assert torch.equal(trace.weights(0, 3), weights)
    assert trace.head_count(0, "mixer") == 4 and trace.label(0, "mixer") == "0"
    assert trace.query_tokens("mixer") == trace.query_tokens("decoder")
    assert torch.allclose(weights @ mixer.head(3).value, mixer.head(3).output, atol=1e-5)


def test_two_branches_of_one_layer_are_two_streams() -> None:
    trace = trace_of("falcon_h1")
    assert trace.layer_numbers("decoder") == trace.layer_numbers("mixer") == (0, 1)
    assert isinstance(trace.attention(1, stream="mixer"), TokenMixer)
    assert not isinstance(trace.attention(1, stream="decoder"), TokenMixer)
    with pytest.raises(TraceError, match="layer 1 is in decoder and mixer"):
        trace.attention(1)


def test_a_layer_with_several_convolutions_has_a_stream_for_each() -> None:
    trace = trace_of("inkling_text")
    assert trace.streams == ("decoder", "mixer", "mixer 2", "mixer 3", "mixer 4")
    assert {layers[0].mixer.per for layers in trace.mixers.values()} == {"channel"}


def test_layers_that_are_not_there_are_refused_by_number() -> None:
    trace = trace_of("qwen3_next")
    with pytest.raises(TraceError, match="layer 1 has no mixer; choose 0"):
        trace.weights(1, 0, stream="mixer")
    with pytest.raises(TraceError, match="'mixer 2'"):
        trace.weights(0, 0, stream="mixer 2")


def test_fidelity_compares_each_mixer_with_its_own_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    model = av.wrap(build("qwen3_next"))
    trace = model.trace_ids(IDS)
    assert trace.fidelity.ok and trace.fidelity.weight_error is not None and 0 < trace.fidelity.weight_error < 1e-5
    assert "own kernel" in trace.fidelity.reference
    monkeypatch.setattr(TokenMixer, "erases", False)
    assert not model.trace_ids(IDS).fidelity.ok
    with pytest.raises(UnsupportedModel):
        av.wrap(build("qwen3_next"))


def test_a_trace_keeps_its_mixers_where_its_tokens_stay() -> None:
    trace = trace_of("bamba")
    for other in (trace.detached(), trace.derived(provenance=trace.provenance), trace.only("decoder")):
        assert torch.equal(other.weights(0, 2, stream="mixer"), trace.weights(0, 2, stream="mixer"))
    assert av.merge_words(trace).mixers == {} or len(av.merge_words(trace).query_tokens()) == 30


def test_functions_of_softmax_attention_go_on_with_it_alone() -> None:
    trace = trace_of("jamba")
    assert {layer for layer, _ in av.head_table(trace).index} == {1}
    assert {layer for layer, _ in av.roles(trace).index} == {1}
    assert all(one.stream == "decoder" for one in av.findings(trace))
    assert {layer for layer, _ in av.head_table(trace, stream="mixer").index} == {0}
