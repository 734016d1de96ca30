"""Tiny models with sparse attention, and their weights by one-hot values, read without any of our code."""

import functools
import itertools
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

import attention_viz as av
from attention_viz.models.model import AttentionModel
from tests.models.families import PLAIN, VOCABULARY, built

_SIZES: dict[str, object] = {**PLAIN, "num_hidden_layers": 2, "num_attention_heads": 2}
PAIR: dict[str, object] = {
    "vocab_size": VOCABULARY,
    "d_model": 20,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 37,
    "decoder_ffn_dim": 37,
    "pad_token_id": 1,
}
_REFORMER: dict[str, object] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 20,
    "num_attention_heads": 2,
    "attention_head_size": 10,
    "feed_forward_size": 37,
    "axial_pos_shape": (8, 8),
    "axial_pos_embds_dim": (8, 12),
    "local_attn_chunk_length": 4,
    "lsh_attn_chunk_length": 4,
    "max_position_embeddings": 64,
    "num_buckets": 4,
    "hash_seed": 5,
    "pad_token_id": 0,
}
T5: dict[str, object] = {
    "vocab_size": VOCABULARY,
    "d_model": 20,
    "d_kv": 7,
    "d_ff": 37,
    "num_layers": 2,
    "num_heads": 2,
    "local_radius": 3,
}
LONGFORMER: dict[str, object] = _SIZES | {"attention_window": 4, "pad_token_id": 1}

_BIG_BIRD: dict[str, object] = {
    "attention_type": "block_sparse",
    "block_size": 2,
    "num_random_blocks": 2,
    "max_position_embeddings": 64,
}

PROPHETNET: dict[str, object] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 20,
    "num_encoder_layers": 1,
    "num_decoder_layers": 2,
    "num_encoder_attention_heads": 2,
    "num_decoder_attention_heads": 2,
    "encoder_ffn_dim": 37,
    "decoder_ffn_dim": 37,
    "max_position_embeddings": 64,
    "ngram": 2,
}

# By name: the class, its configuration, and the class of the modules that attend sparsely.
SPARSE: dict[str, tuple[str, str, dict[str, object], str]] = {
    "longformer": ("LongformerForMaskedLM", "LongformerConfig", LONGFORMER, "LongformerSelfAttention"),
    "led": (
        "LEDForConditionalGeneration",
        "LEDConfig",
        PAIR | {"attention_window": 4},
        "LEDEncoderSelfAttention",
    ),
    "longt5": ("LongT5EncoderModel", "LongT5Config", T5, "LongT5LocalAttention"),
    "longt5, summaries": (
        "LongT5EncoderModel",
        "LongT5Config",
        T5 | {"encoder_attention_type": "transient-global", "global_block_size": 4},
        "LongT5TransientGlobalAttention",
    ),
    "pegasus_x": (
        "PegasusXForConditionalGeneration",
        "PegasusXConfig",
        PAIR | {"encoder_layers": 2, "block_size": 4, "num_global_tokens": 3},
        "PegasusXGlobalLocalAttention",
    ),
    "big_bird": ("BigBirdForMaskedLM", "BigBirdConfig", _SIZES | _BIG_BIRD, "BigBirdBlockSparseAttention"),
    "bigbird_pegasus": (
        "BigBirdPegasusForConditionalGeneration",
        "BigBirdPegasusConfig",
        PAIR | _BIG_BIRD,
        "BigBirdPegasusBlockSparseAttention",
    ),
    "prophetnet": (
        "ProphetNetForCausalLM",
        "ProphetNetConfig",
        PROPHETNET,
        "ProphetNetNgramSelfAttention",
    ),
    "reformer, local": (
        "ReformerModelWithLMHead",
        "ReformerConfig",
        _REFORMER | {"attn_layers": ["local", "local"], "is_decoder": True},
        "LocalSelfAttention",
    ),
    "reformer, buckets": (
        "ReformerForMaskedLM",
        "ReformerConfig",
        _REFORMER | {"attn_layers": ["lsh", "lsh"]},
        "LSHSelfAttention",
    ),
}
# The longest texts that BigBird reads in full.
FULL = {name: (5 + 2 * 2) * 2 for name in ("big_bird", "bigbird_pegasus")}
# Texts' numbers of tokens: within a block, and no multiple of blocks.
LENGTHS = {name: (FULL[name] + 1, FULL[name] + 5) if name in FULL else (1, 3, 13) for name in SPARSE}


@dataclass(frozen=True)
class Layout:
    """Where a family's code has tokens and slots: (which turn of a module inside, first row, how many).

    Attributes:
        value: the path of the module inside that makes values.
        output: of the one that takes the heads' outputs; "" for the attention's own result.
    """

    keys: tuple[tuple[int, int, int], ...]
    queries: tuple[tuple[int, int, int], ...]
    value: str = "value"
    output: str = ""

    @classmethod
    def of(cls, kind: str, layer: int, count: int) -> "Layout":
        """The layout of a class's layer for a text."""
        tokens = ((0, 0, count),)
        if kind == "PegasusXGlobalLocalAttention":
            before = 2 * (layer % 2)  # half a block, in every other layer
            return cls(((0, before, count), (1, 0, 3)), ((1, before, count), (0, 0, 3)), "v_proj", "out_proj")
        if kind == "ProphetNetNgramSelfAttention":
            return cls(((0, 0, 3 * count),), (*tokens, (1, 0, 2 * count)), "value_proj", "out_proj")
        if kind == "LongT5TransientGlobalAttention":
            return cls((*tokens, (1, 0, count // 4)), tokens, "v", "o")
        return cls(tokens, tokens, "v", "o") if kind == "LongT5LocalAttention" else cls(tokens, tokens)


def sparse(name: str) -> PreTrainedModel:
    """A model by its name in `SPARSE`."""
    return built(*SPARSE[name][:3])


@functools.cache
def wrapped_sparse(name: str) -> AttentionModel:
    return av.wrap(sparse(name))


def weights_by_one_hot(model: PreTrainedModel, kind: str, inputs: dict[str, Tensor], count: int) -> list[Tensor]:
    """Each sparse layer's weights, (head, query, key): its turn runs with one-hot values in place of its own.

    Softmaxes don't depend on values, so that the output then is the weights.
    """
    turns = list[tuple[nn.Module, Any, Any]]()

    def keep(module: nn.Module, given: Any, named: Any) -> None:
        turns.append((module, given, named))

    modules = [one for one in model.modules() if type(one).__name__ == kind]
    handles = [one.register_forward_pre_hook(keep, with_kwargs=True) for one in modules]
    with torch.no_grad():
        model(**inputs, use_cache=False)
        for handle in handles:
            handle.remove()
        return [_by_one_hot(*turn, Layout.of(kind, layer, count)) for layer, turn in enumerate(turns)]


def _by_one_hot(module: nn.Module, given: Any, named: Any, layout: Layout) -> Tensor:
    heads = next(
        getattr(module, name)
        for name in ("num_attention_heads", "num_attn_heads", "num_heads", "n_heads")
        if hasattr(module, name)
    )
    columns = list[Tensor]()
    for turn, start, count in layout.keys:
        for key in range(start, start + count):
            contexts = _contexts(module, given, named, layout, (turn, key))
            rows = [contexts[at][first : first + many] for at, first, many in layout.queries]
            columns.append(torch.cat(rows).unflatten(-1, (heads, -1))[..., 0].T)
    return torch.stack(columns, dim=-1)


def _contexts(module: nn.Module, given: Any, named: Any, layout: Layout, one: tuple[int, int]) -> list[Tensor]:
    """The module's outputs, (row, width), before any projection, if one position's values are 1 and the others 0."""
    taken, turns = list[Tensor](), itertools.count()

    def one_hot(_module: nn.Module, _given: object, made: Tensor) -> Tensor:
        hot = torch.zeros_like(made)
        if next(turns) == one[0]:
            hot.reshape(-1, made.shape[-1])[one[1]] = 1
        return hot

    def take(_module: nn.Module, given: tuple[Tensor, ...]) -> None:
        taken.append(given[0].flatten(0, -2))

    handles = [module.get_submodule(layout.value).register_forward_hook(one_hot)]
    if layout.output:
        handles.append(module.get_submodule(layout.output).register_forward_pre_hook(take))
    made = module.forward(*given, **named)
    for handle in handles:
        handle.remove()
    return taken if layout.output else [made[0][0]]
