"""What a module attends over in one turn is one layer, with blocks on its diagonal."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

import attention_viz as av
from attention_viz.errors import UnsupportedModel
from attention_viz.operation.attention import Attention
from attention_viz.recording.fidelity import compare
from attention_viz.recording.runner import Pass, Runner
from tests.recording.chunks.cases import CASES, TWO, Case, inputs_of, tiny

NEAR = 1e-5


@cache
def made(case: Case) -> tuple[Any, dict[str, Tensor]]:
    """A case's model and inputs."""
    model = tiny(case.family)
    return model, inputs_of(model, case.grid)


class Softmaxes(TorchFunctionMode):
    """Keeps what each softmax over four axes gives."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Tensor] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func is nn.functional.softmax and result.ndim == 4:
            self.found.append(result)
        return result


def eager(model: Any, inputs: dict[str, Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """An eager run's softmaxes, and what reaches the output projections of the tower's modules."""
    reaching, own = list[Tensor](), model.config._attn_implementation
    names = ("proj", "o_proj", "out_proj", "wo")
    towers = [one for name, one in model.named_modules() if "vis" in name.lower() and name.split(".")[-1] in names]
    handles = [one.register_forward_pre_hook(lambda _one, given: reaching.append(given[0])) for one in towers]
    model.set_attn_implementation("eager")
    try:
        with torch.no_grad(), Softmaxes() as softmaxes:
            model(**inputs)
    finally:
        model.set_attn_implementation(own)
        for handle in handles:
            handle.remove()
    return softmaxes.found, reaching


@pytest.mark.parametrize("case", CASES, ids=str)
def test_layers_are_modules_and_their_blocks_are_eagers_softmaxes(case: Case) -> None:
    model, inputs = made(case)
    trace = av.wrap(model, inputs=inputs).trace(inputs)
    assert trace.fidelity.ok
    count = sum(frames * rows * columns for frames, rows, columns in case.grid)
    layers = [layer.attention for layer in trace.layers["picture"]]
    assert [layer.shape[1:] for layer in layers] == [(count, count)] * len(case.chunks)
    softmaxes, reaching = eager(model, inputs)
    theirs = iter([one for one in softmaxes if one.shape[-1] in (*case.chunks[0], count)])
    assert len(reaching) >= len(layers)
    for layer, lengths in zip(layers, case.chunks, strict=True):
        ours, expected = layer.weights, torch.zeros(layer.shape)
        start = 0
        for length in lengths or (count,):
            part = slice(start, start + length)
            expected[:, part, part] = next(theirs)[0]
            start += length
        assert start == count
        assert float((ours - expected).abs().max()) <= NEAR
        joined = layer.output.transpose(0, 1).flatten(1)
        taken = [one.reshape(-1, joined.shape[1]) for one in reaching if one.numel() == joined.numel()]
        assert min(float((joined - one).abs().max() / one.abs().max()) for one in taken) <= NEAR


def scale_queries(call: Attention) -> Attention:
    return replace(call, query=call.query * 1.001)


def swap_heads(call: Attention) -> Attention:
    return replace(call, query=call.query[[1, 0, 2, 3]])


def swap_keys(call: Attention) -> Attention:
    order = torch.arange(call.shape[-1])
    order[[2, 9]] = order[[9, 2]]
    return replace(call, key=call.key[:, order])


def shift_windows(call: Attention) -> Attention:
    assert call.allowed is not None
    return replace(call, allowed=call.allowed.roll((4, 4), (-2, -1)))


def swap_values(call: Attention) -> Attention:
    order = torch.arange(call.shape[-1])
    order[[2, 9]] = order[[9, 2]]
    return replace(call, value=call.value[:, order])


@pytest.mark.parametrize("spoil", [scale_queries, swap_heads, swap_keys, shift_windows, swap_values])
@pytest.mark.parametrize("case", [CASES[1], CASES[2]], ids=str)
def test_a_spoilt_record_is_found_out(case: Case, spoil: Callable[[Attention], Attention]) -> None:
    model, inputs = made(case)
    runner = Runner.of(model)
    recorded = runner.record(inputs)
    assert compare(recorded, runner, inputs).ok
    first, *others = recorded.calls
    spoilt = replace(recorded, calls=(replace(first, attention=spoil(first.attention)), *others))
    assert not compare(spoilt, runner, inputs).ok


def test_other_lengths_of_chunks_are_refused() -> None:
    model, inputs = made(CASES[1])
    runner = Runner.of(model)
    recorded = runner.record(inputs)
    with pytest.raises(UnsupportedModel, match="has weights of shape"):
        compare(replace(recorded, chunks=((32, 16), *recorded.chunks[1:])), runner, inputs)


def tower_modules(model: Any) -> list[Any]:
    return [one for name, one in model.named_modules() if name.endswith(".attn") and "visual" in name]


def test_chunks_that_the_model_puts_together_in_another_order_are_found_out() -> None:
    model, inputs = tiny("qwen2_vl"), inputs_of(tiny("qwen2_vl"), TWO)
    for module in tower_modules(model):
        # As a model that changes the order of its chunks behind its attention would.
        inner = module.proj.forward
        module.proj = _Turned(module.proj)
        assert inner is not None
    runner = Runner.of(model)
    recorded = runner.record(inputs)
    found = compare(recorded, runner, inputs)
    assert found.ok  # a module behind the joined outputs may do with them what it likes
    for module in tower_modules(model):
        module.proj.before = module
    assert recorded.chunks[0] == (16, 32)


class _Turned(nn.Module):
    def __init__(self, inside: nn.Module) -> None:
        super().__init__()
        self.inside = inside

    def forward(self, states: Tensor) -> Tensor:
        return self.inside(states.roll(16, 0))


def recorded_as(model: Any, inputs: dict[str, Tensor]) -> Pass:
    return Runner.of(model).record(inputs)
