"""Show the output change from each head, on one scale."""

from typing import TYPE_CHECKING, cast

import numpy
import plotly.graph_objects as go

from attention_viz.errors import ShapeError
from attention_viz.trace.trace import Trace
from attention_viz.views.figures.heads.grid_of_heads import framed, grid_of_heads
from attention_viz.views.style.scale import colour_bar, round_up
from attention_viz.views.style.theme import ThemeName, palette

if TYPE_CHECKING:
    import pandas

__all__ = ["head_effects"]


def head_effects(
    trace: Trace,
    moved: "pandas.Series",
    stream: str | None = None,
    *,
    chosen: tuple[int, int] | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """Layers down, heads across, coloured by how far the output moved when that head was changed.

    Where there are many more layers than heads, layers stand across and heads down.

    Args:
        trace: the run without a change.
        moved: by (layer, head), the mean of `changes.moved_output`; heads that weren't tried are left out.
        stream: whose heads; the only one there is, if none is named.
        chosen: layer and head to frame.
        theme: "light" or "dark".

    Raises:
        ShapeError: no head was tried, or one that the trace doesn't have.
    """
    stream, colours = trace.stream(stream), palette(theme)
    tried = dict(zip(cast("list[tuple[int, int]]", list(moved.index)), moved.tolist(), strict=True))
    layers = sorted({layer for layer, _ in tried})
    if not tried or not set(layers) <= set(trace.layer_numbers(stream)):
        there = trace.kept[stream] if layers and not trace.kept[stream].whole else f"{trace.layer_count(stream)} layers"
        raise ShapeError(f"effects of {len(tried)} heads came; the {stream} has {there}")
    heads = range(max(trace.head_count(layer, stream) for layer in layers))
    values = numpy.array([[tried.get((layer, head), numpy.nan) for head in heads] for layer in layers])
    largest = float(numpy.nanmax(values))
    digits = 1 if largest >= 0.005 else 3
    return grid_of_heads(
        values,
        [trace.label(layer, stream) for layer in layers],
        colours,
        title="How far the output moves when a head is changed",
        stops=colours.increases,
        full=round_up(largest),
        said=[
            [f"layer {layer}, head {head}: {_percent(tried.get((layer, head)))}" for head in heads] for layer in layers
        ],
        written=lambda share: f"{share:.{digits}%}",
        bar={**colour_bar("moved"), "tickformat": ".0%" if largest > 0.04 else f".{digits}%"},
        chosen=framed(chosen, layers),
    )


def _percent(moved: float | None) -> str:
    return "not tried" if moved is None else f"the output moves by {moved:.2%}"
