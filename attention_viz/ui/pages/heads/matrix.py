"""The chosen head's matrix: what a click keeps, and what a pen marks."""

from collections.abc import Sequence

import numpy
import plotly.graph_objects as go
import streamlit as st

from attention_viz import views
from attention_viz.analysis.blocks import Blocks, call_blocks
from attention_viz.analysis.places import after_the_sound
from attention_viz.analysis.signed import has_channels, mixer_of
from attention_viz.explorer.chart_payload import Grid, Scale
from attention_viz.serving.runs import Run
from attention_viz.trace.spelling import weight_text
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace
from attention_viz.ui.address import State
from attention_viz.ui.controls import reading as readings
from attention_viz.ui.controls.chart import show_grid
from attention_viz.ui.controls.plot import show_picture
from attention_viz.ui.pages.heads.board import cannot_draw, mark_drawn, show_board_pen
from attention_viz.ui.pages.heads.choice import HeadsChoice
from attention_viz.ui.pages.heads.photo import show_photo, shows_photo
from attention_viz.ui.pages.heads.search import Atlas
from attention_viz.ui.parts.drawing import PicturePlace
from attention_viz.ui.parts.layout import theme_name
from attention_viz.ui.parts.readings import read_in_place, show_reading
from attention_viz.ui.parts.selection import pair_of, take_pair
from attention_viz.views.style.axes import begin, lower
from attention_viz.views.style.blocks import block_note, spans
from attention_viz.views.style.scale import full_colour
from attention_viz.views.style.theme import ThemeName
from attention_viz.views.style.wording import drawn_names, readable

MATRIX_HEIGHT = 350
# Up to this many tokens, hovering over a cell of a Plotly matrix names them.
_NAMED_UP_TO = 128


def show_matrix(atlas: Atlas, run: Run, state: State, choice: HeadsChoice, words: str, *, arrived: bool) -> None:
    """Draw the chosen head's matrix; `words` describe the head, `arrived` shows what arrives without a softmax."""
    board = choice.search == "pattern" and not cannot_draw(atlas.trace, atlas.stream, state)
    place = PicturePlace.of(readings.is_raw(state))
    shown = read_in_place(run, state, place.place, MATRIX_HEIGHT)
    if shown is not None:
        with place.picture():
            if shows_photo(shown, atlas.stream) and not board:
                show_photo(shown, state, atlas.stream)
            elif board:
                _draw_board(atlas, shown, state, choice, words)
            else:
                _draw_grid(atlas, shown, state, words, arrived=arrived)
    if board:
        show_board_pen("heads-one", atlas.trace.query_tokens(atlas.stream))
    if not readings.is_raw(state):
        show_reading(shown, state)
        st.caption(
            "The reading changes only this matrix. Roles, metrics, patterns and the search use the attention weights "
            "themselves."
        )


def _draw_grid(atlas: Atlas, shown: Run, state: State, words: str, *, arrived: bool) -> None:
    """Draw the weights or a reading of them, of an audio only the frames that it has; `arrived` as `show_matrix`."""
    trace, stream, raw = shown.trace, atlas.stream, readings.is_raw(state)
    blocks = _mixer_blocks(trace, stream, state, arrived=arrived) if atlas.mixes else _blocks(trace, stream, state)
    tokens = trace.query_tokens(stream), trace.key_tokens(stream)
    names = [drawn_names(one) for one in tokens]
    rows, columns = (one if blocks.whole else spans(blocks, axis, one) for axis, one in enumerate(names))
    (down, across), values = (_heard(trace, one) if blocks.whole else None for one in tokens), blocks.values
    smallest, most = float(values.min(initial=0.0)), float(values.max(initial=0.0))
    largest = max(most, -smallest) if atlas.mixes or smallest < 0 else full_colour(values, max(blocks.shape))
    notes = [f"{note}." for note in [block_note(blocks)] if note]
    if most > largest:
        notes.append(f"The deepest colour is {largest:.3g} or more; the largest weight is {weight_text(most)}.")
    query, key = pair_of(shown, state) if raw and blocks.whole else (None, None)
    click = "" if query is None else " Click a cell to choose its pair."
    grid = Grid(
        values=numpy.where(blocks.blocked, 0, values)[:down, :across],
        rows=rows[:down],
        columns=columns[:across],
        row_title="Queries",
        column_title="Keys",
        scale=_scale(arrived=arrived, mixes=atlas.mixes, signed=smallest < 0),
        largest=largest,
        blocked=blocks.blocked[:down, :across] if blocks.blocked.any() else None,
        chosen=None if query is None or key is None else (query, key),
        words=" ".join(filter(None, ["The chosen head.", *notes, words])) + click,
    )
    show_grid(grid, "heads-one", None if query is None else _take_cell)
    if notes:
        st.caption(" ".join(notes))


def _blocks(trace: Trace, stream: str, state: State) -> Blocks:
    return call_blocks(trace.attention(state.layer, stream).head(readings.head(state)))


def _mixer_blocks(trace: Trace, stream: str, state: State, *, arrived: bool) -> Blocks:
    """Return a head's signed weights, or what arrives in it; of a layer with a matrix per channel, in all of them."""
    mixer = mixer_of(trace, stream, state.layer)
    if arrived and has_channels(trace, stream, state.layer):
        return call_blocks(mixer, lambda some: some.layer_contributions.detach().float().cpu().numpy())
    if arrived:
        return call_blocks(mixer.head(state.head), lambda some: some.contributions.detach().float().cpu().numpy())
    return call_blocks(mixer.head(state.head))


def _scale(*, arrived: bool, mixes: bool, signed: bool) -> Scale:
    if mixes:
        return "size" if arrived else "mixed"
    return "signed" if signed else "weight"


def _take_cell(cell: tuple[int, int]) -> None:
    take_pair(*cell)


def _heard(trace: Trace, tokens: Tokens) -> int | None:
    """Return where an audio's own frames end: models pad their input; None for the whole."""
    after: Sequence[bool] = after_the_sound(trace.seen, tokens)
    return after.index(True) if any(after) and not all(after) else None


def head_figure(
    atlas: Atlas, run: Run, state: State, *, arrived: bool, names: bool = True, theme: ThemeName = "light"
) -> go.Figure:
    """Draw the head's weights, or what arrives without a softmax; of the run, since that needs the values."""
    if arrived:
        head = None if has_channels(atlas.trace, atlas.stream, state.layer) else state.head
        return views.arrived(run.trace, state.layer, head, atlas.stream, theme=theme)
    return views.heatmap(run.trace, state.layer, state.head, atlas.stream, names=names, theme=theme)


def _draw_board(atlas: Atlas, shown: Run, state: State, choice: HeadsChoice, words: str) -> None:
    """Draw the weights, for the pen."""
    trace, stream = shown.trace, atlas.stream
    tokens = trace.query_tokens(stream), trace.key_tokens(stream)
    names = max(map(len, tokens)) <= _NAMED_UP_TO
    figure = head_figure(atlas, shown, state, arrived=False, names=names, theme=theme_name())
    lower(figure, MATRIX_HEIGHT).update_layout(title_text="", margin_t=8)
    for axis, one, direction in ((figure.layout.xaxis, tokens[1], 1), (figure.layout.yaxis, tokens[0], -1)):
        if (end := _heard(trace, one)) is not None:
            begin(axis, readable(one.written), end)
            axis.range = axis.range[::direction]
    mark_drawn(figure, choice.pattern, len(tokens[0]))
    show_picture(figure, "heads-one", f"The chosen head. {words}")
