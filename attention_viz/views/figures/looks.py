"""Show one token's row of weights in one head as bars."""

import plotly.graph_objects as go

from attention_viz.trace.trace import Trace
from attention_viz.views.style.axes import arrange, label_axes, labelled_axis, number_axis
from attention_viz.views.style.blocks import bar_blocks, bar_note, bar_places, spans
from attention_viz.views.style.captions import caption
from attention_viz.views.style.theme import ThemeName, palette
from attention_viz.views.style.wording import escaped, readable

__all__ = ["looks"]

# As many bars as have room for their numbers.
_PRINTED_UP_TO = 48


def looks(
    trace: Trace, layer: int, head: int, query: int, stream: str | None = None, *, theme: ThemeName = "light"
) -> go.Figure:
    """One row of a head's weights as bars, a bar a key, which together make 1; of very many keys a bar for some.

    Args:
        trace: what was recorded.
        layer: its number, the model's own.
        head: which head, from 0.
        query: the position that looks, from 0.
        stream: which stream; None for the only one there is.
        theme: "light" or "dark".

    Raises:
        TraceError: there is no such layer or stream.
        ShapeError: there is no such head or position.
    """
    stream, colours = trace.stream(stream), palette(theme)
    queries = trace.query_tokens(stream).written
    trace.query_tokens(stream).require(query)
    row = trace.attention(layer, stream).head(head).rows([query])
    weights = row.weights[0].detach().float().cpu().tolist()
    allowed = [True] * len(weights) if row.allowed is None else row.allowed.expand(row.weights.shape)[0].tolist()
    keys = readable(trace.key_tokens(stream).written)
    blocks = bar_blocks(weights)
    drawn = blocks.values[:, 0].tolist()
    most = "" if blocks.whole else "at most "
    looking = escaped(queries[query])
    bars = go.Bar(
        x=drawn,
        **bar_places(blocks),
        orientation="h",
        marker={"color": colours.key},
        text=_numbers(drawn, allowed) if len(drawn) <= _PRINTED_UP_TO and blocks.whole else None,
        textposition="outside",
        cliponaxis=False,
        hovertext=[
            f"{looking} looks at {key}: {most}{weight:.6f}"
            for key, weight in zip(spans(blocks, 0, keys), drawn, strict=True)
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    figure = go.Figure([bars])
    title = f"What {looking} looks at · {escaped(caption(trace, layer, head, stream))}"
    arrange(figure, title, colours, note=bar_note(blocks))
    label_axes(
        figure,
        {"title": {"text": "weight", "standoff": 8}, "range": [0, 1.08], **number_axis(colours)},
        labelled_axis(keys, "key: who is looked at", colours.key, colours, vertical=True),
    )
    return figure


def _numbers(weights: list[float], allowed: list[bool]) -> list[str]:
    return [f"{weight:.3f}" if may else "" for weight, may in zip(weights, allowed, strict=True)]
