"""Traces of queries, keys and values, or of weights alone, that somebody has in hand."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

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
    with pytest.raises(av.ShapeError, match="batch must be 0 to 1 for 2 rows; got 2"):
        av.Trace.from_qkv(Q, K, V, batch=2)
    with pytest.raises(av.ShapeError, match="each a list"):
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
        (SHARES[0] - 0.3, "negative or not finite"),
        (torch.full((1, 2, 2), torch.nan), "negative or not finite"),
        (torch.ones(2, 2, dtype=torch.int64), "floating"),
        (torch.ones(3), r"\(3,\)"),
        ([], "weights are empty"),
        ("abc", "tensors; got str"),
        ([torch.eye(2), torch.eye(3)], "all layers need the same tokens"),
    ],
)
def test_what_are_no_weights_is_refused(weights: object, message: str) -> None:
    with pytest.raises(av.AttentionVizError, match=message):
        av.Trace.from_weights(weights)


def test_a_weight_where_nobody_may_look_and_labels_that_dont_fit_are_refused() -> None:
    with pytest.raises(av.TraceError, match="`allowed` blocks"):
        av.Trace.from_weights(SHARES[0], allowed=av.masks.causal(5))
    with pytest.raises(av.TraceError, match="queries need 5 labels, one each; got 2"):
        av.Trace.from_weights(SHARES[0], ["x", "y"])
    with pytest.raises(av.TraceError, match="'side'"):
        av.Trace.from_weights(SHARES[0], stream="side")


FULL = torch.randn(1, 10, 4, 8, generator=MADE)  # (batch, position, head, width), as other libraries have it


@pytest.mark.parametrize("batch_axis", [True, False])
def test_positions_before_heads_are_taken_where_that_is_said(batch_axis: bool) -> None:
    query, key = (FULL, FULL[:, :, :2]) if batch_axis else (FULL[0], FULL[0, :, :2])
    trace = av.Trace.from_qkv(query, key, key, av.masks.causal(10), layout="bshd")
    swapped = [one.transpose(-3, -2) for one in (query, key, key)]
    same = av.Trace.from_qkv(*swapped, av.masks.causal(10), layout="bhsd")
    assert torch.equal(trace.attention(0).weights, same.attention(0).weights)
    assert trace.head_count(0) == 4 and len(trace.query_tokens()) == 10 and trace.fidelity.ok
    layered = av.Trace.from_qkv([query] * 2, [key] * 2, [key] * 2, layout="bshd")
    assert layered.layer_count() == 2 and layered.head_count(1) == 4


@pytest.mark.parametrize(
    ("keys", "options", "why"),
    [
        (FULL, {}, "10 may be the number of positions"),
        (FULL[:, :, :2], {}, r"keys \(1, 10, 2, 8\) would be fewer positions"),
        (FULL, {"labels": list("abcdefghij")}, "there are 10 labels"),
        (FULL, {"allowed": av.masks.causal(10)}, "the mask is 10 × 10"),
        (torch.cat([FULL] * 2, dim=1)[:, :17], {"labels": None}, r"keys \(1, 17, 4, 8\) don't fit"),
    ],
    ids=["unknown", "grouped", "labels", "mask", "crossing"],
)
def test_positions_before_heads_are_refused_where_nobody_says_so(
    keys: Tensor, options: dict[str, Any], why: str
) -> None:
    with pytest.raises(av.ShapeError, match=rf"would be 10 heads × 4 positions, but {why}.*layout=\"bshd\""):
        av.Trace.from_qkv(FULL, keys, keys, **options)
    with pytest.raises(av.ShapeError, match="unknown layout 'sbhd'; choose bhsd, bshd or flat"):
        av.Trace.from_qkv(FULL, keys, keys, layout="sbhd", **options)


def test_heads_first_stay_what_they_were() -> None:
    for queries, keys in ((1, 5), (5, 5), (5, 9)):  # one step of a generation, a text, two texts
        query, key = torch.randn(1, 4, queries, 8), torch.randn(1, 4, keys, 8)
        trace = av.Trace.from_qkv(query, key, key)
        assert trace.attention(0).shape == (4, queries, keys)
    few = FULL.transpose(1, 2)[:, :, :3]
    assert av.Trace.from_qkv(few, few, few, labels=["x", "y", "z"]).head_count(0) == 4


def test_swapped_axes_of_weights_are_refused_with_the_way_back() -> None:
    weights = torch.rand(4, 6, 6, generator=MADE).softmax(-1)
    with pytest.raises(av.ShapeError, match=r"may be \(…, query, head, key\). Pass weights.transpose\(-3, -2\)"):
        av.Trace.from_weights(weights.transpose(0, 1)[None])
    with pytest.raises(av.TraceError, match=r"along axis -2, so its keys are there; pass weights.movedim\(-2, -1\)"):
        av.Trace.from_weights(weights.mT)
    with pytest.raises(av.TraceError, match=r"along axis -3, so .* weights.movedim\(-3, -1\)"):
        av.Trace.from_weights(weights.movedim(-1, 0))


def test_a_step_of_a_generation_with_as_many_keys_as_heads_is_taken_where_that_is_said() -> None:
    step = torch.rand(8, 1, 8, generator=MADE).softmax(-1)
    for stream in ("decoder", "cross"):
        assert av.Trace.from_weights(step, stream=stream).attention(0).shape == (8, 1, 8)
    assert av.Trace.from_weights(step, ["x"]).attention(0).shape == (8, 1, 8)
    with pytest.raises(av.ShapeError, match=r'or name the stream, such as stream="decoder"'):
        av.Trace.from_weights(step)


def test_weights_that_never_look_ahead_are_a_decoders() -> None:
    weights = [one.tril() / one.tril().sum(-1, keepdim=True) for one in SHARES]
    trace = av.Trace.from_weights(weights, WORDS)
    assert trace.streams == ("decoder",)
    allowed = trace.attention(1).allowed
    assert allowed is not None and torch.equal(allowed.squeeze(), av.masks.causal(5))
    assert torch.allclose(trace.weights(1, 3), weights[1][3], atol=1e-6)
    mixed = av.Trace.from_weights([weights[0], SHARES[1]], WORDS)
    assert mixed.streams == ("encoder",) and mixed.attention(0).allowed is None
    assert av.Trace.from_weights(weights, WORDS, stream="encoder").attention(0).allowed is None
