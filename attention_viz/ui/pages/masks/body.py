"""The Masks page's body: who may look at whom, chosen or drawn, and what follows from it inside the model."""

import functools
from dataclasses import replace
from typing import Any

import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz import views
from attention_viz.errors import AttentionVizError
from attention_viz.serving.runs import Drawn, draw, fit
from attention_viz.serving.verifying import verify
from attention_viz.trace.trace import Trace
from attention_viz.ui.address import State
from attention_viz.ui.address.cells import LONGEST_DRAWN
from attention_viz.ui.controls.pen import show_pen
from attention_viz.ui.controls.plot import show_picture
from attention_viz.ui.pages.masks.choice import MaskChoice, edits
from attention_viz.ui.pages.masks.consequences import show_consequences
from attention_viz.ui.pages.masks.pickers import show_drawing_board, take_strokes
from attention_viz.ui.pages.masks.places import HEIGHT, Places
from attention_viz.ui.pages.masks.words import blocked_words, mask_words, own_mask_words, silent_rows_words, unfit_words
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.badge import Badge
from attention_viz.ui.parts.downloads import show_downloads
from attention_viz.ui.parts.drawing import hold, show_cut, show_notes, show_problem
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.themes import theme_name
from attention_viz.views.style.padding_marks import mark_padding
from attention_viz.views.style.theme import palette

__all__ = ["show_body"]


def show_body(choice: MaskChoice, chosen: State, places: Places) -> None:
    """Run the sentence with and without the mask, and fill the places.

    Args:
        choice: the mask.
        chosen: what the pickers say.
        places: where each part stands.
    """
    state = replace(chosen, more=0)
    if why := unfit_words(state, choice):
        places.notes.info(plain(why))
        choice = MaskChoice("none")
    if choice.batched and not choice.batch.strip():
        places.pictures.error(
            "The second sentence is empty. Padding fills up the shorter of two sentences in a batch: type at least one "
            "word into it, or choose another mask."
        )
        return
    run = _unmasked(state, choice, places.pictures)
    if run is None:
        return
    before, shown, beside = run
    with places.notes:
        show_notes(before, shown)
        if beside is not None and (other := fit(state.request, beside)).cut:
            show_cut(other, state, "The other sentence has")
        if chosen.more and chosen.facts.continues_text:
            st.caption("Masked is what was typed: the tokens that the model went on by are left out here.")
        after = _masked(before, shown, beside, choice, places.line)
    # Before the pictures, which stand below it: they would be pushed down.
    badge = None if after is None else _show_bar(places.bar, after, state)
    _show_pair(before.alone(state.stream).trace, after and after.alone(state.stream).trace, state, choice)
    if after is None or badge is None:
        return
    if after.fit is not None:
        verify(after)
    badge.show(after.trace, from_file=after.fit is None)
    show_consequences(before.trace, after.trace, after.stream(state.stream), state.layer, state.head, choice)


def _show_bar(bar: DeltaGenerator, after: Drawn, state: State) -> Badge:
    """The badge, which says for now that it is being worked out, and what can be taken away."""
    with bar:
        show_downloads(after.trace, after.stream(state.stream), state.layer, state.head)
        return Badge()


def _unmasked(state: State, choice: MaskChoice, place: DeltaGenerator) -> tuple[Drawn, State, str | None] | None:
    """The run without the mask, the sentence that is shown of it, and the other one of its batch.

    None where there was a problem, which is told in the place that was kept.
    """
    if (open_trace := opening.opened()) is not None:
        return open_trace.alone(state.stream), state, None
    run = replace(state, layer=0, head=0), choice.batch if choice.batched else None
    # What is on the screen already stays there: to keep its place would push it down for a moment, at each stroke.
    if st.session_state.get("masks-run") != run:
        hold(state, place, HEIGHT)
    try:
        shown, beside = _row(state, choice)
        drawn = draw(shown.request, beside=beside)
    except AttentionVizError as error:
        show_problem(error, place)
        return None
    st.session_state["masks-run"] = run
    # What kept the place is taken away as a whole: of a block in its stead, some would remain.
    place.empty()
    return drawn, shown, beside


def _row(state: State, choice: MaskChoice) -> tuple[State, str | None]:
    """The sentence that is shown, and the other one of its batch."""
    if not choice.batched:
        return state, None
    rows = (state.text, choice.batch)
    if (fit(state.request, rows[0]).count > fit(state.request, rows[1]).count) == (choice.row == "shorter"):
        rows = rows[::-1]
    return replace(state, text=rows[0]), rows[1]


def _masked(before: Drawn, state: State, beside: str | None, choice: MaskChoice, line: DeltaGenerator) -> Drawn | None:
    """The run with the mask, and in words what it does; None where it can't be made."""
    if before.fit is None:
        st.info("A trace from a file is a run that is over: its masks can be seen, and no other can be added to it.")
        return before
    stream = before.stream(state.stream)
    tokens = before.trace.query_tokens(stream)
    if choice.mask == "drawn":
        with line:
            show_drawing_board(tokens)
    if choice.mask == "drawn" and len(tokens) > LONGEST_DRAWN:
        st.info(
            f"Cells can be drawn for texts of up to {LONGEST_DRAWN} tokens, and this one has {len(tokens)}: nothing is "
            "blocked. Shorten it, or choose another mask."
        )
    try:
        added = edits(choice, tokens, stream if len(before.trace.streams) > 1 else None)
        return draw(state.request, beside=beside, edits=added) if added else before
    except AttentionVizError as error:
        show_problem(error, st.empty())
        return None


def _show_pair(before: Trace, after: Trace | None, state: State, choice: MaskChoice) -> None:
    """The head before and after, side by side on one scale, with what the colours can't say in words."""
    stream, theme = before.streams[0], theme_name()
    where = f"layer {state.layer}, head {state.head}"
    traces = [before] if after is None or opening.opened() else [before, after]
    figures = [views.heatmap(trace, state.layer, state.head, stream, theme=theme) for trace in traces]
    _on_one_scale(figures)
    sides = st.columns(2)
    with sides[0]:
        own = own_mask_words(before, state.layer, state.head)
        title = f"Before: {where}, without the mask" if after is not before else where.capitalize()
        _chart(figures[0], title, "before", before, own)
        st.caption(plain(own))
    if len(traces) == 1 or after is None:
        return
    with sides[1]:
        words = blocked_words(before, after, state.layer, state.head, choice)
        _chart(figures[1], f"After: {where}, mask {choice.mask}", "after", after, words, drawn=choice.mask == "drawn")
        if choice.mask == "drawn":
            _show_pen(after)
        st.caption(plain(f"{mask_words(choice)} {words}".strip()))
        silent = silent_rows_words(after, state.layer, state.head)
        if silent:
            st.markdown(plain(silent))


def _on_one_scale(figures: list[go.Figure]) -> None:
    """The deepest colour stands for the same weight in all of them."""
    cells: list[Any] = [figure.data[0] for figure in figures]
    full = max(one.zmax for one in cells)
    ticks = next(one.colorbar.tickvals for one in cells if one.zmax == full)
    for one in cells:
        one.update(zmax=full, colorbar_tickvals=ticks)


def _chart(figure: go.Figure, title: str, key: str, trace: Trace, words: str, *, drawn: bool = False) -> None:
    """One of the two pictures; one that is drawn on stays where it is."""
    mark_padding(figure, trace.query_tokens(trace.streams[0]), theme_name())
    figure.update_layout(title_text=title, height=HEIGHT, margin_t=64, legend_x=0, legend_xanchor="left")
    # Title, legend and the word over the padding, one below the other.
    figure.update_layout(
        title_y=0.98, title_yanchor="top", legend_y=0.945, legend_yref="container", legend_yanchor="top"
    )
    if drawn:
        # Held in place for the pen.
        figure.update_layout(dragmode=False)
        figure.update_xaxes(fixedrange=True)
        figure.update_yaxes(fixedrange=True)
    show_picture(figure, key, f"{title}. {words}", tools=True)


def _show_pen(trace: Trace) -> None:
    """What draws on the picture after the mask."""
    labels = trace.query_tokens(trace.streams[0]).written
    if len(labels) <= LONGEST_DRAWN:
        show_pen("after", labels, palette(theme_name()).ink, functools.partial(take_strokes, len(labels)))
