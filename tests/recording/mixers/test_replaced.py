"""Kernels of other packages, compiled models and threads: still heard, or refused by name."""

import inspect
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers.integrations.hub_kernels import use_kernel_func_from_hub_with_fallback

import attention_viz as av
from attention_viz.errors import UnsupportedModel
from attention_viz.recording.mixers.listening import heard_mixers, mixing_modules
from attention_viz.recording.mixers.record import MixerRecorder
from tests.recording.mixers.hybrids import build

IDS = (torch.arange(20)[None] * 7) % 97
KERNEL = "torch_chunk_gated_delta_rule"


def namespace_of(model: Any) -> dict[str, Any]:
    layer = next(
        one for one in model.modules() if KERNEL in getattr(inspect.unwrap(type(one).forward), "__globals__", ())
    )
    return inspect.unwrap(type(layer).forward).__globals__


def other_package(own: Callable[..., Any], ran: list[int]) -> Callable[..., Any]:
    """The function of fla: the same rule, with its own names of arguments."""

    def chunk_gated_delta_rule(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        g: Tensor,
        beta: Tensor,
        initial_state: Tensor | None = None,
        output_final_state: bool = False,
        use_qk_l2norm_in_kernel: bool = False,
        **_: Any,
    ) -> Any:
        ran.append(q.shape[1])
        options = {"output_final_state": output_final_state, "use_qk_l2norm_in_kernel": use_qk_l2norm_in_kernel}
        return own(q, k, v, g=g, beta=beta, initial_state=initial_state, **options)

    return chunk_gated_delta_rule


class Func(nn.Module):
    """What the package `kernels` makes of a function: its forward can be replaced."""

    def __init__(self, own: Callable[..., Any]) -> None:
        super().__init__()
        self.own = own

    def forward(self, query: Tensor, key: Tensor, value: Tensor, g: Tensor, beta: Tensor, **others: Any) -> Any:
        return self.own(query, key, value, g=g, beta=beta, **others)


@pytest.mark.parametrize("how", ["package", "module", "kernelized module"])
def test_a_function_of_another_package_is_heard(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, ran = build("qwen3_next"), list[int]()
    expected = av.wrap(model).trace_ids(IDS)
    own = inspect.unwrap(namespace_of(model)[KERNEL])
    foreign = other_package(own, ran)
    if how == "package":
        fla: Any = ModuleType("fla")
        fla.chunk_gated_delta_rule, fla.ops = foreign, fla
        for name in ("fla", "fla.ops", "fla.ops.gated_delta_rule"):
            monkeypatch.setitem(sys.modules, name, fla)
        fla.gated_delta_rule = fla
        chosen: Any = use_kernel_func_from_hub_with_fallback("chunk_gated_delta_rule", "fla")(own)
    else:
        chosen = Func(own)
        if how == "kernelized module":
            chosen.forward = foreign
    monkeypatch.setitem(namespace_of(model), KERNEL, chosen)
    wrapped = av.wrap(model)
    ran.clear()
    trace = wrapped.trace_ids(IDS)
    assert (len(ran) > 0) == (how != "module")
    assert trace.streams == ("decoder", "mixer") and trace.fidelity.ok
    assert torch.allclose(trace.weights(0, 1), expected.weights(0, 1), atol=1e-6)
    edited = wrapped.trace_ids(IDS, edits=[av.Ablate(0, 1)])
    assert not torch.equal(edited.output, trace.output)


def test_a_package_that_computes_something_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("qwen3_next")
    own = inspect.unwrap(namespace_of(model)[KERNEL])

    def halved(query: Tensor, key: Tensor, value: Tensor, **others: Any) -> Any:
        return own(query, key / 2, value, **others)

    monkeypatch.setitem(namespace_of(model), KERNEL, halved)
    with pytest.raises(UnsupportedModel):
        av.wrap(model)


def test_a_compiled_model_is_heard_uncompiled_and_still_runs() -> None:
    model = build("mamba2")
    expected = av.wrap(model).trace_ids(IDS)
    compiled: Any = torch.compile(model, backend="eager")
    trace = av.wrap(compiled).trace_ids(IDS)
    assert torch.equal(trace.weights(1, 2), expected.weights(1, 2)) and trace.fidelity.ok
    assert any("compiled" in note for note in trace.provenance.notes)
    with torch.no_grad():
        assert torch.allclose(compiled(IDS)[0][0], trace.output, atol=1e-4)


@pytest.mark.parametrize("name", ["xlstm", "minimax", "fnet", "mamba2"])
def test_threads_that_record_one_model_hear_their_own_passes_alone(name: str) -> None:
    model: Any = build(name)
    mixing, ours, theirs = mixing_modules(model), MixerRecorder(), MixerRecorder()
    options = {} if name == "fnet" else {"use_cache": False}

    def run(recorder: MixerRecorder, ids: Tensor) -> None:
        with heard_mixers(mixing, recorder), torch.no_grad():
            model(ids, **options)

    with heard_mixers(mixing, ours), torch.no_grad():
        thread = threading.Thread(target=run, args=(theirs, IDS[:, :9]))
        thread.start()
        thread.join()
        model(IDS, **options)
    alone = MixerRecorder()
    run(alone, IDS)
    assert len(ours.calls) == len(theirs.calls) == len(alone.calls) == len(mixing)
    assert [call.mixer.shape[-1] for call in theirs.calls] == [9] * len(mixing)
    for one, other in zip(ours.calls, alone.calls, strict=True):
        assert torch.equal(one.mixer.weights, other.mixer.weights)
    assert not any(vars(module)["_forward_hooks"] or vars(module)["_forward_pre_hooks"] for module in mixing)


def test_traces_of_many_threads_are_those_of_one() -> None:
    wrapped = av.wrap(build("xlstm"))
    texts = [IDS[:, : 8 + number] for number in range(6)]
    expected, found = [wrapped.trace_ids(ids).weights(1, 2) for ids in texts], dict[int, Tensor]()

    def trace(number: int) -> None:
        found[number] = wrapped.trace_ids(texts[number]).weights(1, 2)

    threads = [threading.Thread(target=trace, args=(number,)) for number in range(len(texts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(found[number], expected[number]) for number in range(len(texts)))


def test_a_batch_of_texts_is_not_taken_for_one() -> None:
    model: Any = build("mamba2")
    both = IDS.expand(2, -1)
    with heard_mixers(mixing_modules(model), MixerRecorder()), pytest.raises(UnsupportedModel, match="mixed 2 rows"):
        model(both, use_cache=False)
    yoso: Any = build("yoso")
    with heard_mixers(mixing_modules(yoso), MixerRecorder()), pytest.raises(UnsupportedModel, match="rows"):
        yoso(both)
