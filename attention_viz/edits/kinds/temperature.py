"""Division of the softmax's input, for sharper or flatter weights."""

import sys
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor

from attention_viz.edits.change import Change, EditKind, NumberDetail, Spell
from attention_viz.edits.edit import bias_of_each_head, rows_of_each_head
from attention_viz.edits.places import check_head, where
from attention_viz.edits.words import subject_of
from attention_viz.errors import ShapeError
from attention_viz.operation.attention import Attention
from attention_viz.operation.shapes import widened
from attention_viz.operation.terms import Term, map_terms, terms_of
from attention_viz.trace.trace import Trace

__all__ = ["KINDS", "Temperature"]

# Near the largest number of float32: a few logits beyond this add up to infinity.
_LARGEST = 1e37


@dataclass(frozen=True)
class Temperature:
    """Divide the softmax's input by a number: above 1 flattens the weights, below 1 sharpens them.

    Weights become softmax(logits / value), where the logits are the scaled scores after soft-cap and bias, before cells
    are blocked. A learned attention sink is a logit, too, and is also divided.

    In a trace, this divides the layer's scale, softcap, bias and sinks. For single heads it divides their query, bias
    and sink; with a softcap, their logits move into their bias and their query becomes 0.

    Attributes:
        value: the divisor; finite, above 0.
        layer: only in this layer; in all by default.
        head: only in this head; in all by default.
        stream: "encoder", "decoder" or "cross"; required if a model has several.

    Raises:
        ShapeError: a value that isn't finite and above 0; in a run, one so low that the logits overflow, or a missing
            place.
    """

    value: float
    layer: int | None = None
    head: int | None = None
    stream: str | None = None
    kind: ClassVar[str] = "a temperature"
    masks_only: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the divisor."""
        _check_divisor(self.value)

    def __str__(self) -> str:
        """Describe the edit for provenance."""
        return f"temperature: the softmax's input divided by {self.value:g} in {where(self)}"

    def snapshot(self, real: Bool[Tensor, " query"] | None) -> "Temperature":
        """Return the edit itself, which holds no tensor."""
        return self

    def apply(self, attention: Attention, place: tuple[str, int]) -> Attention:
        """Return the call with every logit divided, of all heads or of one."""
        if self.head is None:
            _check_range(self, attention)
            return _divided(attention, self.value)
        check_head(self, place[1], attention.shape[0])
        _check_range(self, attention)
        return _one_divided(attention, self.head, self.value)


def _divided(attention: Attention, value: float) -> Attention:
    """Divide by t: softcap · tanh(x / softcap) / t is (softcap / t) · tanh((x / t) / (softcap / t))."""

    def divided(term: Term, number: Any) -> Any:
        if not term.axes.logit:
            return number
        return number / value if term.is_number else widened(number) / value

    return map_terms(attention, divided)


def _one_divided(attention: Attention, head: int, value: float) -> Attention:
    """Divide one head's logits; with a softcap or too coarse a query, they become its bias."""

    def divided(term: Term, number: Any) -> Any:
        if not term.axes.logit or term.is_number:
            return number
        each = widened(number).expand(attention.shape if term.is_matrix else attention.shape[:1]).clone()
        each[head] /= value
        return each

    query = rows_of_each_head(attention.query, attention)
    if attention.softcap is None and query.dtype in (torch.float32, torch.float64):
        query[head] /= value
        return replace(map_terms(attention, divided), query=query)
    query[head] = 0
    bias = bias_of_each_head(attention)
    bias[head] = replace(attention, allowed=None).head(head).masked / value
    return replace(map_terms(attention, divided), query=query, bias=bias)


def _check_divisor(number: object) -> None:
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 < number <= sys.float_info.max:
        raise ShapeError(f"a temperature must be a finite number above 0; got {number!r}")


def _check_range(edit: Temperature, attention: Attention) -> None:
    """Refuse divisions that may give infinity or 0 / 0."""
    query, key = _largest(attention.query), _largest(attention.key)
    added = [getattr(attention, one.name) for one in terms_of(Attention) if one.axes.logit and not one.is_number]
    logits = query * max(key * attention.query.shape[-1] * abs(attention.scale), 1) + sum(map(_largest, added))
    if not logits < _LARGEST * edit.value:
        raise ShapeError(f"temperature {edit.value:g} is too low: the logits overflow, up to {logits:.3g}")
    if attention.softcap is not None and edit.value > _LARGEST * attention.softcap:
        raise ShapeError(f"temperature {edit.value:g} is too high: the softcap vanishes")


def _largest(term: Tensor | None) -> float:
    return 0.0 if term is None else float(term.detach().masked_fill(torch.isneginf(term), 0).abs().max())


def _words(change: Change, trace: Trace, spell: Spell) -> str:
    how = "as before" if change.number == 1 else "more sharply" if change.number < 1 else "more evenly"
    return f"{subject_of(change, trace)} attends {how} (temperature {change.number:g})"


KINDS = (
    EditKind(
        name="temp",
        label="change temperature",
        # The temperatures that a softmax shows a difference for.
        asks=NumberDetail("Temperature", lowest=0.01, highest=100.0, start=0.5, step=0.1),
        example="temp:0.5",
        words=_words,
        short=lambda change: f"at temperature {change.number:g}",
        make=lambda change, trace: (Temperature(change.number, change.layer, change.head, change.stream),),
    ),
)
