"""A chosen change of a model: its place, its details as text, and the fields of an `EDITS` entry."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from attention_viz.edits.edit import Edit
    from attention_viz.operation.attention import Attention
    from attention_viz.operation.token_mixer import TokenMixer
    from attention_viz.trace.trace import Trace

__all__ = [
    "ASKS",
    "Asks",
    "Cell",
    "Change",
    "Detail",
    "Drawing",
    "EditKind",
    "Nothing",
    "NumberDetail",
    "OneCell",
    "Spell",
    "calls_of",
    "heads_of",
    "stream_of",
]

Cell = tuple[int, int]
Detail = float | tuple[Cell, ...] | None
_NUMBER = re.compile(r"-?[0-9]{1,3}(\.[0-9]{1,4})?")
_CELL = re.compile(r"([0-9]{1,4})>([0-9]{1,4})")
# Writes a token's label in a sentence.
Spell = Callable[[str], str]


@dataclass(frozen=True)
class Change:
    """One chosen change of a model.

    Attributes:
        layer: None for all.
        head: from 0; None for all.
        stream: "encoder", "decoder", "cross", "picture", "sound" or "mixer"; None for the only one.
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


def heads_of(change: Change, trace: "Trace") -> list[tuple[int, int | None]]:
    """Return (layer, head) of each changed head; (layer, None) for all channels that have a matrix each."""
    stream = stream_of(change, trace)
    if stream in trace.mixers:
        mixers = dict(zip(trace.layer_numbers(stream), trace.mixers[stream], strict=True))
        layers = list(mixers) if change.layer is None else [change.layer]
        return [one for layer in layers for one in _of_mixer(layer, mixers[layer].mixer, change.head)]
    if change.layer is None:
        trace.check_every_layer("a change in all layers", stream)
    layers = trace.layer_numbers(stream) if change.layer is None else [change.layer]
    return [
        (layer, head)
        for layer in layers
        for head in range(trace.head_count(layer, stream))
        if change.head in (None, head)
    ]


def _of_mixer(layer: int, mixer: "TokenMixer", head: int | None) -> list[tuple[int, int | None]]:
    if head is None and mixer.per == "channel":
        return [(layer, None)]
    return [(layer, one) for one in range(mixer.shape[0]) if head in (None, one)]


def calls_of(change: Change, trace: "Trace") -> "list[Attention]":
    """Return changed layers' attention calls."""
    stream = stream_of(change, trace)
    return [trace.attention(layer, stream) for layer in sorted({layer for layer, _ in heads_of(change, trace)})]


@dataclass(frozen=True)
class Nothing:
    """A kind of change without details."""

    def read(self, change: Change, detail: str | None) -> Change | None:
        """Return the change unless it has text."""
        return change if detail is None else None

    def write(self, change: Change) -> str | None:
        """Return None for no detail."""
        return None


@dataclass(frozen=True)
class NumberDetail:
    """A number with at most four digits after the point.

    Attributes:
        label: its name on pages.
        lowest: the smallest allowed.
    """

    label: str
    lowest: float
    highest: float
    start: float
    step: float

    def read(self, change: Change, detail: str | None) -> Change | None:
        """Return the change with its number; None if invalid or out of range."""
        number = float(detail) if detail is not None and _NUMBER.fullmatch(detail) else None
        return replace(change, detail=number) if number is not None and self.lowest <= number <= self.highest else None

    def write(self, change: Change) -> str | None:
        """Write the number, such as "0.5"."""
        return f"{change.number:.4f}".rstrip("0").rstrip(".")


@dataclass(frozen=True)
class OneCell:
    """A query and a key.

    Attributes:
        query: its name on pages.
    """

    query: str
    key: str

    def read(self, change: Change, detail: str | None) -> Change | None:
        """Return the change with its one cell, else None."""
        cells = _read_cells(detail)
        return replace(change, detail=cells) if len(cells) == 1 else None

    def write(self, change: Change) -> str | None:
        """Write the cell, such as "4>5"."""
        return _write_cells(change.cells)


@dataclass(frozen=True)
class Drawing:
    """A change that needs cells drawn by hand."""

    def read(self, change: Change, detail: str | None) -> Change | None:
        """Return the change with its cells; None if any is unreadable."""
        cells = _read_cells(detail)
        return replace(change, detail=cells) if cells else None

    def write(self, change: Change) -> str | None:
        """Write the cells, such as "2>4,3>4"."""
        return _write_cells(change.cells)


Asks = Nothing | NumberDetail | OneCell | Drawing

# In the order in which pages offer changes: those that ask for less come first.
ASKS = (Nothing, NumberDetail, OneCell, Drawing)


def _read_cells(detail: str | None) -> tuple[Cell, ...]:
    """Sorted, unique; none if any is unreadable."""
    found = [_CELL.fullmatch(one.strip()) for one in (detail or "").split(",")]
    cells = {(int(one[1]), int(one[2])) for one in found if one is not None}
    return () if None in found else tuple(sorted(cells))


def _write_cells(cells: tuple[Cell, ...]) -> str:
    return ",".join(f"{query}>{key}" for query, key in cells)


@dataclass(frozen=True)
class EditKind:
    """A kind of change that you can choose.

    Attributes:
        name: its name in URLs, in small letters.
        label: its label in the picker.
        asks: its details besides its place, and how to write and read them.
        example: an example as in URLs, without its place.
        words: describes a change of this kind, from the change, the trace before it, and the spelling of tokens.
        short: describes a changed head in a list, such as "zero-ablated".
        make: makes the model's edits, from the change and the trace before it.
        misfit: why a change can't be made although its place and cells exist; empty if it can.
        fits: the kinds of layers that it can change: those with a softmax, those without, or both.
    """

    name: str
    label: str
    asks: Asks
    example: str
    words: "Callable[[Change, Trace, Spell], str]"
    short: Callable[[Change], str]
    make: "Callable[[Change, Trace], tuple[Edit, ...]]"
    misfit: "Callable[[Change, Trace], str]" = lambda change, trace: ""
    fits: tuple[Literal["softmax", "mixer"], ...] = ("softmax",)

    def fits_stream(self, stream: str, trace: "Trace") -> bool:
        """Return whether the stream's layers can be changed so."""
        return ("mixer" if stream in trace.mixers else "softmax") in self.fits
