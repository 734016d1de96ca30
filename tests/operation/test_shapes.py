import math
from typing import Any

import pytest
import torch

from attention_viz.errors import ShapeError
from attention_viz.operation.attention import Attention, attend
from tests.random_calls import D_K, HEADS, KEYS, QUERIES, inputs, random


@pytest.mark.parametrize(
    ("query", "key", "value", "message"),
    [
        ((5, 11), (7, 12), (7, 13), "same width d_k.*(5, 11).*(7, 12)"),
        ((5, 11), (7, 11), (8, 13), "same length.*(7, 11).*(8, 13)"),
        ((6, 5, 11), (4, 7, 11), (4, 7, 13), "6 query heads must be a multiple of the 4 key heads"),
        ((4, 5, 11), (8, 7, 11), (8, 7, 13), "4 query heads must be a multiple of the 8 key heads"),
        ((4, 5, 11), (0, 7, 11), (0, 7, 13), "4 query heads must be a multiple of the 0 key heads"),
        ((2, 3, 5, 11), (4, 3, 7, 11), (3, 7, 13), "leading axes must broadcast"),
    ],
)
def test_shapes_that_do_not_fit_are_refused_by_name(
    query: tuple[int, ...], key: tuple[int, ...], value: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ShapeError, match=message.replace("(", r"\(").replace(")", r"\)")):
        attend(random(*query), random(*key), random(*value))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("shape", [(KEYS,), (KEYS, QUERIES), (2, QUERIES, KEYS), (2, HEADS, QUERIES, KEYS)])
def test_masks_and_biases_that_do_not_fit_are_refused_by_name(shape: tuple[int, ...]) -> None:
    call = {"scale": 1.0, **dict(zip(("query", "key", "value"), inputs(HEADS), strict=True))}
    with pytest.raises(ShapeError, match=rf"allowed .*\({HEADS}, {QUERIES}, {KEYS}\); got"):
        Attention(**call, allowed=torch.ones(shape, dtype=torch.bool))
    with pytest.raises(ShapeError, match="bias must broadcast"):
        Attention(**call, allowed=None, bias=torch.ones(shape))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("terms", "message"),
    [
        (
            {"query": torch.ones(HEADS, QUERIES, D_K, dtype=torch.int64)},
            "one floating-point dtype; got query torch.int64",
        ),
        ({"key": torch.ones(HEADS, KEYS, D_K)}, "one floating-point dtype"),
        ({"bias": torch.ones(QUERIES, KEYS, dtype=torch.int64)}, "bias must hold floating.* got torch.int64"),
        ({"sinks": torch.ones(HEADS, dtype=torch.complex64)}, "sinks must hold floating"),
        ({"query": torch.ones(D_K, dtype=torch.float64)}, "at least the axes"),
        ({"allowed": torch.ones(QUERIES, KEYS)}, "allowed must be boolean.*torch.float32"),
        ({"sinks": torch.ones(HEADS + 1)}, f"one number per head, {HEADS} in all"),
        ({"softcap": 0.0}, "softcap must be a finite number above 0, or None; got 0.0"),
        ({"softcap": -1.0}, "softcap"),
        ({"softcap": math.inf}, "softcap"),
        ({"scale": math.nan}, "scale must be a finite number; got nan"),
    ],
)
def test_terms_of_the_wrong_kind_are_refused_by_name(terms: dict[str, Any], message: str) -> None:
    call = {"allowed": None, "scale": 1.0, **dict(zip(("query", "key", "value"), inputs(HEADS), strict=True))}
    with pytest.raises(ShapeError, match=message):
        Attention(**call | terms)


@pytest.mark.parametrize("head", [-1, HEADS, 99])
def test_a_head_that_is_not_there_is_refused(head: int) -> None:
    call = attend(*inputs(HEADS))
    for ask in (call.head, lambda index: call.tile(index, [0], [0])):
        with pytest.raises(ShapeError, match=f"no head {head}; this attention has {HEADS} heads"):
            ask(head)
    with pytest.raises(ShapeError, match="head 0 from attention without a head axis"):
        attend(*inputs()).head(0)


@pytest.mark.parametrize(
    ("queries", "keys", "message"), [([QUERIES], [0], "query 5; there are 5"), ([0], [-1], "key -1")]
)
def test_a_tile_outside_the_text_is_refused(queries: list[int], keys: list[int], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        attend(*inputs(HEADS)).tile(0, queries, keys)
