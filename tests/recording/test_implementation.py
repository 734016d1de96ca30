"""Wrapping and recording leave a model as they found it, and nobody who uses it meanwhile notices."""

import contextlib
import copy
import gc
import itertools
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

import attention_viz as av
from attention_viz.models.model import AttentionModel
from attention_viz.recording.call_chunks import TurnCounter
from attention_viz.recording.implementation import configurations
from attention_viz.recording.recorder import Recorder, recording
from tests.models.families import build, eager, eager_twin, ids, run

Together = Callable[..., list[object]]


def state(model: PreTrainedModel) -> dict[str, object]:
    """All that a user could notice of a model, in plain values."""
    return {
        "implementations": [config._attn_implementation for config in configurations(model)],
        "configuration": model.config.to_dict(),
        "training": [module.training for module in model.modules()],
        "hooks": [
            len(hooks)
            for module in model.modules()
            for hooks in (module._forward_hooks, module._forward_pre_hooks, module._forward_hooks_with_kwargs)
        ],
        "attributes": [sorted(vars(module)) for module in model.modules()],
        "weights": {name: tensor.clone() for name, tensor in model.state_dict().items()},
    }


def same(one: dict[str, object], other: dict[str, object]) -> bool:
    weights, others = one.pop("weights"), other.pop("weights")
    return one == other and all(torch.equal(weights[name], others[name]) for name in weights | others)


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("training", [False, True])
def test_wrapping_tracing_and_verifying_leave_a_model_as_it_was(implementation: str, training: bool) -> None:
    model = build("llama", attn_implementation=implementation).train(training)
    model.model.layers[1].train(not training)
    before = state(model)
    wrapped = av.wrap(model)
    trace = wrapped.trace_ids(ids(9), edits=[av.Allow(av.masks.causal(9), layer=1)])
    assert trace.fidelity.ok
    assert same(before, state(model))


def test_a_model_is_left_as_it_was_when_its_forward_fails() -> None:
    model = build("bert").train()
    wrapped = av.wrap(model)
    before = state(model)

    def fail(*_args: object) -> None:
        raise RuntimeError("in the middle")

    with_hook = model.encoder.layer[1].register_forward_hook(fail)
    with pytest.raises(av.UnsupportedModel, match=r"encoder\.layer\.1 \(BertLayer\) fails") as refused:
        wrapped.trace_ids(ids(9))
    assert str(refused.value.__cause__) == "in the middle"
    with_hook.remove()
    assert same(before, state(model))
    assert recording.get() is None
    assert wrapped.trace_ids(ids(9)).fidelity.ok


def test_refusing_leaves_a_model_as_it_was() -> None:
    model = build("mra").train()
    before = state(model)
    with pytest.raises(av.UnsupportedModel):
        av.wrap(model)
    assert same(before, state(model))


def test_a_model_in_training_mode_is_recorded_as_when_evaluated() -> None:
    model = build("bert", attention_probs_dropout_prob=0.5, hidden_dropout_prob=0.5)
    reference, weights = eager(eager_twin(model), input_ids=ids(9))
    trace = av.wrap(model.train()).trace_ids(ids(9))
    torch.testing.assert_close(trace.output, reference)
    torch.testing.assert_close(trace.attention(2).weights, weights[2])


def test_nothing_is_copied_so_that_a_change_of_weights_is_seen_at_once() -> None:
    model = build("bert")
    wrapped = av.wrap(model)
    before = wrapped.trace_ids(ids(9))
    assert wrapped.hf_model is model
    with torch.no_grad():
        model.encoder.layer[0].attention.self.query.weight.mul_(-1)
    after = wrapped.trace_ids(ids(9))
    torch.testing.assert_close(after.attention(0).query, -before.attention(0).query)
    assert after.fidelity.ok


def test_the_last_of_several_threads_puts_the_model_back() -> None:
    model = build("llama").train()
    switch = av.wrap(model).runner.switch
    with contextlib.ExitStack() as first, contextlib.ExitStack() as second:
        first.enter_context(switch.ours())
        second.enter_context(switch.ours())
        first.close()
        assert model.config._attn_implementation == "attention_viz"
        assert not any(module.training for module in model.modules())
        second.close()
        assert model.config._attn_implementation == "sdpa"
        assert all(module.training for module in model.modules())


def test_two_models_that_share_a_configuration_are_both_put_back() -> None:
    one = build("bert").train()
    other = type(one)(one.config).train()
    switches = [av.wrap(model).runner.switch for model in (one, other)]
    with contextlib.ExitStack() as first, contextlib.ExitStack() as second:
        first.enter_context(switches[0].ours())
        second.enter_context(switches[1].ours())
        assert not any(module.training for model in (one, other) for module in model.modules())
        first.close()
        assert one.training
        assert not other.training
        assert one.config._attn_implementation == "attention_viz"
    assert other.training
    assert one.config._attn_implementation == "sdpa"


@pytest.mark.parametrize("family", ["llama", "gpt_oss", "bert", "mistral"])
@pytest.mark.parametrize("first", ["ours", "the model's own"])
def test_a_plain_pass_during_which_the_model_is_switched_gives_right_numbers(family: str, first: str) -> None:
    model = build(family)
    mask = torch.tensor([[1] * 9, [1] * 5 + [0] * 4])
    inputs = {"input_ids": torch.cat([ids(9), ids(9, start=17)]), "attention_mask": mask}
    switch = av.wrap(model).runner.switch
    layers = model.encoder.layer if family == "bert" else model.model.layers
    for given in ({"input_ids": inputs["input_ids"]}, inputs):
        expected = run(copy.deepcopy(model), **given)[0]
        with contextlib.ExitStack() as inside, contextlib.ExitStack() as hooks:

            def turn(*_args: object, inside: contextlib.ExitStack = inside) -> None:
                inside.close() if first == "ours" else inside.enter_context(switch.ours())

            if first == "ours":
                inside.enter_context(switch.ours())
            hooks.callback(layers[1].register_forward_hook(turn).remove)
            output = run(model, **given)[0]
        real = mask.bool() if "attention_mask" in given else torch.ones_like(mask).bool()
        torch.testing.assert_close(output[real], expected[real], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("family", ["llama", "bert"])
def test_a_copy_made_while_a_run_records_takes_nothing_of_it_along(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(one: object, _memo: object) -> None:
        raise AssertionError(f"{one} was copied")

    for kind in (Recorder, TurnCounter):
        monkeypatch.setattr(kind, "__deepcopy__", refuse, raising=False)
    model, copies = build(family), list[Any]()
    layer = (model.encoder.layer if family == "bert" else model.model.layers)[1]
    layer.register_forward_hook(lambda *_: None if copies else copies.append(copy.deepcopy(model)))
    trace = av.wrap(model).trace_ids(ids(13))
    assert trace.fidelity.ok
    assert len(copies) == 1


def test_a_plain_user_beside_recording_threads_gets_right_numbers(together: Together) -> None:
    model = build("llama")
    wrapped = av.wrap(model)
    batch = torch.cat([ids(13), ids(13, start=19)])
    expected = run(model, input_ids=batch)["logits"]

    def use() -> None:
        for _ in range(60):
            torch.testing.assert_close(run(model, input_ids=batch)["logits"], expected, rtol=1e-4, atol=1e-4)

    def record() -> None:
        for _ in range(12):
            assert wrapped.trace_ids(ids(13)).fidelity.ok

    together(use, record, record, use)
    assert model.config._attn_implementation == "sdpa"


def test_a_user_who_generates_beside_recording_threads_gets_the_same_text(together: Together) -> None:
    model = build("gpt2", eos_token_id=None, bos_token_id=None)
    wrapped = av.wrap(model)

    def generate() -> Tensor:
        return model.generate(ids(5), max_new_tokens=12, do_sample=False, pad_token_id=0)

    expected = generate()
    results = together(
        lambda: [generate() for _ in range(4)], lambda: [wrapped.trace_ids(ids(7)).fidelity.ok for _ in range(8)]
    )
    assert all(torch.equal(text, expected) for text in results[0])
    assert all(results[1])


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_many_threads_on_one_model_never_mix_what_they_record(family: str, together: Together) -> None:
    model = build(family)
    texts = [ids(count, start) for count, start in itertools.product((5, 9, 13), (3, 29))]
    alone = [av.wrap(model).trace_ids(text) for text in texts]
    wraps = [av.wrap(model), av.wrap(model)]

    def work(wrapped: AttentionModel, first: int) -> None:
        for number in range(12):
            chosen = (first + number) % len(texts)
            trace = wrapped.trace_ids(texts[chosen])
            assert torch.equal(trace.output, alone[chosen].output)
            for layer in range(3):
                mine, expected = trace.attention(layer), alone[chosen].attention(layer)
                assert torch.equal(mine.query, expected.query)
                assert torch.equal(mine.weights, expected.weights)
            if number % 3 == 0:
                assert trace.fidelity.ok

    together(*(lambda number=number: work(wraps[number % 2], number) for number in range(4)), seconds=120)
    assert model.config._attn_implementation == "sdpa"


def test_an_error_in_one_thread_leaves_the_others_alone(together: Together) -> None:
    model = build("bert")
    wrapped = av.wrap(model)
    expected = wrapped.trace_ids(ids(9)).output

    def fail() -> None:
        for _ in range(10):
            with pytest.raises(av.ShapeError):
                wrapped.trace_ids(ids(9), edits=[av.Allow(av.masks.causal(4))])

    def work() -> None:
        for _ in range(10):
            assert torch.equal(wrapped.trace_ids(ids(9)).output, expected)

    together(fail, work, fail, work)
    assert model.config._attn_implementation == "sdpa"


def test_nothing_outlives_a_model_and_its_traces() -> None:
    model = build("llama")
    trace = av.wrap(model).trace_ids(ids(9))
    assert trace.fidelity.ok
    gone = weakref.ref(model)
    del model, trace
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.enable_grad])
def test_a_trace_is_the_same_in_whatever_mode_the_caller_is(mode: Callable[[], object]) -> None:
    wrapped = av.wrap(build("llama"))
    expected = wrapped.trace_ids(ids(9))
    with mode():
        trace = wrapped.trace_ids(ids(9))
        assert trace.fidelity.ok
    assert torch.equal(trace.output, expected.output)
    assert not trace.output.requires_grad
