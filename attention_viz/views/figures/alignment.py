"""Link two lines of tokens by one head's weights."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
import plotly.graph_objects as go

from attention_viz.analysis.blocks import row_slices, weights_of
from attention_viz.operation.attention import Attention
from attention_viz.trace.trace import Trace
from attention_viz.views.style.axes import arrange
from attention_viz.views.style.captions import caption
from attention_viz.views.style.theme import MONOSPACE, Palette, ThemeName, palette, ramp
from attention_viz.views.style.wording import escaped, shortened, spread, token_names

__all__ = ["alignment"]

# A lighter link than this can't be seen; of a long text the heaviest are drawn.
_FAINTEST = 0.01
_MOST_LINKS = 1500
# Links of about the same weight are one trace, cut into pieces that go from the query's colour to the key's.
_STRENGTHS = 10
_PIECES = 12
_POINTS_A_PIECE = 2
_WIDEST = 7.0
# How much of their strength lines keep that don't stand out.
_PALE = 0.25
_NAMED = 48
_HEIGHT = 340


def alignment(
    trace: Trace,
    layer: int,
    head: int,
    stream: str | None = None,
    *,
    query: int | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw one head's weights as lines between two rows of tokens: keys above, queries below.

    The larger the weight, the wider and stronger the line. The figure is made for cross-attention, with the source
    above and the output below; for other streams both rows have the same text.

    Args:
        trace: the run.
        layer: its number, the model's own.
        head: the head, from 0.
        stream: the stream; by default cross-attention, or the only one.
        query: a position, from 0, whose lines are strong among pale ones; by default weights alone set the strength.
        theme: "light" or "dark".

    Raises:
        TraceError: the layer or stream is missing.
        ShapeError: the head or position is missing.
    """
    stream = trace.attention_stream("cross" if stream is None and "cross" in trace.attention_streams else stream)
    colours, call = palette(theme), trace.attention(layer, stream).head(head)
    if query is not None:
        trace.query_tokens(stream).require(query)
    links = _heaviest(call)
    targets = token_names(trace.query_tokens(stream))
    read = token_names(trace.key_tokens(stream))
    figure = go.Figure([*_lines(links, query, (len(targets), len(read)), colours), _names(links, targets, read)])
    note = f"the {_MOST_LINKS:,} heaviest links" if len(links) == _MOST_LINKS else ""
    arrange(figure, escaped(caption(trace, layer, head, stream)), colours, note=note)
    figure.update_layout(height=_HEIGHT, showlegend=False, margin={"l": 24, "r": 24, "t": 92 if note else 76, "b": 8})
    # Above everything that stands at the upper row.
    figure.update_layout(title_y=0.99, title_yanchor="top", title_font_size=12)
    _name_rows(figure, stream, targets, read, colours)
    return figure


def _name_rows(figure: go.Figure, stream: str, targets: list[str], read: list[str], colours: Palette) -> None:
    words = ("source: attended token (key)", "output: attending token (query)")
    if stream != "cross":
        words = ("key: attended token", "query: attending token")
    figure.update_layout(
        xaxis={**_row(targets, words[1], colours.query, colours), "side": "bottom"},
        # An axis is drawn where something stands on it: the names do.
        xaxis2={**_row(read, words[0], colours.key, colours), "side": "top", "overlaying": "x", "anchor": "y"},
        yaxis={"range": [0, 1], "visible": False, "fixedrange": True},
    )
    figure.add_trace(go.Scatter(x=[None], y=[None], xaxis="x2", hoverinfo="skip"))


@dataclass(frozen=True)
class _CellLine:
    query: int
    key: int
    weight: float


def _heaviest(call: Attention) -> list[_CellLine]:
    """Return the drawn cells, lightest first, so that the heaviest are on top."""
    found = list[_CellLine]()
    for rows in row_slices(*call.shape):
        weights = weights_of(call.rows(rows))
        seen = numpy.argwhere(weights >= _FAINTEST).tolist()
        links = (_CellLine(rows.start + query, key, float(weights[query, key])) for query, key in seen)
        found = sorted([*found, *links], key=lambda link: link.weight)
        found = found[-_MOST_LINKS:]
    return found


def _lines(
    links: Sequence[_CellLine], query: int | None, counts: tuple[int, int], colours: Palette
) -> Iterator[go.Scatter]:
    """Draw links grouped by strength; those of other queries are pale."""
    # Paler towards the page instead of transparent: where pieces and lines overlap nothing gets darker.
    shades = [ramp(colours.background, shade, _STRENGTHS + 1) for shade in ramp(colours.query, colours.key, _PIECES)]
    for strength in range(_STRENGTHS):
        some = [link for link in links if _strength(link, query) == strength]
        width = _WIDEST * (strength + 1) / _STRENGTHS
        for piece, shade in enumerate(shades if some else ()):
            x, y = _piece(some, piece, counts)
            line = {"color": shade[strength + 1], "width": width}
            yield go.Scatter(x=x, y=y, mode="lines", line=line, hoverinfo="skip")


def _strength(link: _CellLine, query: int | None) -> int:
    share = link.weight if query in (None, link.query) else _PALE * link.weight
    return min(int(share * _STRENGTHS), _STRENGTHS - 1)


def _piece(
    links: Sequence[_CellLine], piece: int, counts: tuple[int, int]
) -> tuple[list[float | None], list[float | None]]:
    along = numpy.linspace(0, 1, _PIECES * _POINTS_A_PIECE + 1)
    # Level at both ends, as curves between two rows are read most easily.
    bent = along * along * (3 - 2 * along)
    # One point more than its own, so that no gap shows between pieces.
    part = slice(piece * _POINTS_A_PIECE, (piece + 1) * _POINTS_A_PIECE + 2)
    x: list[float | None] = []
    y: list[float | None] = []
    for link in links:
        start, end = _at(link.query, counts[0]), _at(link.key, counts[1])
        x += [*(start + (end - start) * bent[part]).tolist(), None]
        y += [*along[part].tolist(), None]
    return x, y


def _names(links: Sequence[_CellLine], targets: list[str], read: list[str]) -> go.Scatter:
    return go.Scatter(
        x=[(_at(link.query, len(targets)) + _at(link.key, len(read))) / 2 for link in links],
        y=[0.5] * len(links),
        mode="markers",
        marker={"size": 14, "opacity": 0},
        hovertext=[f"{targets[link.query]} attends to {read[link.key]}: {link.weight:.6f}" for link in links],
        hovertemplate="%{hovertext}<extra></extra>",
        customdata=[[link.query, link.key, link.weight] for link in links],
        name="links",
    )


def _at(place: int, count: int) -> float:
    """Place a token; both rows span the picture's width."""
    return (place + 0.5) / count


def _row(labels: list[str], title: str, colour: str, colours: Palette) -> dict[str, Any]:
    positions = spread(len(labels), _NAMED)
    return {
        "title": {"text": title, "font": {"color": colour, "size": 13}, "standoff": 6},
        "range": [0, 1],
        "tickmode": "array",
        "tickvals": [_at(position, len(labels)) for position in positions],
        "ticktext": [shortened(labels[position]) for position in positions],
        # The browser, which knows how wide the picture is, slants them where they would touch.
        "autotickangles": [0, -45, -90],
        "tickfont": {"family": MONOSPACE, "size": 12, "color": colours.ink},
        "showgrid": False,
        "zeroline": False,
        "ticks": "",
        "automargin": True,
        "fixedrange": True,
    }
