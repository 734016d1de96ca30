"""Share step matrices' colours around 0, numbers and hatching."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy
import plotly.graph_objects as go
from jaxtyping import Float
from torch import Tensor

from attention_viz.analysis.blocks import Blocks
from attention_viz.trace.trace import Trace
from attention_viz.views.style.axes import arrange, label_axes, labelled_axis
from attention_viz.views.style.blocks import block_coordinates, block_note, hover_texts, spans
from attention_viz.views.style.hatching import add_hatch
from attention_viz.views.style.numbers import LEAST, add_numbers
from attention_viz.views.style.theme import Palette, colour_scale, diverging
from attention_viz.views.style.wording import readable, with_minus

__all__ = ["Matrix", "axis_labels", "draw", "family", "numbers"]

# Matrices up to this many cells a side have their numbers printed; up to the second number of cells each cell says its
# own words under the pointer.
_PRINTED_UP_TO = 12
_NAMED_UP_TO = 40_000
# Of more cells than this, the half percent that is largest may share the deepest colour.
_CROWDED = 1_000
# Above this many tokens the deepest colour of weights stands for about the largest of them.
_SCALE_TO_ONE_UP_TO = 48


@dataclass(frozen=True, eq=False)
class Matrix:
    """A matrix ready to draw.

    Attributes:
        blocks: its numbers and blocked cells.
        titles: the titles down and across.
        colours: from smallest over 0 to largest, in equal steps.
        weights: whether these are weights, never below 0.
    """

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
    """A tensor's numbers in float32."""
    return tensor.detach().float().cpu().numpy()


def axis_labels(trace: Trace, stream: str, axis: str, count: int) -> list[str]:
    """Label rows or columns by token, else by number."""
    if axis not in ("token", "query", "key"):
        return [str(c) for c in range(count)]
    tokens = trace.key_tokens(stream) if axis == "key" else trace.query_tokens(stream)
    return readable(tokens.written)


def family(step: str, colours: Palette) -> tuple[str, ...]:
    """Return colours around 0: query, key and value towards their own."""
    own = {"query": colours.query, "key": colours.key, "value": colours.value, "output": colours.value}
    accent = {"embeddings": colours.accent, "joined": colours.accent}
    if step in own or step in accent:
        return diverging(colours.muted, colours.background, (own | accent)[step], 6)
    return colours.differences


def draw(matrix: Matrix, colours: Palette, cell: tuple[int, int] | None = None) -> go.Figure:
    """Draw a matrix.

    Args:
        cell: row and column to outline; in large matrices its block.
    """
    blocks = matrix.blocks
    figure = go.Figure([_cells(matrix, colours)])
    add_hatch(figure, blocks.blocked, colours, size=blocks.size)
    if _printed(blocks):
        add_numbers(figure, _written, least=LEAST if matrix.weights else 0.0)
    if cell is not None:
        figure.add_shape(type="rect", line={"color": colours.ink, "width": 2.5}, **_edges(blocks, cell))
    arrange(figure, matrix.title, colours, note=block_note(blocks, _drawn(matrix)))
    figure.update_layout(height=_height(blocks.shape), margin_t=62 if not blocks.whole else 40)
    (down, across), (rows, columns) = matrix.titles, (list(matrix.down), list(matrix.across))
    label_axes(
        figure,
        labelled_axis(columns, across, _tone(across, colours), colours, vertical=False),
        labelled_axis(rows, down, _tone(down, colours), colours, vertical=True),
    )
    return figure


def _drawn(matrix: Matrix) -> str:
    return "the largest weight" if matrix.weights else "the number furthest from 0"


def _edges(blocks: Blocks, cell: tuple[int, int]) -> dict[str, float]:
    top, left = (place // length * length for place, length in zip(cell, blocks.size, strict=True))
    return {"x0": left - 0.5, "x1": left + blocks.size[1] - 0.5, "y0": top - 0.5, "y1": top + blocks.size[0] - 0.5}


def _tone(title: str, colours: Palette) -> str:
    return colours.query if title.startswith("query") else colours.key if title.startswith("key") else colours.muted


def _height(shape: tuple[int, int]) -> int:
    return min(560, max(220, 130 + 24 * shape[0]))


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
    return go.Heatmap(
        z=values,
        zmin=lowest,
        zmax=deepest,
        colorscale=colour_scale(stops),
        hovertext=_hover_texts(matrix) if named else None,
        hovertemplate="%{hovertext}<extra></extra>" if named else "row %{y}, column %{x}: %{z:.6f}<extra></extra>",
        xgap=gap,
        ygap=gap,
        colorbar={"thickness": 10, "outlinewidth": 0, "tickformat": ".3~g", "title": {"text": beyond}},
        **block_coordinates(blocks),
    )


def _limit(sizes: Float[numpy.ndarray, " cell"]) -> float:
    """Return the deepest colour's size: the largest, without a few outliers among thousands."""
    largest = float(sizes.max(initial=0.0)) or 1.0
    most = float(numpy.quantile(sizes, 0.995)) if sizes.size > _CROWDED else largest
    return most if 0 < most < largest / 2 else largest


def _written(value: float) -> str:
    return with_minus(f"{value:.2f}")


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
