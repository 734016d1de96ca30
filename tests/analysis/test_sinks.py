"""The weight on the first token beside what is fetched there, against the same worked out from plain modules."""

import math

import numpy
import pytest
import torch
from torch.testing import assert_close
from transformers import PreTrainedModel

import attention_viz as av
from attention_viz.errors import TraceError
from attention_viz.models.model import AttentionModel
from attention_viz.scratch.model import Scratch

TEXT = "The bank of the river was flooded"


def test_the_weight_on_the_first_token_stands_beside_what_is_fetched_there(
    minilm: AttentionModel, eager_minilm: PreTrainedModel
) -> None:
    trace = minilm.trace(TEXT)
    table = av.attention_sinks(minilm, trace)
    assert list(table.columns) == ["weight", "length", "others", "fetched"] and len(table) == 6 * 12
    assert av.attention_sinks(minilm, trace, layer=5).equals(table.loc[[5]])
    for layer, head in [(0, 3), (5, 11)]:
        weights = trace.weights(layer, head)
        dense = eager_minilm.get_submodule(f"encoder.layer.{layer}.attention.output.dense")
        matrix = dense.get_parameter("weight").detach().T[32 * head : 32 * head + 32]
        lengths = (trace.attention(layer).value[head] @ matrix).norm(dim=-1)
        looking = weights[1:-1]  # neither [CLS] nor [SEP] looks
        moved = looking * lengths
        expected = [looking[:, 0].mean(), lengths[0], lengths[1:].mean(), moved[:, 0].sum() / moved.sum()]
        assert_close(
            torch.tensor(table.loc[layer, head].to_numpy()).float(), torch.stack(expected), rtol=1e-4, atol=1e-6
        )


def test_most_heads_of_a_language_model_rest_where_little_is_fetched(smollm2: AttentionModel) -> None:
    trace = smollm2.trace("When Mary and John went to the store, John gave a drink to")
    table = av.attention_sinks(smollm2, trace)
    resting = table[table["weight"] > 0.5]
    # As docs/readings.md tells.
    ratios = numpy.asarray(resting["length"]) / numpy.asarray(resting["others"])
    assert len(table) == 270 and len(resting) == 166 and ratios.max() < 1
    assert round(float(numpy.median(ratios)), 1) == 0.2


def test_a_text_of_one_token_has_nobody_who_looks_back() -> None:
    model = Scratch(d_model=6, heads=2)
    row = av.attention_sinks(model, model.trace("bank")).loc[0, 1]
    assert row["length"] > 0 and all(math.isnan(row[name]) for name in ("weight", "others", "fetched"))


def test_another_models_trace_and_a_missing_stream_are_refused_by_name(minilm: AttentionModel) -> None:
    with pytest.raises(TraceError, match=r"the trace is of scratch, but the matrices are of all-MiniLM-L6-v2"):
        av.attention_sinks(minilm, Scratch().trace(TEXT))
    with pytest.raises(TraceError, match="unknown stream 'cross'; this trace has encoder"):
        av.attention_sinks(minilm, minilm.trace(TEXT), "cross")
