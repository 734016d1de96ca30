"""What each head is worth: how far the output goes when it is changed, all heads on one scale."""

from typing import TYPE_CHECKING, cast

import numpy
import plotly.graph_objects as go

from attention_viz.errors import ShapeError
from attention_viz.trace import Trace
from attention_viz.views.matrix import arrange, colour_bar, labelled_axis, round_up
from attention_viz.views.theme import ThemeName, palette, ramp
from attention_viz.views.wording import escaped

if TYPE_CHECKING:
    import pandas

__all__ = ["head_effects"]

_PRINTED_UP_TO = 16


def head_effects(
    trace: Trace,
    moved: "pandas.Series",
    stream: str | None = None,
    *,
    chosen: tuple[int, int] | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """Layers down, heads across, coloured by how far the output moved when that head was changed.

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
    if not tried or layers[-1] >= trace.layer_count(stream):
        raise ShapeError(f"effects of {len(tried)} heads came; the {stream} has {trace.layer_count(stream)} layers")
    heads = range(max(trace.head_count(layer, stream) for layer in layers))
    values = numpy.array([[tried.get((layer, head), numpy.nan) for head in heads] for layer in layers])
    stops = ramp(colours.difference_middle, colours.difference_high)
    said = [[f"layer {layer}, head {head}: the output moves by" for head in heads] for layer in layers]
    figure = go.Figure(
        go.Heatmap(
            z=values,
            zmin=0,
            zmax=round_up(float(numpy.nanmax(values))),
            colorscale=[[place / (len(stops) - 1), colour] for place, colour in enumerate(stops)],
            hovertext=said,
            hovertemplate="%{hovertext} %{z:.2%}<extra></extra>",
            texttemplate="%{z:.1%}" if len(heads) <= _PRINTED_UP_TO else None,
            xgap=1,
            ygap=1,
            colorbar={**colour_bar("moved"), "tickformat": ".0%" if numpy.nanmax(values) > 0.04 else ".1%"},
        )
    )
    arrange(figure, "How far the output moves when a head is changed", colours)
    names = [escaped(trace.label(layer, stream)) for layer in layers]
    figure.update_xaxes(**labelled_axis([str(head) for head in heads], "head", colours.ink, colours, vertical=False))
    figure.update_yaxes(**labelled_axis(names, "layer", colours.ink, colours, vertical=True))
    if chosen is not None and chosen[0] in layers:
        row = layers.index(chosen[0])
        edges = {"x0": chosen[1] - 0.5, "x1": chosen[1] + 0.5, "y0": row - 0.5, "y1": row + 0.5}
        figure.add_shape(type="rect", line={"color": colours.ink, "width": 2}, **edges)
    return figure
