"""The Compare page's matrices: both heads and their difference, or one head alone."""

import functools
from collections.abc import Callable, Sequence

import numpy
import streamlit as st
from jaxtyping import Bool, Float

from attention_viz.analysis.blocks import MOST_CELLS, matrix_blocks
from attention_viz.analysis.comparison.compare import Comparison, Side
from attention_viz.explorer.chart_payload import Grid
from attention_viz.explorer.compare_payload import blocked_cells, numbered, paired_names
from attention_viz.ui.controls.chart import show_grid
from attention_viz.ui.pages.compare.choice import CompareChoice
from attention_viz.ui.pages.compare.sides import ShownSide, can_choose, pair_at
from attention_viz.ui.pages.compare.words import (
    apart_words,
    block_words,
    far_words,
    moved_words,
    side_words,
    token_words,
)
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.selection import take_pair

_KEYS = {"one": "compare-left", "other": "compare-right", "difference": "compare-difference"}


def show_all_rows(choice: CompareChoice, first: ShownSide, second: ShownSide, comparison: Comparison) -> None:
    """Draw the three matrices once they are unfolded."""
    fold = st.expander("All rows", key="compare-all", on_change="rerun")
    if not fold.open:
        return
    with fold:
        for column, part in zip(st.columns(3), _KEYS, strict=True):
            with column:
                _show_part(choice, first, second, comparison, part)
        words = [token_words(comparison), moved_words(comparison), apart_words(comparison)]
        st.caption(plain(" ".join([block_words(comparison, MOST_CELLS), *words]).strip()))


def _show_part(choice: CompareChoice, first: ShownSide, second: ShownSide, comparison: Comparison, part: str) -> None:
    title = {
        "one": side_words(choice, first.state, first.stream, second=False, where=first.where),
        "other": side_words(choice, second.state, second.stream, second=True, where=second.where),
        "difference": far_words(comparison),
    }[part]
    sides = {"one": (0,), "other": (1,), "difference": (0, 1)}[part]
    values = [comparison.weights, comparison.other_weights, comparison.difference][max(sides) + len(sides) - 1]
    blocked = numpy.logical_and.reduce([blocked_cells(comparison, which) for which in sides])
    queries, keys = comparison.queries, comparison.keys
    marked = [sorted((*axis.substituted, *axis.removed, *axis.inserted)) for axis in (queries, keys)]
    is_signed = part == "difference" or comparison.one.mixes or comparison.other.mixes
    _show_matrix(
        title,
        _KEYS[part],
        (values.detach().float().cpu().numpy(), blocked),
        (_labels(comparison, "query", sides), _labels(comparison, "key", sides)),
        signed=is_signed,
        marked=(marked[0], marked[1]),
        on_click=functools.partial(_take_cell, comparison, first) if can_choose(comparison, first) else None,
    )


def show_alone(choice: CompareChoice, side: ShownSide, part: str) -> None:
    """Draw one side's head while the other side has none."""
    one = Side(side.shown.trace, side.stream, *side.place)
    tokens = one.trace.query_tokens(side.stream), one.trace.key_tokens(side.stream)
    with st.container():
        title = side_words(choice, side.state, side.stream, second=part == "other", where=side.where)
        matrix = one.weights.detach().float().cpu().numpy(), one.blocked.cpu().numpy()
        _show_matrix(title, _KEYS[part], matrix, (numbered(tokens[0]), numbered(tokens[1])), signed=one.mixes)


def _show_matrix(
    title: str,
    key: str,
    matrix: tuple[Float[numpy.ndarray, "query key"], Bool[numpy.ndarray, "query key"]],
    labels: tuple[Sequence[str], Sequence[str]],
    *,
    signed: bool,
    marked: tuple[Sequence[int], Sequence[int]] = ((), ()),
    on_click: Callable[[tuple[int, int]], None] | None = None,
) -> None:
    blocks = matrix_blocks(*matrix, MOST_CELLS)
    if not blocks.whole:
        labels, marked, on_click = ([""] * blocks.values.shape[0], [""] * blocks.values.shape[1]), ((), ()), None
    st.markdown(f"**{plain(title)}**")
    grid = Grid(
        blocks.values,
        *labels,
        "Queries",
        "Keys",
        scale="signed" if signed else "weight",
        blocked=blocks.blocked,
        marked_rows=marked[0],
        marked_columns=marked[1],
        words=title,
    )
    show_grid(grid, key, on_click)


def _labels(comparison: Comparison, role: str, sides: Sequence[int]) -> list[str]:
    """Label a side's own tokens; of both sides, those of one with "−" or "+", and replacements with both."""
    return [_label(pair, sides) for pair in paired_names(comparison, role)]


def _label(pair: Sequence[str | None], sides: Sequence[int]) -> str:
    one, other = (pair[which] for which in (sides[0], sides[-1]))
    if one is None or other is None:
        return (f"− {one}" if one else f"+ {other}") if len(sides) > 1 else "–"
    return one if one == other else f"{one}→{other}"


def _take_cell(comparison: Comparison, first: ShownSide, cell: tuple[int, int]) -> None:
    if (pair := pair_at(comparison, first, cell)) is not None:
        take_pair(*pair)
