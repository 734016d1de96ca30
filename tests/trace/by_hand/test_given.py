"""Traces of queries, keys and values, or of weights alone, that somebody has in hand."""

from pathlib import Path

import pytest
import torch

import attention_viz as av
from attention_viz.analysis.plane import queries_and_keys_plane
from attention_viz.scratch.model import Scratch
from attention_viz.steps.head import open_head

WORDS = "a cat saw a dog".split()
MADE = torch.Generator().manual_seed(0)
Q, K, V = (torch.randn(2, 4, 5, 3, generator=MADE) for _ in range(3))
SHARES = torch.rand(2, 4, 5, 5, generator=MADE).softmax(-1)


def test_queries_keys_and_values_are_computed_with_and_compared_with_torchs() -> None:
    trace = av.Trace.from_qkv(Q[0], K[0, :2], V[0, :2], av.masks.causal(5), labels=WORDS)
    expected = (Q[0] @ K[0, :2].repeat_interleave(2, 0).mT / 3**0.5).masked_fill(~av.masks.causal(5), -torch.inf)
    assert torch.allclose(trace.attention(0).weights, expected.softmax(-1), atol=1e-6)
    assert trace.streams == ("decoder",) and trace.fidelity.ok and "torch's own" in trace.fidelity.reference
    assert trace.query_tokens().ids == (0, 1, 2, 0, 4), "equal words have one id"
    assert trace.output.shape == (5, 12) and open_head(trace, 0, 1).attention.scores.shape == (5, 5)


def test_every_term_is_taken_and_what_torchs_lacks_is_compared_in_float64() -> None:
    sinks, bias = torch.randn(4), torch.randn(5, 5)
    capped = av.Trace.from_qkv(Q[0], K[0], V[0], scale=0.7, bias=bias, softcap=2.0, sinks=sinks)
    same = av.attend(Q[0], K[0], V[0], scale=0.7, bias=bias, softcap=2.0, sinks=sinks)
    assert torch.equal(capped.attention(0).weights, same.weights)
    assert capped.fidelity.ok and "float64" in capped.fidelity.reference
    assert av.Trace.from_qkv(Q[0], K[0], V[0], scale=0.7, bias=bias).fidelity.ok


def test_layers_are_lists_and_rows_of_a_batch_are_named() -> None:
    trace = av.Trace.from_qkv([*Q], [*K], [*V], [None, av.masks.causal(5)])
    assert trace.layer_count() == 2 and trace.streams == ("encoder",) and trace.attention(1).allowed is not None
    second = av.Trace.from_qkv(Q, K, V, av.masks.causal(5), batch=1)
    assert torch.equal(second.weights(0, 2), trace.weights(1, 2))
    assert torch.equal(av.Trace.from_qkv(Q, K, V, batch=0).weights(0, 2), trace.weights(0, 2))
    for ask in (lambda: av.Trace.from_qkv(Q, K, V), lambda: av.Trace.from_weights(SHARES)):
        with pytest.raises(av.ShapeError, match="batch=0 to 1"):
            ask()
    with pytest.raises(av.ShapeError, match="row 2 of a batch of 2"):
        av.Trace.from_qkv(Q, K, V, batch=2)
    with pytest.raises(av.ShapeError, match="a list each"):
        av.Trace.from_qkv([*Q], K[0], V[0])
    crossing = av.Trace.from_qkv(Q[0, :, :2], K[0], V[0], labels=["x", "y"], key_labels=WORDS)
    assert crossing.streams == ("cross",) and crossing.key_tokens().labels == tuple(WORDS)


@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.bfloat16])
def test_weights_are_drawn_as_they_came(kind: torch.dtype, tmp_path: Path) -> None:
    weights = [one.to(kind)[None] for one in SHARES]  # as transformers hands them out
    trace = av.Trace.from_weights(tuple(weights), WORDS)
    assert trace.layer_count() == 2 and trace.head_count(0) == 4
    given = weights[1][0, 3].float()
    assert torch.allclose(trace.weights(1, 3), given / given.sum(-1, keepdim=True), atol=1e-6)
    trace.save(tmp_path / "own.safetensors")
    loaded = av.Trace.load(tmp_path / "own.safetensors")
    assert torch.equal(loaded.weights(1, 3), trace.weights(1, 3)) and not loaded.fidelity.ok
    assert trace.fidelity.weight_error <= 5e-3 and not trace.fidelity.ok, "nobody ran anything"


def test_pictures_tables_metrics_and_the_explorer_draw_weights_alone(tmp_path: Path) -> None:
    numbers = SHARES[0].numpy()
    trace = av.Trace.from_weights(numbers, WORDS, name="mine")
    assert av.views.heatmap(trace, 0, 1).data and av.views.head_grid(trace).data
    table = trace.table(head=2)
    assert table["weight"].to_numpy().reshape(5, 5) == pytest.approx(numbers[2], abs=1e-6)
    assert (av.head_table(trace)["entropy"] > 0).all() and len(av.find_heads(trace, "dog", "cat")) == 4
    av.explore(trace).save_html(tmp_path / "own.html")
    assert "mine" in (tmp_path / "own.html").read_text("utf-8")
    closed = av.Trace.from_weights(torch.eye(5), allowed=av.masks.causal(5))
    assert closed.streams == ("decoder",) and bool((closed.weights(0, 0) == torch.eye(5)).all())


def test_what_needs_queries_and_keys_says_so_by_name() -> None:
    trace = av.Trace.from_weights(SHARES[0], WORDS)
    for ask, name in (
        (lambda: open_head(trace, 0, 0), "the steps of a head"),
        (lambda: av.views.steps(trace, 0, 0), "the steps of a head"),
        (lambda: queries_and_keys_plane(trace, 0, 0), "queries and keys"),
        (lambda: av.norm_weighted(Scratch(8, 2), trace, 0), "norm-weighted"),
        (lambda: trace.relevance(), "gradients"),
        (lambda: trace.value_zeroing(), "value zeroing"),
    ):
        with pytest.raises(av.TraceError, match=name):
            ask()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (SHARES[0] * 0.9, r"row 0 of head 0 of layer 0 sums to 0.9.*sinks=…"),
        (SHARES[0] - 0.3, "below 0"),
        (torch.full((1, 2, 2), torch.nan), "not numbers"),
        (torch.ones(2, 2, dtype=torch.int64), "floating"),
        (torch.ones(3), r"\(3,\)"),
        ([], "no weights"),
        ("abc", "tensors; got str"),
        ([torch.eye(2), torch.eye(3)], "the same tokens in every layer"),
    ],
)
def test_what_are_no_weights_is_refused(weights: object, message: str) -> None:
    with pytest.raises(av.AttentionVizError, match=message):
        av.Trace.from_weights(weights)


def test_a_weight_where_nobody_may_look_and_labels_that_dont_fit_are_refused() -> None:
    with pytest.raises(av.TraceError, match="`allowed` says"):
        av.Trace.from_weights(SHARES[0], allowed=av.masks.causal(5))
    with pytest.raises(av.TraceError, match="2 labels were given for 5 queries"):
        av.Trace.from_weights(SHARES[0], ["x", "y"])
    with pytest.raises(av.TraceError, match="'side'"):
        av.Trace.from_weights(SHARES[0], stream="side")
