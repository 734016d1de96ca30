"""The Compare page's parts."""

import functools
from dataclasses import dataclass, replace

import streamlit as st

from attention_viz import views
from attention_viz.analysis.comparison.compare import Comparison
from attention_viz.analysis.comparison.shares import in_shares
from attention_viz.errors import AttentionVizError
from attention_viz.serving.runs import Run
from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.controls.edits import begin_edits, begin_with_change, show_edit_controls, show_edit_list
from attention_viz.ui.controls.reading import is_raw
from attention_viz.ui.controls.sight import in_sight
from attention_viz.ui.pages.compare.choice import COMPARE_CHOICES, CompareChoice, sides
from attention_viz.ui.pages.compare.claims import RowClaims
from attention_viz.ui.pages.compare.heads import follow_difference, seeks_head
from attention_viz.ui.pages.compare.matrices import show_all_rows, show_alone
from attention_viz.ui.pages.compare.page import HEIGHT
from attention_viz.ui.pages.compare.rows import has_shown, show_next_words, show_rows
from attention_viz.ui.pages.compare.sides import (
    ShownSide,
    compared,
    places_of_pair,
    run_first,
    run_second,
    show_both,
)
from attention_viz.ui.pages.compare.training import show_curve
from attention_viz.ui.pages.compare.words import (
    called_words,
)
from attention_viz.ui.pages.heads.choice import HEADS_CHOICES
from attention_viz.ui.parts.drawing import arrive, hold
from attention_viz.ui.parts.exports import show_figure_exports, show_link
from attention_viz.ui.parts.readings import show_reading
from attention_viz.ui.presenting.host import present_comparison
from attention_viz.ui.runner.page import Part, Parts, Slots, raise_again
from attention_viz.ui.selection import Selection

# The curve's height with its picker, in pixels.
_CURVE = 420


@dataclass(frozen=True, eq=False)
class CompareStudy:
    """Both sides, and their comparison, or why there is none."""

    first: ShownSide | None
    second: ShownSide | None
    slots: Slots
    comparison: Comparison | AttentionVizError | None = None


def load(state: State, slots: Slots) -> CompareStudy:
    """Run both sides, each problem in its own slot."""
    begin_edits()
    arrive(visit.shared())
    choice = visit.chosen(COMPARE_CHOICES)
    if not has_shown():
        seeks = seeks_head(choice, visit.here().selection)
        doing = "Finding the head that differs most …" if seeks else ""
        hold(sides(choice, state)[1], slots["other"], HEIGHT, doing)
    first = run_first(choice, state, slots["one"], HEIGHT)
    if choice.what == "edit" and first is not None and not first.from_file:
        begin_with_change(first.run, state)
    return CompareStudy(first, run_second(choice, state, first, slots["other"], HEIGHT), slots)


def settle(selection: Selection, study: CompareStudy) -> Selection:
    """Select the head that differs most, unless one was chosen."""
    choice = selection.of(COMPARE_CHOICES)
    if not seeks_head(choice, selection) or study.first is None or study.second is None:
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
        parts.append(Part("below", functools.partial(_show_curve, choice, state)))
    if first is None or second is None or not isinstance(comparison, Comparison):
        return Parts(parts, runs=_badged(first, second))
    parts.append(Part("below", functools.partial(show_all_rows, choice, first, second, in_shares(comparison))))
    if not (is_raw(state) or comparison.one.mixes or comparison.other.mixes):
        parts.append(Part("below", functools.partial(show_reading, second.shown, state)))
    parts.append(Part("next", functools.partial(show_next_words, comparison, first, second)))
    return Parts(
        parts,
        exports=functools.partial(_show_exports, choice, comparison),
        slides=functools.partial(_present, choice, state, in_shares(comparison), first),
        runs=_badged(first, second),
    )


def _present(choice: CompareChoice, state: State, comparison: Comparison, first: ShownSide) -> None:
    """Present the chosen pair, else the one in the page's headline."""
    pair = places_of_pair(comparison, first)
    if pair is None:
        claims = RowClaims(choice, first.state, comparison)
        query = claims.opening()
        found = [key for key in reversed(claims.row(query).keys) if key is not None]
        pair = (query, found[0]) if found else None
    present_comparison(comparison, pair, called_words(choice, state))


def _show_curve(choice: CompareChoice, state: State) -> None:
    if in_sight("compare-training", _CURVE):
        with st.container():
            show_curve(choice, state)


def _badged(first: ShownSide | None, second: ShownSide | None) -> list[tuple[str, Run]]:
    """Label badges: two heads of one run share one."""
    if first is not None and second is not None and first.run is second.run:
        return [("Both", first.run)]
    return [(label, side.run) for label, side in (("1", first), ("2", second)) if side is not None]


def _pair(choice: CompareChoice, study: CompareStudy) -> list[Part]:
    """Return a row of both heads; if incomparable, the available heads."""
    first, second = study.first, study.second
    if first is not None and second is not None and isinstance(study.comparison, Comparison):
        return [Part("rows", functools.partial(_show_both_rows, study.slots, choice, study.comparison, first, second))]
    said = functools.partial(st.caption, "The difference appears once both sides can be shown.")
    if isinstance(study.comparison, AttentionVizError):
        said = functools.partial(raise_again, study.comparison)
    parts = [Part("below", said)]
    for side, slot in ((first, "one"), (second, "other")):
        if side is not None:
            parts.append(Part(slot, functools.partial(show_alone, choice, side, slot)))
    return parts


def _show_both_rows(
    slots: Slots, choice: CompareChoice, comparison: Comparison, first: ShownSide, second: ShownSide
) -> None:
    show_rows(choice, in_shares(comparison), first, second)
    slots["other"].empty()


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
