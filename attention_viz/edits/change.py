"""One chosen change of a model, and its place."""

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
    """One chosen change of a model.

    Attributes:
        layer: None for all.
        head: from 0; None for all.
        stream: "encoder", "decoder" or "cross"; None for the only one.
        detail: a number, or (query, key) from 0; None for none.
    """

    what: str
    layer: int | None = None
    head: int | None = None
    stream: str | None = None
    detail: Detail = None

    @property
    def number(self) -> float:
        """Return the chosen number; NaN for kinds without."""
        return self.detail if isinstance(self.detail, float | int) else float("nan")

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Return the chosen cells; empty for kinds without."""
        return self.detail if isinstance(self.detail, tuple) else ()


def stream_of(change: Change, trace: "Trace") -> str:
    """Return the change's stream; the first if absent."""
    first, *_ = trace.streams
    return change.stream if change.stream in trace.streams else first


def heads_of(change: Change, trace: "Trace") -> list[Cell]:
    """Return (layer, head) of each changed head."""
    stream = stream_of(change, trace)
    if change.layer is None:
        trace.check_every_layer("a change in all layers", stream)
    layers = trace.layer_numbers(stream) if change.layer is None else [change.layer]
    every = [(layer, head) for layer in layers for head in range(trace.head_count(layer, stream))]
    return [one for one in every if change.head in (None, one[1])]


def calls_of(change: Change, trace: "Trace") -> "list[Attention]":
    """Return changed layers' attention calls."""
    stream = stream_of(change, trace)
    return [trace.attention(layer, stream) for layer in sorted({layer for layer, _ in heads_of(change, trace)})]
