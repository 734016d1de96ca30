"""Show each head's weight change by an edit."""

import plotly.graph_objects as go

from attention_viz.edits.effects import moved_weight
from attention_viz.trace.trace import Trace
from attention_viz.views.figures.heads.grid_of_heads import grid_of_heads
from attention_viz.views.style.scale import colour_bar
from attention_viz.views.style.theme import ThemeName, palette
from attention_viz.views.style.wording import escaped

__all__ = ["changed_heads"]


def changed_heads(before: Trace, after: Trace, stream: str | None = None, *, theme: ThemeName = "light") -> go.Figure:
    """How much weight moved in every head: layers down, heads across, from 0 to 1.

    Where there are many more layers than heads, layers stand across and heads down.

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
        stops=colours.increases,
        full=1,
        said=[
            [f"layer {escaped(label)}, head {head}: {one:.4f} of its weight moved" for head, one in enumerate(row)]
            for label, row in zip(labels, moved.tolist(), strict=True)
        ],
        written="{:.2f}".format,
        bar=colour_bar("moved"),
    )
