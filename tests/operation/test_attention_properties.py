from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from attention_viz.operation.attention import Attention, attend


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


CALLS = st.fixed_dictionaries(
    {"queries": st.integers(1, 6), "keys": st.integers(1, 6), "seed": st.integers(0, 999), "spread": st.floats(0, 30)}
)


def drawn(queries: int, keys: int, seed: int, spread: float) -> Attention:
    query, key, value = (
        random(2, queries, 3, seed=seed),
        random(2, keys, 3, seed=seed + 1),
        random(2, keys, 5, seed=seed + 2),
    )
    return attend(spread * query, key, value, random(2, queries, keys, seed=seed + 3) > -0.5)


@settings(max_examples=50)
@given(CALLS)
def test_rows_sum_to_1_or_to_0_and_blocked_cells_are_exactly_0(sizes: dict[str, Any]) -> None:
    call = drawn(**sizes)
    assert call.allowed is not None
    open_rows = call.allowed.any(-1).double()
    torch.testing.assert_close(call.weights.sum(-1), open_rows)
    assert not call.weights[~call.allowed].any()
    assert ((call.weights >= 0) & (call.weights <= 1)).all()


@settings(max_examples=50)
@given(CALLS)
def test_keys_in_another_order_give_the_weights_in_that_order_and_the_same_output(sizes: dict[str, Any]) -> None:
    call = drawn(**sizes)
    order = torch.randperm(sizes["keys"], generator=torch.Generator().manual_seed(sizes["seed"]))
    assert call.allowed is not None
    turned = attend(call.query, call.key[:, order], call.value[:, order], call.allowed[..., order])
    torch.testing.assert_close(turned.weights, call.weights[..., order])
    torch.testing.assert_close(turned.output, call.output)


@settings(max_examples=50)
@given(CALLS, st.floats(-50, 50))
def test_a_constant_added_to_a_row_of_scores_changes_nothing(sizes: dict[str, Any], constant: float) -> None:
    call = drawn(**sizes)
    bias = constant * torch.arange(1, sizes["queries"] + 1, dtype=torch.float64)[:, None]
    moved = attend(call.query, call.key, call.value, call.allowed, bias=bias)
    torch.testing.assert_close(moved.weights, call.weights)
    torch.testing.assert_close(moved.output, call.output)


@settings(max_examples=50)
@given(CALLS)
def test_output_lies_among_the_values(sizes: dict[str, Any]) -> None:
    call = drawn(**sizes)
    assert call.allowed is not None
    rows = call.allowed.any(-1)
    low, high = call.value.amin(1, keepdim=True) - 1e-9, call.value.amax(1, keepdim=True) + 1e-9
    assert ((low <= call.output) & (call.output <= high))[rows].all()
