"""One token's vector on its way through a model: each layer's additions, and the likeliest next tokens."""

from itertools import groupby
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from attention_viz.errors import ShapeError
from attention_viz.trace.spelling import weight_text
from attention_viz.views.figures.token_table import add_token_table, drawn_token
from attention_viz.views.style.axes import paint
from attention_viz.views.style.theme import MONOSPACE, Palette, ThemeName, palette
from attention_viz.views.style.wording import escaped, spread, with_minus

if TYPE_CHECKING:
    from attention_viz.circuits.layers.model_flow import ModelFlow

__all__ = ["residual_stream"]

_HEIGHT, _MARGIN = 520, 8
# The parts of the height of both rows, and what stands between; the widths of the table and its columns of bars.
_ROWS, _BETWEEN, _COLUMNS = [0.68, 0.32], 0.13, [0.31, 0.23, 0.23, 0.23]
# Bars keep that far from the stream, in parts of its length.
_GAP = 0.05
# A letter's width on a phone, in parts of the figure's, and the letters of a token in a row.
_LETTER, _LETTERS = 0.023, 9
# Where the stream begins, and the rows above and below the bars: layers, a heading, tokens, the arrow's end.
_START, _OVER, _UNDER, _LAYERS, _HEADING, _TOKENS, _FOOT = -1.2, 0.12, 0.12, 0.3, 0.48, 0.72, 0.94
_SMALL = 11
# Without predictions: the height, the arrow's end, and the sum's length below it.
_SHORT, _END, _LENGTH = 330, 0.48, 0.6


def residual_stream(
    found: "ModelFlow", stop: int | None = None, *, predictions: bool = True, theme: ThemeName = "light"
) -> go.Figure:
    """Draw one token's vector on its way through a model, and the likeliest next tokens at three temperatures.

    The line is the residual stream. Bars above it are the additions of each layer's attention, and bars below it those
    of the MLPs. A bar is an addition's length, divided by the length of the sum after it. Below each layer is the token
    that would be likeliest if the model ended there.

    Args:
        found: the stream, from `model_flow`.
        stop: how many layers run before the last norm; None for all.
        predictions: whether to draw next tokens; else the stream ends at the last sum.
        theme: "light" or "dark".

    Raises:
        ShapeError: the model has fewer layers.
    """
    layers, colours = len(found.layers), palette(theme)
    stop = layers if stop is None else stop
    if not 0 <= stop <= layers:
        raise ShapeError(f"stop must be from 0 to {layers}, the number of layers; got {stop}")
    figure = _sheet() if predictions else make_subplots(1, 1)
    most = max(_add_additions(figure, found, stop, colours), 1.0) + _GAP
    foot = -most - (_FOOT if predictions else _END)
    _add_stream(figure, found, stop, (most, foot), colours)
    if predictions:
        _add_predictions(figure, found, stop, -most - _TOKENS, colours)
        _add_table(figure, found, stop, colours)
        for column, temperature in enumerate(found.sums, 2):
            _add_chances(figure, found, stop, temperature, column, colours)
    paint(figure, colours, height=_HEIGHT if predictions else _SHORT, margin=dict.fromkeys("lrtb", _MARGIN))
    figure.update_layout(showlegend=False, barmode="overlay")
    figure.update_xaxes(fixedrange=True, visible=False)
    figure.update_yaxes(fixedrange=True, visible=False)
    figure.update_xaxes(range=[_START - 0.3, layers - 0.2], row=1, col=1)
    figure.update_yaxes(range=[foot if predictions else -most - _LENGTH - _UNDER, most + 2 * _OVER], row=1, col=1)
    _label(figure, found, most, colours)
    if predictions:
        _arrange_predictions(figure, found)
        _label_predictions(figure, found, most, colours)
    else:
        _label_end(figure, found, stop, most, colours)
    return figure


def _sheet() -> go.Figure:
    """Return the stream's room and, below it, those of the table and three columns of bars."""
    return make_subplots(
        rows=2,
        cols=4,
        specs=[[{"colspan": 4}, None, None, None], [{}, {}, {}, {}]],
        row_heights=_ROWS,
        vertical_spacing=_BETWEEN,
        column_widths=_COLUMNS,
        horizontal_spacing=0.02,
    )


def _add_additions(figure: go.Figure, found: "ModelFlow", stop: int, colours: Palette) -> float:
    """Draw both bars of each layer; return the longest."""
    middle = found.streams[:-1] + found.attention
    lengths = (
        ("attention", found.attention.norm(dim=-1), middle.norm(dim=-1), 1),
        ("MLP", found.mlp.norm(dim=-1), found.streams[1:].norm(dim=-1), -1),
    )
    longest = 0.0
    for name, added, total, side in lengths:
        shares = (added / total).tolist()
        longest = max(longest, *shares)
        figure.add_bar(
            x=list(range(len(shares))),
            y=[side * share for share in shares],
            base=[side * _GAP] * len(shares),
            width=0.7,
            marker={"color": [colours.accent if at < stop else colours.line for at in range(len(shares))]},
            hovertext=[
                f"layer {layer}, {name} adds {one:.2f} to a sum {whole:.2f} long"
                for layer, one, whole in zip(found.layers, added.tolist(), total.tolist(), strict=True)
            ],
            hovertemplate="%{hovertext}<extra></extra>",
            row=1,
            col=1,
        )
    return longest


def _add_stream(figure: go.Figure, found: "ModelFlow", stop: int, ends: tuple[float, float], colours: Palette) -> None:
    """Draw the stream from its word to where the model stops, and its way down; `ends` are both heights."""
    layers, end = len(found.layers), stop - 0.5
    look: dict[str, Any] = {"row": 1, "col": 1}
    if stop < layers:
        rest = {"color": colours.line, "width": 2, "dash": "dot"}
        figure.add_scatter(x=[end, layers - 0.5], y=[0, 0], mode="lines", line=rest, hoverinfo="skip", **look)
    line = {"color": colours.ink, "width": 3}
    marker = {"symbol": "arrow", "angleref": "previous", "size": [0, 0, 0, 12], "color": colours.ink, "opacity": 1}
    figure.add_scatter(
        x=[_START, _START, end, end],
        y=[ends[0], 0, 0, ends[1]],
        mode="lines+markers",
        line=line,
        marker=marker,
        hovertext=[
            f"{drawn_token(found.word)} enters, {float(found.streams[0].norm()):.2f} long",
            "",
            "",
            f"after {stop} layers: {float(found.streams[stop].norm()):.2f} long",
        ],
        hovertemplate="%{hovertext}<extra></extra>",
        **look,
    )


def _add_predictions(figure: go.Figure, found: "ModelFlow", stop: int, height: float, colours: Palette) -> None:
    """Write the likeliest token under the layers that have it, where there is room."""
    layers = len(found.layers)
    places, texts, ends = list[float](), list[str](), list[float | None]()
    for word, some in groupby(range(1, layers + 1), lambda one: found.likeliest[one][0]):
        stops = list(some)
        ends += [stops[0] - 1.4, stops[-1] - 0.6, None]
        if min(len(word), _LETTERS) * _LETTER * (layers + 2) > len(stops) and stops[-1] < layers:
            continue
        places.append((stops[0] + stops[-1]) / 2 - 1)
        name = drawn_token(word, _LETTERS)
        texts.append(f"<b>{name}</b>" if stop in stops else name)
    figure.add_scatter(
        x=places,
        y=[height] * len(places),
        mode="text",
        text=texts,
        textfont={"family": MONOSPACE, "size": _SMALL, "color": colours.ink},
        hoverinfo="skip",
        cliponaxis=False,
        row=1,
        col=1,
    )
    line: dict[str, Any] = {"mode": "lines", "line": {"color": colours.muted, "width": 1}, "hoverinfo": "skip"}
    figure.add_scatter(x=ends, y=[height + 0.1] * len(ends), **line, row=1, col=1)
    spots = list(range(layers))
    figure.add_scatter(
        x=spots,
        y=[height] * layers,
        mode="markers",
        marker={"size": 12, "opacity": 0},
        hovertext=[
            f"after layer {layer}: {drawn_token(found.likeliest[at][0])}, {escaped(weight_text(found.chances(at)[0]))}"
            for at, layer in enumerate(found.layers, 1)
        ],
        hovertemplate="%{hovertext}<extra></extra>",
        row=1,
        col=1,
    )


def _add_table(figure: go.Figure, found: "ModelFlow", stop: int, colours: Palette) -> None:
    """Write the likeliest tokens and their logits."""
    best = found.likeliest[stop]
    logits = [with_minus(f"{number:.1f}") for number in found.logits[stop].tolist()]
    names = [drawn_token(word, _LETTERS) for word in best]
    add_token_table(figure, names, logits, 2, colours)


def _add_chances(
    figure: go.Figure, found: "ModelFlow", stop: int, temperature: float, column: int, colours: Palette
) -> None:
    """Draw the likeliest tokens' probabilities at a temperature."""
    chances = found.chances(stop, temperature)
    names = [drawn_token(word) for word in found.likeliest[stop]]
    figure.add_bar(
        x=chances,
        y=list(range(len(chances))),
        orientation="h",
        width=0.6,
        marker={"color": colours.accent},
        text=[escaped(weight_text(chance)) for chance in chances],
        textposition="outside",
        textfont={"size": 11},
        cliponaxis=False,
        hovertext=[f"{name} at T = {temperature:g}: {chance:.6f}" for name, chance in zip(names, chances, strict=True)],
        hovertemplate="%{hovertext}<extra></extra>",
        row=2,
        col=column,
    )


def _arrange_predictions(figure: go.Figure, found: "ModelFlow") -> None:
    """Set the axes of the table and the bars."""
    figure.update_xaxes(range=[0, 1.8], row=2)
    figure.update_xaxes(range=[0, 1], row=2, col=1)
    figure.update_yaxes(range=[len(found.likeliest[-1]) - 0.5, -0.5], row=2)


def _label(figure: go.Figure, found: "ModelFlow", most: float, colours: Palette) -> None:
    """Name the stream's parts."""
    look, middle = _look(colours), (len(found.layers) - 1) / 2
    word = {"size": 13, "color": colours.query, "family": MONOSPACE}
    name = f"<b>{drawn_token(found.word)}</b>"
    figure.add_annotation(text=name, x=_START - 0.3, y=most, xanchor="left", yanchor="bottom", **{**look, "font": word})
    for text, height in (
        ("attention adds ↓", most + _OVER),
        ("MLP adds ↑ (bar: its length ÷ the sum’s)", -most - _UNDER),
    ):
        figure.add_annotation(text=text, x=middle, y=height, **look)
    for at in spread(len(found.layers), 8):
        text = str(found.layers[at]) if at else f"layer {found.layers[0]}"
        figure.add_annotation(text=text, x=at, y=-most - _LAYERS, **look)


def _look(colours: Palette) -> dict[str, Any]:
    # The way down passes behind the words.
    plain = {"showarrow": False, "font": {"size": _SMALL, "color": colours.muted}}
    return {**plain, "xref": "x", "yref": "y", "bgcolor": colours.background, "borderpad": 0}


def _label_end(figure: go.Figure, found: "ModelFlow", stop: int, most: float, colours: Palette) -> None:
    """Write the sum's length below the arrow."""
    layers = len(found.layers)
    side = "right" if stop > 2 * layers / 3 else "left" if stop < layers / 3 else "center"
    text = f"sum: {float(found.streams[stop].norm()):.2f} long"
    figure.add_annotation(text=text, x=stop - 0.5, y=-most - _LENGTH, xanchor=side, **_look(colours))


def _label_predictions(figure: go.Figure, found: "ModelFlow", most: float, colours: Palette) -> None:
    """Name the rows of tokens, and the columns of the table and the bars."""
    text = "likeliest next token if the layers ended here"
    figure.add_annotation(text=text, x=(len(found.layers) - 1) / 2, y=-most - _HEADING, **_look(colours))
    plain: dict[str, Any] = {"showarrow": False, "font": {"size": _SMALL, "color": colours.muted}}
    layout: Any = figure.layout
    names = ("next token, logit", *(f"T = {temperature:g}" for temperature in found.sums))
    for at, text in enumerate(names, 2):
        left, top = layout[f"xaxis{at}"].domain[0], layout[f"yaxis{at}"].domain[1]
        corner = {"x": left, "y": top, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom"}
        figure.add_annotation(text=text, **corner, **plain)
        if at == 2:
            steps = "last norm → unembedding → logits ÷ T → softmax"
            figure.add_annotation(text=steps, **corner, yshift=20, **plain)
