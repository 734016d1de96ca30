"""A decoder's trace of its first tokens: what a run of them alone gives, without the run."""

from dataclasses import replace

import pytest
import torch

import attention_viz as av
from attention_viz.analysis.readings import READINGS, read
from attention_viz.errors import TraceError
from attention_viz.trace.derived import beginning
from tests.shipped import shipped

TEXT = "moon cheese frog ring moon cheese"


def test_it_has_the_numbers_of_a_run_of_the_first_tokens() -> None:
    *_, last = shipped("induction").generate(TEXT, 3)
    count = len(last.query_tokens()) - 2
    found = beginning(last, count)
    *_, before = shipped("induction").generate(TEXT, 1)
    assert found.query_tokens() == before.query_tokens() and found.key_tokens() == before.key_tokens()
    assert found.provenance.generated == 1
    for layer in last.layer_numbers():
        assert torch.allclose(found.attention(layer).weights, before.attention(layer).weights, atol=1e-6)
        assert torch.allclose(found.attention(layer).output, before.attention(layer).output, atol=1e-5)
    assert torch.allclose(found.output, before.output, atol=1e-5)
    assert torch.equal(found.weights(1, 1), last.weights(1, 1)[:count, :count])


@pytest.mark.parametrize("reading", [name for name in READINGS if name != "raw"])
def test_read_in_another_way_it_has_the_numbers_of_a_run_of_the_first_tokens(reading: str) -> None:
    model = shipped("induction")
    *_, last = model.generate(TEXT, 3)
    *_, before = model.generate(TEXT, 1)
    found = read(reading, beginning(last, len(before.query_tokens())), model)
    alone = read(reading, before, model)
    assert found.query_tokens() == alone.query_tokens() and found.provenance.edits == alone.provenance.edits
    for layer in alone.layer_numbers():
        assert alone.attention(layer).weights.any()
        assert torch.allclose(found.attention(layer).weights, alone.attention(layer).weights, atol=1e-5)


def test_a_gradient_that_is_asked_for_is_that_of_the_first_tokens() -> None:
    trace = shipped("induction").trace(TEXT)
    (token, other) = trace.output[3].topk(2).indices.tolist()
    alone = shipped("induction").trace_ids(torch.tensor([trace.query_tokens().numbers[:4]]))
    found = beginning(trace, 4).relevance((3, other))
    for one, same in zip(found.layers["decoder"], alone.relevance((3, other)).layers["decoder"], strict=True):
        assert torch.allclose(one, same, atol=1e-5)
    likeliest = beginning(trace, 4).relevance()
    assert likeliest.of == alone.relevance((3, token)).of != found.of


def test_the_parts_of_a_bias_are_those_of_the_first_tokens() -> None:
    query, bias = torch.randn(2, 4, 3), torch.randn(2, 4, 4)
    trace = av.Trace.from_qkv(query, query, query, av.masks.causal(4), bias=bias, layout="bhsd")
    (layer,) = trace.layers["decoder"]
    (cut,) = beginning(trace.derived(layers={"decoder": (replace(layer, bias_parts={"ALiBi": bias}),)}), 3).layers[
        "decoder"
    ]
    assert torch.equal(cut.bias_parts["ALiBi"], bias[:, :3, :3])


def test_all_tokens_are_the_trace_itself() -> None:
    trace = shipped("induction").trace(TEXT)
    assert beginning(trace, len(trace.query_tokens())) is trace


@pytest.mark.parametrize("count", [0, 99])
def test_no_other_number_of_tokens_is_made_up(count: int) -> None:
    with pytest.raises(TraceError, match="tokens"):
        beginning(shipped("induction").trace(TEXT), count)


def test_where_tokens_look_ahead_the_first_would_have_been_others() -> None:
    with pytest.raises(TraceError, match="attend to later ones"):
        beginning(av.scratch("the cat sat"), 2)
