"""The likeliest next tokens with their logits, and their probabilities at several temperatures."""

from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from attention_viz.circuits.layers.model_flow import ModelFlow
from attention_viz.lesson.translation import translate
from attention_viz.trace.spelling import weight_text
from attention_viz.views.figures.token_table import add_token_table, drawn_token
from attention_viz.views.style.axes import paint
from attention_viz.views.style.theme import Palette, ThemeName, palette
from attention_viz.views.style.wording import escaped, with_minus

# Pixels: a bar, and the room around them.
_BAR, _AROUND = 34, 58
# The widths of the table and the columns of bars, and the letters of a token.
_TABLE, _LETTERS = 0.34, 10
# The bars of the other temperatures, and the room right of a full bar for its number.
_FAINT, _ROOM = 0.35, 1.75


def next_tokens(found: ModelFlow, chosen: float, theme: ThemeName) -> go.Figure:
    """Draw the likeliest tokens and all others together, a column per temperature; highlight the chosen one."""
    colours, temperatures = palette(theme), list(found.sums)
    count = len(found.likeliest[-1])
    rest = 1 - _TABLE
    figure = make_subplots(
        1,
        1 + len(temperatures),
        column_widths=[_TABLE, *[rest / len(temperatures)] * len(temperatures)],
        horizontal_spacing=0.02,
    )
    _add_table(figure, found, colours)
    for column, temperature in enumerate(temperatures, 2):
        _add_bars(figure, found, temperature, column, colours, bold=temperature == chosen)
    paint(figure, colours, height=_BAR * (count + 1) + _AROUND, margin={"l": 8, "r": 8, "t": _AROUND - 16, "b": 8})
    figure.update_layout(showlegend=False, bargap=0.3)
    figure.update_xaxes(fixedrange=True, visible=False, range=[0, _ROOM])
    figure.update_xaxes(range=[0, 1], row=1, col=1)
    figure.update_yaxes(fixedrange=True, visible=False, range=[count + 0.5, -0.5])
    return figure


def _add_table(figure: go.Figure, found: ModelFlow, colours: Palette) -> None:
    """Write the tokens and their logits."""
    names = [*_tokens(found), f"<i>{escaped(translate('all others'))}</i>"]
    logits = [*(with_minus(f"{number:.2f}") for number in found.logits[-1].tolist()), ""]
    add_token_table(figure, names, logits, 1, colours)
    _add_heading(figure, translate("token"), 1, colours.muted)
    _add_heading(figure, translate("logit"), 1, colours.muted, right=True)


def _add_bars(
    figure: go.Figure, found: ModelFlow, temperature: float, column: int, colours: Palette, *, bold: bool
) -> None:
    chances = found.chances(-1, temperature)
    chances.append(max(0.0, 1 - sum(chances)))
    names = [*_tokens(found), escaped(translate("all others"))]
    accents = [colours.accent] * (len(chances) - 1) + [colours.muted]
    figure.add_bar(
        x=chances,
        y=list(range(len(chances))),
        orientation="h",
        marker={"color": accents, "opacity": 1 if bold else _FAINT},
        text=[escaped(weight_text(chance)) for chance in chances],
        textposition="outside",
        textfont={"size": 11, "color": colours.ink if bold else colours.muted},
        cliponaxis=False,
        hovertext=[
            translate("{word} at T = {temperature}: {chance}", word=name, temperature=f"{temperature:g}", chance=text)
            for name, text in zip(names, (f"{chance:.6f}" for chance in chances), strict=True)
        ],
        hovertemplate="%{hovertext}<extra></extra>",
        row=1,
        col=column,
    )
    text = f"T = {temperature:g}"
    _add_heading(figure, f"<b>{text}</b>" if bold else text, column, colours.ink if bold else colours.muted)


def _add_heading(figure: go.Figure, text: str, column: int, colour: str, *, right: bool = False) -> None:
    layout: Any = figure.layout
    left, end = layout[f"xaxis{column if column > 1 else ''}"].domain
    side = "right" if right else "left"
    look: dict[str, Any] = {"showarrow": False, "font": {"size": 12, "color": colour}, "xref": "paper", "yref": "paper"}
    figure.add_annotation(text=text, x=end if right else left, y=1, xanchor=side, yanchor="bottom", **look)


def _tokens(found: ModelFlow) -> list[str]:
    return [drawn_token(one, _LETTERS) for one in found.likeliest[-1]]
