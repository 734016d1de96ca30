"""Our attention function inside transformers, and the recorder that listens to it.

The function is registered once with transformers' attention and mask interfaces. Who listens is a context variable, so
that several threads can run one model at the same time and each hears only its own calls.
"""

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS as _MASKS
from transformers.masking_utils import AttentionMaskInterface

from attention_viz.edits.apply import edited
from attention_viz.edits.kinds import Edit
from attention_viz.errors import UnsupportedModel
from attention_viz.operation.attention import Attention, attend, fused, fusible, is_causal
from attention_viz.operation.masks import causal

__all__ = ["OURS", "Call", "Heard", "Recorder", "recording"]

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


class Heard(NamedTuple):
    """One call as it came, with its batch axis; an `Attention` is made of it once the pass is over."""

    module: nn.Module
    query: Tensor
    key: Tensor
    value: Tensor
    allowed: Tensor | None
    bias: Tensor | None
    scale: float
    softcap: float | None
    sinks: Tensor | None

    def attention(self) -> Attention:
        """The call, head first and checked."""
        query, key, value = (_first_row(term) for term in (self.query, self.key, self.value))
        allowed, bias = (None if term is None else _first_row(term) for term in (self.allowed, self.bias))
        # Sinks are a parameter of the model's, which training may change while a trace keeps it.
        sinks = None if self.sinks is None else self.sinks.detach().clone()
        return attend(query, key, value, allowed, scale=self.scale, bias=bias, softcap=self.softcap, sinks=sinks)

    def with_terms(self, call: Attention) -> "Heard":
        """The same module's call with the terms of another attention, head first."""
        allowed, bias = (None if term is None else term[None] for term in (call.allowed, call.bias))
        query, key, value = call.query[None], call.key[None], call.value[None]
        return Heard(self.module, query, key, value, allowed, bias, call.scale, call.softcap, call.sinks)

    def again(self, other: "Heard") -> bool:
        """Whether a module asks for the same weights twice, to mix two halves of its values one after the other.

        The first call is kept, so its tensors' places in memory can't have become another's. Source: Ye et al. 2024,
        "Differential Transformer", whose two halves share their weights.
        """
        pairs = ((getattr(self, name), getattr(other, name)) for name in ("query", "key", "allowed", "bias", "sinks"))
        same = self.module is other.module and all(_same(one, two) for one, two in pairs)
        return same and (self.scale, self.softcap) == (other.scale, other.softcap)


@dataclass(eq=False)
class Recorder:
    """Hears every attention call of one pass, in order, and applies that pass's edits to it.

    Does no more than it has to while the pass runs, between matrices that fill the processor's caches.

    Attributes:
        edits: changes to make.
        places: of each call, its stream and its place there; needed for edits only.
    """

    edits: Sequence[Edit] = ()
    places: Sequence[tuple[str, int]] = ()
    _heard: list[Heard] = field(default_factory=list[Heard])
    _last: Heard | None = None
    _splits: dict[object, tuple[Tensor, Split]] = field(default_factory=dict[object, "tuple[Tensor, Split]"])
    _closed: dict[object, tuple[Tensor, bool]] = field(default_factory=dict[object, "tuple[Tensor, bool]"])

    @property
    def count(self) -> int:
        """How many calls were heard so far."""
        return len(self._heard)

    def calls(self) -> tuple[Call, ...]:
        """What was heard."""
        return tuple(Call(heard.module, heard.attention()) for heard in self._heard)

    def hear(self, heard: Heard) -> Tensor:
        """Take down one call and hand back what it computes, its edits applied: (1, head, query, d_v)."""
        if heard.query.shape[0] != 1:
            raise UnsupportedModel(
                f"{type(heard.module).__name__} attends in a batch of {heard.query.shape[0]} rows made from one text; "
                "needed: a model that keeps a text in one row"
            )
        again = self._last is not None and self._last.again(heard)
        self._last = heard
        if self.edits:
            heard = self._edited(heard, self.count - again)
        if again:
            earlier = self._heard[-1]
            self._heard[-1] = earlier._replace(value=torch.cat([earlier.value, heard.value], dim=-1))
        else:
            self._heard.append(heard)
        return self._output(heard)

    def _edited(self, heard: Heard, number: int) -> Heard:
        """The call with the edits written into its terms."""
        if number >= len(self.places):
            raise UnsupportedModel(f"call {number} of this pass is one that the probe's pass didn't make")
        own = heard.attention()
        call = edited(self.edits, self.places[number], own)
        return heard if call is own else heard.with_terms(call)

    def _output(self, heard: Heard) -> Tensor:
        if heard.query.ndim != 4 or not fusible(heard.query, heard.bias, heard.softcap, heard.sinks):
            return heard.attention().output[None]
        closed = heard.bias is None and heard.allowed is not None and self._is_closed(heard.allowed, heard)
        return fused(heard.query, heard.key, heard.value, heard.allowed, heard.bias, heard.scale, closed=closed)

    def _is_closed(self, allowed: Tensor, heard: Heard) -> bool:
        """Whether a mask is just "no looking ahead", found out once a pass."""
        key = _memory(allowed)
        if key not in self._closed:
            self._closed[key] = (allowed, is_causal(allowed, (heard.query.shape[-2], heard.key.shape[-2])))
        return self._closed[key][1]

    def split(self, mask: Tensor | None) -> Split:
        """A mask as (allowed, bias); layers that share a mask share the answer, so it is worked out once a pass."""
        if mask is None:
            return None, None
        key = _memory(mask)
        if key not in self._splits:
            self.learn(mask, split_mask(mask))
        return self._splits[key][1]

    def learn(self, mask: Tensor, split: Split, *, closed: bool = False) -> None:
        """Keep what a mask means, and the mask with it, so that its place in memory can't become another's."""
        self._splits[_memory(mask)] = (mask, split)
        if closed and split[0] is not None:
            self._closed[_memory(split[0])] = (split[0], True)


def _first_row(term: Tensor) -> Tensor:
    return term[0] if term.ndim == 4 else term


def _same(one: Tensor | None, other: Tensor | None) -> bool:
    return one is other or (one is not None and other is not None and _memory(one) == _memory(other))


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
        scale = query.shape[-1] ** -0.5 if scaling is None else scaling
        heard = Heard(module, query, key, value, allowed, bias, scale, softcap, s_aux)
        return recorder.hear(heard).transpose(1, 2).contiguous(), None
    # Somebody else's pass, who may have asked the model's own attention for its weights.
    attention = attend(query, key, value, allowed, scale=scaling, bias=bias, softcap=softcap, sinks=s_aux)
    return attention.output.transpose(1, 2).contiguous(), attention.weights


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
    closed = allowed is None
    if closed:
        allowed = causal(q_length).to(options.get("device"))[None, None]
    dtype = options.get("dtype", torch.float32)
    mask = torch.where(allowed, torch.zeros((), dtype=dtype, device=allowed.device), torch.finfo(dtype).min)
    recorder.learn(mask, (None if bool(allowed.all()) else allowed, None), closed=closed)
    return mask


AttentionInterface.register(OURS, _attention)
# Decoders build their mask only for implementations that are named here; without it they would run unmasked.
AttentionMaskInterface.register(OURS, _mask)
