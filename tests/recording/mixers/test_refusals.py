"""Calls that layers without a softmax can't answer, and what a person is told."""

from pathlib import Path
from typing import Any

import pytest
import torch

import attention_viz as av
from attention_viz.errors import AttentionVizError, AttentionVizWarning, ShapeError, TraceError, UnsupportedModel
from tests.recording.mixers.hybrids import build
from tests.shipped import shipped

TEXT = "anna red , ben blue , then ben green . ben ?"
IDS = (torch.arange(20)[None] * 7) % 97


def test_circuits_from_weights_need_softmax_attention() -> None:
    model = shipped("recall-mamba")
    for ask in (lambda: av.circuits(model), lambda: av.compositions(model), lambda: av.copying(model, [TEXT])):
        with pytest.raises(UnsupportedModel, match="recall-mamba has no softmax attention"):
            ask()
    trace = model.trace(TEXT)
    with pytest.raises(TraceError, match="no softmax attention"):
        av.gradient(model, trace)
    with pytest.raises(ShapeError, match=r"no scores; choose a token's logit, av\.Logit"):
        av.decompose(model, trace, av.Score(0, 0, query=4, key=1, stream="mixer"))


def test_a_missing_layer_or_stream_is_told_with_the_one_that_is_there() -> None:
    trace, pure = shipped("recall").trace(TEXT), shipped("recall-mamba").trace(TEXT)
    with pytest.raises(TraceError, match=r"layer 0 has no softmax attention.*see stream='mixer'"):
        trace.attention(0, stream="decoder")
    with pytest.raises(TraceError, match="unknown stream 'foo'"):
        pure.weights(0, 0, stream="foo")
    with pytest.raises(TraceError, match="choose its stream with other_stream="):
        av.compare(trace, pure, 1, 0, stream="decoder")


@pytest.mark.parametrize("factor", ["x", None, True, -1.0, float("nan")])
@pytest.mark.usefixtures("unchecked")
def test_a_factor_of_decays_is_a_finite_number(factor: Any) -> None:
    with pytest.raises(ShapeError, match="factor must be a finite number"):
        av.Decay(factor)


def test_a_file_of_weights_alone_keeps_what_heads_have(tmp_path: Path) -> None:
    trace = av.wrap(build("recurrent_gemma")).trace_ids(IDS)
    trace.save(tmp_path / "weights", what="weights")
    with pytest.warns(AttentionVizWarning, match="only the weights were stored"):
        back = av.Trace.load(tmp_path / "weights")
    assert torch.allclose(back.weights(0, 3, "mixer"), trace.weights(0, 3, "mixer"))
    assert all(one.stream == "decoder" for one in av.findings(back))
    av.explore(back).save_html(tmp_path / "page.html")
    with pytest.raises(AttentionVizError, match="only the weights"):
        _ = back.attention(0, "mixer").layer_contributions


def test_traces_of_a_batch_say_that_mixers_are_left_out() -> None:
    (one, _) = shipped("recall").trace_together([TEXT, TEXT])
    assert one.streams == ("decoder",)
    assert any("layer 0, without a softmax" in note for note in one.provenance.notes)
