"""The Masks page: who may look at whom, chosen or drawn, and what follows from it inside the model."""

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import streamlit as st

from attention_viz.errors import AttentionVizError
from attention_viz.ui import opening, pickers
from attention_viz.ui.badge import Badge
from attention_viz.ui.downloads import show_downloads
from attention_viz.ui.drawing import draw_in_place, show_problem, tell
from attention_viz.ui.markdown import plain
from attention_viz.ui.mask_choice import MASKS, MaskChoice, edits, write_choice
from attention_viz.ui.mask_consequences import show_consequences
from attention_viz.ui.mask_pickers import choose_mask, show_drawing_board, take_touched
from attention_viz.ui.mask_words import blocked_words, own_mask_words, silent_rows_words
from attention_viz.ui.menu import show_header
from attention_viz.ui.serving import Drawn, draw, verify
from attention_viz.ui.state import State

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from attention_viz.trace import Trace

__all__ = ["show_page"]

_HEIGHT = 430


def show_page() -> None:
    """Everything on the page, top to bottom; what takes long comes last and has its place kept."""
    pickers.begin()
    show_header()
    state = pickers.choose()
    choice = MaskChoice("none") if opening.opened() else choose_mask(state)
    pickers.keep(state, **write_choice(choice))
    bar = st.container(key="bar", horizontal=True, vertical_alignment="center")
    notes, place = st.container(), st.empty()
    shown, beside = _row(state, choice)
    if choice.batched and not choice.second.strip():
        place.error(
            "The second sentence is empty. Padding fills up the shorter of two sentences in a batch: type at least one "
            "word into it, or choose another mask."
        )
        return
    before = draw_in_place(shown, place, _HEIGHT, beside)
    if before is None:
        return
    with notes:
        tell(before, shown)
        after = _masked(before, shown, beside, choice)
    with place.container():
        _show_pair(before.trace, after and after.trace, state, choice)
    if after is None:
        return
    with bar:
        badge = Badge()
        show_downloads(after.trace, after.trace.streams[0], state.layer, state.head)
    if after.fit is not None:
        verify(after)
    badge.show(after.trace, from_file=after.fit is None)
    show_consequences(before.trace, after.trace, state.layer, state.head, choice)


def _row(state: State, choice: MaskChoice) -> tuple[State, str | None]:
    """The sentence that is shown, and the other one of its batch."""
    if not choice.batched:
        return state, None
    return (state, choice.second) if choice.row == 1 else (replace(state, text=choice.second), state.text)


def _masked(before: Drawn, state: State, beside: str | None, choice: MaskChoice) -> Drawn | None:
    """The run with the mask, and in words what it does; None where it can't be made."""
    if before.fit is None:
        st.info("A trace from a file is a run that is over: its masks can be seen, and no other can be added to it.")
        return before
    tokens = before.trace.query_tokens(before.trace.streams[0])
    if choice.mask == "drawn":
        show_drawing_board(tokens)
    try:
        added = edits(choice, tokens)
        return draw(state, beside=beside, edits=added) if added else before
    except AttentionVizError as error:
        show_problem(error, st.empty())
        return None


def _show_pair(before: "Trace", after: "Trace | None", state: State, choice: MaskChoice) -> None:
    """The head before and after, side by side, with what the colours can't say in words."""
    from attention_viz.views import heatmap

    stream, theme = before.streams[0], _theme()
    left, right = st.columns(2)
    picture = functools.partial(heatmap, layer=state.layer, head=state.head, stream=stream, theme=theme)
    own = own_mask_words(before, state.layer, state.head)
    with left:
        _chart(picture(before), f"Before: layer {state.layer}, head {state.head} as the model runs", "before", own)
        st.caption(plain(own))
    if after is None:
        return
    with right:
        title = f"After: layer {state.layer}, head {state.head} with the mask {choice.mask}"
        words = blocked_words(before, after, state.layer, state.head, choice)
        if choice.mask == "drawn":
            _drawable(picture(after), title, after, words)
        else:
            _chart(picture(after), title, "after", words)
        st.caption(plain(f"{MASKS[choice.mask][1]} {words}"))
        silent = silent_rows_words(after, state.layer, state.head)
        if silent:
            st.markdown(plain(silent))


def _chart(figure: "go.Figure", title: str, key: str, words: str) -> None:
    figure.update_layout(title_text=title, height=_HEIGHT)
    st.plotly_chart(figure, theme=None, key=key, config={"displaylogo": False}, alt=f"{title}. {words}")


def _drawable(figure: "go.Figure", title: str, trace: "Trace", words: str) -> None:
    """The picture on which cells are drawn."""
    from attention_viz.views.touching import touchable

    count = len(trace.query_tokens(trace.streams[0]))
    touchable(figure, count, count, max(4.0, 0.7 * _HEIGHT / count))
    figure.update_layout(title_text=title, height=_HEIGHT)
    key = f"drawing-{st.session_state.get('drawings', 0)}"
    st.plotly_chart(
        figure,
        theme=None,
        key=key,
        config={"displaylogo": False},
        on_select=functools.partial(take_touched, key, count),
        selection_mode=("points", "box"),
        alt=f"{title}. {words}",
    )


def _theme() -> Any:
    return "dark" if st.context.theme.type == "dark" else "light"
