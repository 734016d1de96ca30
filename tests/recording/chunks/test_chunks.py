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
from attention_viz.recording import fidelity
from attention_viz.recording.differences import Real
from attention_viz.recording.fidelity import compare
from attention_viz.recording.references.eager_rows import BY_ROWS, EagerRows
from attention_viz.recording.runner import Runner
from scripts.seen.inputs import noise
from tests.recording.chunks.cases import CASES, Case, inputs_of, tiny

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

    def enter(_module: object, given: tuple[Tensor, ...]) -> None:
        reaching.append(given[0])

    handles = [one.register_forward_pre_hook(enter) for one in towers]
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


def test_rows_of_long_inputs_are_compared_chunk_by_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fidelity, "MOST_WHOLE", 8)
    model, inputs = made(CASES[1])
    runner = Runner.of(model)
    recorded = runner.record(inputs)
    found = compare(recorded, runner, inputs)
    assert found.ok and found.rows == fidelity.FEWEST_ROWS
    twin, (first, *others) = runner.twin(), recorded.calls
    for spoil in (scale_queries, swap_heads, swap_keys, shift_windows, swap_values):
        spoilt = replace(recorded, calls=(replace(first, attention=spoil(first.attention)), *others))
        rows = EagerRows.of(spoilt, twin.original, fidelity.FEWEST_ROWS, Real())
        with rows.listening():
            twin.run(inputs, BY_ROWS)
        assert rows.complete
        assert max(rows.error, rows.behind.error) > 10 * NEAR


def test_other_lengths_of_chunks_are_refused() -> None:
    model, inputs = made(CASES[1])
    runner = Runner.of(model)
    recorded = runner.record(inputs)
    with pytest.raises(UnsupportedModel, match="has weights of shape"):
        compare(replace(recorded, chunks=((32, 16), *recorded.chunks[1:])), runner, inputs)


class Turned(TorchFunctionMode):
    """Joins outputs of chunks in the other order, as a module could that isn't like the others."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.cat and len(args[0]) == 2 and args[0][0].ndim == 4:
            args = (args[0][::-1], *args[1:])
        return func(*args, **(kwargs or {}))


def with_tower(change: Callable[[Any], None]) -> tuple[Runner, dict[str, Tensor]]:
    """A model of two frames whose modules of attention are changed."""
    model = tiny("qwen2_vl")
    for module in [one for name, one in model.named_modules() if "visual" in name and name.endswith(".attn")]:
        change(module)
    return Runner.of(model), inputs_of(model, CASES[0].grid)


def test_chunks_that_a_module_joins_in_another_order_are_found_out() -> None:
    def turn(module: Any) -> None:
        own = module.forward

        def forward(*args: Any, **named: Any) -> Tensor:
            with Turned():
                return own(*args, **named)

        module.forward = forward

    runner, inputs = with_tower(turn)
    found = compare(runner.record(inputs), runner, inputs)
    assert found.output_error is not None and found.output_error <= NEAR
    assert not found.ok


def test_chunks_that_no_module_takes_are_refused() -> None:
    def take(module: Any) -> None:
        weight, bias = module.proj.weight, module.proj.bias
        del module.proj

        def project(states: Tensor) -> Tensor:
            return nn.functional.linear(states, weight, bias)

        module.proj = project

    runner, inputs = with_tower(take)
    with pytest.raises(UnsupportedModel, match="no module in it, or right behind it, takes their joined outputs"):
        compare(runner.record(inputs), runner, inputs)


def test_several_calls_in_one_turn_that_are_no_chunks_are_refused() -> None:
    def copy_queries(module: Any) -> None:
        own = module.forward

        def forward(*args: Any, **named: Any) -> Tensor:
            with Copied():
                return own(*args, **named)

        module.forward = forward

    runner, inputs = with_tower(copy_queries)
    with pytest.raises(UnsupportedModel, match="several times in one turn"):
        av.wrap(runner.model, inputs=inputs)


class Copied(TorchFunctionMode):
    """Copies chunks, so that they are no longer parts of one tensor."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return [one.clone() for one in result] if func is torch.split else result


@pytest.mark.parametrize("case", [CASES[6], CASES[8]], ids=str)
def test_patches_that_come_one_by_one_have_numbers_and_no_places(case: Case) -> None:
    model, inputs = made(case)
    tokens = av.wrap(model, inputs=inputs).trace(inputs).query_tokens("picture")
    assert tokens.labels == tuple(map(str, range(48)))
    assert not tokens.placed and not any(tokens.special)


def test_pictures_in_one_row_of_patches_are_chunks_too() -> None:
    model = tiny("minicpmv4_7_vision")
    inputs = {"pixel_values": noise(1, 3, 8, 8 * 48), "target_sizes": torch.tensor([[4, 4], [4, 8]])}
    trace = av.wrap(model, inputs=inputs).trace(inputs)
    assert trace.fidelity.ok
    for layer in trace.layers["picture"]:
        assert layer.attention.shape == (4, 48, 48)
        assert not bool(layer.attention.weights[:, :16, 16:].any())
    assert trace.query_tokens("picture").labels == tuple(map(str, range(48)))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"image_grid_thw": torch.tensor([[1, 4, 4]])}, "Qwen2VL"),
        ({"image_grid_thw": torch.tensor([[1, 4, 4], [1, 0, 0]])}, "Qwen2VL"),
        ({"input_ids": torch.ones(2, 19, dtype=torch.long)}, "one row"),
        ({"image_grid_thw": None}, "image_grid_thw"),
    ],
    ids=["too few pictures", "an empty picture", "two texts", "no grid"],
)
def test_bad_pictures_are_refused_by_name(other: dict[str, Tensor | None], message: str) -> None:
    model, inputs = made(CASES[1])
    wrapped = av.wrap(model, inputs=inputs)
    with pytest.raises(UnsupportedModel, match=message):
        wrapped.trace({name: part for name, part in (inputs | other).items() if part is not None})
