"""The Compare page's parts."""

import functools
import html
from dataclasses import dataclass, replace
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from attention_viz import views
from attention_viz.analysis.comparison.compare import Comparison
from attention_viz.analysis.comparison.shares import in_shares
from attention_viz.errors import AttentionVizError
from attention_viz.serving.runs import Run
from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.controls.edits import begin_edits, begin_with_change, show_edit_controls, show_edit_list
from attention_viz.ui.controls.plot import add_targets, show_picture, show_to_click
from attention_viz.ui.pages.compare.choice import COMPARE_CHOICES, CompareChoice
from attention_viz.ui.pages.compare.heads import follow_difference, show_heads
from attention_viz.ui.pages.compare.page import HEIGHT
from attention_viz.ui.pages.compare.sides import (
    ShownSide,
    can_choose,
    compared,
    pair_at,
    places_of_pair,
    run_first,
    run_second,
    show_both,
)
from attention_viz.ui.pages.compare.training import show_curve
from attention_viz.ui.pages.compare.words import (
    apart_words,
    block_words,
    called_words,
    cell_claim,
    claim,
    far_words,
    moved_words,
    side_words,
    token_words,
)
from attention_viz.ui.pages.heads.choice import HEADS_CHOICES
from attention_viz.ui.parts.drawing import arrive
from attention_viz.ui.parts.exports import show_figure_exports, show_link
from attention_viz.ui.parts.layout import theme_name
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.readings import heatmap, show_reading
from attention_viz.ui.parts.selection import take_pair
from attention_viz.ui.presenting.host import present_comparison
from attention_viz.ui.runner.page import Part, Parts, Slots, raise_again
from attention_viz.ui.selection import Selection
from attention_viz.views.style.axes import lower
from attention_viz.views.style.wording import escaped

# With more cells, each is too small to click.
_MOST_PRESSED = 1600
# Three matrices share the width: more cells would be a few pixels wide each, so blocks are drawn.
_MOST_CELLS = 4_900
_KEYS = {"one": "compare-left", "other": "compare-right", "difference": "compare-difference"}


@dataclass(frozen=True, eq=False)
class CompareStudy:
    """Both sides, and their comparison, or why there is none."""

    first: ShownSide | None
    second: ShownSide | None
    comparison: Comparison | AttentionVizError | None = None


def load(state: State, slots: Slots) -> CompareStudy:
    """Run both sides, each problem in its own slot."""
    begin_edits()
    arrive(visit.shared())
    choice = visit.chosen(COMPARE_CHOICES)
    first = run_first(choice, state, slots["one"], HEIGHT)
    if choice.what == "edit" and first is not None and not first.from_file:
        begin_with_change(first.run, state)
    return CompareStudy(first, run_second(choice, state, first, slots["other"], HEIGHT))


def settle(selection: Selection, study: CompareStudy) -> Selection:
    """Select the head that differs most, unless one was chosen."""
    choice = selection.of(COMPARE_CHOICES)
    if choice.what != "sentences" or study.first is None or study.second is None:
        return selection
    return follow_difference(selection, choice, study.first, study.second)


def study(study: CompareStudy, selection: Selection, _slots: Slots) -> CompareStudy:
    """Put both heads on common axes."""
    if study.first is None or study.second is None:
        return study
    try:
        comparison: Comparison | AttentionVizError = compared(selection.of(COMPARE_CHOICES), study.first, study.second)
    except AttentionVizError as error:
        comparison = error
    return replace(study, comparison=comparison)


def view(study: CompareStudy, selection: Selection) -> Parts:
    """Return the page's parts."""
    choice, state = selection.of(COMPARE_CHOICES), replace(selection.shared, second="", more=0)
    first, second, comparison = study.first, study.second, study.comparison
    parts = [Part("notes", functools.partial(show_both, choice, selection.shared, first, second))]
    if choice.what == "edit" and first is not None and not first.from_file:
        pattern = selection.of(HEADS_CHOICES).pattern
        parts.append(Part("controls", functools.partial(show_edit_controls, first.run, state, pattern=pattern)))
        parts.append(Part("changes", functools.partial(show_edit_list, first.run)))
    parts += _pair(choice, study)
    if choice.what == "snapshots":
        parts.append(Part("curve", functools.partial(_show_curve, choice, state)))
    if first is None or second is None or not isinstance(comparison, Comparison):
        return Parts(parts, runs=_badged(first, second))
    if not (comparison.one.mixes or comparison.other.mixes):
        parts.append(Part("below", functools.partial(show_reading, second.shown, state)))
    parts.append(Part("below", functools.partial(show_heads, choice, comparison)))
    pair = places_of_pair(comparison, first)
    slides = functools.partial(present_comparison, comparison, pair, called_words(choice, state))
    return Parts(
        parts,
        exports=functools.partial(_show_exports, choice, comparison),
        # Slides speak of softmax weights.
        slides=None if comparison.one.mixes or comparison.other.mixes else slides,
        runs=_badged(first, second),
    )


def _show_curve(choice: CompareChoice, state: State) -> None:
    with st.container():
        show_curve(choice, state)


def _badged(first: ShownSide | None, second: ShownSide | None) -> list[tuple[str, Run]]:
    """Label badges: two heads of one run share one."""
    if first is not None and second is not None and first.run is second.run:
        return [("Both", first.run)]
    return [(label, side.run) for label, side in (("First", first), ("Second", second)) if side is not None]


def _pair(choice: CompareChoice, study: CompareStudy) -> list[Part]:
    """Return both heads and their difference; if incomparable, the available heads."""
    first, second = study.first, study.second
    if first is not None and second is not None and isinstance(study.comparison, Comparison):
        comparison = in_shares(study.comparison)
        claims = functools.partial(_show_claim, choice, comparison, places_of_pair(comparison, first))
        return [Part("claim", claims), *_three(choice, first, second, comparison)]
    said = functools.partial(st.caption, "The difference appears once both sides can be shown.")
    if isinstance(study.comparison, AttentionVizError):
        said = functools.partial(raise_again, study.comparison)
    parts = [Part("difference", said)]
    for side, slot in ((first, "one"), (second, "other")):
        if side is not None:
            parts.append(Part(slot, functools.partial(_show_alone, choice, side, slot)))
    return parts


def _take_cell(comparison: Comparison, first: ShownSide, cell: tuple[int, int]) -> None:
    if (pair := pair_at(comparison, first, cell)) is not None:
        take_pair(*pair)


def _show_claim(choice: CompareChoice, comparison: Comparison, pair: tuple[int, int] | None) -> None:
    pieces = [
        f'<bdi dir="ltr" class="compare-{role}">{html.escape(text)}</bdi>' if role else html.escape(text)
        for text, role in claim(choice, comparison, pair)
    ]
    st.html(f'<p class="compare-claim" data-testid="compare-claim">{"".join(pieces)}</p>')


def _three(choice: CompareChoice, first: ShownSide, second: ShownSide, comparison: Comparison) -> list[Part]:
    titles = {
        "one": side_words(choice, first.state, first.stream, second=False, where=first.where),
        "other": side_words(choice, second.state, second.stream, second=True, where=second.where),
        "difference": far_words(comparison),
    }
    tokens, moved = token_words(comparison), moved_words(comparison)
    blocks = block_words(comparison, _MOST_CELLS)
    captions = {"one": tokens, "other": moved, "difference": f"{blocks} {apart_words(comparison)}".strip()}
    marked = cell_claim(comparison, places_of_pair(comparison, first))

    pressed = can_choose(comparison, first) and len(comparison.queries) * len(comparison.keys) <= _MOST_PRESSED
    draw = functools.partial(_pressable, comparison, first) if pressed else _chart

    def show(part: str) -> None:
        figure = views.compare(comparison, part=part, cells=marked.get(part, ()), most=_MOST_CELLS, theme=theme_name())
        # An empty slot holds one element: a container with all of it.
        with st.container():
            draw(figure, titles[part], _KEYS[part], f"{titles[part]}. {moved} {tokens}")
            if captions[part]:
                st.caption(plain(captions[part]))

    return [Part(part, functools.partial(show, part)) for part in titles]


def _show_exports(choice: CompareChoice, comparison: Comparison) -> None:
    with st.popover("Export", key="export"):
        show_figure_exports(
            f"compare-{choice.what}",
            lambda: views.compare(comparison),
            comparison.table,
            comparison.one.trace,
            title="Both, and difference",
            other=comparison.other.trace,
        )
        show_link()


def _show_alone(choice: CompareChoice, side: ShownSide, part: str) -> None:
    with st.container():
        layer, head = side.place
        shown = replace(side.state, layer=layer, head=head) if side.where else side.state
        figure = heatmap(side.shown.trace, shown, side.stream, theme_name())
        title = side_words(choice, side.state, side.stream, second=part == "other", where=side.where)
        _chart(figure, title, _KEYS[part], f"{title}, alone")


def _pressable(comparison: Comparison, first: ShownSide, figure: go.Figure, title: str, key: str, alt: str) -> None:
    cells = [(row, column) for row in range(len(comparison.queries)) for column in range(len(comparison.keys))]
    run: Any = figure.data[0]
    texts = [str(run.hovertext[row][column]) for row, column in cells]
    add_targets(figure, cells)
    points: Any = figure.data[-1]
    # The points cover the cells, so they show the cells' hover text.
    points.update(hoverinfo="text", hovertext=texts)
    lower(figure, HEIGHT).update_layout(title_text=escaped(title))
    show_to_click(figure, key, alt, functools.partial(_take_cell, comparison, first))


def _chart(figure: go.Figure, title: str, key: str, alt: str) -> None:
    lower(figure, HEIGHT).update_layout(title_text=escaped(title))
    show_picture(figure, key, alt)
