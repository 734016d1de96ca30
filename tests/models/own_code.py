"""Tiny models of families that compute attention in code of their own, with their special terms switched on."""

import functools

import torch
from transformers import PreTrainedModel

import attention_viz as av
from attention_viz.models.model import AttentionModel
from tests.models.families import PLAIN, POSITIONS, VOCABULARY, built

__all__ = ["OWN", "build_own", "wrapped_own"]

_GPT: dict[str, object] = {"vocab_size": VOCABULARY, "n_embd": 20, "n_layer": 3, "n_head": 5, "n_positions": POSITIONS}
_RELATIVE: dict[str, object] = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "type_vocab_size": 0}
_BLOOM: dict[str, object] = {"vocab_size": VOCABULARY, "hidden_size": 20, "n_layer": 3, "n_head": 5}
_FALCON: dict[str, object] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 20,
    "num_hidden_layers": 3,
    "num_attention_heads": 5,
    "ffn_hidden_size": 37,
}

OWN: dict[str, tuple[str, str, dict[str, object]]] = {
    "deberta": ("DebertaForMaskedLM", "DebertaConfig", PLAIN),
    "deberta, relative": ("DebertaForMaskedLM", "DebertaConfig", PLAIN | _RELATIVE | {"position_biased_input": False}),
    "deberta-v2": ("DebertaV2ForMaskedLM", "DebertaV2Config", PLAIN),
    "deberta-v2, relative": (
        "DebertaV2ForMaskedLM",
        "DebertaV2Config",
        PLAIN | _RELATIVE | {"position_buckets": 8, "share_att_key": True, "norm_rel_ebd": "layer_norm"},
    ),
    "falcon": ("FalconForCausalLM", "FalconConfig", _FALCON),
    "falcon, one key head": ("FalconForCausalLM", "FalconConfig", _FALCON | {"multi_query": True}),
    "falcon, alibi": ("FalconForCausalLM", "FalconConfig", _FALCON | {"alibi": True, "bias": True}),
    "bloom": ("BloomForCausalLM", "BloomConfig", _BLOOM),
    "mpt": (
        "MptForCausalLM",
        "MptConfig",
        {"vocab_size": VOCABULARY, "d_model": 16, "n_layers": 3, "n_heads": 4, "max_seq_len": POSITIONS},
    ),
    "mpnet": ("MPNetForMaskedLM", "MPNetConfig", PLAIN),
    "xlnet": (
        "XLNetLMHeadModel",
        "XLNetConfig",
        {"vocab_size": VOCABULARY, "d_model": 20, "n_layer": 3, "n_head": 5, "d_inner": 37},
    ),
    "gptj": ("GPTJForCausalLM", "GPTJConfig", _GPT | {"rotary_dim": 2}),
    "gpt_neo": (
        "GPTNeoForCausalLM",
        "GPTNeoConfig",
        {
            "vocab_size": VOCABULARY,
            "hidden_size": 20,
            "num_layers": 2,
            "num_heads": 5,
            "attention_types": [[["global", "local"], 1]],
            "window_size": 4,
            "max_position_embeddings": POSITIONS,
        },
    ),
    "roformer": ("RoFormerForMaskedLM", "RoFormerConfig", PLAIN | {"hidden_size": 30, "embedding_size": 30}),
    "xlm": (
        "XLMWithLMHeadModel",
        "XLMConfig",
        {"vocab_size": VOCABULARY, "emb_dim": 20, "n_layers": 3, "n_heads": 5, "max_position_embeddings": POSITIONS},
    ),
}


def build_own(family: str, **changes: object) -> PreTrainedModel:
    """A tiny model, ready to run; the same weights every time."""
    model = built(*OWN[family], **{"attn_implementation": "eager", **changes})
    if family == "xlnet":  # its weights are parameters without a module, of three axes, and begin smaller still
        with torch.no_grad():
            for layer in model.transformer.layer:
                for name in ("q", "k", "r"):
                    getattr(layer.rel_attn, name).mul_(9)
    return model


@functools.cache
def wrapped_own(family: str) -> AttentionModel:
    """One wrapped model of a family, for tests that only look."""
    return av.wrap(build_own(family))
