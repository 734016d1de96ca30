"""Show one head's learned query, key or value matrix."""

import plotly.graph_objects as go

from attention_viz.analysis.blocks import matrix_blocks
from attention_viz.operation.modules import Projection
from attention_viz.trace.trace import Trace
from attention_viz.views.figures.steps.matrix import Matrix, draw, family, numbers
from attention_viz.views.style.theme import ThemeName, palette

__all__ = ["learned"]


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
    """A learned matrix of one head, input down and output across: what turns a token's vector into its query, say.

    Args:
        trace: what was recorded.
        layer: its number, the model's own.
        head: which head, from 0.
        name: "query", "key", "value" or "output".
        projection: the matrix.
        stream: which stream; None for the only one there is.
        notation: "columns" has the output down and the input across.
        theme: "light" or "dark".

    Raises:
        TraceError: there is no such layer or stream.
        ShapeError: there is no such head.
    """
    trace.attention(layer, stream).head(head)  # refuses what isn't there
    colours, blocks = palette(theme), matrix_blocks(numbers(projection.weight))
    rows, columns = ([str(c) for c in range(count)] for count in blocks.shape)
    titles = ("dimension in", "dimension out")
    matrix = Matrix(blocks, rows, columns, titles, f"W_{name[0].upper()}", family(name, colours))
    return draw(matrix.turned() if notation == "columns" else matrix, colours)
