"""Show an edit's output change per token."""

import plotly.graph_objects as go

from attention_viz.edits.effects import moved_output
from attention_viz.trace.trace import Trace
from attention_viz.views.style.axes import arrange, label_axes, labelled_axis, number_axis
from attention_viz.views.style.blocks import bar_blocks, bar_note, bar_places, spans
from attention_viz.views.style.theme import ThemeName, palette
from attention_viz.views.style.wording import readable

__all__ = ["changed_outputs"]


def changed_outputs(before: Trace, after: Trace, *, theme: ThemeName = "light") -> go.Figure:
    """How far each token's output went, as bars: the length of the change over the length of the output before.

    Raises:
        TraceError: the outputs have different shapes.
    """
    colours = palette(theme)
    blocks = bar_blocks(moved_output(before, after).tolist())
    tokens = readable(before.query_tokens(before.streams[-1]).written)
    bars = go.Bar(
        x=blocks.values[:, 0],
        **bar_places(blocks),
        orientation="h",
        marker={"color": colours.more},
        text=spans(blocks, 0, tokens),
        textposition="none",
        hovertemplate="%{text}: %{x:.4f}<extra></extra>",
    )
    figure = go.Figure([bars])
    arrange(figure, "How far each token's output moved", colours, note=bar_note(blocks))
    label_axes(
        figure,
        {"title": {"text": "change ÷ length before", "standoff": 8}, "rangemode": "tozero", **number_axis(colours)},
        labelled_axis(tokens, "", colours.ink, colours, vertical=True),
    )
    return figure
