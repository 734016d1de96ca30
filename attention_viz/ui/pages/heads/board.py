"""A pattern drawn on a head's matrix."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, TypeGuard, cast

import numpy
import plotly.graph_objects as go
import streamlit as st

from attention_viz.errors import ShapeError
from attention_viz.explorer import script
from attention_viz.trace.kind import CROSSING_STREAMS
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import State
from attention_viz.ui.address.cells import Cells, from_code, to_code
from attention_viz.ui.controls.reading import is_raw
from attention_viz.ui.pages.heads.choice import HEADS_CHOICES
from attention_viz.ui.parts.layout import theme_name
from attention_viz.views.style.theme import palette

_KEY = "pen"

_HTML = """\
<div class="pen" tabindex="0" role="application" aria-label="Draw by keyboard">
  <span></span> <output></output>
</div>
"""

_CSS = resources.files("attention_viz.ui.pages.heads").joinpath("pen.css").read_text("utf-8")
_pen = widgets.component("pen", _HTML, _CSS, script("page/pen.js"))
# Longer texts have cells too small to click.
_LONGEST = 128


@dataclass
class _LastStroke:
    stroke: int = 0


def _show_pen(
    chart: str, labels: Sequence[str], colour: str, on_strokes: Callable[[], None], does: str = "blocks or opens"
) -> None:
    """Draw a pen over a square matrix; see `strokes`."""
    seen = visit.memory(_LastStroke).stroke
    data = {"chart": chart, "labels": list(labels), "colour": colour, "does": does, "seen": seen}
    _pen(key=_KEY, data=data, on_strokes_change=on_strokes)


def strokes(count: int) -> list[tuple[slice, slice]]:
    """Return new strokes' cells, oldest first, dropping other lengths."""
    message, seen = widgets.sent(_KEY, "strokes"), visit.memory(_LastStroke)
    found: list[tuple[slice, slice]] = []
    for stroke in cast("list[object]", message) if isinstance(message, list) else ():
        if not _whole(stroke) or stroke[0] <= seen.stroke:
            continue
        seen.stroke, length, top, bottom, left, right = stroke
        if length == count and 0 <= top <= bottom < count and 0 <= left <= right < count:
            found.append((slice(top, bottom + 1), slice(left, right + 1)))
    return found


def _whole(stroke: object) -> TypeGuard[list[int]]:
    """Check six integers, because browsers can send anything."""
    if not isinstance(stroke, list):
        return False
    numbers = cast("list[object]", stroke)
    return len(numbers) == 6 and all(type(number) is int for number in numbers)


def cannot_draw(trace: Trace, stream: str, state: State) -> str:
    """Explain why these matrices can't be drawn on; empty if they can."""
    if not is_raw(state):
        return "You can draw only on raw weights, token by token. Choose that reading under Options."
    if stream in CROSSING_STREAMS:
        return "You can draw only on self-attention. Choose another stream, or search by words."
    count = len(trace.query_tokens(stream))
    if count > _LONGEST:
        return f"You can draw on texts of up to {_LONGEST} tokens; this one has {count}. Shorten it."
    return ""


def drawn_cells(code: str, count: int) -> Cells:
    """Return the drawn cells for this token count."""
    return from_code(code, count)


def show_board_controls(trace: Trace, stream: str, layer: int, head: int) -> None:
    """Show the drawn cells and starting patterns."""
    widgets.show(
        st.text_input,
        "Cells",
        of=HEADS_CHOICES,
        name="pattern",
        placeholder="Draw on the matrix, or paste cells from Masks",
    )
    with st.container(horizontal=True, key="heads-board"):
        st.button("Strongest cells", on_click=_take_strongest, args=(trace, stream, layer, head))
        st.button("Clear", on_click=_write, args=("",))


def mark_drawn(figure: go.Figure, code: str, count: int) -> None:
    """Draw the cells over a matrix fixed for the pen."""
    colours = palette(theme_name())
    try:
        cells = drawn_cells(code, count)
    except ShapeError:
        cells = numpy.zeros((count, count), dtype=bool)
    matrix: Any = figure.data[0]
    printed = matrix if matrix.texttemplate else None
    if cells.any():
        figure.add_heatmap(
            z=numpy.where(cells, 1.0, numpy.nan),
            zmin=0,
            zmax=1,
            colorscale=[[0, colours.more], [1, colours.more]],
            # A marked cell covers its weight, so it repeats the printed number.
            text=None if printed is None else numpy.where(cells, printed.text, ""),
            texttemplate=None if printed is None else printed.texttemplate,
            xgap=2,
            ygap=2,
            showscale=False,
            hoverinfo="skip",
            hoverongaps=False,
        )
    figure.update_layout(dragmode=False)
    figure.update_xaxes(fixedrange=True)
    figure.update_yaxes(fixedrange=True)


def show_board_pen(chart: str, tokens: Tokens) -> None:
    """Draw the pen on a chart."""
    take = functools.partial(_take_strokes, len(tokens))
    _show_pen(chart, tokens.written, palette(theme_name()).ink, take, "marks or clears")


def _take_strokes(count: int) -> None:
    """Mark cells if any is unmarked, else clear them."""
    try:
        cells = drawn_cells(visit.chosen(HEADS_CHOICES).pattern, count).copy()
    except ShapeError:
        cells = numpy.zeros((count, count), dtype=bool)
    for rows, columns in strokes(count):
        cells[rows, columns] = not cells[rows, columns].all()
    _write(to_code(cells) if cells.any() else "")


def _take_strongest(trace: Trace, stream: str, layer: int, head: int) -> None:
    """Mark each token's strongest key, without tokenizer-added tokens."""
    weights = trace.weights(layer, head, stream)
    cells = numpy.zeros(tuple(weights.shape), dtype=bool)
    rows = list(trace.query_tokens(stream).counted) or list(range(len(cells)))
    cells[rows, weights[rows].abs().argmax(dim=-1).tolist()] = True
    _write(to_code(cells))


def _write(code: str) -> None:
    visit.pick(HEADS_CHOICES, pattern=code)
