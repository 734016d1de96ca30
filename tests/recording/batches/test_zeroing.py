"""Value zeroing against hooks on plain transformers: a value set to zero in one layer, and how far its output turns."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import attention_viz as av
from attention_viz.analysis.readings import read
from attention_viz.errors import TraceError
from tests.models.families import build, ids
from tests.shipped import MINILM, plain, shipped

LENGTH = 7
# Of a model and a layer's number, what makes the values, and the layer.
LAYERS: dict[str, Callable[[Any, int], tuple[Any, Any]]] = {
    "bert": lambda m, at: (m.encoder.layer[at].attention.self.value, m.encoder.layer[at]),
    "llama": lambda m, at: (m.model.layers[at].self_attn.v_proj, m.model.layers[at]),
    "qwen3": lambda m, at: (m.model.layers[at].self_attn.v_proj, m.model.layers[at]),
    "gemma2": lambda m, at: (m.model.layers[at].self_attn.v_proj, m.model.layers[at]),
    "opt": lambda m, at: (m.model.decoder.layers[at].self_attn.v_proj, m.model.decoder.layers[at]),
    "t5 encoder": lambda m, at: (m.encoder.block[at].layer[0].SelfAttention.v, m.encoder.block[at]),
}


def by_hand(model: Any, values: Any, layer: Any, given: Tensor, without: int | None) -> Tensor:
    """What leaves a layer, (position, width), with one token's value zero."""
    left: list[Tensor] = []

    def silence(_module: Any, _inputs: Any, output: Tensor) -> Tensor:
        output = output.clone()
        output[:, without] = 0
        return output

    handles = [layer.register_forward_hook(lambda _m, _i, out: left.append(out[0] if isinstance(out, tuple) else out))]
    if without is not None:
        handles.append(values.register_forward_hook(silence))
    with torch.no_grad():
        _ = model(given)
    for handle in handles:
        handle.remove()
    return left[0].reshape(given.shape[1], -1)


def expected(model: Any, values: Any, layer: Any, given: Tensor) -> Tensor:
    count = given.shape[1]
    whole = by_hand(model, values, layer, given, None)
    others = [by_hand(model, values, layer, given, at) for at in range(count)]
    return torch.stack([1 - torch.cosine_similarity(whole, one, dim=-1) for one in others], dim=-1)


@pytest.mark.parametrize("family", LAYERS)
def test_it_is_how_far_a_layer_s_output_turns_when_hooks_set_a_value_to_zero(family: str) -> None:
    hf, given = build(family), ids(LENGTH)
    hf.set_attn_implementation("eager")
    parts = [LAYERS[family](hf, at) for at in range(3)]
    by_hooks = [expected(hf, *part, given) for part in parts]
    model = av.wrap(hf)
    flags = [(one.requires_grad, one.grad) for one in hf.parameters()]
    trace = model.trace_ids(given)
    found = trace.value_zeroing()
    assert len(found) == 3
    for layer, (one, hand) in enumerate(zip(found, by_hooks, strict=True)):
        assert hand.max() > 1e-4
        torch.testing.assert_close(one, hand, atol=2e-6, rtol=1e-3)
        weights = read("zeroing", trace, model).weights(layer, 0)
        torch.testing.assert_close(weights, one / one.sum(dim=-1, keepdim=True), atol=1e-6, rtol=1e-4)
    assert flags == [(one.requires_grad, one.grad) for one in hf.parameters()]
    assert not [module for module in hf.modules() if module._forward_hooks or module._forward_pre_hooks]


def test_a_long_text_of_minilm_is_done_in_several_batches() -> None:
    model, hf = shipped(MINILM), plain(MINILM)
    text = "the bank of the river " * 12
    trace = model.trace(text)
    given = torch.tensor([trace.query_tokens().ids])
    assert given.shape[1] ** 2 > 2048
    values, layer = LAYERS["bert"](hf, 3)
    whole = by_hand(hf, values, layer, given, None)
    (found,) = model.trace(text, layers=[3]).value_zeroing()
    for at in (0, 1, 40, given.shape[1] - 1):
        one = by_hand(hf, values, layer, given, at)
        torch.testing.assert_close(found[:, at], 1 - torch.cosine_similarity(whole, one, dim=-1), atol=2e-6, rtol=1e-3)


def test_edits_hold_while_it_is_asked() -> None:
    model = shipped("induction")
    text = "red cat blue dog red"
    silenced = model.trace(text, edits=[av.Ablate(1, head) for head in range(4)])
    first, second = silenced.value_zeroing()
    assert first.max() > 1e-3
    assert second.max() == 0  # its heads hand on nothing, whatever their values


def test_every_kind_of_attention_of_an_encoder_decoder_is_asked() -> None:
    trace = shipped("translation").trace("the red house")
    for stream in trace.streams:
        (found,) = trace.value_zeroing(stream)
        assert found.shape == trace.attention(0, stream).shape[1:]
        assert found.max() > 1e-3
    assert not trace.value_zeroing("decoder")[0].triu(1).any()


def test_a_trace_without_a_model_behind_it_is_refused() -> None:
    with pytest.raises(TraceError, match="model"):
        _ = av.scratch("a b c").value_zeroing()
    with pytest.raises(TraceError, match="model"):
        _ = read("zeroing", shipped("induction").trace("red cat").detached())
