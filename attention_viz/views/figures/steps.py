"""A step of one head as a matrix: colours around 0, numbers and hatching."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy
import plotly.graph_objects as go
from jaxtyping import Float
from torch import Tensor

from attention_viz.analysis.blocks import Blocks, blocks_of, matrix_blocks
from attention_viz.errors import ShapeError
from attention_viz.operation.modules import Projection
from attention_viz.operation.positional import rotation
from attention_viz.steps.head import OpenHead, open_head
from attention_viz.steps.steps import STEPS, transposed
from attention_viz.trace.trace import Trace
from attention_viz.views.style.axes import arrange, label_axes
from attention_viz.views.style.blocks import block_coordinates, block_note, cells, hover_texts, spans
from attention_viz.views.style.marks import LEAST, add_hatch, add_numbers
from attention_viz.views.style.theme import Palette, ThemeName, diverging, palette
from attention_viz.views.style.wording import token_names, with_minus

__all__ = ["Matrix", "angles", "axis_labels", "draw", "family", "learned", "numbers", "steps"]

# Matrices up to this many cells a side have their numbers printed; up to the second number of cells each cell says its
# own words under the pointer.
_PRINTED_UP_TO = 12
_NAMED_UP_TO = 40_000
# Of more cells than this, the half percent that is largest may share the deepest colour.
_CROWDED = 1_000
# Above this many tokens the deepest colour of weights stands for about the largest of them.
_SCALE_TO_ONE_UP_TO = 48
_WORDS = {
    "token": "token",
    "query": "query: attending token",
    "key": "key: attended token",
    "d_model": "dimension",
    "d_k": "dimension",
    "d_v": "dimension",
}


@dataclass(frozen=True, eq=False)
class Matrix:
    """A matrix ready to draw: titles down and across, and colours from smallest over 0 to largest."""

    blocks: Blocks
    down: Sequence[str]
    across: Sequence[str]
    titles: tuple[str, str]
    title: str
    colours: tuple[str, ...]
    weights: bool = False

    def turned(self) -> "Matrix":
        """The matrix with rows and columns exchanged."""
        titles = self.titles[1], self.titles[0]
        return replace(self, blocks=self.blocks.turned(), down=self.across, across=self.down, titles=titles)


def numbers(tensor: Tensor) -> Float[numpy.ndarray, "row column"]:
    """Return a tensor's numbers in float32."""
    return tensor.detach().float().cpu().numpy()


def axis_labels(trace: Trace, stream: str, axis: str, count: int) -> list[str]:
    """Label rows or columns by token, else by number."""
    if axis not in ("token", "query", "key"):
        return [str(c) for c in range(count)]
    tokens = trace.key_tokens(stream) if axis == "key" else trace.query_tokens(stream)
    return token_names(tokens)


def family(step: str, colours: Palette) -> tuple[str, ...]:
    """Return colours around 0: query, key and value towards their own."""
    own = {"query": colours.query, "key": colours.key, "value": colours.value, "output": colours.value}
    accent = {"embeddings": colours.accent, "joined": colours.accent}
    if step in own or step in accent:
        return diverging(colours.muted, colours.background, (own | accent)[step], 6)
    return colours.differences


def draw(matrix: Matrix, colours: Palette, cell: tuple[int, int] | None = None) -> go.Figure:
    """Draw a matrix, with a cell (row, column) or its block outlined."""
    blocks = matrix.blocks
    drawn = "the largest weight" if matrix.weights else "the number furthest from 0"
    figure = go.Figure([_cells(matrix, colours)])
    add_hatch(figure, blocks.blocked, colours, size=blocks.size)
    if _printed(blocks):
        add_numbers(figure, lambda value: with_minus(f"{value:.2f}"), least=LEAST if matrix.weights else 0.0)
    if cell is not None:
        figure.add_shape(type="rect", line={"color": colours.ink, "width": 2.5}, **_edges(blocks, cell))
    arrange(figure, matrix.title, colours, note=block_note(blocks, drawn))
    figure.update_layout(height=min(560, max(220, 130 + 24 * blocks.shape[0])), margin_t=62 if not blocks.whole else 40)
    (down, across), (rows, columns) = matrix.titles, (list(matrix.down), list(matrix.across))
    label_axes(figure, colours, (columns, across, _tone(across, colours)), (rows, down, _tone(down, colours)))
    return figure


def _edges(blocks: Blocks, cell: tuple[int, int]) -> dict[str, float]:
    top, left = (place // length * length for place, length in zip(cell, blocks.size, strict=True))
    return {"x0": left - 0.5, "x1": left + blocks.size[1] - 0.5, "y0": top - 0.5, "y1": top + blocks.size[0] - 0.5}


def _tone(title: str, colours: Palette) -> str:
    return colours.query if title.startswith("query") else colours.key if title.startswith("key") else colours.muted


def _printed(blocks: Blocks) -> bool:
    return max(blocks.shape) <= _PRINTED_UP_TO


def _cells(matrix: Matrix, colours: Palette) -> go.Heatmap:
    blocks = matrix.blocks
    values = numpy.where(numpy.isfinite(blocks.values), blocks.values, numpy.nan)
    sizes = numpy.abs(values[numpy.isfinite(values)])
    largest = _limit(sizes)
    beyond = f"alike beyond ±{largest:.2g}" if not matrix.weights and sizes.max(initial=0.0) > largest else ""
    gap = 1 if _printed(blocks) else 0
    named = not blocks.whole or values.size <= _NAMED_UP_TO
    deepest = 1.0 if matrix.weights and max(blocks.shape) <= _SCALE_TO_ONE_UP_TO else largest
    lowest, stops = (0.0, colours.weights) if matrix.weights else (-largest, matrix.colours)
    look: dict[str, Any] = {"xgap": gap, "ygap": gap, **block_coordinates(blocks)}
    look["colorbar"] = {"thickness": 10, "outlinewidth": 0, "tickformat": ".3~g", "title": {"text": beyond}}
    if not named:
        look["hovertemplate"] = "row %{y}, column %{x}: %{z:.6f}<extra></extra>"
    return cells(values, (lowest, deepest), stops, _hover_texts(matrix) if named else None, **look)


def _limit(sizes: Float[numpy.ndarray, " cell"]) -> float:
    """Return the deepest colour's size: the largest, without a few outliers among thousands."""
    largest = float(sizes.max(initial=0.0)) or 1.0
    most = float(numpy.quantile(sizes, 0.995)) if sizes.size > _CROWDED else largest
    return most if 0 < most < largest / 2 else largest


def _hover_texts(matrix: Matrix) -> numpy.ndarray:
    blocks, most = matrix.blocks, "" if matrix.blocks.whole else "largest "
    return hover_texts(
        spans(blocks, 0, matrix.down),
        spans(blocks, 1, matrix.across),
        lambda row, column, i, j: (
            f"{row} · {column}: "
            + ("blocked" if blocks.blocked[i, j] else f"{most}{with_minus(f'{blocks.values[i, j]:.6f}')}")
        ),
    )


def steps(
    trace: Trace,
    layer: int,
    head: int,
    step: str = "weights",
    stream: str | None = None,
    *,
    side: str = "query",
    notation: str = "rows",
    cell: tuple[int, int] | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw one step of one head, a name in `STEPS`: colours around 0, numbers that fit, blocked cells hatched.

    Above 250,000 cells, each block of neighbours is drawn as its number furthest from 0, and the title says so.

    Args:
        trace: the run.
        layer: its number, the model's own.
        head: the head, from 0.
        step: the step.
        stream: the stream; None for the only one.
        side: for "rotated", the "query" or the "key".
        notation: one of `NOTATIONS`; "columns" turns vectors upright, "keys down" turns matrices of queries and keys.
        cell: row and column to outline, as with tokens as rows.
        theme: "light" or "dark".

    Raises:
        TraceError: the layer or stream is missing.
        ShapeError: the head or step is missing, or the step isn't known for this trace.
    """
    stream = trace.attention_stream(stream)
    opened = open_head(trace, layer, head, stream)
    if step not in STEPS:
        raise ShapeError(f"unknown step {step!r}; choose {', '.join(STEPS)}")
    colours = palette(theme)
    matrix = _matrix(opened, step, side, colours)
    if transposed(STEPS[step], notation):
        return draw(matrix.turned(), colours, None if cell is None else (cell[1], cell[0]))
    return draw(matrix, colours, cell)


def _matrix(opened: OpenHead, step: str, side: str, colours: Palette) -> Matrix:
    """Return a step's labelled numbers; for "rotated" the side chooses one of two."""
    axes, name, role = STEPS[step].axes, STEPS[step].label, step
    if step == "rotated":
        name, role = f"{name} {side}", side
        axes = ("key", "d_k") if side == "key" else axes
    blocks = _blocks(opened, step, side)
    down, across = (
        axis_labels(opened.trace, opened.stream, axis, count) for axis, count in zip(axes, blocks.shape, strict=True)
    )
    titles = (_WORDS[axes[0]], _WORDS[axes[1]])
    return Matrix(blocks, down, across, titles, name, family(role, colours), step == "weights")


def _blocks(opened: OpenHead, step: str, side: str) -> Blocks:
    """Return a step's numbers; many queries and keys in batches of rows."""
    if STEPS[step].axes == ("query", "key"):
        queries, keys = opened.attention.shape
        return blocks_of((queries, keys), lambda rows: _some_rows(opened, step, rows))
    matrix = _recorded(opened, step)
    values = numbers(opened.attention.key if step == "rotated" and side == "key" else matrix)
    return matrix_blocks(values, numpy.isneginf(values))


def _some_rows(opened: OpenHead, step: str, rows: slice) -> tuple[numpy.ndarray, numpy.ndarray]:
    part = opened if rows == slice(0, opened.attention.shape[-2]) else replace(opened, queries=rows)
    values = numbers(_recorded(part, step))
    return values, numpy.isneginf(numbers(part.attention.masked) if step == "weights" else values)


def _recorded(opened: OpenHead, step: str) -> Tensor:
    matrix = STEPS[step].function(opened)
    if matrix is None:
        raise ShapeError(f"can't show the step {step!r}: this trace doesn't have it")
    return matrix


def angles(trace: Trace, layer: int, head: int, stream: str | None = None, *, theme: ThemeName = "light") -> go.Figure:
    """Draw each position's rotation of each pair of dimensions, in radians, for models that rotate.

    Raises:
        TraceError: the layer or stream is missing.
        ShapeError: the head is missing, or its trace has no rotation.
    """
    stream = trace.attention_stream(stream)
    opened = open_head(trace, layer, head, stream)
    found = rotation(opened.unrotated("query"), opened.attention.query) if opened.rotates else None
    if found is None:
        raise ShapeError("angles need a recorded rotation of queries; this trace has none")
    colours, pairs = palette(theme), [f"{first}, {second}" for first, second in found.pairs]
    values, rows = numbers(found.angles), axis_labels(trace, stream, "query", len(found.angles))
    titles = ("query", "pair of dimensions")
    return draw(Matrix(matrix_blocks(values), rows, pairs, titles, "Angle in radians", family("", colours)), colours)


def learned(
    trace: Trace,
    layer: int,
    head: int,
    name: str,
    projection: Projection,
    stream: str | None = None,
    *,
    notation: str = "rows",
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw a learned matrix of one head, input down and output across.

    Args:
        trace: the run.
        layer: its number, the model's own.
        head: the head, from 0.
        name: "query", "key", "value" or "output".
        projection: the matrix.
        stream: the stream; None for the only one.
        notation: "columns" has the output down and the input across.
        theme: "light" or "dark".

    Raises:
        TraceError: the layer or stream is missing.
        ShapeError: the head is missing.
    """
    trace.attention(layer, stream).head(head)  # refuses what isn't there
    colours, blocks = palette(theme), matrix_blocks(numbers(projection.weight))
    rows, columns = ([str(c) for c in range(count)] for count in blocks.shape)
    titles = ("dimension in", "dimension out")
    matrix = Matrix(blocks, rows, columns, titles, f"W_{name[0].upper()}", family(name, colours))
    return draw(matrix.turned() if notation == "columns" else matrix, colours)
