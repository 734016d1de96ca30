"""Several changes of a model, chosen one after the other, undone one by one, and kept in the address."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from attention_viz.errors import ShapeError
from attention_viz.serving.runs import Drawn
from attention_viz.serving.settings import SETTINGS
from attention_viz.ui.address import State
from attention_viz.ui.address.cells import from_code
from attention_viz.ui.address.codec import parameter
from attention_viz.ui.address.kinds import Kind, nearest
from attention_viz.ui.address.session import Choices
from attention_viz.ui.controls.edit_text import (
    CHANGES as KINDS,
)
from attention_viz.ui.controls.edit_text import (
    HIGHEST,
    LOWEST,
    MOST,
    Change,
    describe,
    misfit,
    read_changes,
    to_edits,
    write_changes,
)
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.notices import show_notices

if TYPE_CHECKING:
    from attention_viz.edits.kinds import Edit
    from attention_viz.trace.tokens import Tokens

__all__ = ["CHANGES", "PATTERN", "Changes", "begin_edits", "held_edits", "made", "show_edit_controls"]

# Where a pattern that is drawn by hand lies, in the letters of `attention_viz.ui.address.cells`.
PATTERN = "heads-pattern"

# What the changes were before each step that was taken.
_STEPS = "edits-steps"

_LONGEST_HISTORY = 100


class EditsText(Kind):
    """Changes of a model as the address writes them; one that can't be read is told."""

    def read(self, name: str, given: str, instead: Any, allowed: Collection[Any] | None) -> tuple[Any, list[str]]:
        """The changes that can be read, and a plain sentence for each of the others."""
        changes, notices = read_changes(given[: SETTINGS.longest_input])
        return write_changes(changes), notices

    def write(self, value: Any) -> str | None:
        """The changes, where a link can carry them."""
        return value if len(value) <= SETTINGS.longest_link else None


@dataclass(frozen=True)
class Changes:
    """What a page on which a model can be changed keeps in the address, beside its own and what all pages share."""

    edits: str = parameter("", EditsText(), "the changes, in their order", brief=True)


CHANGES = Choices(Changes(), "changed-")


def begin_edits() -> None:
    """Take the changes from the address at a visitor's first run, and after Back or Forward."""
    if CHANGES.asking:
        before = held_edits()
        CHANGES.settle()
        _remember(before)


def held_edits() -> str:
    """The changes that are held now, as the address writes them."""
    return CHANGES.current().edits


def made(text: str, drawn: Drawn, state: State) -> "tuple[Edit, ...]":
    """The changes as edits of the model, in their order; those that don't fit model or text are left out.

    Args:
        text: the changes, as the address writes them.
        drawn: the run without them, with all its streams, of the text as it was typed.
        state: what the pickers say.
    """
    fitting = [change for change in read_changes(text)[0] if not misfit(change, drawn.trace)]
    return tuple(edit for change in fitting for edit in to_edits(change, drawn.trace))


def show_edit_controls(drawn: Drawn, state: State) -> None:
    """A change to choose and add, and the list of those that hold, each of which can be taken back.

    Args:
        drawn: the run without them, with all its streams, of the text as it was typed.
        state: what the pickers say.
    """
    show_notices(CHANGES.notices())
    with st.container(key="edit-pickers", horizontal=True, vertical_alignment="bottom"):
        what = st.selectbox(
            "Change",
            list(KINDS),
            format_func=KINDS.__getitem__,
            key="edit-what",
            width=290,
            persist_state="session",
        )
        stream, layer, head = _place(drawn, state)
        ready = _show_details(what, drawn, stream)
        full = len(read_changes(held_edits())[0]) >= MOST
        named = stream if len(drawn.trace.streams) > 1 or len(state.facts.heads) > 1 else None
        st.button("Add", type="primary", disabled=full or not ready, on_click=_add, args=(drawn, layer, head, named))
        st.button("Undo", disabled=not st.session_state.get(_STEPS), on_click=_undo)
        st.button("Start over", disabled=not held_edits(), on_click=_step, args=("",))
    if what == "draw" and not ready:
        st.caption(plain(_no_pattern_words(drawn, stream)))
    if full:
        st.caption(f"{MOST} changes are the most that can be made at once: remove one to add another.")
    _show_list(drawn)


def _place(drawn: Drawn, state: State) -> tuple[str, int | None, int | None]:
    """The stream, and where in it the change is to act: the chosen head, its layer, or everywhere."""
    stream, (layer, head) = drawn.stream(state.stream), drawn.place(state.stream, state.layer, state.head)
    names = {"head": f"layer {layer}, head {head}", "layer": f"layer {layer}, all heads", "all": "all layers and heads"}
    chosen = st.selectbox(
        "Where", list(names), format_func=names.__getitem__, key="edit-where", width=190, persist_state="session"
    )
    return stream, None if chosen == "all" else layer, head if chosen == "head" else None


def _show_details(what: str, drawn: Drawn, stream: str) -> bool:
    """What else the change needs to know; False where it can't be added yet."""
    if what == "temp":
        st.session_state.setdefault("edit-temperature", 0.5)
        st.number_input(
            "Temperature", LOWEST, HIGHEST, key="edit-temperature", step=0.1, width=130, persist_state="session"
        )
    if what == "block":
        _pick_token("Who may not look", "edit-query", drawn.trace.query_tokens(stream))
        _pick_token("At whom", "edit-key", drawn.trace.key_tokens(stream))
    return what != "draw" or bool(_pattern(drawn, stream))


def _pick_token(label: str, key: str, tokens: "Tokens") -> None:
    # Another text may be shorter, and a label of the last one is no position of this.
    st.session_state[key] = nearest(st.session_state.get(key), range(len(tokens)), 1)
    names = [f"{position} {label}" for position, label in enumerate(tokens.labels)]
    st.selectbox(label, range(len(names)), format_func=names.__getitem__, key=key, width=150, persist_state="session")


def _pattern(drawn: Drawn, stream: str) -> tuple[tuple[int, int], ...]:
    """The cells that were drawn by hand for a text of this length; none where there are none."""
    queries, keys = len(drawn.trace.query_tokens(stream)), len(drawn.trace.key_tokens(stream))
    try:
        cells = from_code(st.session_state.get(PATTERN, ""), queries)
    except ShapeError:
        return ()
    return (
        tuple((int(row), int(column)) for row, column in zip(*cells.nonzero(), strict=True)) if queries == keys else ()
    )


def _no_pattern_words(drawn: Drawn, stream: str) -> str:
    queries, keys = len(drawn.trace.query_tokens(stream)), len(drawn.trace.key_tokens(stream))
    if queries != keys:
        return f"A pattern is drawn on a square, and this attention has {queries} rows and {keys} columns."
    return (
        f"Nothing is drawn for the {queries} tokens of this text. Draw the cells on the Heads page, where Search by "
        "says Pattern. Each row that you draw then looks at its cells alike; a row without any stays what it is."
    )


def _add(drawn: Drawn, layer: int | None, head: int | None, stream: str | None) -> None:
    """What the widgets hold at the moment of the click, as the last change."""
    held = st.session_state
    change = Change(held["edit-what"], layer, head, stream)
    if change.what == "temp":
        change = Change("temp", layer, head, stream, value=round(float(held["edit-temperature"]), 4))
    if change.what == "block":
        change = Change("block", layer, head, stream, cells=((int(held["edit-query"]), int(held["edit-key"])),))
    if change.what == "draw":
        cells = _pattern(drawn, stream or drawn.trace.streams[0])
        if not cells:
            return
        change = Change("draw", layer, head, stream, cells=cells)
    _step(write_changes([*read_changes(held_edits())[0], change]))


def _remove(number: int) -> None:
    changes = read_changes(held_edits())[0]
    _step(write_changes([*changes[:number], *changes[number + 1 :]]))


def _step(text: str) -> None:
    """Hold other changes, and remember those that held until now."""
    before = held_edits()
    CHANGES.set(edits=text)
    _remember(before)


def _remember(before: str) -> None:
    """What held before the last step is one back, where that changed anything."""
    if before != held_edits():
        st.session_state[_STEPS] = [*st.session_state.get(_STEPS, []), before][-_LONGEST_HISTORY:]


def _undo() -> None:
    """Go back to what held before the last step, a removal or a new start included."""
    if steps := st.session_state.get(_STEPS):
        st.session_state[_STEPS] = steps[:-1]
        CHANGES.set(edits=steps[-1])


def _show_list(drawn: Drawn) -> None:
    """The changes in words and in their order; those that can't be made here with the reason."""
    changes = read_changes(held_edits())[0]
    if not changes:
        return
    with st.container(key="edit-list", gap=None):
        for number, change in enumerate(changes):
            why = misfit(change, drawn.trace)
            said = f"{number + 1}. {describe(change, drawn.trace)}" + (f" – left out here: {why}" if why else "")
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(plain(said), width="content")
                st.button("Remove", key=f"edit-remove-{number}", type="tertiary", on_click=_remove, args=(number,))
    if len(held_edits()) > SETTINGS.longest_link:
        st.caption("These changes are too long for a link, which leaves them out.")
