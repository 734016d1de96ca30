"""The Heads page's body: all heads of a model as one atlas, what each does in numbers, and a search among them."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.analysis.head_table import COUNT, ERROR
from attention_viz.analysis.search import DETECTORS
from attention_viz.serving.runs import Drawn
from attention_viz.serving.verifying import verify
from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.edits import begin_edits
from attention_viz.ui.pages.heads.atlas import hold_cards
from attention_viz.ui.pages.heads.choice import ADDRESS, HEADS_CHOICES, HeadsChoice
from attention_viz.ui.pages.heads.many.section import show_many
from attention_viz.ui.pages.heads.numbers import mean_numbers, measure_all, roles_of
from attention_viz.ui.pages.heads.one import export_one, show_one
from attention_viz.ui.pages.heads.search import Atlas, follow_text, show_search, take_row
from attention_viz.ui.pages.heads.silence import arrive_silent
from attention_viz.ui.pages.heads.standing import remember
from attention_viz.ui.pages.heads.texts import MoreTexts, run_texts, show_texts
from attention_viz.ui.pages.heads.views import export_view, opened_in_explore, show_view
from attention_viz.ui.pages.heads.what_if import show_what_if
from attention_viz.ui.pages.heads.words import claim_words, few_words, missing_words, safe_csv
from attention_viz.ui.parts.badge import Badge
from attention_viz.ui.parts.drawing import PicturePlace, draw_in_place, hold, show_notes
from attention_viz.ui.parts.exports import model_part, show_run_exports
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.menu import ASKED_SILENCE
from attention_viz.ui.parts.notices import show_notices
from attention_viz.ui.parts.selection import pair_of, settle_selection
from attention_viz.ui.parts.writes import show_writes
from attention_viz.ui.presenting.host import present_roles

__all__ = ["show_body"]


def show_body(
    state: State,
    bar: DeltaGenerator,
    notes: DeltaGenerator,
    picture: PicturePlace,
    height: int,
) -> None:
    """Run the sentence, measure all heads, and fill the places.

    Args:
        state: what the pickers say.
        bar: the place of the badge and of what can be taken away.
        notes: the place of what was cut and of what can't be had.
        picture: the place of the atlas and all below it.
        height: of the atlas with what stands below it, in pixels.
    """
    begin_edits()
    drawn = draw_in_place(
        state,
        picture.place,
        height,
        whole=True,
        stays=picture.stays,
        settle=lambda found: settle_selection(found, state),
    )
    # Of a text that can't be drawn, too, so that nothing chosen is lost.
    choice = _choose(drawn, state, notes)
    if drawn is None:
        return
    if opened_in_explore():
        st.switch_page("app.py", query_params=pickers.address())
    with notes:
        show_notes(drawn, state)
        more = run_texts(drawn, state, choice.texts)
        show_texts(more)
    atlas = _measured(drawn, state, more, picture, height)
    with bar:
        with st.popover("Export", key="export"):
            _offer_table(atlas)
            export_view(atlas, state, choice)
            export_one(atlas, state, choice)
            exports = st.container()
            show_run_exports(lambda: drawn.trace, model_part(drawn.trace))
        badge = Badge()
    with picture.picture():
        writes = _show_parts(atlas, drawn, state, choice, exports)
    present_roles(drawn, state, atlas.jobs)
    if drawn.fit is not None:
        verify(drawn)
    badge.show(drawn.trace, from_file=drawn.fit is None)
    show_writes(writes, drawn, state, pair_of(drawn, state)[0])


def _choose(drawn: Drawn | None, state: State, notes: DeltaGenerator) -> HeadsChoice:
    """What is chosen on this page; the address follows."""
    # Links of before that name a metric alone mean the atlas that it colours.
    coloured = visit.pending(HEADS_CHOICES, "metric") is not None and visit.pending(HEADS_CHOICES, "view") is None
    by_link = visit.pending(HEADS_CHOICES, "silence") == "on"
    visit.settle(HEADS_CHOICES, DETECTORS)
    if coloured:
        visit.fill(HEADS_CHOICES, view="colours")
    if st.session_state.pop(ASKED_SILENCE, False):
        visit.fill(HEADS_CHOICES, silence="on")
        HEADS_CHOICES.arrived("silence")
        arrive_silent()
    elif by_link:
        arrive_silent()
    if drawn is not None:
        follow_text(drawn.trace)
    choice = visit.chosen(HEADS_CHOICES)
    pickers.keep(state, *ADDRESS)
    with notes:
        show_notices(visit.notices(HEADS_CHOICES))
    return choice


def _show_parts(
    atlas: Atlas, drawn: Drawn, state: State, choice: HeadsChoice, exports: DeltaGenerator
) -> DeltaGenerator | None:
    """What this model's heads do in a sentence, all of them and the chosen one side by side; below, what is rarer."""
    with st.container(key="heads-claim"):
        st.markdown(f"### {plain(claim_words(atlas.jobs, atlas.trace, atlas.stream))}")
    left, right = st.columns([2.1, 1], gap="medium")
    with left:
        show_view(atlas, drawn, state, choice)
    with right:
        writes = show_one(atlas, drawn, state, choice)
        if choice.view == "roles":
            hold_cards()
    # A pattern is drawn on the matrix above, which has to be in sight of it.
    show_search(atlas, state, choice)
    show_many(atlas, drawn, state, choice)
    show_what_if(drawn, state, exports)
    _show_numbers(atlas)
    return writes


def _measured(drawn: Drawn, state: State, more: MoreTexts, picture: PicturePlace, height: int) -> Atlas:
    """All heads in numbers, with the picture's place filled meanwhile."""
    place = picture.to_fill()
    if place is not None:
        hold(state, place, height, "Measuring every head …")
    stream = drawn.stream(state.stream)
    table = mean_numbers((drawn.trace, *more.traces), stream)
    jobs = roles_of((drawn.trace, *more.traces), stream, more.texts)
    if place is not None:
        place.empty()
    remember(state)
    return Atlas(drawn.trace, stream, more.texts, more.traces, table, jobs)


def _offer_table(atlas: Atlas) -> None:
    table = atlas.table
    st.download_button(
        "Head table (CSV)",
        data=lambda: safe_csv(table),
        file_name="heads.csv",
        mime="text/csv",
        on_click="ignore",
        key="download-heads",
    )


def _show_numbers(atlas: Atlas) -> None:
    """All metrics of all heads, to sort."""
    with st.expander("All numbers of all heads", key="heads-numbers"):
        _show_table(atlas)


def _show_table(atlas: Atlas) -> None:
    measured = atlas.table.dropna(axis="columns", how="all")
    counts = [name for name in measured if str(name).endswith(COUNT)]
    numbers = measured.drop(columns=counts).round(4).reset_index()
    heads = [(int(layer), int(head)) for layer, head in zip(numbers["layer"], numbers["head"], strict=True)]
    st.dataframe(
        numbers,
        hide_index=True,
        key="heads-table",
        on_select=lambda: take_row("heads-table", heads),
        selection_mode="single-row",
    )
    _tell_sample(atlas)
    if few := few_words(measured):
        st.caption(plain(few))
    if missing := missing_words(atlas.table):
        st.caption(plain(missing))
    spread = " Columns that end in “_spread” are standard deviations over the texts." if atlas.texts else ""
    st.caption(f"A click on a column's name sorts by it; a click on a row's box chooses that head.{spread}")


def _tell_sample(atlas: Atlas) -> None:
    """From how many rows the numbers are, and an offer to measure all; a click elsewhere stops that."""
    rows, queries = atlas.table.attrs["rows"], atlas.table.attrs["queries"]
    if rows == queries:
        return
    st.caption(
        f"Measured from {rows:,} of {queries:,} rows, spread over the text. Columns that end in “{ERROR}” are the "
        "standard errors of these means."
    )
    if not st.button("Measure all rows", key="heads-all-rows"):
        return
    st.button("Stop", key="heads-all-rows-stop")
    bar = st.progress(0.0)
    traces = (atlas.trace, *atlas.others)
    for number, trace in enumerate(traces):
        measure_all(trace, atlas.stream, lambda share, before=number: bar.progress((before + share) / len(traces)))
    st.rerun()
