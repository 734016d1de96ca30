"""The Compare page: two heads side by side and their difference, aligned by token, with a number for how different."""

from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.errors import AttentionVizError
from attention_viz.serving.runs import verify
from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls import reading as readings
from attention_viz.ui.controls.edits import CHANGES, begin_edits, show_edit_controls
from attention_viz.ui.controls.plot import show_picture
from attention_viz.ui.pages.compare.choice import ADDRESS, COMPARE_CHOICES, TRAINED, CompareChoice
from attention_viz.ui.pages.compare.heads import show_heads
from attention_viz.ui.pages.compare.pickers import choose_kind, first_state, show_pickers, take_trained
from attention_viz.ui.pages.compare.sides import Run, compared, run_first, run_second, tell_both
from attention_viz.ui.pages.compare.training import show_curve
from attention_viz.ui.pages.compare.words import apart_words, far_words, moved_words, side_words, token_words
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.badge import Badge
from attention_viz.ui.parts.drawing import show_problem
from attention_viz.ui.parts.exports import show_figure_exports
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.menu import show_header
from attention_viz.ui.parts.themes import theme_name

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from attention_viz.analysis.compare import Comparison

__all__ = ["show_page"]

_HEIGHT = 430
_KEYS = {"one": "compare-left", "other": "compare-right", "difference": "compare-difference"}
# Each text stands for itself here, as it was typed.
_LEFT_OUT = ("second", "more")


def show_page() -> None:
    """Everything on the page, top to bottom; what takes long comes last and has its place kept."""
    pickers.begin(*ADDRESS, example=first_state())
    begin_edits()
    show_header()
    chosen = pickers.choose(leave_out=_LEFT_OUT, with_readings=True)
    state = replace(chosen, second="", more=0)
    choose_kind(state)
    choice = show_pickers(state)
    pickers.keep(chosen, COMPARE_CHOICES, *((CHANGES,) if choice.what == "edit" else ()))
    controls = st.container()
    bar = st.container(key="bar", horizontal=True, vertical_alignment="center")
    notes = st.container()
    trained = choice.what == "snapshots"
    if trained and (state.model != TRAINED.model or opening.opened() is not None):
        _offer_trained(state)
        return
    with st.container(key="compare-views"):
        held = [column.empty() for column in st.columns(4 if trained else 3)]
    first, second = _run(choice, state, held[-3:], controls)
    with notes:
        tell_both(choice, chosen, first, second)
    badges = _badges(bar, first, second)
    comparison = _show_pair(choice, first, second, held[-3:])
    if trained:
        with held[0].container():
            show_curve(choice, state)
    if comparison is not None:
        with bar:
            _show_exports(choice, comparison)
        readings.tell(second and second.shown, state)
        show_heads(choice, comparison)
    for badge, run in badges:
        if not run.from_file:
            verify(run.drawn)
        badge.show(run.drawn.trace, from_file=run.from_file)


def _run(
    choice: CompareChoice, state: State, places: list[DeltaGenerator], controls: DeltaGenerator
) -> tuple[Run | None, Run | None]:
    """Both sides, each with its problem told in its own place; a change is chosen once the run without it is there."""
    first = run_first(choice, state, places[0], _HEIGHT)
    if choice.what == "edit" and first is not None and not first.from_file:
        with controls:
            show_edit_controls(first.drawn, state)
    return first, run_second(choice, state, first, places[1], _HEIGHT)


def _badges(bar: DeltaGenerator, first: Run | None, second: Run | None) -> list[tuple[Badge, Run]]:
    """A badge for each run: two heads of one run have one."""
    runs = [("First", first), ("Second", second)]
    if first is not None and second is not None and first.drawn is second.drawn:
        runs = [("Both", first)]
    found: list[tuple[Badge, Run]] = []
    for name, run in runs:
        if run is not None:
            with bar.container(horizontal=True, vertical_alignment="center", width="content", gap="small"):
                st.caption(name, width="content")
                found.append((Badge(), run))
    return found


def _show_pair(
    choice: CompareChoice, first: Run | None, second: Run | None, places: list[DeltaGenerator]
) -> "Comparison | None":
    """Both heads and their difference; where they can't be compared, each that can be had as it is."""
    if first is not None and second is not None:
        try:
            comparison = compared(choice, first, second)
        except AttentionVizError as error:
            show_problem(error, places[2])
        else:
            _show_parts(choice, first, second, comparison, places)
            return comparison
    else:
        places[2].caption("The difference stands here once both sides can be shown.")
    for run, place, is_second in ((first, places[0], False), (second, places[1], True)):
        if run is not None:
            _show_alone(choice, run, place, is_second)
    return None


def _show_parts(
    choice: CompareChoice, first: Run, second: Run, comparison: "Comparison", places: list[DeltaGenerator]
) -> None:
    """The three pictures, each with what it shows in words below it."""
    from attention_viz.views import compare

    titles = {
        "one": side_words(choice, first.state, first.stream, second=False),
        "other": side_words(choice, second.state, second.stream, second=True),
        "difference": far_words(comparison),
    }
    tokens, moved = token_words(comparison), moved_words(comparison)
    told = {"one": tokens, "other": moved, "difference": apart_words(comparison)}
    theme = theme_name()
    for part, place in zip(titles, places, strict=True):
        with place.container():
            figure = compare(comparison, part=part, theme=theme)
            _chart(figure, titles[part], _KEYS[part], f"{titles[part]}. {moved} {tokens}")
            if told[part]:
                st.caption(plain(told[part]))


def _show_exports(choice: CompareChoice, comparison: "Comparison") -> None:
    """Both heads and their difference as one picture, and every number as a table."""
    from attention_viz.views import compare

    show_figure_exports(f"compare-{choice.what}", lambda: compare(comparison), comparison.table, comparison.one.trace)


def _show_alone(choice: CompareChoice, run: Run, place: DeltaGenerator, second: bool) -> None:
    with place.container():
        figure = readings.heatmap(run.shown.trace, run.state, run.stream, theme_name())
        title = side_words(choice, run.state, run.stream, second=second)
        _chart(figure, title, _KEYS["other" if second else "one"], f"{title}, alone")


def _chart(figure: "go.Figure", title: str, key: str, alt: str) -> None:
    from attention_viz.views.style.wording import escaped

    figure.update_layout(title_text=escaped(title), height=_HEIGHT)
    show_picture(figure, key, alt)


def _offer_trained(state: State) -> None:
    """Say why there is nothing to see, and how to see something."""
    what = "the run in a file is over" if opening.opened() is not None else f"of {state.model} none came along"
    st.info(
        plain(
            f"Moments of training were kept of {TRAINED.model}, a toy decoder whose heads learn to go on with what "
            f"they have read; {what}. Your sentence comes back with the browser’s Back."
        )
    )
    st.button(f"Show {TRAINED.model} with “{TRAINED.text}”", on_click=take_trained)
