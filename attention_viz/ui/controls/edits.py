"""A model's changes."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import streamlit as st

from attention_viz.analysis.signed import has_channels
from attention_viz.edits.change import Change, Detail, Drawing, Nothing, NumberDetail, OneCell
from attention_viz.edits.changes import EDITS, MOST, describe, misfit, read_changes, to_edits, write_changes
from attention_viz.errors import ShapeError
from attention_viz.serving.runs import Run
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import State
from attention_viz.ui.address.cells import from_code
from attention_viz.ui.address.kinds import fits_link
from attention_viz.ui.controls.edits_choice import CHANGES, current_edits
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.selection import pair_of
from attention_viz.views.style.wording import shortened

if TYPE_CHECKING:
    from attention_viz.edits.edit import Edit
    from attention_viz.trace.tokens import Tokens

_LONGEST_HISTORY = 100


@dataclass
class _History:
    """The changes before each step, and whether any came first."""

    steps: list[str] = field(default_factory=list[str])
    begun: bool = False


def begin_edits() -> None:
    """Take the URL's changes."""
    if visit.is_unread(CHANGES):
        before = current_edits()
        if visit.pending(CHANGES, "edits") == "":
            # A URL without changes counts as a beginning, too.
            visit.memory(_History).begun = True
        visit.settle(CHANGES)
        _remember(before)


def made(text: str, run: Run, state: State) -> "tuple[Edit, ...]":
    """Return fitting changes as edits."""
    fitting = [change for change in read_changes(text)[0] if not misfit(change, run.trace)]
    return tuple(edit for change in fitting for edit in to_edits(change, run.trace))


def show_edit_controls(run: Run, state: State, *, pattern: str) -> None:
    """Draw the controls that add and undo changes."""
    stream = run.stream(state.stream)
    with st.container(key="edit-pickers", horizontal=True, vertical_alignment="bottom"):
        what = widgets.draft(
            st.selectbox,
            "Change",
            key="edit-what",
            default=next(iter(EDITS)),
            options={name: one.label for name, one in EDITS.items() if one.fits_stream(stream, run.trace)},
            width=290,
        )
        stream, layer, head = _place(run, state)
        ready = _show_details(what, run, stream, pattern)
        full = len(read_changes(current_edits())[0]) >= MOST
        named = _named(run, state)
        st.button(
            "Add", type="primary", disabled=full or not ready, on_click=_add, args=(run, layer, head, named, pattern)
        )
        st.button("Undo", disabled=not visit.memory(_History).steps, on_click=_undo)
        st.button("Start over", disabled=not current_edits(), on_click=_step, args=("",))
    if isinstance(EDITS[what].asks, Drawing) and not ready:
        st.caption(plain(_no_pattern_words(run, stream)))
    if full:
        st.caption(f"You can make at most {MOST} changes at once. Remove one to add another.")


def begin_with_change(run: Run, state: State) -> None:
    """Cut the chosen pair, once per visit without changes."""
    if current_edits() or visit.memory(_History).begun or visit.notices(CHANGES):
        return
    cut = Change("block", None, None, _named(run, state), (pair_of(run, state),))
    if not misfit(cut, run.trace):
        visit.memory(_History).begun = True
        visit.pick(CHANGES, edits=write_changes([cut]))


def _named(run: Run, state: State) -> str | None:
    """Return the stream if a change has to name it."""
    return run.stream(state.stream) if run.several or len(state.facts.heads) > 1 else None


def _place(run: Run, state: State) -> tuple[str, int | None, int | None]:
    """Return stream, layer and head; None for all."""
    stream, (layer, head) = run.stream(state.stream), run.place(state.stream, state.layer, state.head)
    per = "channel" if has_channels(run.trace, stream, layer) else "head"
    one = {} if per == "channel" else {"head": f"layer {layer}, head {head}"}
    names = {**one, "layer": f"layer {layer}, all {per}s", "all": f"all layers and {per}s"}
    chosen = widgets.draft(st.selectbox, "Where", key="edit-where", default=next(iter(names)), options=names, width=190)
    return stream, None if chosen == "all" else layer, head if chosen == "head" else None


def _show_details(what: str, run: Run, stream: str, pattern: str) -> bool:
    """Ask for details; False if it can't be added yet."""
    match EDITS[what].asks:
        case Nothing():
            return True
        case NumberDetail() as asks:
            widgets.draft(
                st.number_input,
                asks.label,
                asks.lowest,
                asks.highest,
                key=_number_key(asks),
                default=asks.start,
                step=asks.step,
                width=130,
            )
            return True
        case OneCell() as asks:
            _pick_token(asks.query, "edit-query", run.trace.query_tokens(stream))
            _pick_token(asks.key, "edit-key", run.trace.key_tokens(stream))
            return True
        case Drawing():
            return bool(_cells(run, stream, pattern))


def _chosen_detail(what: str, run: Run, stream: str, pattern: str) -> Detail:
    match EDITS[what].asks:
        case Nothing():
            return None
        case NumberDetail() as asks:
            return round(float(widgets.drafted(_number_key(asks))), 4)
        case OneCell():
            return ((int(widgets.drafted("edit-query")), int(widgets.drafted("edit-key"))),)
        case Drawing():
            return _cells(run, stream, pattern)


def _number_key(asks: NumberDetail) -> str:
    return f"edit-{asks.label.lower()}"


def _pick_token(label: str, key: str, tokens: "Tokens") -> None:
    # Another text may be shorter.
    names = {position: f"{position} {label}" for position, label in enumerate(tokens.names)}
    widgets.draft(st.selectbox, label, key=key, default=1, options=names, width=150)


def _cells(run: Run, stream: str, pattern: str) -> tuple[tuple[int, int], ...]:
    queries, keys = len(run.trace.query_tokens(stream)), len(run.trace.key_tokens(stream))
    try:
        cells = from_code(pattern, queries)
    except ShapeError:
        return ()
    return (
        tuple((int(row), int(column)) for row, column in zip(*cells.nonzero(), strict=True)) if queries == keys else ()
    )


def _no_pattern_words(run: Run, stream: str) -> str:
    queries, keys = len(run.trace.query_tokens(stream)), len(run.trace.key_tokens(stream))
    if queries != keys:
        return f"A pattern needs a square matrix; this attention has {queries} rows and {keys} columns."
    return (
        f"Nothing is drawn for this text's {queries} tokens. On the Heads page, set Search by to Pattern and draw the "
        "cells. A drawn row then attends equally to its cells; a row without cells stays unchanged."
    )


def _add(run: Run, layer: int | None, head: int | None, stream: str | None, pattern: str) -> None:
    what = widgets.drafted("edit-what")
    detail = _chosen_detail(what, run, stream or run.trace.streams[0], pattern)
    if detail != ():  # a drawing that is gone since the button was shown
        change = Change(what, layer, head, stream, detail)
        _step(write_changes([*read_changes(current_edits())[0], change]))


def _remove(number: int) -> None:
    changes = read_changes(current_edits())[0]
    _step(write_changes([*changes[:number], *changes[number + 1 :]]))


def _step(text: str) -> None:
    before = current_edits()
    visit.pick(CHANGES, edits=text)
    _remember(before)


def _remember(before: str) -> None:
    if before != current_edits():
        history = visit.memory(_History)
        history.steps = [*history.steps, before][-_LONGEST_HISTORY:]


def _undo() -> None:
    if steps := visit.memory(_History).steps:
        visit.pick(CHANGES, edits=steps.pop())


def show_edit_list(run: Run) -> None:
    """List the changes, with reasons for the impossible ones."""
    changes = read_changes(current_edits())[0]
    if not changes:
        return
    with st.container(key="edit-list", gap=None):
        for number, change in enumerate(changes):
            why = misfit(change, run.trace)
            left_out = f" – left out here: {why}" if why else ""
            line = f"{number + 1}. {describe(change, run.trace, shortened)}{left_out}"
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(plain(line), width="content")
                st.button("Remove", key=f"edit-remove-{number}", type="tertiary", on_click=_remove, args=(number,))
    if not fits_link(current_edits()):
        st.caption("Too long for a link: links leave these changes out.")
