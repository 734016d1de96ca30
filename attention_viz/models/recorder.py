"""Our attention function inside transformers, and the recorder that listens to it.

The function is registered once with transformers' attention and mask interfaces. Who listens is a context variable, so
that several threads can run one model at the same time and each hears only its own calls.
"""

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS as _MASKS
from transformers.masking_utils import AttentionMaskInterface

from attention_viz.attention import Attention, attend, is_causal, mixed
from attention_viz.edits import Edit, narrow
from attention_viz.errors import UnsupportedModel
from attention_viz.masks import causal

__all__ = ["OURS", "Call", "Recorder", "recording"]

OURS = "attention_viz"

# Keywords that change nothing in the result: what they stand for is already in the tensors, or concerns caching,
# reporting or other kernels. Anything not named here or in the function's signature is refused.
_HARMLESS = frozenset(
    "position_ids use_cache cache_position encoder_hidden_states sliding_window deterministic is_causal "
    "output_attentions output_hidden_states output_router_logits input_ids grid_thw cu_seq_lens_q cu_seq_lens_k "
    "max_length_q max_length_k past_key_values past_key_value return_dict num_items_in_batch logits_to_keep".split()
)

# Masks arrive as numbers to add. Below this a number means "blocked": BERT's first code added −10,000 (9,984 in
# bfloat16), everyone since adds the lowest number there is. A bias so low leaves a weight of exactly 0 anyway.
_BLOCKED_BELOW = -9e3

Split = tuple[Tensor | None, Tensor | None]


@dataclass(frozen=True, eq=False)
class Call:
    """One call of our function: the module that made it and the attention it asked for, head first."""

    module: nn.Module
    attention: Attention


@dataclass(eq=False)
class Recorder:
    """Hears every attention call of one pass, in order, and applies that pass's edits to it.

    Attributes:
        edits: changes to make.
        places: of each call, its stream and its place there; needed for edits only.
        calls: what was heard.
    """

    edits: Sequence[Edit] = ()
    places: Sequence[tuple[str, int]] = ()
    calls: list[Call] = field(default_factory=list[Call])
    _splits: dict[object, tuple[Tensor, Split]] = field(default_factory=dict[object, "tuple[Tensor, Split]"])
    _closed: dict[object, tuple[Tensor, bool]] = field(default_factory=dict[object, "tuple[Tensor, bool]"])

    def hear(self, module: nn.Module, attention: Attention) -> Attention:
        """Take down one call and hand back what is to be computed: the call with its edits."""
        earlier = self.calls[-1] if self.calls else None
        again = earlier is not None and earlier.module is module and _same_weights(earlier.attention, attention)
        if self.edits:
            attention = self._edited(attention, len(self.calls) - again)
        if earlier is not None and again:
            both = torch.cat([earlier.attention.value, attention.value], dim=-1)
            self.calls[-1] = Call(module, replace(earlier.attention, value=both))
        else:
            self.calls.append(Call(module, attention))
        return attention

    def _edited(self, attention: Attention, number: int) -> Attention:
        if number >= len(self.places):
            raise UnsupportedModel(f"call {number} of this pass is one that the probe's pass didn't make")
        heads, queries, keys = attention.shape
        allowed = narrow(self.edits, self.places[number], heads, (queries, keys), attention.allowed)
        return replace(attention, allowed=None if allowed is None else allowed.to(attention.query.device))

    def output(self, attention: Attention) -> Tensor:
        """What one call computes; whether its mask is just "no looking ahead" is found out once a pass."""
        allowed = attention.allowed
        if allowed is None:
            return mixed(attention, closed=False)
        key = _memory(allowed)
        if key not in self._closed:
            self._closed[key] = (allowed, is_causal(allowed, attention.shape[-2:]))
        return mixed(attention, self._closed[key][1])

    def split(self, mask: Tensor | None) -> Split:
        """A mask as (allowed, bias); layers that share a mask share the answer, so it is worked out once a pass."""
        if mask is None:
            return None, None
        key = _memory(mask)
        if key not in self._splits:
            self.learn(mask, split_mask(mask))
        return self._splits[key][1]

    def learn(self, mask: Tensor, split: Split) -> None:
        """Keep what a mask means, and the mask with it, so that its place in memory can't become another's."""
        self._splits[_memory(mask)] = (mask, split)


def _same_weights(one: Attention, other: Attention) -> bool:
    """Whether a module asks for the same weights twice, to mix two halves of its values by them one after the other.

    The first call is kept, so its query's place in memory can't have become another's. Source: Ye et al. 2024,
    "Differential Transformer", whose two halves share their weights.
    """
    return _memory(one.query) == _memory(other.query) and _memory(one.key) == _memory(other.key)


def _memory(mask: Tensor) -> object:
    """What tells a mask from others: many models slice theirs anew in each layer, without a copy."""
    return mask.data_ptr(), mask.shape, mask.stride(), mask.dtype


recording: ContextVar[Recorder | None] = ContextVar("recording", default=None)


def split_mask(mask: Tensor) -> Split:
    """A model's mask, boolean or to be added, as (allowed, bias); None where nothing is blocked or nothing added."""
    if mask.dtype == torch.bool:
        return (None if bool(mask.all()) else mask), None
    allowed = mask > _BLOCKED_BELOW
    bias = None if torch.equal(allowed, mask == 0) else mask.masked_fill(~allowed, 0)
    return (None if bool(allowed.all()) else allowed), bias


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
    indices: Tensor | None = None,
    **others: object,
) -> tuple[Tensor, Tensor | None]:
    """What transformers calls in place of its own attention: (batch, head, position, width) in, position first out."""
    recorder = recording.get()
    if recorder is None:
        allowed, bias = _unrecorded_mask(module, query, key, attention_mask, others.get("is_causal"))
    else:
        _refuse_unknown(module, dropout, others)
        allowed, bias = recorder.split(attention_mask)
    if position_bias is not None:
        bias = position_bias if bias is None else bias + position_bias
    if indices is not None:
        chosen = _chosen(indices, key.shape[-2])
        allowed = chosen if allowed is None else allowed & chosen
    if recorder is not None:
        query, key, value = (_only_row(module, term) for term in (query, key, value))
        allowed, bias = (None if term is None else _only_row(module, term) for term in (allowed, bias))
        # A parameter of the model's, which training may change while a trace keeps it.
        s_aux = None if s_aux is None else s_aux.detach().clone()
    attention = attend(query, key, value, allowed, scale=scaling, bias=bias, softcap=softcap, sinks=s_aux)
    if recorder is None:
        # Somebody else's pass, who may have asked the model's own attention for its weights.
        return attention.output.transpose(1, 2).contiguous(), attention.weights
    output = recorder.output(recorder.hear(module, attention))[None]
    return output.transpose(1, 2).contiguous(), None


def _unrecorded_mask(module: nn.Module, query: Tensor, key: Tensor, mask: Tensor | None, closed: object) -> Split:
    """The mask in a pass of somebody else, who uses the model while another thread has turned it to our attention.

    That pass may have begun under torch's fused kernel, where having no mask may stand for not looking ahead.
    """
    if mask is not None:
        return split_mask(mask)
    closed = getattr(module, "is_causal", True) if closed is None else closed
    queries, keys = query.shape[-2], key.shape[-2]
    if closed and queries > 1:
        return torch.ones(queries, keys, dtype=torch.bool, device=query.device).tril(), None
    return None, None


def _chosen(indices: Tensor, keys: int) -> Tensor:
    """The keys that each query chose, (batch, query, top-k), as a mask (batch, 1, query, key); −1 chooses none.

    Models that choose make this mask themselves only for implementations they know by name. Source: DeepSeek-AI 2025,
    "DeepSeek-V3.2", section 2.1.
    """
    counts = torch.zeros(*indices.shape[:-1], keys, dtype=torch.int32, device=indices.device)
    counts.scatter_add_(-1, indices.long().clamp_min(0), (indices >= 0).int())
    return (counts > 0)[:, None]


def _only_row(module: nn.Module, tensor: Tensor) -> Tensor:
    """A tensor without its batch axis, which has to be a batch of one."""
    if tensor.ndim < 4:
        return tensor
    if tensor.shape[0] != 1:
        raise UnsupportedModel(
            f"{type(module).__name__} attends in a batch of {tensor.shape[0]} rows made from one text; "
            "needed: a model that keeps a text in one row"
        )
    return tensor[0]


def _refuse_unknown(module: nn.Module, dropout: float, others: dict[str, object]) -> None:
    """Raise on anything that could change the result and that we would leave out."""
    if not others.keys() <= _HARMLESS and (unknown := _unknown(others)):
        raise UnsupportedModel(
            f"{type(module).__name__} asks its attention for {', '.join(unknown)}, which is not known here; "
            "leaving it out could give a wrong picture; needed: that term in attention_viz.attend"
        )
    if dropout and module.training:
        raise UnsupportedModel(f"{type(module).__name__} drops weights at random ({dropout}) even when evaluated")


def _unknown(others: dict[str, object]) -> list[str]:
    return sorted(name for name, value in others.items() if value is not None and name not in _HARMLESS)


def _mask(batch_size: int, q_length: int, kv_length: int, *places: Any, **options: Any) -> Tensor | None:
    """The mask that eager attention gets, made quickly where it hides nothing but what lies ahead.

    The recorder is told what it means, so that it needn't find out from the numbers.
    """
    recorder = recording.get()
    if recorder is None or batch_size != 1 or q_length != kv_length or not options.get("allow_is_causal_skip"):
        return _MASKS["eager"](batch_size, q_length, kv_length, *places, **options)
    allowed = _MASKS["sdpa"](batch_size, q_length, kv_length, *places, **options)
    if allowed is None:
        allowed = causal(q_length).to(options.get("device"))[None, None]
    dtype = options.get("dtype", torch.float32)
    mask = torch.where(allowed, torch.zeros((), dtype=dtype, device=allowed.device), torch.finfo(dtype).min)
    recorder.learn(mask, (None if bool(allowed.all()) else allowed, None))
    return mask


AttentionInterface.register(OURS, _attention)
# Decoders build their mask only for implementations that are named here; without it they would run unmasked.
AttentionMaskInterface.register(OURS, _mask)
