"""The comparison with eager sees every difference that matters, and takes no difference for one that doesn't."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from attention_viz.operation.attention import Attention
from attention_viz.recording.differences import Real
from attention_viz.recording.fidelity import compare
from attention_viz.recording.runner import Pass, Runner
from tests.models.families import build, ids

COUNT = 9


@pytest.fixture(scope="module")
def runner() -> Runner:
    return Runner.of(build("llama"))


@pytest.fixture
def inputs(runner: Runner) -> dict[str, Tensor]:
    return runner.inputs({"input_ids": ids(COUNT)})


def with_call(recorded: Pass, number: int, attention: Attention) -> Pass:
    calls = list(recorded.calls)
    calls[number] = replace(calls[number], attention=attention)
    return replace(recorded, calls=tuple(calls))


def test_what_is_right_is_right(runner: Runner, inputs: dict[str, Tensor]) -> None:
    fidelity = compare(runner.record(inputs), runner, inputs)
    assert fidelity.ok
    assert fidelity.seconds > 0


@pytest.mark.parametrize(("head", "query", "factor"), [(0, 0, 1.01), (5, 8, 1.001)])
def test_one_number_in_one_query_is_enough(
    runner: Runner, inputs: dict[str, Tensor], head: int, query: int, factor: float
) -> None:
    recorded = runner.record(inputs)
    attention = recorded.calls[1].attention
    spoilt = attention.query.clone()
    spoilt[head, query] *= 1 if query == 0 else factor
    spoilt[head, 4] *= factor
    assert not compare(with_call(recorded, 1, replace(attention, query=spoilt)), runner, inputs).ok


def test_a_mask_that_opens_one_cell_is_seen(runner: Runner, inputs: dict[str, Tensor]) -> None:
    recorded = runner.record(inputs)
    attention = recorded.calls[2].attention
    opened = attention.allowed.clone()
    opened[..., 3, 7] = True
    assert compare(with_call(recorded, 2, replace(attention, allowed=opened)), runner, inputs).weight_error > 1e-3


def test_padding_is_left_out_and_nothing_else_is(runner: Runner, inputs: dict[str, Tensor]) -> None:
    recorded = runner.record(inputs)
    output = recorded.output.clone()
    output[4] += 1
    real = [position != 4 for position in range(COUNT)]
    assert not compare(replace(recorded, output=output), runner, inputs).ok
    assert compare(replace(recorded, output=output), runner, inputs, Real(real)).ok
    output[5] += 1
    assert not compare(replace(recorded, output=output), runner, inputs, Real(real)).ok


@pytest.mark.parametrize("spoil", [math.nan, math.inf])
def test_numbers_that_are_none_are_never_right(runner: Runner, inputs: dict[str, Tensor], spoil: float) -> None:
    recorded = runner.record(inputs)
    output = recorded.output.clone()
    output[0, 0] = spoil
    fidelity = compare(replace(recorded, output=output), runner, inputs)
    assert fidelity.output_error == math.inf
    assert not fidelity.ok


@pytest.mark.parametrize("never", [-math.inf, torch.finfo(torch.float32).min])
def test_a_logit_that_means_never_hides_no_difference_beside_it(never: float) -> None:
    model = build("llama")
    with torch.no_grad():
        model.lm_head.bias = torch.nn.Parameter(torch.zeros(97))
        model.lm_head.bias[3] = never
    runner = Runner.of(model)
    inputs = runner.inputs({"input_ids": ids(COUNT)})
    recorded = runner.record(inputs)
    assert compare(recorded, runner, inputs).ok
    output = recorded.output.clone()
    output[2, 5] += 0.01
    assert not compare(replace(recorded, output=output), runner, inputs).ok
    output[:, 3] = 0
    assert compare(replace(recorded, output=output), runner, inputs).output_error == math.inf


def test_weights_of_a_big_layer_are_compared_one_head_at_a_time(
    runner: Runner, inputs: dict[str, Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = compare(runner.record(inputs), runner, inputs)
    monkeypatch.setattr("attention_viz.recording.differences.NUMBERS_AT_A_TIME", 0)
    one_by_one = compare(runner.record(inputs), runner, inputs)
    assert one_by_one.weight_error == pytest.approx(at_once.weight_error, abs=1e-6)


def test_half_precision_that_hands_out_float32_is_held_to_the_bound_of_half_precision() -> None:
    model = build("llama").to(torch.bfloat16)
    model.lm_head.float().register_forward_pre_hook(lambda _head, args: (args[0].float(),))
    runner = Runner.of(model)
    inputs = runner.inputs({"input_ids": ids(COUNT)})
    recorded = runner.record(inputs)
    assert recorded.output.dtype == torch.float32
    assert compare(recorded, runner, inputs).bound == 5e-2
