"""Inputs that text models read beside a text, or instead of one, by their family."""

from collections.abc import Callable

import torch
from torch import Tensor
from transformers.modeling_utils import PreTrainedModel

from scripts.seen.inputs import noise
from scripts.seen.reading import example_of

__all__ = ["example_beside"]

_IDS = torch.tensor([[11, 22, 33, 44, 55, 66, 77, 18, 29]])
_TEXT = {"input_ids": _IDS, "attention_mask": torch.ones_like(_IDS)}
# The corners of each word's box: left, top, right and bottom.
_BOXES = torch.stack(
    [torch.arange(9) * 7 % 30, torch.arange(9) * 5 % 30, torch.arange(9) + 40, torch.arange(9) + 45], -1
)[None]
_CODES = torch.stack([(_IDS[0] + 7 * number) % 31 for number in range(4)])

_READ: dict[str, Callable[[], dict[str, Tensor]]] = {
    "bros": lambda: {**_TEXT, "bbox": _BOXES / 100},
    "lilt": lambda: {**_TEXT, "bbox": _BOXES},
    "udop": lambda: {**_TEXT, "bbox": _BOXES / 100, "decoder_input_ids": _IDS[:, :5]},
    "blip_2_qformer": lambda: {"query_embeds": noise(1, 5, 32), "encoder_hidden_states": noise(1, 6, 32)},
    # The canvas reads the text from a cache, so that its mask has both.
    "diffusion_gemma": lambda: {
        **_TEXT,
        "decoder_input_ids": _IDS[:, :5] + 2,
        "decoder_attention_mask": torch.ones(1, 14, dtype=torch.long),
    },
    "csm_depth_decoder_model": lambda: dict(_TEXT),
    "dia": lambda: {**_TEXT, "decoder_input_ids": _CODES[:, :5].T[None].repeat(1, 1, 3)[..., :9]},
    "kyutai_speech_to_text": lambda: {"input_ids": _IDS[..., None].repeat(1, 1, 33)},
    "lxmert": lambda: {**_TEXT, "visual_feats": noise(1, 5, 2048), "visual_pos": noise(1, 5, 4)},
    "musicgen_decoder": lambda: {"input_ids": _CODES},
    "musicgen_melody_decoder": lambda: {"input_ids": _CODES},
    "qwen3_omni_moe_talker_code_predictor": lambda: {"inputs_embeds": noise(1, 5, 32)},
    "qwen3_omni_moe_talker_text": lambda: {"inputs_embeds": noise(1, 5, 32)},
}  # fmt: skip


def example_beside(model: PreTrainedModel) -> dict[str, Tensor]:
    """Return an input that a text model reads where a text alone isn't enough."""
    reads = _READ.get(model.config.model_type)
    inputs = example_of(model) if reads is None else reads()
    if model.config.model_type == "aimv2":  # its text is read where it ends, which must not be padding
        inputs["input_ids"][0, 3] = model.config.get_text_config().eos_token_id
    return inputs
