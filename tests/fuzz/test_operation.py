"""Whatever attention and masks are given: the numbers of a naive twin, or an error of our own."""

import contextlib
import math
from typing import Any

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import attention_viz as av
from attention_viz.operation import masks
from attention_viz.operation.attention import attend
from tests.fuzz.settings import examples

pytestmark = pytest.mark.usefixtures("unchecked_module")

_SEEDS = st.integers(0, 999)
_NUMBERS = st.one_of(
    st.none(),
    st.floats(),
    st.floats(-100, 100),
    st.integers(),
    st.sampled_from([0, -0.0, 1e300, 10**400, True, "50.0", math.nan, math.inf]),
)


@st.composite
def calls(draw: st.DrawFn) -> dict[str, Any]:
    """An attention call, most often one that can be computed."""
    heads, groups = draw(st.sampled_from([(1, 1), (2, 2), (4, 2), (6, 1), (3, 2)]))
    queries, keys, width, d_v = (draw(st.integers(0 if draw(st.integers(0, 20)) == 0 else 1, 5)) for _ in range(4))
    shapes = {"query": [heads, queries, width], "key": [groups, keys, width], "value": [groups, keys, d_v]}
    if draw(st.booleans()):
        shapes = {name: [draw(st.sampled_from([1, 2])), *shape] for name, shape in shapes.items()}
    if draw(st.integers(0, 4)) == 0:  # a lie in one of the sizes
        shape = shapes[draw(st.sampled_from(sorted(shapes)))]
        shape[draw(st.integers(0, len(shape) - 1))] = draw(st.integers(0, 5))
    made = torch.Generator().manual_seed(draw(_SEEDS))
    dtype = draw(st.sampled_from([torch.float64] * 6 + [torch.float32, torch.int64, torch.bool, torch.complex64]))
    spread = draw(st.sampled_from([1.0, 1.0, 30.0, 0.0]))
    given = {
        name: (spread * torch.randn(shape, generator=made, dtype=torch.float64)).to(dtype)
        for name, shape in shapes.items()
    }
    cells = draw(
        st.sampled_from([(queries, keys), (1, keys), (heads, queries, keys), (queries, 1), (keys,), (), (7, 9)])
    )
    if draw(st.booleans()):
        given["allowed"] = torch.rand(cells, generator=made) > 0.4
    if draw(st.booleans()):
        given["bias"] = torch.randn(cells, generator=made, dtype=torch.float64).to(dtype)
    if draw(st.booleans()):
        given["sinks"] = torch.randn(
            draw(st.sampled_from([heads, heads, 1, 5])), generator=made, dtype=torch.float64
        ).to(dtype)
    for name in ("scale", "softcap"):
        if draw(st.integers(0, 3)) == 0:
            given[name] = draw(_NUMBERS)
    return given


def twin(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    allowed: Tensor | None = None,
    *,
    scale: float | None = None,
    bias: Tensor | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Weights and output, cell by cell from the definition."""
    q, k, v = query.double().numpy(), key.double().numpy(), value.double().numpy()
    counts = [one.shape[-3] for one in (q, k, v)]
    # One head stretches to any number, to none as well.
    heads = max(counts) if all(counts) else 0
    q, k, v = (numpy.repeat(one, heads // max(one.shape[-3], 1), axis=-3) for one in (q, k, v))
    lead = numpy.broadcast_shapes(q.shape[:-3], k.shape[:-3], v.shape[:-3])
    q, k, v = (numpy.broadcast_to(one, (*lead, *one.shape[-3:])) for one in (q, k, v))
    cells = (*lead, heads, q.shape[-2], k.shape[-2])
    may = numpy.broadcast_to(True if allowed is None else allowed.numpy(), cells)
    added = numpy.broadcast_to(0.0 if bias is None else bias.double().numpy(), cells)
    # Of no dimensions every product is 0, whatever it is scaled by.
    factor = 1 / math.sqrt(max(q.shape[-1], 1)) if scale is None else scale
    weights, output = numpy.zeros(cells), numpy.zeros((*cells[:-1], v.shape[-1]))
    for row in numpy.ndindex(cells[:-1]):
        scores = k[row[:-1]] @ q[row] * factor
        if softcap is not None:
            scores = softcap * numpy.tanh(scores / softcap)
        scores = scores + added[row]
        logits = [score for score, one in zip(scores, may[row], strict=True) if one]
        if not logits:
            continue
        rest = [] if sinks is None else [float(sinks.double().numpy()[row[-2] if sinks.numel() > 1 else 0])]
        top = max([*logits, *rest])
        whole = sum(math.exp(one - top) for one in [*logits, *rest])
        for column in range(cells[-1]):
            if may[row][column]:
                weights[(*row, column)] = math.exp(scores[column] - top) / whole
        output[row] = weights[row] @ v[row[:-1]]
    return weights, output


@examples(120)
@given(calls())
def test_a_call_gives_the_numbers_of_its_twin_or_an_error_of_ours(given: dict[str, Any]) -> None:
    try:
        call = attend(**given)
        weights, output = call.weights, call.output
    except av.AttentionVizError:
        return
    if call.query.dtype != torch.float64 or not torch.isfinite(weights).all():
        return
    with numpy.errstate(over="ignore", invalid="ignore"):
        expected, mixed = twin(**given)
    if not numpy.isfinite(expected).all():
        return  # what is multiplied in another order may be just beyond the largest number there is
    # Weights are the same for all values: they have no axis for those that only values have.
    weights, expected = torch.broadcast_tensors(weights, torch.from_numpy(expected))
    torch.testing.assert_close(weights, expected, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(output, torch.from_numpy(mixed).expand_as(output), rtol=1e-9, atol=1e-9)


_SIZES = st.one_of(st.integers(-2, 9), st.sampled_from([None, 1.0, math.nan, True, "3", 2**63, -(2**70)]))


@examples(120)
@given(
    st.sampled_from(["causal", "sliding_window", "prefix"]),
    st.integers(-1, 9) | st.sampled_from([None, 1.5, "3"]),
    _SIZES,
)
def test_a_mask_is_what_its_rule_says_cell_by_cell_or_an_error_of_ours(name: str, queries: Any, other: Any) -> None:
    if name == "causal" and isinstance(other, int) and other > 2**20:
        other = 9  # so many columns are what was asked for
    try:
        allowed = getattr(masks, name)(queries, other)
    except av.AttentionVizError:
        return
    keys = other if name == "causal" and other is not None else queries
    assert tuple(allowed.shape) == (queries, keys)
    for i in range(queries):
        for j in range(keys):
            rule = {
                "causal": j <= i + keys - queries,
                "sliding_window": name == "sliding_window" and abs(i - j) < other,
                "prefix": name == "prefix" and (j <= i or j < other),
            }
            assert allowed[i, j] == rule[name]


@examples(60)
@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=6),
    st.integers() | st.floats() | st.none() | st.text(max_size=2),
)
def test_padding_is_what_has_the_id_or_an_error_of_ours(ids: list[int], padding: Any) -> None:
    with contextlib.suppress(av.AttentionVizError):
        allowed = masks.padding(torch.tensor(ids, dtype=torch.int64), padding)
        assert allowed.tolist() == [[one != padding for one in ids]]
