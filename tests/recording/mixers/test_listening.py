"""Every family's own kernel against our matrix of what it was called with, in a running model."""

import copy
import threading
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attention_viz.errors import UnsupportedModel
from attention_viz.recording.mixers.listening import heard_mixers, mixing_modules
from attention_viz.recording.mixers.record import MixerRecorder
from scripts.tiny import tiny
from tests.recording.mixers.hybrids import FAMILIES, build

COUNT = 100
KINDS = {
    **dict.fromkeys(("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "qwen4_exp_text", "olmo_hybrid"), "gated delta"),
    **dict.fromkeys(("kimi_linear", "bailing_hybrid", "glm5_next_text"), "Kimi delta"),
    **dict.fromkeys(("mamba2", "bamba", "falcon_h1", "granitemoehybrid", "nemotron_h", "zamba2"), "SSD"),
    **dict.fromkeys(("mamba", "falcon_mamba", "jamba", "zamba"), "selective scan"),
    **dict.fromkeys(("lfm2", "lfm2_moe", "lfm3", "inkling_text"), "convolution"),
    "recurrent_gemma": "RG-LRU",
    "minimax": "lightning",
    "xlstm": "mLSTM",
    "fnet": "Fourier",
    "yoso": "YOSO",
}


def inputs(count: int = COUNT) -> Tensor:
    return (torch.arange(count)[None] * 31 + 5) % 97


def run(model: nn.Module, ids: Tensor) -> Tensor:
    options = {} if type(model).__name__.startswith(("FNet", "Yoso")) else {"use_cache": False}
    with torch.no_grad():
        return model(input_ids=ids, **options)[0]


def apart(one: Tensor, other: Tensor) -> float:
    return float((one - other).detach().abs().max() / other.abs().max())


@pytest.mark.parametrize(("name", "kind"), KINDS.items())
def test_a_familys_kernel_is_our_matrix_times_its_values(name: str, kind: str) -> None:
    model, recorder, inside = build(name), MixerRecorder(proves=True), MixerRecorder(computes=True)
    ids = inputs(min(COUNT, getattr(model.config, "max_position_embeddings", None) or COUNT))
    plain = run(model, ids)
    with heard_mixers(mixing_modules(model), recorder):
        heard = run(model, ids)
    assert torch.equal(heard, plain)
    assert len(recorder.calls) >= 1 and {call.module for call in recorder.calls} == set(mixing_modules(model))
    for call in recorder.calls:
        assert call.mixer.kind == kind
        assert call.error < 1e-5
        # Those that are heard by hooks have no kernel to run again.
        assert (call.matrix_error is not None) == (kind not in ("lightning", "mLSTM", "Fourier"))
        weights = call.mixer.weights.detach()
        assert weights.shape[-2:] == (ids.shape[1],) * 2
        assert not call.mixer.is_causal or not weights.triu(1).any()
        # Not only what a token passes to itself.
        assert float(weights.tril(-1).abs().sum()) > 0.001 * float(weights.abs().sum())
    with heard_mixers(mixing_modules(model), inside):
        computed = run(model, ids)
    assert len(inside.calls) == len(recorder.calls)
    assert apart(computed, plain) < 1e-4
    assert torch.equal(run(model, ids), plain)


def test_nothing_is_heard_of_a_pass_outside_or_in_another_thread() -> None:
    model, recorder = build("qwen3_next"), MixerRecorder()
    others: list[Tensor] = []
    with heard_mixers(mixing_modules(model), recorder):
        thread = threading.Thread(target=lambda: others.append(run(model, inputs())))
        thread.start()
        thread.join()
        assert not recorder.calls
        ours = run(model, inputs())
    assert len(recorder.calls) == 1
    assert torch.equal(others[0], ours)
    run(model, inputs())
    assert len(recorder.calls) == 1


def test_a_deep_copy_is_heard_as_its_original_is() -> None:
    model = build("mamba2")
    with heard_mixers(mixing_modules(model), MixerRecorder()):
        run(model, inputs())
    twin, recorder = copy.deepcopy(model), MixerRecorder()
    with heard_mixers(mixing_modules(twin), recorder):
        run(twin, inputs())
    assert [call.module for call in recorder.calls] == list(mixing_modules(twin))


def test_a_kernel_that_goes_on_from_a_state_is_refused() -> None:
    model: Any = build("qwen3_next")
    with torch.no_grad():
        cache = model(input_ids=inputs(20), use_cache=True).past_key_values
        with (
            heard_mixers(mixing_modules(model), MixerRecorder()),
            pytest.raises(UnsupportedModel, match="starts from a kept state"),
        ):
            model(input_ids=inputs(20), past_key_values=cache, use_cache=True)


def test_a_model_with_softmax_attention_alone_has_no_mixers() -> None:
    assert not mixing_modules(tiny(FAMILIES["llama"]))
