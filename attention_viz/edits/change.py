"""One change of a model, as a person chose it, and where in a trace it acts."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attention_viz.operation.attention import Attention
    from attention_viz.trace.trace import Trace

__all__ = ["Cell", "Change", "Detail", "calls_of", "heads_of", "stream_of"]

Cell = tuple[int, int]
Detail = float | tuple[Cell, ...] | None


@dataclass(frozen=True)
class Change:
    """One change of a model, as a person chose it.

    Attributes:
        layer: the number of the only layer that it is for; None for all.
        head: the only head, from 0; None for all of the layer.
        stream: "encoder", "decoder" or "cross"; None where a model has but one.
        detail: what its kind asks for: a number, or (query, key) positions, from 0; None where it asks for nothing.
    """

    what: str
    layer: int | None = None
    head: int | None = None
    stream: str | None = None
    detail: Detail = None

    @property
    def number(self) -> float:
        """The number that was chosen; NaN for a kind that asks for none."""
        return self.detail if isinstance(self.detail, float | int) else float("nan")

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells that were chosen; none for a kind that asks for none."""
        return self.detail if isinstance(self.detail, tuple) else ()


def stream_of(change: Change, trace: "Trace") -> str:
    """The stream that is meant; the first where the trace doesn't have it."""
    first, *_ = trace.streams
    return change.stream if change.stream in trace.streams else first


def heads_of(change: Change, trace: "Trace") -> list[Cell]:
    """Layer and head of each head that is meant."""
    stream = stream_of(change, trace)
    if change.layer is None:
        trace.check_every_layer("a change in all layers", stream)
    layers = trace.layer_numbers(stream) if change.layer is None else [change.layer]
    every = [(layer, head) for layer in layers for head in range(trace.head_count(layer, stream))]
    return [one for one in every if change.head in (None, one[1])]


def calls_of(change: Change, trace: "Trace") -> "list[Attention]":
    """The attention calls of the layers that are meant."""
    stream = stream_of(change, trace)
    return [trace.attention(layer, stream) for layer in sorted({layer for layer, _ in heads_of(change, trace)})]
