"""Registers our attention function with transformers, and records its calls.

A context variable has the recorder, so threads can share a model.
"""

import contextlib
from collections.abc import Callable, Collection, Generator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from attention_viz.edits.edit import Edit, edited
from attention_viz.errors import UnsupportedModel
from attention_viz.operation.attention import Attention, attend, fused, fusible
from attention_viz.operation.masks import causal
from attention_viz.operation.reach import is_causal
from attention_viz.operation.terms import Term, map_terms, same_terms
from attention_viz.recording.as_written import refuse_own_autocast
from attention_viz.sources.huggingface import ALL_MASK_ATTENTION_FUNCTIONS as _MASKS
from attention_viz.sources.huggingface import AttentionInterface, AttentionMaskInterface
from attention_viz.trace.memory import RestingFile

# Masks arrive as numbers to add. Below this a number means "blocked": BERT's first code added −10,000 (9,984 in
# bfloat16), everyone since adds the lowest number there is. A bias so low leaves a weight of exactly 0 anyway.
BLOCKED_BELOW = -9e3

Split = tuple[Tensor | None, Tensor | None]
OURS = "attention_viz"

# Keywords that change nothing in the result: what they stand for is already in the tensors, or concerns caching,
# reporting or other kernels. Anything not named here or in the function's signature is refused.
_HARMLESS = frozenset(
    "position_ids use_cache cache_position encoder_hidden_states sliding_window deterministic is_causal "
    "output_attentions output_hidden_states output_router_logits input_ids grid_thw cu_seq_lens_q cu_seq_lens_k "
    "max_length_q max_length_k past_key_values past_key_value return_dict num_items_in_batch logits_to_keep".split()
)


def split_mask(mask: Tensor) -> Split:
    """Split a boolean or additive mask into (allowed, bias); None if nothing is blocked or added."""
    if mask.dtype == torch.bool:
        return (None if bool(mask.all()) else mask), None
    allowed = mask > BLOCKED_BELOW
    bias = None if torch.equal(allowed, mask == 0) else mask.masked_fill(~allowed, 0)
    return (None if bool(allowed.all()) else allowed), bias


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


@dataclass(frozen=True, eq=False)
class Call:
    """One call of our function."""

    module: nn.Module
    attention: Attention

    def of_row(self, row: int = 0) -> "Call":
        """Return one batch row's call, head first; parameters are copied."""
        return replace(self, attention=map_terms(self.attention, lambda term, value: of_row(term, value, row)))

    def in_a_batch(self) -> "Call":
        """Return the call with a batch axis."""
        return replace(self, attention=map_terms(self.attention, in_a_batch))

    def again(self, other: "Call") -> bool:
        """Return whether a module repeats the weights for a second half of its values.

        The first call is kept, so its memory isn't reused. Source: Ye et al. 2024, "Differential Transformer".
        """
        return self.module is other.module and same_terms(self.attention, other.attention, _same_memory, "value")

    def beside(self, other: "Call") -> "Call":
        """Return this call with another's values appended."""
        both = torch.cat([self.attention.value, other.attention.value], dim=-1)
        return replace(self, attention=replace(self.attention, value=both))


@dataclass(eq=False)
class Recorder:
    """Records one pass's attention calls in order, and applies its edits.

    It does little during the pass, between matrices that fill the caches.

    Attributes:
        keep: the calls to keep; None for all.
        rest: file for a long text's terms; None for memory.
        progress: called with the number of calls; raises to end the pass.
        computing: whether our own function is running.
    """

    edits: Sequence[Edit] = ()
    places: Sequence[tuple[str, int]] = ()
    keep: Collection[int] | None = None
    rest: RestingFile | None = None
    progress: Callable[[int], object] | None = None
    last: int | None = None
    computing: bool = False
    _calls: dict[int, Call] = field(default_factory=dict[int, Call])
    _modules: list[nn.Module] = field(default_factory=list[nn.Module])
    _last: Call | None = None
    _splits: dict[object, tuple[Tensor, Split]] = field(default_factory=dict[object, "tuple[Tensor, Split]"])
    _closed: dict[object, tuple[Tensor, bool]] = field(default_factory=dict[object, "tuple[Tensor, bool]"])

    @property
    def count(self) -> int:
        """The number of calls so far."""
        return len(self._modules)

    @property
    def modules(self) -> tuple[nn.Module, ...]:
        """Each call's module."""
        return tuple(self._modules)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The kept calls' numbers."""
        return tuple(self._calls)

    def calls(self) -> tuple[Call, ...]:
        """Return the kept calls, head first."""
        return tuple(call.of_row() for call in self._calls.values())

    def compute(self, call: Call) -> Tensor:
        """Return `hear`'s output, with `computing` set."""
        self.computing = True
        try:
            return self.hear(call)
        finally:
            self.computing = False

    def hear(self, call: Call) -> Tensor:
        """Record a call; return its edited output, (1, head, query, d_v)."""
        rows = call.attention.query.shape[0]
        if rows != 1:
            raise UnsupportedModel(
                f"{type(call.module).__name__} splits one text into {rows} rows; use a model that keeps a text in one "
                "row"
            )
        again = self._last is not None and self._last.again(call)
        self._last = call
        if self.edits:
            call = self._edited(call, self.count - again)
        if not again:
            self._modules.append(call.module)
        number = self.count - 1
        if self.keep is None or number in self.keep:
            kept = self._calls[number].beside(call) if again else call
            self._calls[number] = kept if self.rest is None else replace(kept, attention=self.rest.take(kept.attention))
        output = self._output(call)
        asked.get()()
        if self.progress is not None:
            self.progress(self.count)
        if number == self.last:
            raise RunEnded
        return output

    def _edited(self, call: Call, number: int) -> Call:
        if number >= len(self.places):
            raise UnsupportedModel(f"this run made an attention call, {number}, that the probe's run didn't make")
        own = call.of_row()
        attention = edited(self.edits, self.places[number], own.attention)
        return call if attention is own.attention else Call(call.module, attention).in_a_batch()

    def _output(self, call: Call) -> Tensor:
        attention = call.attention
        if attention.query.ndim != 4 or not fusible(attention):
            return call.of_row().attention.output[None]
        closed = attention.bias is None and self._is_closed(attention)
        return fused(attention, closed=closed)

    def _is_closed(self, attention: Attention) -> bool:
        """Return whether a mask is just causal, worked out once."""
        allowed = attention.allowed
        if allowed is None:
            return False
        key = _memory(allowed)
        if key not in self._closed:
            self._closed[key] = (allowed, is_causal(allowed, attention.shape[-2:]))
        return self._closed[key][1]

    def split(self, mask: Tensor | None) -> Split:
        """Split a mask, once if layers share it."""
        if mask is None:
            return None, None
        key = _memory(mask)
        if key not in self._splits:
            self.learn(mask, split_mask(mask))
        return self._splits[key][1]

    def learn(self, mask: Tensor, split: Split, *, closed: bool = False) -> None:
        """Remember a mask's split; keep the mask, so that its memory isn't reused."""
        self._splits[_memory(mask)] = (mask, split)
        if closed and split[0] is not None:
            self._closed[_memory(split[0])] = (split[0], True)


def of_row(term: Term, value: Any, row: int) -> Any:
    """Return one batch row's term, head first; parameters are copied, since training changes them."""
    if term.is_number:
        return value
    if term.is_matrix:
        return value[row if len(value) > 1 else 0] if value.ndim == 4 else value
    return value.detach().clone()  # a parameter of the model's


def in_a_batch(term: Term, value: Any) -> Any:
    """Add a batch axis to a term that has rows."""
    return value[None] if term.is_matrix else value


def _same_memory(one: Tensor, other: Tensor) -> bool:
    return _memory(one) == _memory(other)


def _memory(mask: Tensor) -> object:
    """Return a mask's key: many models slice theirs anew per layer, uncopied."""
    return mask.data_ptr(), mask.shape, mask.stride(), mask.dtype


recording: ContextVar[Recorder | None] = ContextVar("recording", default=None)


class RunEnded(BaseException):
    """Ends a run early; not an `Exception`, which a model's own code could catch."""


@contextlib.contextmanager
def heard_by(recorder: Recorder) -> Generator[None]:
    """Record the calls inside."""
    token = recording.set(recorder)
    try:
        yield
    finally:
        recording.reset(token)


# Called at each attention call while a model is loaded; what it raises ends the load.
asked: ContextVar[Callable[[], object]] = ContextVar("asked", default=lambda: None)


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
    if indices is not None:
        chosen = chosen_keys(indices, key.shape[-2])
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
