"""Place and describe a large matrix's blocks."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy
import plotly.graph_objects as go

from attention_viz.analysis.blocks import Blocks
from attention_viz.views.style.theme import colour_scale
from attention_viz.views.style.wording import shortened

# Of a token's letters in the name of a block.
_LONGEST = 12
# As many bars as can be told apart below each other.
_MOST_BARS = 128


def cells(values: Any, ends: tuple[float, float], stops: Sequence[str], texts: Any, **more: Any) -> go.Heatmap:
    """Colour cells from one number to another, each with its text under the pointer."""
    known = {"z": values, "zmin": ends[0], "zmax": ends[1], "colorscale": colour_scale(stops), "hovertext": texts}
    return go.Heatmap({**known, "hovertemplate": "%{hovertext}<extra></extra>", **more})


def bar_blocks(values: Sequence[float]) -> Blocks:
    """Join neighbouring tokens' bars into their largest if too many."""
    count = len(values)
    size = -(-count // _MOST_BARS)
    largest = numpy.array([[max(values[start : start + size])] for start in range(0, count, size)], dtype=float)
    return Blocks(largest, numpy.zeros(largest.shape, dtype=bool), (count, 1), (size, 1))


def bar_places(blocks: Blocks) -> dict[str, Any]:
    """Return bars' positions and widths along tokens."""
    size = blocks.size[0]
    places = [start * size + (size - 1) / 2 for start in range(len(blocks.values))]
    return {"y": places} if size == 1 else {"y": places, "width": 0.8 * size}


def bar_note(blocks: Blocks) -> str:
    """Write how many tokens a bar covers; empty for one."""
    count, size = blocks.shape[0], blocks.size[0]
    return "" if size == 1 else f"{count:,} tokens, {size} per bar: the largest number of each"


def block_coordinates(blocks: Blocks) -> dict[str, Any]:
    """Return Plotly coordinates for blocks; nothing for cells."""
    if blocks.whole:
        return {}
    rows, columns = blocks.size
    return {"x0": (columns - 1) / 2, "dx": columns, "y0": (rows - 1) / 2, "dy": rows}


def block_note(blocks: Blocks, which: str = "the largest weight") -> str:
    """Explain the blocks under a title; empty for cells."""
    if blocks.whole:
        return ""
    (rows, columns), (high, wide) = blocks.shape, blocks.size
    return f"{rows:,} × {columns:,} cells, drawn in blocks of {high} × {wide}: {which} of each"


def spans(blocks: Blocks, axis: int, labels: Sequence[str] | None = None) -> list[str]:
    """Name each block by its first and last token and position; by position only without tokens."""
    ranges = blocks.ranges(axis)
    if labels is None:
        return [f"{_word(blocks.size[axis])} {_range(first, last)}" for first, last in ranges]
    if blocks.size[axis] == 1:
        return list(labels)
    ends = [(shortened(labels[first], _LONGEST), shortened(labels[last], _LONGEST)) for first, last in ranges]
    return [f"{a} … {b} ({_range(*span)})" for (a, b), span in zip(ends, ranges, strict=True)]


def hover_texts(
    rows: Sequence[str], columns: Sequence[str], words: Callable[[str, str, int, int], str]
) -> numpy.ndarray:
    """Write each cell's or block's hover text."""
    texts = numpy.empty((len(rows), len(columns)), dtype=object)
    for i, row in enumerate(rows):
        texts[i] = [words(row, column, i, j) for j, column in enumerate(columns)]
    return texts


def _word(length: int) -> str:
    return "positions" if length > 1 else "position"


def _range(first: int, last: int) -> str:
    return f"{first}–{last}" if first < last else f"{first}"
