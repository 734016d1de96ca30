"""A number per token as bars: a row of weights, changed outputs, and a softmax row opened."""

import heapq
import math
from dataclasses import replace
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from attention_viz.edits.effects import moved_output
from attention_viz.steps.arithmetic import ProductTerm, open_cell
from attention_viz.steps.head import OpenHead, open_head
from attention_viz.trace.spelling import weight_text
from attention_viz.trace.trace import Trace
from attention_viz.views.style.axes import arrange, label_axes, labelled_axis, number_axis
from attention_viz.views.style.blocks import bar_blocks, bar_note, bar_places, spans
from attention_viz.views.style.captions import caption
from attention_viz.views.style.theme import ThemeName, palette
from attention_viz.views.style.wording import escaped, token_names, with_minus

__all__ = ["changed_outputs", "looks", "shares"]

# As many bars as have room for their numbers.
_PRINTED_UP_TO = 48
# In two lines, so that they stand beside each other on a phone.
_TITLES = ("what<br>enters", "exp(entry<br>− largest)", "÷ sum =<br>weight")
_NUMBERS = ("enters", "exp(entry − largest)", "weight")
_DIGITS = (2, 3, 3)
# More bars have no room for their names and numbers.
_MOST_BARS = 30


def looks(
    trace: Trace, layer: int, head: int, query: int, stream: str | None = None, *, theme: ThemeName = "light"
) -> go.Figure:
    """Draw one row of a head's weights as bars, one per key; they sum to 1. With very many keys, a bar covers several.

    Args:
        trace: the run.
        layer: its number, the model's own.
        head: the head, from 0.
        query: the query's position, from 0.
        stream: the stream; None for the only one.
        theme: "light" or "dark".

    Raises:
        TraceError: the layer or stream is missing.
        ShapeError: the head or position is missing.
    """
    stream, colours = trace.attention_stream(stream), palette(theme)
    queries = trace.query_tokens(stream).names
    trace.query_tokens(stream).require(query)
    row = trace.attention(layer, stream).head(head).rows([query])
    weights = row.weights[0].detach().float().cpu().tolist()
    allowed = [True] * len(weights) if row.allowed is None else row.allowed.expand(row.weights.shape)[0].tolist()
    keys = token_names(trace.key_tokens(stream))
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
            f"{looking} attends to {key}: {most}{weight:.6f}"
            for key, weight in zip(spans(blocks, 0, keys), drawn, strict=True)
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    figure = go.Figure([bars])
    title = f"Weights of {looking} · {escaped(caption(trace, layer, head, stream))}"
    arrange(figure, title, colours, note=bar_note(blocks))
    across = {"title": {"text": "weight", "standoff": 8}, "range": [0, 1.08], **number_axis(colours)}
    label_axes(figure, colours, across, (keys, "key: attended token", colours.key))
    return figure


def _numbers(weights: list[float], allowed: list[bool]) -> list[str]:
    return [escaped(weight_text(weight)) if may else "" for weight, may in zip(weights, allowed, strict=True)]


def changed_outputs(before: Trace, after: Trace, *, theme: ThemeName = "light") -> go.Figure:
    """Draw each token's change of output as bars: the norm of the change over the norm before.

    Raises:
        TraceError: the outputs have different shapes.
    """
    colours = palette(theme)
    blocks = bar_blocks(moved_output(before, after).tolist())
    tokens = token_names(before.query_tokens(before.streams[-1]))
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
    title = {"text": "change ÷ length before", "standoff": 8}
    across = {"title": title, "rangemode": "tozero", **number_axis(colours)}
    label_axes(figure, colours, across, (tokens, "", colours.ink))
    return figure


def shares(
    trace: Trace, layer: int, head: int, query: int, stream: str | None = None, *, theme: ThemeName = "light"
) -> go.Figure:
    """Draw one row of a head's softmax in three columns of bars, one bar per key: entry, exponential, share.

    Above 30 bars, it draws those with the largest shares, and one bar for all others together: their largest entry, the
    sum of their exponentials, and of their shares.

    The row's largest entry is subtracted before the exponential, as in softmax, which doesn't change the shares. If the
    model has an attention sink, it is the last bar, and its share is dropped. Blocked keys are labelled.

    Args:
        trace: the run.
        layer: its number, the model's own.
        head: the head, from 0.
        query: the query's position, from 0.
        stream: the stream; None for the only one.
        theme: "light" or "dark".

    Raises:
        TraceError: the layer or stream is missing.
        ShapeError: the head or position is missing.
    """
    stream, colours = trace.attention_stream(stream), palette(theme)
    queries = trace.query_tokens(stream).names
    trace.query_tokens(stream).require(query)
    every = _terms(open_head(trace, layer, head, stream), query)
    terms = every if len(every) <= _MOST_BARS else _largest(every, len(trace.key_tokens(stream)))
    keys = [escaped(term.label) for term in terms]
    figure = make_subplots(
        cols=3, shared_yaxes=True, horizontal_spacing=0.02, column_widths=[4, 3, 3], subplot_titles=_TITLES
    )
    for place, numbers in enumerate(_columns(terms)):
        _add_column(figure, place, numbers, keys, (colours.muted, colours.accent, colours.key)[place])
    if terms is not every:
        _bound(figure.data[0])
    arrange(figure, f"The row of {escaped(queries[query])} · {escaped(caption(trace, layer, head, stream))}", colours)
    figure.update_xaxes(zeroline=True, zerolinecolor=colours.line)
    figure.update_yaxes(showgrid=False, zeroline=False)
    figure.update_yaxes(**labelled_axis(keys, "key: attended token", colours.key, colours, vertical=True), col=1)
    # Above where the bars begin, and not above the middle, which only the longest reach.
    starts = [_zero(figure, column) for column in (1, 2, 3)]
    for title, start in zip(figure.layout.annotations, starts, strict=True):
        title.update(x=start, xanchor="left", align="left", font={"size": 12, "color": colours.muted})
    figure.update_layout(height=min(620, 150 + 28 * len(keys)), margin={"t": 88}, bargap=0.25)
    return figure


def _add_column(figure: go.Figure, place: int, numbers: list[float], keys: list[str], colour: str) -> None:
    """Add a column of bars; values up to 1 keep a fixed scale."""
    texts = ["blocked" if math.isinf(number) else with_minus(f"{number:.6f}") for number in numbers]
    where: dict[str, Any] = {"row": 1, "col": place + 1}
    figure.add_bar(
        x=[0.0 if math.isinf(number) else number for number in numbers],
        y=list(range(len(keys))),
        orientation="h",
        marker={"color": colour},
        text=[("blocked" if math.isinf(number) else with_minus(f"{number:.{_DIGITS[place]}f}")) for number in numbers],
        textposition="outside",
        cliponaxis=False,
        hovertext=[f"{key}, {_NUMBERS[place]}: {one}" for key, one in zip(keys, texts, strict=True)],
        hovertemplate="%{hovertext}<extra></extra>",
        showlegend=False,
        **where,
    )
    reach = _range([*numbers, 1.0] if place else numbers)
    figure.update_xaxes(range=reach, showticklabels=False, showgrid=False, **where)


def _terms(opened: OpenHead, query: int) -> tuple[ProductTerm, ...]:
    """Return the row's terms; all blocked if it may attend to nothing."""
    terms = open_cell(opened, "weights", query, 0).terms
    blocked = (("entry", -math.inf), ("entry − largest", -math.inf))
    return terms or tuple(ProductTerm(label, blocked, 0.0) for label in opened.trace.key_tokens(opened.stream).numbered)


def _largest(terms: tuple[ProductTerm, ...], keys: int) -> tuple[ProductTerm, ...]:
    """Return the largest products in order, with positions, and one for the rest."""
    largest = set(heapq.nlargest(_MOST_BARS - 1, range(len(terms)), lambda place: terms[place].product))
    others = [term for place, term in enumerate(terms) if place not in largest]
    entry = max(term.factors[0][1] for term in others)
    together = ProductTerm(f"{len(others):,} others", (("entry", entry),), math.fsum(term.product for term in others))
    named = [f"{term.label} ({place})" if place < keys else term.label for place, term in enumerate(terms)]
    return (*(replace(terms[place], label=named[place]) for place in sorted(largest)), together)


def _bound(entries: Any) -> None:
    """Mark the last bar as its keys' upper bound."""
    if entries.text[-1] != "blocked":
        entries.text = (*entries.text[:-1], f"≤ {entries.text[-1]}")
        entries.hovertext = (*entries.hovertext[:-1], entries.hovertext[-1].replace(": ", ": at most ", 1))


def _columns(terms: tuple[ProductTerm, ...]) -> tuple[list[float], list[float], list[float]]:
    total = math.fsum(term.product for term in terms) or 1.0
    return (
        [term.factors[0][1] for term in terms],
        [term.product for term in terms],
        [term.product / total for term in terms],
    )


def _zero(figure: go.Figure, column: int) -> float:
    axis = next(figure.select_xaxes(col=column))
    (left, right), (low, high) = axis.domain, axis.range
    return left + (right - left) * (0 - low) / (high - low)


def _range(numbers: list[float]) -> list[float]:
    finite = [0.0, *(number for number in numbers if not math.isinf(number))]
    low, high = min(finite), max(finite)
    room = 0.7 * (high - low or 1.0)
    # On a phone the tokens stand close to the numbers of bars that go to the left.
    return [low - 1.3 * room if low < 0 else 0.0, high + room]
