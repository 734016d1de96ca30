import itertools
import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.testing import assert_close

from attention_viz.operation import masks
from attention_viz.operation.attention import attend
from tests.random_calls import D_K, D_V, HEADS, KEYS, QUERIES, inputs, random, some_allowed


def by_hand(
    query: Tensor, key: Tensor, bias: Tensor | None = None, softcap: float | None = None, sink: float = -math.inf
):
    """The weights of one head from nothing but sums and exponentials, cell by cell."""
    rows = []
    for i in range(len(query)):
        logits = [sum(float(a * b) for a, b in zip(query[i], k, strict=True)) / math.sqrt(len(k)) for k in key]
        if softcap is not None:
            logits = [softcap * math.tanh(one / softcap) for one in logits]
        if bias is not None:
            logits = [one + float(more) for one, more in zip(logits, bias[i], strict=True)]
        total = sum(math.exp(one) for one in logits) + math.exp(sink)
        rows.append([math.exp(one) / total for one in logits])
    return torch.tensor(rows, dtype=torch.float64)


def test_two_by_two_worked_by_hand() -> None:
    # Scores: (1, 0)·(2, 0) = 2 and (1, 0)·(0, 2) = 0. Times ln 3 / 2 they are ln 3 and 0, and e to them is 3 and 1.
    query, key = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[2.0, 0.0], [0.0, 2.0]])
    value = torch.tensor([[4.0, 8.0], [0.0, 4.0]])
    call = attend(query, key, value, scale=math.log(3) / 2)
    assert call.scores.tolist() == [[2, 0], [0, 2]]
    torch.testing.assert_close(call.weights, torch.tensor([[0.75, 0.25], [0.25, 0.75]]))
    torch.testing.assert_close(call.output, torch.tensor([[3.0, 7.0], [1.0, 5.0]]))


def test_two_by_two_causal_worked_by_hand() -> None:
    query = key = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    call = attend(query, key, torch.tensor([[4.0], [8.0]]), masks.causal(2), scale=math.log(3))
    assert call.masked[0, 1] == -math.inf
    torch.testing.assert_close(call.weights, torch.tensor([[1.0, 0.0], [0.25, 0.75]]))
    torch.testing.assert_close(call.output, torch.tensor([[4.0], [7.0]]))


def test_each_step_is_the_one_before_it_and_one_term_more() -> None:
    query, key, value = inputs(HEADS)
    bias, allowed = random(QUERIES, KEYS, seed=5), some_allowed(QUERIES, KEYS)
    call = attend(query, key, value, allowed, bias=bias, softcap=1.5)
    torch.testing.assert_close(call.scores, torch.einsum("hqc,hkc->hqk", query, key))
    torch.testing.assert_close(call.scaled, call.scores / math.sqrt(D_K))
    expected = (1.5 * torch.tanh(call.scaled / 1.5) + bias).masked_fill(~allowed, -math.inf)
    torch.testing.assert_close(call.masked, expected)
    assert call.shape == call.weights.shape == (HEADS, QUERIES, KEYS)


def test_output_is_that_of_torch() -> None:
    query, key, value = inputs(2, HEADS)
    allowed = masks.combine(random(2, 1, 1, KEYS, seed=4) > -1, torch.ones(QUERIES, KEYS, dtype=torch.bool))
    expected = functional.scaled_dot_product_attention(query, key, value, allowed)
    torch.testing.assert_close(attend(query, key, value, allowed).output, expected)


@pytest.mark.parametrize("term", ["softcap", "bias", "sinks"])
def test_softcap_bias_and_sinks_follow_their_formulas(term: str) -> None:
    query, key, value = inputs(HEADS)
    bias, sinks = 3 * random(HEADS, QUERIES, KEYS, seed=5), torch.tensor([-1.0, 0.5, 2.0], dtype=torch.float64)
    terms: dict[str, Any] = {"softcap": 0.7, "bias": bias, "sinks": sinks}
    weights = attend(query, key, value, **{term: terms[term]}).weights
    for head in range(HEADS):
        expected = by_hand(
            query[head],
            key[head],
            bias=bias[head] if term == "bias" else None,
            softcap=0.7 if term == "softcap" else None,
            sink=float(sinks[head]) if term == "sinks" else -math.inf,
        )
        torch.testing.assert_close(weights[head], expected)


def test_a_sink_takes_its_share_and_is_dropped() -> None:
    query, key, value = inputs(HEADS)
    sums = attend(query, key, value, sinks=torch.tensor([0.0, 1.0, 30.0], dtype=torch.float64)).weights.sum(-1)
    assert (sums < 1).all() and (sums[2] < 1e-9).all()
    everywhere = attend(query, key, value, sinks=torch.tensor(-1e9, dtype=torch.float64)).weights
    torch.testing.assert_close(everywhere, attend(query, key, value).weights)


@pytest.mark.parametrize(("key_heads", "value_heads"), [(2, 2), (2, 3), (1, 6), (3, 1), (6, 6)])
def test_a_group_of_query_heads_shares_its_key_and_value(key_heads: int, value_heads: int) -> None:
    query, key, value = (
        random(6, QUERIES, D_K),
        random(key_heads, KEYS, D_K, seed=1),
        random(value_heads, KEYS, D_V, seed=2),
    )
    call = attend(query, key, value)
    for head in range(6):
        alone = attend(query[head], key[head * key_heads // 6], value[head * value_heads // 6])
        torch.testing.assert_close(call.weights[head], alone.weights)
        torch.testing.assert_close(call.output[head], alone.output)
        torch.testing.assert_close(call.head(head).output, alone.output)


TERMS = list(itertools.product([False, True], [False, True], [None, 2.0], [False, True]))


@pytest.mark.parametrize(("masked", "biased", "softcap", "sunk"), TERMS)
def test_output_is_the_weights_times_the_values_whatever_the_terms(
    masked: bool, biased: bool, softcap: float | None, sunk: bool
) -> None:
    for lead in [(), (HEADS,), (2, HEADS), (2, 4, HEADS)]:
        call = attend(
            *inputs(*lead),
            some_allowed(QUERIES, KEYS) if masked else None,
            bias=random(*lead[-1:], 1, KEYS, seed=6) if biased else None,
            softcap=softcap,
            sinks=random(*lead[-1:], seed=7) if sunk else None,
        )
        assert call.output.shape == (*lead, QUERIES, D_V)
        torch.testing.assert_close(call.output, call.weights @ call.value)
        if masked:
            assert not call.output[..., 2, :].any() and not call.weights[..., 2, :].any()


@pytest.mark.parametrize("allowed", [masks.causal(KEYS), masks.sliding_window(KEYS, 2), masks.causal(KEYS)[None]])
def test_output_under_square_masks_is_the_weights_times_the_values(allowed: Tensor) -> None:
    query, key, value = random(HEADS, KEYS, D_K), *inputs(HEADS)[1:]
    call = attend(query, key, value, allowed)
    torch.testing.assert_close(call.output, call.weights @ value)


@pytest.mark.parametrize(
    ("query", "key", "value", "shape"),
    [
        ((), (HEADS,), (HEADS,), (HEADS,)),
        ((1,), (HEADS,), (HEADS,), (HEADS,)),
        ((HEADS,), (), (1,), (HEADS,)),
        ((2, 1, HEADS), (4, HEADS), (), (2, 4, HEADS)),
        ((2, 1, 1, HEADS), (1, 5, 4, HEADS), (4, 1), (2, 5, 4, HEADS)),
        ((2, 1, 6), (4, HEADS), (2,), (2, 4, 6)),
    ],
)
def test_leading_axes_broadcast(
    query: tuple[int, ...], key: tuple[int, ...], value: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    call = attend(
        random(*query, QUERIES, D_K), random(*key, KEYS, D_K), random(*value, KEYS, D_V), some_allowed(QUERIES, KEYS)
    )
    assert call.shape == call.weights.shape == (*shape, QUERIES, KEYS)
    assert call.output.shape == (*shape, QUERIES, D_V)
    heads = [call.head(index) for index in range(shape[-1])]
    torch.testing.assert_close(torch.stack([one.output for one in heads], dim=-3), call.output)
    torch.testing.assert_close(torch.stack([one.weights for one in heads], dim=-3), call.weights)


def test_sinks_may_differ_in_each_row_of_a_batch() -> None:
    query, key, value = inputs(2, HEADS)
    call = attend(query, key, value, sinks=random(2, HEADS, seed=3))
    for head in range(HEADS):
        torch.testing.assert_close(call.head(head).weights, call.weights[:, head])


def test_a_row_with_nothing_allowed_gives_zeros() -> None:
    query, key, value = inputs(HEADS)
    for terms in ({}, {"bias": random(QUERIES, KEYS)}, {"softcap": 2.0}, {"sinks": random(HEADS)}):
        call = attend(query, key, value, some_allowed(HEADS, QUERIES, KEYS), **terms)
        assert not call.weights[:, 2].any() and not call.output[:, 2].any()
        assert call.weights.isfinite().all() and call.output.isfinite().all()


def test_a_row_blocked_by_its_bias_gives_zeros() -> None:
    query, key, value = inputs(HEADS)
    bias = torch.zeros(QUERIES, KEYS, dtype=torch.float64)
    bias[3] = -math.inf
    call = attend(query, key, value, bias=bias)
    assert not call.weights[:, 3].any() and not call.output[:, 3].any()


@pytest.mark.parametrize("what", ["weights", "output"])
@pytest.mark.parametrize("softcap", [None, 1.5])
@pytest.mark.parametrize("terms", [(), ("bias",), ("sinks",), ("bias", "sinks")])
def test_gradients_are_right_and_numbers_even_where_a_row_is_blocked(
    what: str, softcap: float | None, terms: tuple[str, ...]
) -> None:
    def run(query: Tensor, key: Tensor, value: Tensor, *extra: Tensor) -> Tensor:
        call = attend(query, key, value, allowed, softcap=softcap, **dict(zip(terms, extra, strict=True)))
        return getattr(call, what)

    allowed = some_allowed(3, 4)
    shapes = ((2, 3, 2), (2, 4, 2), (2, 4, 3), *({"bias": (2, 1, 4), "sinks": (2,)}[term] for term in terms))
    tensors = tuple(random(*shape, seed=seed).requires_grad_() for seed, shape in enumerate(shapes))
    assert torch.autograd.gradcheck(run, tensors, fast_mode=True)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_stays_half_and_close_to_float32(dtype: torch.dtype) -> None:
    query, key, value = inputs(HEADS, dtype=dtype)
    call = attend(query, key, value, some_allowed(QUERIES, KEYS))
    wide = attend(query.float(), key.float(), value.float(), some_allowed(QUERIES, KEYS))
    assert call.weights.dtype == call.output.dtype == dtype
    bound = 2 * torch.finfo(dtype).eps
    assert (call.weights.float() - wide.weights).abs().max() <= bound
    assert (call.output.float() - wide.output).abs().max() <= bound * wide.output.abs().max()
    assert not call.weights[:, 2].any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_scores_too_large_for_half_precision_leave_no_nan(dtype: torch.dtype) -> None:
    query, key, value = inputs(HEADS, dtype=dtype)
    call = attend(5000 * query, 5000 * key, value)
    assert call.weights.isfinite().all() and call.output.isfinite().all()


def test_a_wide_bias_beside_half_precision_is_not_narrowed() -> None:
    query, key, value = inputs(HEADS, dtype=torch.float16)
    bias = torch.full((QUERIES, KEYS), -1e9)
    call = attend(query, key, value, bias=bias)
    torch.testing.assert_close(call.output, call.weights @ value)
    assert call.weights.sum(-1).min() > 0.9


@pytest.mark.parametrize("sizes", [(0, 7, 11, 13), (5, 0, 11, 13), (5, 7, 0, 13), (5, 7, 11, 0)])
def test_axes_of_nothing_give_nothing_or_zeros(sizes: tuple[int, int, int, int]) -> None:
    queries, keys, d_k, d_v = sizes
    call = attend(random(HEADS, queries, d_k), random(HEADS, keys, d_k), random(HEADS, keys, d_v))
    assert call.weights.shape == (HEADS, queries, keys)
    assert call.output.shape == (HEADS, queries, d_v)
    assert keys or not call.output.any()


def test_an_attention_is_closed_to_changes() -> None:
    call = attend(*inputs(HEADS))
    with pytest.raises(AttributeError):
        call.scale = 2.0  # pyright: ignore[reportAttributeAccessIssue] -- that is the claim


@pytest.mark.parametrize("lead", [(), (2,)], ids=["one text", "a batch"])
@pytest.mark.parametrize("closed", [False, True], ids=["open", "causal"])
def test_shared_heads_are_the_same_whether_the_kernel_repeats_them_or_we_do(
    lead: tuple[int, ...], closed: bool
) -> None:
    query, key, value = random(*lead, 6, 5, 4), random(*lead, 3, 5, 4), random(*lead, 3, 5, 4)
    allowed = masks.causal(5) if closed else None
    call = attend(query, key, value, allowed)
    assert_close(call.output, call.weights @ value.repeat_interleave(2, dim=-3))
    # Where key and value share differently, or a batch is stretched, the kernel doesn't do it by itself.
    one = attend(query, key, random(*lead, 1, 5, 4), allowed)
    assert_close(one.output, one.weights @ one.value)
