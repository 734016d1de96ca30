"""NaN and infinity, in inputs and in weights, are refused for what they are."""

from typing import Any

import pytest
import torch
from accelerate import cpu_offload
from torch import Tensor
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaModel,
    SwinConfig,
    SwinModel,
    Wav2Vec2Config,
    Wav2Vec2Model,
)

import attention_viz as av
from attention_viz.errors import ShapeError, TraceError, UnsupportedModel
from attention_viz.recording.references.exact import why_nan
from tests.shipped import shipped

SIZES: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}


def swin() -> tuple[Any, dict[str, Tensor]]:
    config = SwinConfig(image_size=32, patch_size=4, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=3)
    return SwinModel(config).eval(), {"pixel_values": torch.randn(1, 3, 32, 32)}


def wav2vec2() -> tuple[Any, dict[str, Tensor]]:
    config = Wav2Vec2Config(
        **SIZES, conv_dim=(8, 8), conv_kernel=(10, 3), conv_stride=(5, 2), num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2,
    )  # fmt: skip
    return Wav2Vec2Model(config).eval(), {"input_values": torch.randn(1, 400)}


def llama() -> tuple[Any, dict[str, Tensor]]:
    mask = torch.zeros(1, 1, 9, 9).masked_fill(~torch.ones(9, 9, dtype=torch.bool).tril(), -torch.inf)
    inputs = {"inputs_embeds": torch.randn(1, 9, 16), "attention_mask": mask}
    return LlamaModel(LlamaConfig(vocab_size=50, **SIZES)).eval(), inputs


def changed(inputs: dict[str, Tensor], name: str, value: float) -> dict[str, Tensor]:
    found = {one: tensor.clone() for one, tensor in inputs.items()}
    found[name].view(-1)[7] = value
    return found


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize(
    ("make", "name", "first"),
    [
        (swin, "pixel_values", r"\[0, 0, 0, 7\], and 1 such of 3,072 numbers"),
        (wav2vec2, "input_values", r"\[0, 7\], and 1 such of 400 numbers"),
        (llama, "inputs_embeds", r"\[0, 0, 7\], and 1 such of 144 numbers"),
    ],
)
def test_inputs_are_finite(make: Any, name: str, first: str, value: float) -> None:
    model, inputs = make()
    wrong = changed(inputs, name, value)
    with pytest.raises(ShapeError, match=f"{name} must be finite; got {value} at {first}"):
        av.wrap(model, inputs=wrong)
    with pytest.raises(ShapeError, match=f"{name} must be finite; got {value} at {first}"):
        av.wrap(model, inputs=inputs).trace(wrong)


def test_masks_may_block_with_infinity_but_hold_no_nan() -> None:
    model, inputs = llama()
    trace = av.wrap(model, inputs=inputs).trace(inputs)
    assert not trace.weights(0, 0).triu(1).any()
    for value in (torch.nan, torch.inf):
        with pytest.raises(ShapeError, match=f"attention_mask must be finite or -inf; got {value} at"):
            av.wrap(model, inputs=changed(inputs, "attention_mask", value))


@pytest.mark.parametrize("make", [swin, wav2vec2, llama])
def test_weights_with_nan_are_named_before_and_after_wrapping(make: Any) -> None:
    model, inputs = make()
    wrapped = av.wrap(model, inputs=inputs)
    name, weights = next((name, one) for name, one in model.named_parameters() if "q_proj.weight" in name)
    with torch.no_grad():
        weights[0, 0] = torch.nan
    reason = rf"gives NaN, since its weights aren't finite \(1 of 256 numbers in {name}\)"
    with pytest.raises(UnsupportedModel, match=reason):
        wrapped.trace(inputs)
    with pytest.raises(UnsupportedModel, match=reason):
        av.wrap(model, inputs=inputs)


def test_an_overflow_of_one_input_is_refused() -> None:
    model, inputs = swin()
    wrapped = av.wrap(model, inputs=inputs)
    with pytest.raises(UnsupportedModel, match="its weights are all finite; look for too large an input"):
        wrapped.trace({"pixel_values": inputs["pixel_values"] * 1e30})


def test_a_text_of_a_model_whose_weights_became_nan_is_refused() -> None:
    model, _ = llama()
    wrapped = av.wrap(model)
    model.layers[1].mlp.up_proj.weight.data[0, 0] = torch.nan
    with pytest.raises(UnsupportedModel, match=r"1 of 256 numbers in layers\.1\.mlp\.up_proj\.weight"):
        wrapped.trace_ids([1, 2, 3])


@pytest.mark.parametrize("name", ["query", "key", "value"])
def test_given_numbers_are_finite(name: str) -> None:
    given = {one: torch.randn(2, 5, 4) for one in ("query", "key", "value")}
    given[name][0, 1, 2] = torch.nan
    with pytest.raises(TraceError, match=f"layer 0 has NaN or infinity in its {name}"):
        av.Trace.from_qkv(given["query"], given["key"], given["value"])


@pytest.mark.parametrize("hooked", [False, True])
def test_a_batch_and_a_step_with_nan_are_refused(*, hooked: bool) -> None:
    """A table of positions has NaN at its sixth; a hook's words are proven before."""
    tokenizer = shipped("induction").tokenizer
    assert tokenizer is not None
    sizes: dict[str, Any] = {"n_layer": 2, "n_head": 2, "n_embd": 16, "n_positions": 32}
    model = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), **sizes)).eval()
    if hooked:
        model.transformer.h[0].register_forward_hook(lambda _module, _inputs, output: output)
    wrapped, reason = av.wrap(model, tokenizer), r"numbers in transformer\.wpe\.weight"
    with torch.no_grad():
        model.transformer.wpe.weight[5, 0] = torch.nan
    words = "moon cheese frog ring moon cheese frog ring".split()
    count = len(wrapped.trace_together([" ".join(words[:3])])[0].query_tokens())
    with pytest.raises(UnsupportedModel, match=reason):
        wrapped.trace_together([" ".join(words[:3]), " ".join(words)])
    with pytest.raises(UnsupportedModel, match=reason):
        _ = [*wrapped.extend(wrapped.trace(" ".join(words[:3])), 6 - count)]


def test_weights_elsewhere_are_not_called_finite() -> None:
    """An offloaded weight's numbers aren't in memory."""
    model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=2, n_embd=16, vocab_size=50))
    cpu_offload(model.transformer.h[1])
    assert "the weights that can be read here are finite" in why_nan(model)
    with torch.no_grad():
        model.transformer.wte.weight[0, 0] = torch.nan
    assert "1 of 800 numbers in transformer.wte.weight" in why_nan(model)
