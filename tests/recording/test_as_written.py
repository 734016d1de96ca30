"""Compiled models cost no more than plain ones, and torch.autocast lowers nothing that is shown."""

import time
from collections.abc import Callable, Iterator

import pytest
import torch
from accelerate import Accelerator
from torch import nn

import attention_viz as av
from tests.models.families import build, ids, run


def compiled_forward(model: nn.Module) -> nn.Module:
    model.forward = torch.compile(model.forward, backend="eager")
    return model


def compiled_layer_forward(model: nn.Module) -> nn.Module:
    layer = model.model.layers[0]
    layer.forward = torch.compile(layer.forward, backend="eager")
    return model


def compiled_layer(model: nn.Module) -> nn.Module:
    model.model.layers[1] = torch.compile(model.model.layers[1], backend="eager")
    return model


def compiled_body(model: nn.Module) -> nn.Module:
    model.model = torch.compile(model.model, backend="eager")
    return model


def compiled_in_place(model: nn.Module) -> nn.Module:
    model.compile(backend="eager")
    return model


WAYS: dict[str, Callable[[nn.Module], nn.Module]] = {
    "torch.compile(model)": lambda model: torch.compile(model, backend="eager"),
    "model.compile()": compiled_in_place,
    "model.forward": compiled_forward,
    "a layer's forward": compiled_layer_forward,
    "a layer": compiled_layer,
    "the body": compiled_body,
}


@pytest.fixture
def frames() -> Iterator[Callable[[], int]]:
    """How many frames torch has compiled."""
    import torch._dynamo

    torch._dynamo.reset()
    yield lambda: torch._dynamo.utils.counters["frames"]["total"]
    torch._dynamo.reset()


@pytest.mark.parametrize("ran", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_a_compiled_model_is_recorded_as_it_is_written_and_nothing_is_compiled_for_it(
    way: str, ran: bool, frames: Callable[[], int]
) -> None:
    expected = av.wrap(build("llama")).trace_ids(ids(9))
    model = WAYS[way](build("llama"))
    own = run(model, input_ids=ids(9)).logits[0] if ran else None
    before, started = frames(), time.perf_counter()
    trace = av.wrap(model).trace_ids(ids(9))
    assert trace.fidelity.ok
    # Compiling takes seconds a run; how many is the machine's, so what is counted is what was compiled.
    assert frames() == before, f"{time.perf_counter() - started:.1f} s"
    torch.testing.assert_close(trace.output, expected.output, rtol=0, atol=0)
    assert trace.provenance.notes == ("The model was compiled. It runs here without torch.compile.",)
    if own is not None:
        torch.testing.assert_close(trace.output, own)
        torch.testing.assert_close(run(model, input_ids=ids(9)).logits[0], own, rtol=0, atol=0)


def test_afterwards_a_compiled_model_is_compiled_as_before(frames: Callable[[], int]) -> None:
    model = compiled_in_place(build("llama"))
    av.wrap(model).trace_ids(ids(9))
    before = frames()
    run(model, input_ids=ids(9))
    assert frames() > before


def test_a_forward_that_was_replaced_by_a_function_is_compared_with_itself() -> None:
    model, calls = build("llama"), list[int]()
    own = model.forward

    def counted(*inputs: object, **named: object) -> object:
        calls.append(1)
        return own(*inputs, **named)

    model.forward = counted
    trace = av.wrap(model).trace_ids(ids(9))
    assert trace.fidelity.ok
    assert calls
    assert model.forward is counted


def of_a_notebook(*inputs: object, **named: object) -> object:
    return NOTEBOOK(*inputs, **named)


NOTEBOOK: Callable[..., object] = of_a_notebook


def test_a_forward_that_calls_the_model_by_a_global_name_is_compared_with_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = build("llama")
    monkeypatch.setitem(globals(), "NOTEBOOK", model.forward)
    model.forward = of_a_notebook
    assert av.wrap(model).trace_ids(ids(9)).fidelity.ok


def test_inside_autocast_a_model_is_refused_by_that_cause() -> None:
    plain = build("llama")
    model = av.wrap(plain)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with pytest.raises(av.UnsupportedModel, match=r'inside torch.autocast\("cpu", bfloat16\)') as refusal:
            av.wrap(plain)
        for ask in (
            lambda: model.trace_ids(ids(9)),
            lambda: model.repeated_random(3),
            lambda: av.wrap(build("bert")),
        ):
            with pytest.raises(av.UnsupportedModel, match="wrap and trace outside of it"):
                ask()
    assert "text alone" not in str(refusal.value)
    assert "av.record()" not in str(refusal.value)
    # What it says to do instead works.
    assert av.wrap(plain.to(torch.bfloat16)).trace_ids(ids(9)).fidelity.ok


def test_texts_together_are_refused_inside_autocast(minilm: av.AttentionModel) -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(av.UnsupportedModel, match="autocast"):
        minilm.trace_together(["the cat", "a dog"])


def test_what_is_asked_of_a_trace_inside_autocast_is_as_exact_as_outside() -> None:
    model = av.wrap(build("llama"))
    trace, other = model.trace_ids(ids(9)), model.trace_ids(ids(9))
    outside = trace.weights(1, 2), trace.attention(1).output, av.gradient(model, trace), trace.fidelity
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = other.weights(1, 2), other.attention(1).output, av.gradient(model, other), other.fidelity
    for one, same in zip(outside[:3], inside[:3], strict=True):
        assert same.dtype == torch.float32
        torch.testing.assert_close(same, one, rtol=0, atol=0)
    assert inside[3].ok
    assert inside[3].output_error == outside[3].output_error


def test_the_output_of_a_long_text_is_as_exact_inside_autocast_as_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    from attention_viz.inputs import cost

    monkeypatch.setattr(cost, "LONG", 2)
    model = av.wrap(build("llama"))
    trace, other = model.trace_ids(ids(9)), model.trace_ids(ids(9))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(other.output, trace.output, rtol=0, atol=0)


def test_a_model_that_switches_autocast_on_itself_is_refused_by_that_cause() -> None:
    accelerator = Accelerator(mixed_precision="bf16", cpu=True)
    model = accelerator.prepare(build("llama"))
    with pytest.raises(av.UnsupportedModel, match=r"inside its own torch\.autocast") as refusal:
        av.wrap(model)
    # The line that it names works.
    assert "accelerator.unwrap_model(model, keep_fp32_wrapper=False)" in str(refusal.value)
    assert av.wrap(accelerator.unwrap_model(model, keep_fp32_wrapper=False)).trace_ids(ids(9)).fidelity.ok


def test_autocast_for_another_kind_of_device_is_none_of_ours() -> None:
    model = av.wrap(build("llama"))
    with torch.autocast("cpu", enabled=False):
        assert model.trace_ids(ids(9)).fidelity.ok
