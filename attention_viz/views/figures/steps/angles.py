"""Show how far positions rotate queries (RoPE)."""

import plotly.graph_objects as go

from attention_viz.analysis.blocks import matrix_blocks
from attention_viz.errors import ShapeError
from attention_viz.operation.positional import rotation
from attention_viz.steps.head import open_head
from attention_viz.trace.trace import Trace
from attention_viz.views.figures.steps.matrix import Matrix, axis_labels, draw, family, numbers
from attention_viz.views.style.theme import ThemeName, palette

__all__ = ["angles"]


def angles(trace: Trace, layer: int, head: int, stream: str | None = None, *, theme: ThemeName = "light") -> go.Figure:
    """By how much each position turned each pair of dimensions, in radians, for models that rotate.

    Raises:
        TraceError: there is no such layer or stream.
        ShapeError: there is no such head, or its model turns nothing that was recorded.
    """
    stream = trace.stream(stream)
    opened = open_head(trace, layer, head, stream)
    found = rotation(opened.unrotated("query"), opened.attention.query) if opened.rotates else None
    if found is None:
        raise ShapeError("angles were asked for, and no rotation of queries was recorded in this trace")
    colours, pairs = palette(theme), [f"{first}, {second}" for first, second in found.pairs]
    values, rows = numbers(found.angles), axis_labels(trace, stream, "query", len(found.angles))
    titles = ("query", "pair of dimensions")
    return draw(Matrix(matrix_blocks(values), rows, pairs, titles, "Angle in radians", family("", colours)), colours)
