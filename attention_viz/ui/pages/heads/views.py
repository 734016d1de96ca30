"""The Heads page's pictures: all heads, as they were asked for, and the chosen one beside them."""

import plotly.graph_objects as go
import streamlit as st

from attention_viz import views
from attention_viz.serving.runs import Drawn
from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls import reading as readings
from attention_viz.ui.controls.plot import show_picture, show_to_click
from attention_viz.ui.pages.heads.atlas import HEIGHT, chosen_head, show_atlas
from attention_viz.ui.pages.heads.board import cannot_draw, mark_drawn, show_board_pen
from attention_viz.ui.pages.heads.choice import HEADS_CHOICES, VIEWS, HeadsChoice
from attention_viz.ui.pages.heads.numbers import distances, packed
from attention_viz.ui.pages.heads.search import Atlas, take_head
from attention_viz.ui.pages.heads.words import head_words, metric_words
from attention_viz.ui.parts.exports import show_figure_exports
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.readings import heatmap, read_in_place, show_reading
from attention_viz.ui.parts.themes import theme_name
from attention_viz.views.style.theme import ThemeName

__all__ = ["export_view", "opened_in_explore", "show_one", "show_view"]

_OPEN = "heads-open"

# Up to this many tokens, hovering over a cell of the chosen head names them.
_NAMED_UP_TO = 128


def show_view(atlas: Atlas, state: State, choice: HeadsChoice) -> None:
    """All heads: as colours, as patterns, by two metrics, or by likeness."""
    pickers.switch("All heads as", VIEWS, HEADS_CHOICES.key("view"))
    {"scatter": _show_scatter, "map": _show_map}.get(choice.view, _show_grid)(atlas, state, choice)


def show_one(atlas: Atlas, drawn: Drawn, state: State, choice: HeadsChoice) -> None:
    """The chosen head's matrix, read as it was asked for; or the board that a pattern to look for is drawn on."""
    board = choice.search == "pattern" and not cannot_draw(atlas.trace, atlas.stream, state)
    with st.container(horizontal=True, vertical_alignment="center", key="heads-one-title"):
        st.markdown(f"**Layer {state.layer}, {readings.head_name(state)}**", width="content")
        st.page_link("app.py", label="Open this head in Explore", query_params=pickers.address())
    place = st.empty()
    shown = read_in_place(drawn, state, place, HEIGHT)
    words = head_words(atlas.table, (state.layer, state.head))
    if shown is not None:
        with place.container():
            figure = _matrix(shown, state, atlas.stream)
            if board:
                mark_drawn(figure, choice.pattern, len(atlas.trace.query_tokens(atlas.stream)))
            show_picture(figure, "heads-one", f"The chosen head. {words}")
    if board:
        show_board_pen("heads-one", atlas.trace.query_tokens(atlas.stream))
    st.caption(plain(words))
    if not readings.is_raw(state):
        show_reading(shown, state)
        st.caption(
            "Only this matrix is read so: the heads' numbers and patterns and the search are of the raw weights."
        )


def _matrix(shown: Drawn, state: State, stream: str) -> go.Figure:
    trace, theme = shown.trace, theme_name()
    if readings.is_raw(state):
        longest = max(len(trace.query_tokens(stream)), len(trace.key_tokens(stream)))
        figure = views.heatmap(trace, state.layer, state.head, stream, names=longest <= _NAMED_UP_TO, theme=theme)
    else:
        figure = heatmap(trace, state, stream, theme)
    return figure.update_layout(height=HEIGHT, title_text="", margin_t=30)


def export_view(atlas: Atlas, state: State, choice: HeadsChoice) -> None:
    """What is taken away of the picture of all heads; patterns, which no figure has, are left to the screen."""
    if choice.view == "patterns":
        return
    makers = {"colours": _grid, "scatter": _scatter, "map": _map}

    def figure() -> go.Figure:
        return makers[choice.view](atlas, state, choice, "light")

    show_figure_exports(
        f"heads-{choice.view}", figure, atlas.table.reset_index, atlas.trace, stream=atlas.stream, title="This picture"
    )


def opened_in_explore() -> bool:
    """Whether a head was just asked to be opened in Explore, by a double click or by the link of its card."""
    return bool(st.session_state.pop(_OPEN, False))


def _show_grid(atlas: Atlas, state: State, choice: HeadsChoice) -> None:
    # Its height holds until the component has come; of very many heads it becomes more.
    with st.container(key="heads-atlas"):
        _atlas_in_place(atlas, state, choice)
    st.markdown(metric_words(choice.metric, formula=True))


def _atlas_in_place(atlas: Atlas, state: State, choice: HeadsChoice) -> None:
    show_atlas(
        packed(atlas.trace, atlas.stream, atlas.table, atlas.texts),
        (state.layer, state.head),
        choice.metric,
        patterns=choice.view == "patterns",
        address=pickers.address(),
        on_choice=_take_choice,
        on_open=_take_open,
    )


def _show_scatter(atlas: Atlas, state: State, choice: HeadsChoice) -> None:
    figure = _scatter(atlas, state, choice, theme_name()).update_layout(height=HEIGHT)
    show_to_click(figure, "heads-scatter", "Every head as a point, by two metrics; later layers are darker", take_head)
    st.caption("Every head is a point; later layers are darker. A click chooses the head, which then stands beside.")


def _show_map(atlas: Atlas, state: State, choice: HeadsChoice) -> None:
    figure = _map(atlas, state, choice, theme_name()).update_layout(height=HEIGHT)
    show_to_click(figure, "heads-map", "Every head as a point; those that look alike stand together", take_head)
    st.caption(
        "The closer two heads, the more alike their rows (Jensen–Shannon divergence). The axes mean nothing by "
        "themselves. A click chooses the head, which then stands beside."
    )


def _grid(atlas: Atlas, state: State, choice: HeadsChoice, theme: ThemeName) -> go.Figure:
    chosen = (state.layer, state.head)
    return views.head_grid(atlas.trace, choice.metric, atlas.stream, chosen=chosen, table=atlas.table, theme=theme)


def _scatter(atlas: Atlas, state: State, choice: HeadsChoice, theme: ThemeName) -> go.Figure:
    chosen = (state.layer, state.head)
    return views.head_scatter(
        atlas.trace, choice.metric, choice.beside, atlas.stream, chosen=chosen, table=atlas.table, theme=theme
    )


def _map(atlas: Atlas, state: State, _choice: HeadsChoice, theme: ThemeName) -> go.Figure:
    apart = distances(atlas.trace, atlas.stream)
    chosen = (state.layer, state.head)
    return views.head_map(atlas.trace, atlas.stream, chosen=chosen, table=atlas.table, distances=apart, theme=theme)


def _take_choice() -> None:
    if (head := chosen_head("choice")) is not None:
        take_head(head)


def _take_open() -> None:
    if (head := chosen_head("open")) is not None:
        take_head(head)
        st.session_state[_OPEN] = True
