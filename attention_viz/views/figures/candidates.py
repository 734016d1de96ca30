"""A position's likeliest tokens and one head's weights from there."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from attention_viz.trace.spelling import weight_text
from attention_viz.trace.trace import Trace
from attention_viz.views.style.axes import paint
from attention_viz.views.style.theme import MONOSPACE, Palette, ThemeName, palette
from attention_viz.views.style.wording import escaped, shortened

if TYPE_CHECKING:
    import pandas

__all__ = ["candidates"]

_KEYS = 6
_ROW, _TITLE = 24, 34


def candidates(
    trace: Trace,
    layer: int,
    head: int,
    likely: "pandas.DataFrame",
    position: int = -1,
    *,
    stream: str | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw the likeliest tokens at a position as bars; below them, one head's largest weights in that row.

    Args:
        trace: the run.
        layer: its number, the model's own.
        head: the head, from 0.
        likely: from `AttentionModel.candidates`, of the same trace and position.
        position: the row.
        stream: the stream; None for the only one.
        theme: "light" or "dark".

    Raises:
        TraceError: the layer or stream is missing.
        ShapeError: the head or position is missing.
    """
    stream, colours = trace.attention_stream(stream), palette(theme)
    queries = trace.query_tokens(stream)
    row = trace.attention(layer, stream).head(head).rows([queries.resolve(position)])
    weights = row.weights[0].detach().float().cpu()
    heaviest = [int(key) for key in weights.topk(min(_KEYS, len(weights))).indices if weights[key] > 0]
    names = trace.key_tokens(stream).numbered
    keys = [names[key] for key in heaviest]
    counts = [len(likely), len(heaviest)]
    gap = _TITLE / (sum(counts) * _ROW + _TITLE)
    figure = make_subplots(rows=2, cols=1, row_heights=counts, vertical_spacing=gap)
    figure.add_trace(_bars(list(map(queries.write, likely.token)), list(likely.probability), colours.accent), 1, 1)
    figure.add_trace(_bars(keys, [float(weights[key]) for key in heaviest], colours.key), 2, 1)
    query = escaped(shortened(queries.names[position]))
    titles = (
        f"probability after “{query}”",
        f"“{query}” attends to, in layer {trace.label(layer, stream)}, head {head}",
    )
    if trace.attention_streams == ("encoder",):
        titles = (f"probability at “{query}”", titles[1])
    _arrange_panels(figure, titles, counts, colours)
    return figure


def _bars(names: Sequence[str], shares: Sequence[float], colour: str) -> go.Bar:
    return go.Bar(
        x=shares,
        y=list(range(len(names))),
        orientation="h",
        marker={"color": colour},
        width=0.55,
        customdata=[escaped(name) for name in names],
        text=[f"{escaped(shortened(name))}  {_digits(share)}" for name, share in zip(names, shares, strict=True)],
        textposition="outside",
        textfont={"family": MONOSPACE, "size": 12},
        cliponaxis=False,
        hovertemplate="%{customdata}: %{x:.6f}<extra></extra>",
        showlegend=False,
    )


def _digits(share: float) -> str:
    return escaped(weight_text(share))


def _arrange_panels(figure: go.Figure, titles: tuple[str, str], counts: Sequence[int], colours: Palette) -> None:
    margin = {"l": 8, "r": 8, "t": _TITLE, "b": 8}
    paint(figure, colours, height=sum(counts) * _ROW + 2 * _TITLE + 8, margin=margin)
    # A bar of 1 leaves room for its words beside it.
    figure.update_xaxes(range=[0, 2.2], visible=False, fixedrange=True)
    for row, (title, count) in enumerate(zip(titles, counts, strict=True), start=1):
        figure.update_yaxes(range=[count - 0.5, -0.5], visible=False, fixedrange=True, row=row, col=1)
        top = figure.layout["yaxis" if row == 1 else "yaxis2"].domain[1]
        figure.add_annotation(
            text=title, x=0, y=top, xref="paper", yref="paper", xanchor="left", yanchor="bottom", showarrow=False
        )
