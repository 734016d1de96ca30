"""Tiny models of pictures and sounds with random weights, and an input for each: a line a family."""

from collections.abc import Callable
from typing import Any

import torch
import transformers
from torch import Tensor

__all__ = ["FAMILIES", "tiny"]

_SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "d_model": 32,
    "vocab_size": 60,
}
_PICTURE = {**_SIZES, "image_size": 24, "patch_size": 8}
_WAVES = {
    **_SIZES,
    "conv_dim": (16, 16),
    "conv_stride": (5, 4),
    "conv_kernel": (10, 4),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
}

Inputs = Callable[[], dict[str, Tensor]]


def _pixels(*shape: int) -> Inputs:
    return lambda: {"pixel_values": torch.randn(1, *shape, generator=torch.Generator().manual_seed(1))}


def _sound(name: str, *shape: int) -> Inputs:
    return lambda: {name: torch.randn(1, *shape, generator=torch.Generator().manual_seed(1))}


def _spoken(name: str, *shape: int) -> Inputs:
    return lambda: {**_sound(name, *shape)(), "decoder_input_ids": torch.tensor([[1, 7, 9, 12]])}


# By name: the model's class, what its configuration is made smaller by, and an input.
FAMILIES: dict[str, tuple[str, dict[str, Any], Inputs]] = {
    "vit": ("ViTModel", _PICTURE, _pixels(3, 24, 24)),
    "deit": ("DeiTModel", _PICTURE, _pixels(3, 24, 24)),
    "beit": ("BeitModel", {**_PICTURE, "use_relative_position_bias": True}, _pixels(3, 24, 24)),
    "dinov2": ("Dinov2Model", {**_PICTURE, "mlp_ratio": 2}, _pixels(3, 24, 32)),
    "dinov2_with_registers": ("Dinov2WithRegistersModel", {**_PICTURE, "mlp_ratio": 2}, _pixels(3, 24, 24)),
    "dinov3": ("DINOv3ViTModel", _PICTURE, _pixels(3, 24, 32)),
    "vit_msn": ("ViTMSNModel", _PICTURE, _pixels(3, 24, 24)),
    "ijepa": ("IJepaModel", _PICTURE, _pixels(3, 24, 24)),
    "yolos": ("YolosModel", {**_PICTURE, "image_size": [24, 32], "num_detection_tokens": 5}, _pixels(3, 24, 32)),
    "clip_vision": ("CLIPVisionModel", _PICTURE, _pixels(3, 24, 24)),
    "siglip_vision": ("SiglipVisionModel", _PICTURE, _pixels(3, 24, 24)),
    "aimv2_vision": ("Aimv2VisionModel", _PICTURE, _pixels(3, 24, 24)),
    "videomae": ("VideoMAEModel", {**_PICTURE, "num_frames": 4}, _pixels(4, 3, 24, 24)),
    "vivit": ("VivitModel", {**_PICTURE, "num_frames": 4, "tubelet_size": [2, 8, 8]}, _pixels(4, 3, 24, 24)),
    "wav2vec2": ("Wav2Vec2Model", _WAVES, _sound("input_values", 800)),
    "hubert": ("HubertModel", _WAVES, _sound("input_values", 800)),
    "unispeech": ("UniSpeechModel", _WAVES, _sound("input_values", 800)),
    "data2vec_audio": ("Data2VecAudioModel", _WAVES, _sound("input_values", 800)),
    "ast": ("ASTModel", {**_SIZES, "patch_size": 8, "num_mel_bins": 16, "max_length": 32, "frequency_stride": 8,
                         "time_stride": 8}, _sound("input_values", 32, 16)),
    "whisper": ("WhisperForConditionalGeneration", {**_SIZES, "num_mel_bins": 8, "max_source_positions": 15,
                "max_target_positions": 12, "pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0,
                "decoder_start_token_id": 1}, _spoken("input_features", 8, 30)),
    "speech_to_text": ("Speech2TextForConditionalGeneration", {**_SIZES, "input_feat_per_channel": 8,
                       "max_source_positions": 40, "max_target_positions": 12, "conv_channels": 16, "pad_token_id": 0,
                       "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 1},
                       _spoken("input_features", 30, 8)),
    "moonshine": ("MoonshineForConditionalGeneration", {**_SIZES, "encoder_num_hidden_layers": 2,
                  "decoder_num_hidden_layers": 2, "encoder_num_attention_heads": 4, "decoder_num_attention_heads": 4,
                  "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1},
                  _spoken("input_values", 4000)),
}  # fmt: skip


def tiny(name: str) -> tuple[Any, dict[str, Tensor]]:
    """A model of a family, always with the same weights, and an input."""
    kind, sizes, inputs = FAMILIES[name]
    found = getattr(transformers, kind)
    torch.manual_seed(0)
    model = found(found.config_class(**sizes)).eval()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.data *= 2  # so that attention isn't nearly even
    return model, inputs()
