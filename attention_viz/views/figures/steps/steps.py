"""Draw one step of one head as a matrix."""

from dataclasses import replace

import numpy
import plotly.graph_objects as go

from attention_viz.analysis.blocks import Blocks, blocks_of, matrix_blocks
from attention_viz.errors import ShapeError
from attention_viz.steps.head import OpenHead, open_head
from attention_viz.steps.steps import STEPS, transposed
from attention_viz.trace.trace import Trace
from attention_viz.views.figures.steps.matrix import Matrix, axis_labels, draw, family, numbers
from attention_viz.views.style.theme import Palette, ThemeName, palette

__all__ = ["steps"]


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
    """One step of one head, a name in `STEPS`: colours around 0, numbers where they fit, blocked cells hatched.

    Of more than 250,000 cells, each block of neighbours is drawn as its number furthest from 0, and the title says so.

    Args:
        trace: what was recorded.
        layer: its number, the model's own.
        head: which head, from 0.
        step: which step.
        stream: which stream; None for the only one there is.
        side: of "rotated", whether the "query" or the "key".
        notation: one of `NOTATIONS`; "columns" turns vectors upright, "keys down" turns what has queries and keys.
        cell: row and column to outline, as with tokens as rows.
        theme: "light" or "dark".

    Raises:
        TraceError: there is no such layer or stream.
        ShapeError: there is no such head or step, or the step isn't known for this trace.
    """
    stream = trace.stream(stream)
    opened = open_head(trace, layer, head, stream)
    if step not in STEPS:
        raise ShapeError(f"the step {step!r} was asked for; there are {', '.join(STEPS)}")
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
    matrix = STEPS[step].function(opened)
    if matrix is None:
        raise ShapeError(f"the step {step!r} was asked for, and it was not recorded in this trace")
    values = numbers(opened.attention.key if step == "rotated" and side == "key" else matrix)
    return matrix_blocks(values, numpy.isneginf(values))


def _some_rows(opened: OpenHead, step: str, rows: slice) -> tuple[numpy.ndarray, numpy.ndarray]:
    part = opened if rows == slice(0, opened.attention.shape[-2]) else replace(opened, queries=rows)
    matrix = STEPS[step].function(part)
    if matrix is None:
        raise ShapeError(f"the step {step!r} was asked for, and it was not recorded in this trace")
    values = numbers(matrix)
    return values, numpy.isneginf(numbers(part.attention.masked) if step == "weights" else values)


_WORDS = {
    "token": "token",
    "query": "query: who is looking",
    "key": "key: who is looked at",
    "d_model": "dimension",
    "d_k": "dimension",
    "d_v": "dimension",
}
