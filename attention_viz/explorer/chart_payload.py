"""A matrix or bars of any numbers, or a photo lit by them, as bytes for the browser."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Num, UInt8

from attention_viz.errors import ShapeError
from attention_viz.explorer.packet import Packet
from attention_viz.trace.spelling import weight_text

# How a matrix's numbers become colours.
Scale = Literal["weight", "size", "signed", "mixed"]


@dataclass(frozen=True)
class Grid:
    """A matrix of numbers, drawn like the explorer's.

    Attributes:
        values: one number per row and column, an array or a tensor; NaN for none.
        rows: the rows' labels, "" for none.
        columns: the columns' labels.
        row_title: the rows' name, such as "Queries".
        column_title: the columns' name.
        colours: whether rows are queries (orange) and columns keys (blue).
        scale: "weight" from 0 to 1, "size" from 0 to the largest, "signed" by sign, "mixed" by sign with the colours
            of a head without a softmax.
        largest: the deepest colour's number; by default 1 for weights, else the largest size.
        blocked: the hatched cells, as booleans.
        chosen: the framed cell's row and column.
        marked_rows: rows with a dashed frame.
        marked_columns: columns with a dashed frame.
        words: one sentence for readers who can't see it.
        digits: the decimals in cells.
    """

    values: Any
    rows: Sequence[str]
    columns: Sequence[str]
    row_title: str = ""
    column_title: str = ""
    colours: bool = True
    scale: Scale = "weight"
    largest: float | None = None
    blocked: Any = None
    chosen: tuple[int, int] | None = None
    marked_rows: Sequence[int] = ()
    marked_columns: Sequence[int] = ()
    words: str = ""
    digits: int = 2


@dataclass(frozen=True)
class Bars:
    """Horizontal bars, each with its label and number.

    Attributes:
        labels: the bars' names, never cut.
        values: the bars' numbers.
        written: the numbers as text; by default two digits.
        largest: the full track's number; by default the largest size.
        signed: whether 0 is in the middle, with a colour per sign.
        colour: the bars' meaning, unless signed.
        title: the heading, "" for none.
        chosen: the framed bar.
        words: one sentence for readers who can't see it.
    """

    labels: Sequence[str]
    values: Sequence[float]
    written: Sequence[str] = ()
    largest: float | None = None
    signed: bool = False
    colour: Literal["weight", "query", "key", "value", "plain"] = "weight"
    title: str = ""
    chosen: int | None = None
    words: str = ""


@dataclass(frozen=True)
class LitPhoto:
    """A photo lit by weights over its patches.

    Attributes:
        picture: the photo's bytes, by row, column and channel.
        weights: the weight of each patch, by row and column.
        patch: the framed patch, counted row by row; None for none.
        words: one sentence for readers who can't see it.
    """

    picture: UInt8[np.ndarray, "row column 3"]
    weights: Float[np.ndarray, "down across"]
    patch: int | None = None
    words: str = ""


def pack_lit(photo: LitPhoto) -> bytes:
    """Pack a lit photo."""
    packet = Packet()
    (rows, columns, _), (down, across) = photo.picture.shape, photo.weights.shape
    return packet.pack(
        {
            **{"kind": "photo", "rows": rows, "columns": columns, "at": packet.add(photo.picture.tobytes())},
            **{"down": down, "across": across, "patch": -1 if photo.patch is None else photo.patch},
            **{"words": photo.words, "weights": packet.add_numbers(photo.weights.astype(np.float32))},
        }
    )


def pack_grid(grid: Grid, *, clicks: bool) -> bytes:
    """Pack a grid; `clicks` says whether the page answers them."""
    numbers, packet = _matrix(grid.values), Packet()
    shape = len(grid.rows), len(grid.columns)
    if numbers.shape != shape:
        raise ShapeError(f"got {numbers.shape} numbers for {shape[0]} rows and {shape[1]} columns; they must agree")
    coarse = numbers.astype(np.float32)
    fine = not np.array_equal(coarse, numbers, equal_nan=True)
    blocked = None
    if grid.blocked is not None:
        blocked = packet.add_numbers(_matrix(grid.blocked).astype(np.uint16))
    largest = grid.largest if grid.largest is not None else 1.0 if grid.scale == "weight" else _largest(numbers)
    return packet.pack(
        {
            "kind": "grid",
            "rows": list(grid.rows),
            "columns": list(grid.columns),
            "titles": [grid.row_title, grid.column_title],
            "colours": grid.colours,
            "scale": grid.scale,
            "largest": largest,
            "chosen": grid.chosen,
            "marked": [list(grid.marked_rows), list(grid.marked_columns)],
            "words": grid.words,
            "digits": grid.digits,
            "clicks": clicks,
            "fine": fine,
            "values": packet.add_numbers(numbers if fine else coarse),
            "blocked": blocked,
        }
    )


def pack_bars(bars: Bars, *, clicks: bool) -> bytes:
    """Pack bars; `clicks` says whether the page answers them."""
    numbers, packet = np.asarray(bars.values, np.float64), Packet()
    return packet.pack(
        {
            "kind": "bars",
            "labels": list(bars.labels),
            "written": list(bars.written) or [weight_text(float(number)) for number in numbers],
            "largest": _largest(numbers) if bars.largest is None else bars.largest,
            "signed": bars.signed,
            "colour": bars.colour,
            "title": bars.title,
            "chosen": bars.chosen,
            "words": bars.words,
            "clicks": clicks,
            "values": packet.add_numbers(numbers),
        }
    )


def _matrix(values: Any) -> Num[np.ndarray, "rows columns"]:
    """Return an array of 64 bits; a tensor may be of any kind, on any device."""
    tensor = getattr(values, "detach", None)
    return np.asarray(values if tensor is None else tensor().cpu().double().numpy(), np.float64)


def _largest(numbers: Num[np.ndarray, "*any"]) -> float:
    sizes = np.abs(numbers[np.isfinite(numbers)])
    return float(sizes.max()) if sizes.size else 0.0
