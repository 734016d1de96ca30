"""Inputs that a model's own code fails on are refused by name, and leave the model as it was."""

from typing import Any

import pytest
import torch
from transformers import (
    BertConfig,
    BertModel,
    LEDConfig,
    LEDForConditionalGeneration,
    ProphetNetConfig,
    ProphetNetForConditionalGeneration,
    SwinConfig,
    SwinModel,
)

import attention_viz as av
from attention_viz.errors import TextTooLong, UnsupportedModel

SIZES: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}


def swin() -> Any:
    config = SwinConfig(image_size=32, patch_size=4, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=3)
    model = SwinModel(config).eval()
    for name, one in model.named_parameters():
        if "relative_position_bias" in name:
            one.data = torch.randn(one.shape, generator=torch.Generator().manual_seed(0))
    return model


def picture(size: int) -> dict[str, torch.Tensor]:
    return {"pixel_values": torch.randn(1, 3, size, size, generator=torch.Generator().manual_seed(1))}


def test_an_image_that_swin_fails_on_is_refused_and_the_next_one_is_read() -> None:
    wrapped = av.wrap(swin(), inputs=picture(32))
    before = wrapped.trace(picture(32))
    reason = r"values \(1, 3, 1, 1\): encoder\.layers\.0\.blocks\.0\.attention \(SwinAttention\) fails: bias must"
    for edits in ((), (av.Ablate(0, 0, stream="picture"),)):
        with pytest.raises(UnsupportedModel, match=reason):
            wrapped.trace(picture(1), edits=edits)
    after = wrapped.trace(picture(32))
    assert torch.equal(after.output, before.output)
    assert torch.equal(after.weights(1, 0, "picture"), before.weights(1, 0, "picture"))


def test_a_refused_example_leaves_the_model_as_it_was() -> None:
    model = swin()
    with torch.no_grad():
        before = model(**picture(32)).last_hidden_state
        with pytest.raises(UnsupportedModel, match=r"attention \(SwinAttention\) fails"):
            av.wrap(model, inputs=picture(1))
        assert torch.equal(model(**picture(32)).last_hidden_state, before)


def test_an_error_inside_a_text_model_names_its_module() -> None:
    model = BertModel(BertConfig(vocab_size=50, max_position_embeddings=24, **SIZES)).eval()
    wrapped = av.wrap(model)
    # Someone's change after wrapping: fewer positions than the configuration says.
    model.embeddings.position_embeddings.weight.data = model.embeddings.position_embeddings.weight.data[:20]
    assert wrapped.trace_ids([3] * 20).query_tokens().ids == (3,) * 20
    with pytest.raises(UnsupportedModel, match=r"input_ids \(1, 21\).*: embeddings\.position_embeddings \(Embedding\)"):
        wrapped.trace_ids([3] * 21)


def prophetnet() -> Any:
    halves: Any = {f"num_{half}_{part}": 2 for half in ("encoder", "decoder") for part in ("layers", "attention_heads")}
    config: Any = ProphetNetConfig(
        vocab_size=50, hidden_size=16, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=24, ngram=2,
        decoder_start_token_id=0, **halves,
    )  # fmt: skip
    return ProphetNetForConditionalGeneration(config).eval()


def led() -> Any:
    halves: Any = {f"{half}_{part}": 2 for half in ("encoder", "decoder") for part in ("layers", "attention_heads")}
    config: Any = LEDConfig(
        vocab_size=50, d_model=16, encoder_ffn_dim=16, decoder_ffn_dim=16, attention_window=4,
        max_encoder_position_embeddings=32, max_decoder_position_embeddings=16, **halves,
    )  # fmt: skip
    return LEDForConditionalGeneration(config).eval()


@pytest.mark.parametrize(("make", "text", "target", "rows"), [(prophetnet, 23, 22, 3), (led, 32, 16, 1)])
def test_the_longest_text_and_target_are_read(make: Any, text: int, target: int, rows: int) -> None:
    model = make()
    model.generation_config.eos_token_id = model.generation_config.forced_eos_token_id = None
    wrapped = av.wrap(model)
    assert wrapped.limit == text
    trace = wrapped.trace_ids([3] * text, decoder_input_ids=[3] * target)
    assert (len(trace.query_tokens("encoder")), len(trace.query_tokens("decoder"))) == (text, rows * target)
    generated = len(wrapped.trace_ids([3] * text).query_tokens("decoder"))
    assert generated in (rows * (target - 1), rows * target)
    with pytest.raises(TextTooLong, match=f"at most {text} tokens"):
        wrapped.trace_ids([3] * (text + 1), decoder_input_ids=[3])
    with pytest.raises(TextTooLong, match=f"at most {target} tokens, and this target"):
        wrapped.trace_ids([3] * text, decoder_input_ids=[3] * (target + 1))
