"""Tiny models with sparse attention, and their weights by one-hot values, read without any of our code."""

import functools
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
# The modules inside that make values and that take the outputs; "" for the attention's own result.
_PARTS = {"LongT5LocalAttention": ("v", "o")}


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
        return [_by_one_hot(*turn, count) for turn in turns]


def _by_one_hot(module: nn.Module, given: Any, named: Any, count: int) -> Tensor:
    value, output = _PARTS.get(type(module).__name__, ("value", ""))
    heads = getattr(module, "num_attention_heads", getattr(module, "num_heads", getattr(module, "n_heads", 0)))
    columns = list[Tensor]()
    for key in range(count):
        context = _context(module, given, named, value, output, key)
        columns.append(context.reshape(context.shape[-2], heads, -1)[:count, :, 0].T)
    return torch.stack(columns, dim=-1)


def _context(module: nn.Module, given: Any, named: Any, value: str, output: str, key: int) -> Tensor:
    """The module's output, before any projection, if all of a position's values are 1 and the others 0."""
    taken = list[Tensor]()

    def one_hot(_module: nn.Module, _given: object, made: Tensor) -> Tensor:
        hot = torch.zeros_like(made)
        hot.reshape(-1, made.shape[-1])[key] = 1
        return hot

    def take(_module: nn.Module, given: tuple[Tensor, ...]) -> None:
        taken.append(given[0])

    handles = [module.get_submodule(value).register_forward_hook(one_hot)]
    if output:
        handles.append(module.get_submodule(output).register_forward_pre_hook(take))
    made = module.forward(*given, **named)
    for handle in handles:
        handle.remove()
    return taken[0] if output else made[0]
