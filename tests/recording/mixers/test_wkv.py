"""RWKV-4 is softmax attention with a head per channel: weights, edits and long texts, against the published formula."""

import inspect
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor

import attention_viz as av
from attention_viz.errors import UnsupportedModel
from attention_viz.recording.mixers.wkv import attention_of_channels
from tests.recording.mixers.hybrids import build

COUNT = 24
IDS = (torch.arange(COUNT)[None] * 7) % 97


def exponents(decay: Tensor, first: Tensor, key: Tensor) -> Tensor:
    """Equation 16 of Peng et al. 2023, in float64: (channel, query, key), −∞ at later keys."""
    rate, key = decay.double().exp(), key[0].double()
    count = len(key)
    found = torch.full((len(rate), count, count), -torch.inf, dtype=torch.float64)
    for query in range(count):
        for at in range(query):
            found[:, query, at] = key[at] - rate * (query - 1 - at)
        found[:, query, query] = first.double() + key[query]
    return found


@contextmanager
def computed_by(model: Any, change: Callable[[Tensor], Tensor], calls: list[Tensor]) -> Generator[None]:
    """Let the plain model mix by the formula, with changed exponents; keep the weights."""
    layer = model.rwkv.blocks[0].attention
    namespace: dict[str, Any] = inspect.unwrap(type(layer).forward).__globals__
    kernel = namespace["rwkv_linear_attention"]

    def mix(decay: Tensor, first: Tensor, key: Tensor, value: Tensor, **_: Any) -> tuple[Tensor, None]:
        logits = exponents(decay, first, key)
        weights = (change(logits) if not calls else logits).softmax(dim=-1)
        calls.append(weights)
        return torch.einsum("cts,sc->tc", weights, value[0].double())[None].to(key.dtype), None

    namespace["rwkv_linear_attention"] = mix
    try:
        yield
    finally:
        namespace["rwkv_linear_attention"] = kernel


def same(logits: Tensor) -> Tensor:
    return logits


def blocked(logits: Tensor) -> Tensor:
    changed = logits.clone()
    changed[2, 9, 4] = -torch.inf
    return changed


def cooled(logits: Tensor) -> Tensor:
    return logits / 2


@pytest.mark.parametrize(
    ("edits", "change"),
    [([], same), ([av.Block(9, 4, layer=0, head=2)], blocked), ([av.Temperature(2.0, layer=0)], cooled)],
    ids=["no edit", "block", "temperature"],
)
def test_the_weights_and_the_edits_are_those_of_the_formula(
    edits: list[Any], change: Callable[[Tensor], Tensor]
) -> None:
    model, weights = build("rwkv"), list[Tensor]()
    trace = av.wrap(model).trace_ids(IDS, edits=edits)
    with torch.no_grad(), computed_by(model, change, weights):
        expected = model(IDS, use_cache=False)[0][0]
    assert trace.streams == ("decoder",) and trace.layer_numbers() == (0, 1) and trace.fidelity.ok
    assert trace.head_count(0) == len(weights[0])
    for layer in (0, 1):
        assert float((trace.attention(layer).weights - weights[layer]).abs().max()) < 1e-5
    assert float((trace.output - expected).abs().max()) < 1e-5 * float(expected.abs().max())
    assert float(weights[0].tril(-1).sum(-1).mean()) > 0.3


def test_a_head_ablated_is_a_channel_of_zeros() -> None:
    model: Any = build("rwkv")
    trace = av.wrap(model).trace_ids(IDS, edits=[av.Ablate(1, 3)])
    gate = model.rwkv.blocks[1].attention.output.weight.data
    gate[:, 3] = 0
    with torch.no_grad():
        expected = model(IDS, use_cache=False)[0][0]
    assert torch.allclose(trace.output, expected, atol=1e-4)


def test_a_long_text_with_strong_decays_stays_exact() -> None:
    torch.manual_seed(0)
    decay, first = torch.tensor([-6.0, -3.0, 0.0, 3.0]), torch.randn(4)
    key, value = 3 * torch.randn(1, 400, 4), torch.randn(1, 400, 4)
    ours = attention_of_channels(decay, first, key, value)
    weights = exponents(decay, first, key).softmax(dim=-1)
    assert float((ours.weights[0] - weights).abs().max()) < 2e-6
    model = av.wrap(build("rwkv"))
    trace = model.trace_ids((torch.arange(200)[None] * 7) % 97)
    assert trace.fidelity.ok and trace.fidelity.rows == 128 and "own kernel" in trace.fidelity.reference
    with pytest.raises(UnsupportedModel, match="use at most 819 tokens"):
        attention_of_channels(torch.zeros(800), torch.zeros(800), torch.zeros(1, 1000, 800), torch.zeros(1, 1000, 800))


def test_a_kernel_that_computes_something_else_is_not_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    model = av.wrap(build("rwkv"))

    def with_more_bonus(decay: Tensor, first: Tensor, key: Tensor, value: Tensor) -> av.Attention:
        return attention_of_channels(decay, first + 0.01, key, value)

    monkeypatch.setattr("attention_viz.recording.mixers.wkv.attention_of_channels", with_more_bonus)
    fidelity = model.trace_ids(IDS).fidelity
    assert not fidelity.ok and fidelity.weight_error is not None and fidelity.weight_error > 1e-4
    with pytest.raises(UnsupportedModel):
        av.wrap(build("rwkv"))


def test_a_state_goes_on_only_in_passes_that_nobody_records() -> None:
    model: Any = build("rwkv")
    wrapped = av.wrap(model)
    with torch.no_grad():
        state = model(IDS[:, :9], use_cache=True).state
        later = model(IDS[:, 9:], state=state, use_cache=True)[0][0]
    assert torch.allclose(wrapped.trace_ids(IDS).output[9:], later, atol=1e-3)
