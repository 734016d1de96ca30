from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from attention_viz.operation import masks
from attention_viz.operation.attention import attend
from tests.random_calls import D_K, D_V, HEADS, KEYS, QUERIES, inputs, random, some_allowed


class Largest(TorchDispatchMode):
    """Remembers the largest tensor that any operation made."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for one in made if isinstance(made, tuple) else (made,):
            if isinstance(one, Tensor):
                self.numbers = max(self.numbers, one.numel())
        return made


def test_a_tile_is_a_piece_of_the_weights() -> None:
    query, key, value = random(2, 6, QUERIES, D_K), random(2, 3, KEYS, D_K, seed=1), random(2, 3, KEYS, D_V, seed=2)
    terms = {"bias": random(6, QUERIES, KEYS, seed=3), "softcap": 2.0, "sinks": random(6, seed=4)}
    call = attend(query, key, value, some_allowed(2, 1, QUERIES, KEYS), **terms)
    whole = call.weights[:, 4]
    torch.testing.assert_close(call.tile(4, slice(1, 4), slice(None, None, 2)), whole[:, 1:4, ::2])
    torch.testing.assert_close(call.tile(4, [3, 0, 3], [6]), whole[:, [3, 0, 3]][:, :, [6]])
    torch.testing.assert_close(call.tile(4, slice(None, None, -1), slice(-3, 99)), whole.flip(1)[:, :, -3:])
    assert call.tile(4, [], [1]).shape == (2, 0, 1)


def test_a_tile_of_one_mask_row_for_all_queries_is_a_piece_of_the_weights() -> None:
    call = attend(*inputs(HEADS), random(1, KEYS) > 0)
    torch.testing.assert_close(call.tile(1, [4, 2], [0, 3]), call.weights[1][[4, 2]][:, [0, 3]])


def test_a_tile_never_holds_the_whole_matrix() -> None:
    n = 1500
    call = attend(*(random(2, n, 4, seed=seed, dtype=torch.float32) for seed in range(3)), masks.causal(n))
    with Largest() as largest:
        tile = call.tile(1, slice(None), slice(0, 8))
    assert largest.numbers <= 512 * n
    with Largest() as largest:
        whole = call.weights
    assert largest.numbers >= n * n, "what is meant to notice a whole matrix doesn't"
    torch.testing.assert_close(tile, whole[1, :, :8])


def test_output_never_holds_the_weights_where_the_fused_kernel_takes_the_terms() -> None:
    call = attend(*(random(2, 1000, 4, seed=seed, dtype=torch.float32) for seed in range(3)))
    with Largest() as largest:
        _ = call.output
    assert largest.numbers < 1000 * 1000
