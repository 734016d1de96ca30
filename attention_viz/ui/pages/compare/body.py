"""The Compare page's body: two heads side by side, and their difference, aligned by token and told as a number."""

import functools
import html
from dataclasses import replace
from typing import Any

import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz import views
from attention_viz.analysis.comparison.compare import Comparison
from attention_viz.errors import AttentionVizError
from attention_viz.serving.verifying import verify
from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.edits import begin_edits, begin_with_change, show_edit_controls
from attention_viz.ui.controls.edits_choice import CHANGES_OR_NONE
from attention_viz.ui.controls.plot import add_targets, show_picture, show_to_click
from attention_viz.ui.pages.compare.choice import COMPARE_CHOICES, CompareChoice
from attention_viz.ui.pages.compare.chosen import can_choose, pair_at, places_of_pair
from attention_viz.ui.pages.compare.claims import claim, told_cells
from attention_viz.ui.pages.compare.heads import show_heads
from attention_viz.ui.pages.compare.places import HEIGHT, Places
from attention_viz.ui.pages.compare.sides import Run, compared, run_first, run_second, show_both
from attention_viz.ui.pages.compare.telling import settle_head
from attention_viz.ui.pages.compare.training import show_curve
from attention_viz.ui.pages.compare.words import (
    apart_words,
    block_words,
    called_words,
    far_words,
    moved_words,
    side_words,
    token_words,
)
from attention_viz.ui.parts.badge import Badge
from attention_viz.ui.parts.drawing import arrive, show_problem
from attention_viz.ui.parts.exports import show_figure_exports, show_link
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.readings import heatmap, show_reading
from attention_viz.ui.parts.selection import take_pair
from attention_viz.ui.parts.themes import theme_name
from attention_viz.ui.presenting.host import present_comparison
from attention_viz.views.style.axes import lower
from attention_viz.views.style.wording import escaped

__all__ = ["show_body"]

# Of longer texts a cell is too small to press.
_MOST_PRESSED = 1600
# Three matrices share the width: of more cells one would be a few dots wide, and blocks are drawn.
_MOST_CELLS = 4_900
_KEYS = {"one": "compare-left", "other": "compare-right", "difference": "compare-difference"}


def show_body(choice: CompareChoice, chosen: State, places: Places) -> None:
    """Run both sides and fill the places.

    Args:
        choice: what is compared with what.
        chosen: what the pickers say of the first side.
        places: from `hold_places`.
    """
    begin_edits()
    arrive(chosen)
    if choice.what == "edit":
        # Until now the address said of the changes what it had been asked for, whether that can be read or not.
        pickers.keep(chosen, COMPARE_CHOICES, CHANGES_OR_NONE)
    state = replace(chosen, second="", more=0)
    first, second = _run(choice, chosen, state, places)
    with places.notes:
        show_both(choice, chosen, first, second)
    if choice.what == "sentences" and first is not None and second is not None:
        settle_head(choice, state, first, second)
    export = places.bar.container(width="content")
    badges = _badges(places.bar, first, second)
    comparison = _show_pair(choice, first, second, places)
    if places.curve is not None:
        with places.curve.container():
            show_curve(choice, state)
    if comparison is not None:
        pair = None if first is None else places_of_pair(comparison, first)
        present_comparison(comparison, pair, called_words(choice, state))
        with export:
            _show_exports(choice, comparison)
        show_reading(second and second.shown, state)
        show_heads(choice, comparison)
    for badge, run in badges:
        if not run.from_file:
            verify(run.drawn)
        badge.show(run.drawn.trace, from_file=run.from_file)


def _run(choice: CompareChoice, chosen: State, state: State, places: Places) -> tuple[Run | None, Run | None]:
    """Both sides, each with its problem told in its own place; a change is chosen once the run without it is there."""
    first = run_first(choice, state, places.first, HEIGHT)
    if choice.what == "edit" and first is not None and not first.from_file:
        begin_with_change(first.drawn, state)
        pickers.keep(chosen, COMPARE_CHOICES, CHANGES_OR_NONE)
        with places.controls:
            show_edit_controls(first.drawn, state, places.changes)
    return first, run_second(choice, state, first, places.second, HEIGHT)


def _badges(bar: DeltaGenerator, first: Run | None, second: Run | None) -> list[tuple[Badge, Run]]:
    """A badge for each run: two heads of one run have one."""
    runs = [("First", first), ("Second", second)]
    if first is not None and second is not None and first.drawn is second.drawn:
        runs = [("Both", first)]
    found: list[tuple[Badge, Run]] = []
    with bar.container(key="compare-badges", width="content", gap=None):
        for name, run in runs:
            if run is not None:
                with st.container(horizontal=True, vertical_alignment="center", width="content", gap="xsmall"):
                    st.caption(name, width="content")
                    found.append((Badge(f"badge-{name}"), run))
    return found


def _show_pair(choice: CompareChoice, first: Run | None, second: Run | None, places: Places) -> Comparison | None:
    """Both heads and their difference; where they can't be compared, each that can be had as it is."""
    if first is not None and second is not None:
        try:
            comparison = compared(choice, first, second)
        except AttentionVizError as error:
            show_problem(error, places.difference)
        else:
            with places.claim:
                _show_claim(choice, comparison, places_of_pair(comparison, first))
            _show_parts(choice, first, second, comparison, places)
            return comparison
    else:
        places.difference.caption("The difference stands here once both sides can be shown.")
    for run, place, is_second in ((first, places.first, False), (second, places.second, True)):
        if run is not None:
            _show_alone(choice, run, place, is_second)
    return None


def _take_cell(comparison: Comparison, first: Run, cell: tuple[int, int]) -> None:
    """A cell that was pressed becomes the chosen pair, where the first text has something there."""
    if (pair := pair_at(comparison, first, cell)) is not None:
        take_pair(*pair)


def _show_claim(choice: CompareChoice, comparison: Comparison, pair: tuple[int, int] | None) -> None:
    """What differs most, or the chosen pair, in a large sentence."""
    pieces = [
        f'<bdi dir="ltr" class="compare-{role}">{html.escape(text)}</bdi>' if role else html.escape(text)
        for text, role in claim(choice, comparison, pair)
    ]
    st.html(f'<p class="compare-claim" data-testid="compare-claim">{"".join(pieces)}</p>')


def _show_parts(choice: CompareChoice, first: Run, second: Run, comparison: Comparison, places: Places) -> None:
    """The three pictures, each with what it shows in words below it."""
    titles = {
        "one": side_words(choice, first.state, first.stream, second=False),
        "other": side_words(choice, second.state, second.stream, second=True),
        "difference": far_words(comparison),
    }
    tokens, moved = token_words(comparison), moved_words(comparison)
    blocks = block_words(comparison, _MOST_CELLS)
    captions = {"one": tokens, "other": moved, "difference": f"{blocks} {apart_words(comparison)}".strip()}
    theme = theme_name()
    marked = told_cells(comparison, places_of_pair(comparison, first))
    pressed = can_choose(comparison, first) and len(comparison.queries) * len(comparison.keys) <= _MOST_PRESSED
    for part, place in zip(titles, places.pictures, strict=True):
        with place.container():
            figure = views.compare(comparison, part=part, cells=marked.get(part, ()), most=_MOST_CELLS, theme=theme)
            show = functools.partial(_pressable, comparison, first) if pressed else _chart
            show(figure, titles[part], _KEYS[part], f"{titles[part]}. {moved} {tokens}")
            if captions[part]:
                st.caption(plain(captions[part]))


def _show_exports(choice: CompareChoice, comparison: Comparison) -> None:
    """Both heads and their difference as one picture, and every number as a table."""
    with st.popover("Export", key="export"):
        show_figure_exports(
            f"compare-{choice.what}",
            lambda: views.compare(comparison),
            comparison.table,
            comparison.one.trace,
            title="Both and their difference",
            other=comparison.other.trace,
        )
        show_link()


def _show_alone(choice: CompareChoice, run: Run, place: DeltaGenerator, second: bool) -> None:
    with place.container():
        figure = heatmap(run.shown.trace, run.state, run.stream, theme_name())
        title = side_words(choice, run.state, run.stream, second=second)
        _chart(figure, title, _KEYS["other" if second else "one"], f"{title}, alone")


def _pressable(comparison: Comparison, first: Run, figure: go.Figure, title: str, key: str, alt: str) -> None:
    """A matrix whose cells choose their pair when they are pressed."""
    cells = [(row, column) for row in range(len(comparison.queries)) for column in range(len(comparison.keys))]
    drawn: Any = figure.data[0]
    told = [str(drawn.hovertext[row][column]) for row, column in cells]
    add_targets(figure, cells)
    points: Any = figure.data[-1]
    # The points lie over the cells, and say what these would.
    points.update(hoverinfo="text", hovertext=told)
    lower(figure, HEIGHT).update_layout(title_text=escaped(title))
    show_to_click(figure, key, alt, functools.partial(_take_cell, comparison, first))


def _chart(figure: go.Figure, title: str, key: str, alt: str) -> None:
    lower(figure, HEIGHT).update_layout(title_text=escaped(title))
    show_picture(figure, key, alt)
