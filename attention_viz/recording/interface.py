"""Registers our attention function with transformers."""

from typing import Any

import torch
from torch import Tensor, nn

from attention_viz.errors import UnsupportedModel
from attention_viz.operation.attention import attend
from attention_viz.operation.causal_mask import LEAST, CausalMask
from attention_viz.operation.masks import causal
from attention_viz.recording.as_written import refuse_own_autocast
from attention_viz.recording.recorder import Call, Split, recording, split_mask
from attention_viz.sources.huggingface import ALL_MASK_ATTENTION_FUNCTIONS as _MASKS
from attention_viz.sources.huggingface import AttentionInterface, AttentionMaskInterface

OURS = "attention_viz"

# Keywords that change nothing in the result: what they stand for is already in the tensors, or concerns caching,
# reporting or other kernels. Anything not named here or in the function's signature is refused.
_HARMLESS = frozenset(
    "position_ids use_cache cache_position encoder_hidden_states sliding_window deterministic is_causal "
    "output_attentions output_hidden_states output_router_logits vision_feature_layer input_ids grid_thw "
    "cu_seq_lens_q cu_seq_lens_k "
    "max_length_q max_length_k past_key_values past_key_value return_dict num_items_in_batch logits_to_keep".split()
)


def unrecorded_mask(module: nn.Module, query: Tensor, key: Tensor, mask: Tensor | None, closed: object) -> Split:
    """Return the mask of an unrecorded pass, while another thread has switched the model.

    Under torch's fused kernel, where it may have begun, no mask may mean causal.
    """
    if mask is not None:
        return split_mask(mask)
    closed = getattr(module, "is_causal", True) if closed is None else closed
    queries, keys = query.shape[-2], key.shape[-2]
    if closed and queries > 1:
        return torch.ones(queries, keys, dtype=torch.bool, device=query.device).tril(), None
    return None, None


def chosen_keys(indices: Tensor, keys: int) -> Tensor:
    """Turn chosen keys, (batch, query, top-k), into a mask (batch, 1, query, key); −1 chooses none.

    Models make this mask only for implementations they know. Source: DeepSeek-AI 2025, "DeepSeek-V3.2", section 2.1.
    """
    counts = torch.zeros(*indices.shape[:-1], keys, dtype=torch.int32, device=indices.device)
    counts.scatter_add_(-1, indices.long().clamp_min(0), (indices >= 0).int())
    return (counts > 0)[:, None]


def chosen_blocks(module: nn.Module, blocks: Tensor, heads: int, keys: int) -> Tensor:
    """Turn chosen blocks of keys, (batch, group, query, top-k), into a mask (batch, head, query, key); −1 chooses none.

    Models make this mask only for implementations they know.
    """
    size = getattr(getattr(module, "indexer", None), "block_size", None)
    if not isinstance(size, int) or size < 1 or blocks.ndim != 4 or heads % blocks.shape[1]:
        raise UnsupportedModel(f"{type(module).__name__} chooses blocks of keys of an unknown size")
    chosen = torch.stack([chosen_keys(one, -(-keys // size))[:, 0] for one in blocks.unbind(1)], dim=1)
    spread = chosen.repeat_interleave(size, -1)[..., :keys]
    return spread.repeat_interleave(heads // blocks.shape[1], 1)


def _attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None = None,
    scaling: float | None = None,
    dropout: float = 0.0,
    softcap: float | None = None,
    position_bias: Tensor | None = None,
    s_aux: Tensor | None = None,
    sinks: Tensor | None = None,
    indices: Tensor | None = None,
    block_indices: Tensor | None = None,
    **others: object,
) -> tuple[Tensor, Tensor | None]:
    """Compute attention for transformers: (batch, head, position, width) in, position first out."""
    recorder = recording.get()
    if recorder is None:
        allowed, bias = unrecorded_mask(module, query, key, attention_mask, others.get("is_causal"))
    else:
        _refuse_unknown(module, dropout, others)
        refuse_own_autocast(module, query, key, value)
        allowed, bias = recorder.split(attention_mask)
    if position_bias is not None:
        bias = position_bias if bias is None else bias + position_bias
    if sinks is not None:
        # A sink per query, (batch, head, query, 1), is a sink of 0 beside logits from which it is subtracted.
        bias = -sinks if bias is None else bias - sinks
        s_aux = sinks.new_zeros(sinks.shape[1])
    if indices is not None:
        chosen = chosen_keys(indices, key.shape[-2])
        allowed = chosen if allowed is None else allowed & chosen
    if block_indices is not None:
        chosen = chosen_blocks(module, block_indices, query.shape[1], key.shape[-2])
        allowed = chosen if allowed is None else allowed & chosen
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    attention = attend(query, key, value, allowed, scale=scale, bias=bias, softcap=softcap, sinks=s_aux)
    if recorder is not None:
        return recorder.compute(Call(module, attention)).transpose(1, 2).contiguous(), None
    # Another caller's pass, which may need the weights of the model's own attention.
    return attention.output.transpose(1, 2).contiguous(), attention.weights


def _refuse_unknown(module: nn.Module, dropout: float, others: dict[str, object]) -> None:
    """Refuse arguments that we would wrongly ignore."""
    if not others.keys() <= _HARMLESS and (unknown := _unknown(others)):
        raise UnsupportedModel(
            f"{type(module).__name__} passes {', '.join(unknown)} to attention, which attention_viz.attend doesn't "
            "know; without that term, weights could be wrong"
        )
    if dropout and module.training:
        raise UnsupportedModel(f"{type(module).__name__} drops weights at random ({dropout}) even in evaluation mode")


def _unknown(others: dict[str, object]) -> list[str]:
    return sorted(name for name, value in others.items() if value is not None and name not in _HARMLESS)


def _mask(batch_size: int, q_length: int, kv_length: int, *places: Any, **options: Any) -> Tensor | None:
    """Return eager attention's mask, quickly if causal, and let the recorder learn it."""
    recorder = recording.get()
    if recorder is None or batch_size != 1 or q_length != kv_length or not options.get("allow_is_causal_skip"):
        return _MASKS["eager"](batch_size, q_length, kv_length, *places, **options)
    allowed = _MASKS["sdpa"](batch_size, q_length, kv_length, *places, **options)
    closed, dtype = allowed is None, options.get("dtype", torch.float32)
    if closed and q_length >= LEAST:
        return CausalMask.of(q_length, options.get("device") or "cpu", dtype)
    if closed:
        allowed = causal(q_length).to(options.get("device"))[None, None]
    mask = torch.where(allowed, torch.zeros((), dtype=dtype, device=allowed.device), torch.finfo(dtype).min)
    recorder.learn(mask, (recorder.needed(allowed), None), closed=closed)
    return mask


AttentionInterface.register(OURS, _attention)
# Decoders build their mask only for implementations that are named here; without it they would run unmasked.
AttentionMaskInterface.register(OURS, _mask)
