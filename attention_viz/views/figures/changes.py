"""Before and after: what an edit changed in one head, in every head, and in what comes out."""

import numpy
import plotly.graph_objects as go

from attention_viz.edits.effects import moved_output, moved_weight
from attention_viz.errors import TraceError
from attention_viz.trace.trace import Trace
from attention_viz.views.figures.by_head import grid_of_heads
from attention_viz.views.figures.heatmap import (
    add_hatch,
    arrange,
    blocked_cells,
    colour_bar,
    labelled_axis,
    number_axis,
)
from attention_viz.views.style.theme import Palette, ThemeName, colour_scale, diverging, palette, ramp
from attention_viz.views.style.wording import caption, escaped, readable, with_minus

__all__ = ["changed_heads", "changed_outputs", "difference"]

_MATRIX_PRINTED_UP_TO = 12


def difference(
    before: Trace, after: Trace, layer: int, head: int, stream: str | None = None, *, theme: ThemeName = "light"
) -> go.Figure:
    """What one head's weights gained and lost, after minus before, 0 in the colour of the page.

    Cells that are blocked afterwards are hatched. The scale reaches as far down as up.

    Raises:
        TraceError: there is no such layer or stream, or the two are of different lengths.
        ShapeError: there is no such head.
    """
    stream, colours = before.stream(stream), palette(theme)
    old, new = (trace.weights(layer, head, stream).detach().float().cpu().numpy() for trace in (before, after))
    if old.shape != new.shape:
        raise TraceError(f"a difference needs matrices of one shape; got {old.shape} before and {new.shape} after")
    queries = readable(before.query_tokens(stream).labels)
    keys = readable(before.key_tokens(stream).labels)
    said = [
        [f"{query} looks at {key}: {old[i, j]:.6f} before, {new[i, j]:.6f} after" for j, key in enumerate(keys)]
        for i, query in enumerate(queries)
    ]
    figure = go.Figure([_diverging(new - old, said, colours)])
    blocked = blocked_cells(after, layer, head, stream)
    add_hatch(figure, blocked, colours, key=False)
    arrange(figure, f"{escaped(caption(before, layer, head, stream))}: after − before", colours)
    figure.update_xaxes(**labelled_axis(keys, "key: who is looked at", colours.key, colours, vertical=False))
    figure.update_yaxes(**labelled_axis(queries, "query: who is looking", colours.query, colours, vertical=True))
    return figure


def changed_heads(before: Trace, after: Trace, stream: str | None = None, *, theme: ThemeName = "light") -> go.Figure:
    """How much weight moved in every head: layers down, heads across, from 0 to 1.

    Raises:
        TraceError: the traces aren't of the same tokens and layers.
    """
    stream, colours = before.stream(stream), palette(theme)
    moved = moved_weight(before, after, stream).numpy()
    labels = [layer.label for layer in before.layers[stream]]
    return grid_of_heads(
        moved,
        labels,
        colours,
        title="Share of the weight that moved, by head",
        stops=ramp(colours.difference_middle, colours.difference_high),
        full=1,
        said=[
            [f"layer {escaped(label)}, head {head}: {one:.4f} of its weight moved" for head, one in enumerate(row)]
            for label, row in zip(labels, moved.tolist(), strict=True)
        ],
        written=[["" if numpy.isnan(one) else f"{one:.2f}" for one in row] for row in moved.tolist()],
        bar=colour_bar("moved"),
    )


def changed_outputs(before: Trace, after: Trace, *, theme: ThemeName = "light") -> go.Figure:
    """How far each token's output went, as bars: the length of the change over the length of the output before.

    Raises:
        TraceError: the outputs have different shapes.
    """
    colours = palette(theme)
    moved = moved_output(before, after).numpy()
    tokens = readable(before.query_tokens(before.streams[-1]).labels)
    bars = go.Bar(
        x=moved,
        y=list(range(len(tokens))),
        orientation="h",
        marker={"color": colours.difference_high},
        text=tokens,
        textposition="none",
        hovertemplate="%{text}: %{x:.4f}<extra></extra>",
    )
    figure = go.Figure([bars])
    arrange(figure, "How far each token's output moved", colours)
    figure.update_xaxes(
        title={"text": "change ÷ length before", "standoff": 8},
        rangemode="tozero",
        **number_axis(colours),
    )
    figure.update_yaxes(**labelled_axis(tokens, "", colours.ink, colours, vertical=True))
    return figure


def _diverging(change: numpy.ndarray, said: list[list[str]], colours: Palette) -> go.Heatmap:
    largest = float(numpy.abs(change).max(initial=0.0)) or 1.0
    printed = max(change.shape) <= _MATRIX_PRINTED_UP_TO
    return go.Heatmap(
        z=change,
        zmin=-largest,
        zmax=largest,
        colorscale=colour_scale(diverging(colours.difference_low, colours.difference_middle, colours.difference_high)),
        hovertext=said,
        hovertemplate="%{hovertext}<extra></extra>",
        # Without "−0.00", which is neither a gain nor a loss.
        text=[[with_minus(f"{one:+.2f}") if abs(one) >= 0.005 else "0" for one in row] for row in change.tolist()],
        texttemplate="%{text}" if printed else None,
        xgap=1 if printed else 0,
        ygap=1 if printed else 0,
        colorbar=colour_bar("change"),
    )
