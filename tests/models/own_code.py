"""Tiny models that compute attention in code of their own: families, with their special terms, and one of ours."""

import functools
from collections.abc import Callable

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

import attention_viz as av
from attention_viz.models.model import AttentionModel
from tests.models.families import PLAIN, POSITIONS, VOCABULARY, build, built

__all__ = ["OWN", "InFloat32", "Within", "build_own", "softmax_alone", "with_layers", "wrapped_own"]

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


_Soften = Callable[[Tensor, Tensor], Tensor]


class Within(nn.Module):
    """A layer's attention in code of its own, (batch, head, query, key), with what a test does to its logits."""

    def __init__(self, soften: _Soften) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.projections = nn.ModuleList(nn.Linear(20, 20) for _ in range(3))
        self.soften = soften

    def forward(self, hidden_states: Tensor, *_args: object, **_options: object) -> tuple[Tensor, Tensor]:
        split = [part(hidden_states).unflatten(-1, (5, 4)).transpose(1, 2) for part in self.projections]
        query, key, value = split
        weights = self.soften(query @ key.mT / 2, value)
        return (weights @ value).transpose(1, 2).flatten(2), weights


class InFloat32(Within):
    """The same, with queries and keys multiplied in float32 whatever the model computes in."""

    def forward(self, hidden_states: Tensor, *_args: object, **_options: object) -> tuple[Tensor, Tensor]:
        split = [part(hidden_states).unflatten(-1, (5, 4)).transpose(1, 2) for part in self.projections]
        query, key, value = split
        weights = self.soften(query.float() @ key.float().mT / 2, value).to(value.dtype)
        return (weights @ value).transpose(1, 2).flatten(2), weights


def softmax_alone(scores: Tensor, _value: Tensor) -> Tensor:
    """What a layer does to its logits as a rule."""
    return scores.softmax(dim=-1)


def with_layers(soften: _Soften, layer: type[Within] = Within) -> nn.Module:
    """A model all of whose attention is code of its own, whatever a release of transformers makes of its families."""
    model = build("bert")
    for one in model.encoder.layer:
        one.attention.self = layer(soften)
    return model
