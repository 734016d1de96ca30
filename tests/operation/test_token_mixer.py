"""Each kind against its recurrence, run token by token in float64."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from attention_viz.errors import ShapeError
from attention_viz.operation.terms import map_terms
from attention_viz.operation.token_mixer import TokenMixer

HEADS, COUNT, D_K, D_V = 4, 300, 6, 5


def draw(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def decays(seed: int, *shape: int) -> Tensor:
    return -torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 0.3


def gated_delta() -> TokenMixer:
    query, key = (functional.normalize(draw(seed, HEADS // 2, COUNT, D_K), dim=-1) for seed in (1, 2))
    write = torch.sigmoid(draw(4, HEADS, COUNT, 1))
    value = draw(3, HEADS, COUNT, D_V)
    return TokenMixer("gated delta", query, key, value, decays(5, HEADS, COUNT, 1), write, scale=D_K**-0.5)


def kimi_delta() -> TokenMixer:
    query, key = (functional.normalize(draw(seed, HEADS, COUNT, D_K), dim=-1) for seed in (1, 2))
    write = torch.sigmoid(draw(4, HEADS, COUNT, 1))
    value = draw(3, HEADS, COUNT, D_V)
    return TokenMixer("Kimi delta", query, key, value, decays(5, HEADS, COUNT, D_K), write, scale=D_K**-0.5)


def ssd() -> TokenMixer:
    query, key, value = draw(1, 1, COUNT, D_K), draw(2, 1, COUNT, D_K), draw(3, HEADS, COUNT, D_V)
    step = functional.softplus(draw(4, HEADS, COUNT, 1))
    return TokenMixer("SSD", query, key, value, -0.1 * step, step, skip=draw(6, HEADS))


def selective_scan() -> TokenMixer:
    query, key, value = draw(1, 1, COUNT, D_K), draw(2, 1, COUNT, D_K), draw(3, HEADS, COUNT, 1)
    step = functional.softplus(draw(4, HEADS, COUNT, 1))
    rate = -torch.arange(1, D_K + 1, dtype=torch.float64) / 20
    gate = functional.silu(draw(7, HEADS, COUNT, 1))
    skip = draw(6, HEADS)
    return TokenMixer("selective scan", query, key, value, step * rate, step, gate=gate, skip=skip, per="channel")


def lightning() -> TokenMixer:
    slope = -torch.tensor([0.5, 0.25, 0.1, 0.01], dtype=torch.float64)[:, None, None].expand(-1, COUNT, 1)
    return TokenMixer("lightning", *(draw(seed, HEADS, COUNT, D_K) for seed in (1, 2, 3)), decay=slope)


def rg_lru() -> TokenMixer:
    decay = decays(5, HEADS, COUNT, 1)
    write = torch.sigmoid(draw(4, HEADS, COUNT, 1)) * (1 - (2 * decay).exp()).sqrt()
    one = torch.ones(1, COUNT, 1, dtype=torch.float64)
    return TokenMixer("RG-LRU", one, one, draw(3, HEADS, COUNT, 1), decay, write, per="channel")


def mlstm() -> TokenMixer:
    query, key, value = (draw(seed, HEADS, COUNT, D_K) for seed in (1, 2, 3))
    write = torch.exp(draw(4, HEADS, COUNT, 1))
    floor = torch.rand(HEADS, COUNT, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(8))
    decay = decays(5, HEADS, COUNT, 1)
    return TokenMixer("mLSTM", query, key, value, decay, write, floor=floor, scale=D_K**-0.5, epsilon=1e-6)


RECURRENT = (gated_delta, kimi_delta, ssd, selective_scan, lightning, rg_lru, mlstm)


def convolution() -> TokenMixer:
    one = torch.ones(1, COUNT, 1, dtype=torch.float64)
    return TokenMixer("convolution", one, one, draw(3, HEADS, COUNT, 1), taps=draw(4, HEADS, 1, 4), per="channel")


def fourier() -> TokenMixer:
    angle = 2 * math.pi / COUNT * torch.outer(*(torch.arange(COUNT, dtype=torch.float64),) * 2)
    one = torch.ones(1, COUNT, 1, dtype=torch.float64)
    return TokenMixer("Fourier", one, one, draw(3, 2, COUNT, D_V), factor=torch.stack([angle.cos(), -angle.sin()]))


def yoso() -> TokenMixer:
    query, key = (functional.normalize(draw(seed, HEADS, COUNT, D_K), dim=-1) for seed in (1, 2))
    return TokenMixer("YOSO", query, key, draw(3, HEADS, COUNT, D_V), exponent=9.0)


ALL = (*RECURRENT, convolution, fourier, yoso)


def by_hand(call: TokenMixer) -> numpy.ndarray[Any, Any]:
    """Run the recurrence on its state, one token after the other, with each head's own terms."""
    outputs = []
    for index in range(call.shape[-3]):
        one = call.head(index)
        state = numpy.zeros((one.key.shape[-1], one.value.shape[-1]))
        normal = numpy.zeros(one.key.shape[-1])
        rows = []
        for at in range(COUNT):
            query, key, value = (term[at].numpy() for term in (one.query, one.key, one.value))
            kept = 1.0 if one.decay is None else numpy.exp(one.decay[at].numpy())
            write = 1.0 if one.write is None else float(one.write[at])
            state = (state.T * kept).T
            normal = normal * kept
            old = key @ state if call.erases else 0.0
            state = state + numpy.outer(key, write * (value - old))
            normal = normal + key * write
            row = one.scale * query @ state
            if one.floor is not None:
                row = row / (max(abs(one.scale * query @ normal), float(one.floor[at])) + one.epsilon)
            if one.skip is not None:
                row = row + float(one.skip) * value
            rows.append(row if one.gate is None else row * float(one.gate[at]))
        outputs.append(rows)
    return numpy.array(outputs)


def apart(one: Tensor, other: Any) -> float:
    other = torch.as_tensor(other)
    return float((one.double() - other.double()).abs().max() / other.abs().max())


def to(call: TokenMixer, dtype: torch.dtype) -> TokenMixer:
    return map_terms(call, lambda term, value: value.to(dtype) if isinstance(value, Tensor) else value)


@pytest.mark.parametrize("make", RECURRENT)
@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_weights_and_output_are_those_of_the_recurrence(
    make: Callable[[], TokenMixer], dtype: torch.dtype, bound: float
) -> None:
    call = to(make(), dtype)
    expected = by_hand(make())
    assert apart(call.output, expected) < bound
    assert apart(call.weights @ call.value, expected) < bound
    assert call.weights.dtype == call.output.dtype == dtype
    assert not call.weights.triu(1).any()


def test_a_convolution_is_torchs() -> None:
    call = convolution()
    assert call.taps is not None
    kernel = call.taps.flip(-1)
    padded = functional.pad(call.value.mT.flatten(0, 1)[None], (3, 0))
    expected = functional.conv1d(padded, kernel, groups=HEADS)[0]
    assert apart(call.output[..., 0], expected) < 1e-12
    assert not call.weights.triu(1).any() and not call.weights.tril(-4).any()


def test_fourier_is_the_transform_along_the_text() -> None:
    width = 7
    hidden = draw(1, COUNT, width)
    angle = 2 * math.pi / width * torch.outer(*(torch.arange(width, dtype=torch.float64),) * 2)
    call = fourier()
    values = torch.stack([hidden @ angle.cos(), hidden @ angle.sin()])
    mixed = TokenMixer("Fourier", call.query, call.key, values, factor=call.factor).output.sum(dim=0)
    assert apart(mixed, torch.fft.fft2(hidden).real) < 1e-10


def test_yoso_is_the_expectation_of_collisions() -> None:
    call = yoso()
    angle = numpy.arccos(numpy.clip(numpy.einsum("hqd,hkd->hqk", call.query.numpy(), call.key.numpy()), -1, 1))
    assert apart(call.weights, (1 - angle / math.pi) ** 9) < 1e-10
    assert not call.is_causal


@pytest.mark.parametrize("make", ALL)
def test_heads_rows_and_tiles_are_parts_of_the_weights(make: Callable[[], TokenMixer]) -> None:
    call = make()
    whole = call.weights
    assert whole.shape == call.shape
    assert apart(call.head(1).weights, whole[1]) < 1e-12
    some = [2, 299, 131, 40]
    assert apart(call.rows(some).weights, whole[:, some]) < 1e-12
    assert apart(call.rows(some).rows([1, 3]).output, (whole @ call.value)[:, [299, 40]]) < 1e-12
    assert apart(call.tile(1, slice(100, 290), [5, 3, 150]), whole[1, 100:290][:, [5, 3, 150]]) < 1e-12
    assert call.tile(0, slice(0, 3), slice(0, 0)).shape == (3, 0)


@pytest.mark.parametrize("make", ALL)
def test_shares_and_contributions_follow_from_the_weights(make: Callable[[], TokenMixer]) -> None:
    call = make()
    sizes = call.weights.abs()
    total = sizes.sum(dim=-1, keepdim=True)
    assert torch.allclose(call.shares * total, sizes)
    assert torch.allclose(call.shares.sum(dim=-1), (total[..., 0] > 0).double())
    parts = call.weights[..., None] * call.value[..., None, :, :].expand(call.shape[0], -1, -1, -1)
    assert torch.allclose(call.contributions, parts.norm(dim=-1))
    whole = (parts.sum(dim=0).norm(dim=-1)) if call.kind == "Fourier" else parts.square().sum(dim=(0, -1)).sqrt()
    assert torch.allclose(call.layer_contributions, whole)
    assert torch.equal(call.heads(slice(1, 3)).weights, call.weights[1:3])


@pytest.mark.parametrize("make", RECURRENT)
def test_the_slope_of_the_output_goes_through_every_term(make: Callable[[], TokenMixer]) -> None:
    call = make()
    names = [name for name in ("query", "key", "value", "decay", "write") if getattr(call, name) is not None]
    terms = [getattr(call, name).clone().requires_grad_() for name in names]
    moved: Any = replace(call, **dict(zip(names, terms, strict=True)))
    slopes = torch.autograd.grad(moved.output.square().sum(), terms)
    step = 1e-6
    for name, slope in zip(names, slopes, strict=True):
        direction = draw(9, *slope.shape)
        ends = [
            replace(call, **{name: getattr(call, name) + sign * step * direction}).output.square().sum()
            for sign in (1, -1)
        ]
        assert float((slope * direction).sum()) == pytest.approx(float((ends[0] - ends[1]) / (2 * step)), rel=1e-4)


def test_a_strong_decay_over_a_long_text_loses_no_digits() -> None:
    count = 2048
    decay = -torch.rand(1, count, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 5
    one = [draw(seed, 1, count, 4) for seed in (1, 2, 3)]
    exact = TokenMixer("lightning", *one, decay=decay).weights
    rounded = TokenMixer("lightning", *(term.float() for term in one), decay=decay.float()).weights
    assert apart(rounded, exact) < 1e-6


def test_half_precision_is_computed_in_float32() -> None:
    call = gated_delta()
    half = to(call, torch.bfloat16)
    assert half.output.dtype == torch.bfloat16
    assert apart(half.output, to(half, torch.float32).output) < 0.01


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "attention"}, "unknown kind 'attention'; choose gated delta"),
        ({"key": draw(1, HEADS, COUNT, D_K + 1)}, "same width"),
        ({"value": draw(1, HEADS, COUNT - 1, D_V)}, "value needs the axes"),
        ({"value": draw(1, 3, COUNT, D_V)}, "can't be shared evenly"),
        ({"decay": draw(1, HEADS, COUNT - 1, 1)}, "decay needs the axes"),
        ({"write": draw(1, HEADS, COUNT, 2)}, "write needs the axes"),
        ({"query": draw(1, HEADS, COUNT - 1, D_K)}, "needs a query"),
        ({"query": draw(1, HEADS, COUNT, D_K).long()}, "floating"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_what_does_not_fit_is_refused_by_name(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        replace(gated_delta(), **change)


@pytest.mark.parametrize("index", [-1, HEADS, 1.5, True])
@pytest.mark.usefixtures("unchecked")
def test_only_heads_that_there_are_can_be_taken(index: Any) -> None:
    with pytest.raises(ShapeError, match="unknown head"):
        gated_delta().head(index)
