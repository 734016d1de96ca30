"""Draw the numbers of layers without a softmax: sign by colour, size on a logarithmic scale."""

from collections.abc import Sequence
from typing import Any

import numpy
import plotly.graph_objects as go

from attention_viz.analysis.blocks import Blocks
from attention_viz.operation.token_mixer import TokenMixer
from attention_viz.views.style.blocks import block_coordinates, cells, hover_texts, spans
from attention_viz.views.style.scale import colour_bar, log_places
from attention_viz.views.style.theme import Palette
from attention_viz.views.style.wording import with_minus

LATER = "nothing arrives from there"


def largest_of(blocks: Blocks) -> float:
    """Return the largest size of a number; 1 for none."""
    return float(numpy.abs(numpy.nan_to_num(blocks.values)).max(initial=0.0)) or 1.0


def log_bar(largest: float, title: str, *, signed: bool) -> dict[str, Any]:
    """Make the bar of a logarithmic scale, with the numbers that its places stand for."""
    above = {0.5: short(largest / 100), 1.0: short(largest)}
    below = {-place: f"−{number}" for place, number in above.items()} if signed else {}
    ticks = {**below, 0.0: "0", **above}
    return {**colour_bar(title), "tickvals": sorted(ticks), "ticktext": [ticks[at] for at in sorted(ticks)]}


def log_cells(
    blocks: Blocks, colours: Palette, texts: Any, title: str, *, largest: float | None = None, signed: bool, **more: Any
) -> go.Heatmap:
    """Colour cells by sign and size; `largest` stands for the deepest colour."""
    largest = largest or largest_of(blocks)
    stops, ends = (colours.differences, (-1.0, 1.0)) if signed else (colours.weights, (0.0, 1.0))
    look = {"colorbar": log_bar(largest, title, signed=signed), **block_coordinates(blocks), **more}
    return cells(log_places(blocks.values, largest), ends, stops, texts, **look)


def short(number: float) -> str:
    """Write a number with two digits that count."""
    return with_minus(f"{number:.2g}")


def carried_texts(blocks: Blocks, mixer: TokenMixer, queries: Sequence[str], keys: Sequence[str]) -> numpy.ndarray:
    """Write each cell's weight, its share of its row's size, and the row's sums; of blocks, the weight alone."""
    sizes = numpy.abs(blocks.values).sum(axis=1) if blocks.whole else None
    skip = None if mixer.skip is None else mixer.skip.detach().float().cpu().expand(mixer.shape[-2]).numpy()

    def words(query: str, key: str, i: int, j: int) -> str:
        weight = float(blocks.values[i, j])
        if blocks.blocked[i, j]:
            return f"{LATER}: {key} to {query}"
        what = f"{key} is {'taken away from' if weight < 0 else 'carried to'} {query}: {precise(weight)}"
        if sizes is None:
            return f"{what} at most"
        share = f"share of size {abs(weight) / float(sizes[i] or 1):.3f}"
        row = f"row: Σ {precise(float(blocks.values[i].sum()))}, Σ|·| {precise(float(sizes[i]))}"
        own = f"; {precise(float(skip[i]))} of it is the skip" if skip is not None and i == j else ""
        return f"{what}{own}<br>{share}; {row}"

    return hover_texts(spans(blocks, 0, queries), spans(blocks, 1, keys), words)


def precise(number: float) -> str:
    """Write a number with four digits that count."""
    return with_minus(f"{number:.4g}")


def mark_skip(figure: go.Figure, blocks: Blocks, colours: Palette) -> None:
    """Mark the diagonal, which has a token's way to itself beside the memory."""
    last = min(blocks.shape) - 0.5
    line = {"color": colours.muted, "width": 1, "dash": "dot"}
    figure.add_scatter(x=[-0.5, last], y=[-0.5, last], mode="lines", line=line, name="with the skip", hoverinfo="skip")
