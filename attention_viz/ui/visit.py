"""A visit: what a person chose, the files they brought, and what their pages remember; the one state of a session."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from attention_viz.ui.address.codec import ChoiceT
from attention_viz.ui.selection import SHARED, Event, Filled, Group, Picked, Selection, answer, update

if TYPE_CHECKING:
    from attention_viz.serving.runs import Run
    from attention_viz.serving.uploads import Upload
    from attention_viz.ui.address.state import State

_KEY = "visit"

_Memory = TypeVar("_Memory")


@dataclass
class Visit:
    """What belongs to one person in one tab, as long as the tab is open.

    Attributes:
        file: the trace of the file that was opened last.
        asked: parameters that one page asks of the next, until that is shown.
        brought: the uploads, by kind; nothing else keeps them alive.
        memories: what parts of the app remember, each in a class of its own.
    """

    selection: Selection = field(default_factory=Selection)
    file: "Run | None" = None
    asked: dict[str, str] = field(default_factory=dict[str, str])
    brought: "dict[str, Upload]" = field(default_factory=dict[str, "Upload"])
    memories: dict[type, Any] = field(default_factory=dict[type, Any])


def here() -> Visit:
    """Return the visit of whoever sees this page."""
    if _KEY not in st.session_state:
        st.session_state[_KEY] = Visit()
    return st.session_state[_KEY]


def send(event: Event) -> None:
    """Apply an event to what is chosen, before the page runs or while it does."""
    now = here()
    now.selection = update(now.selection, event)
    if not now.selection.file:
        now.file = None


def pick(group: Group[Any], **values: Any) -> None:
    """Set values that a person chose."""
    send(Picked(group, values))


def fill(group: Group[Any], notices: tuple[str, ...] = (), **values: Any) -> None:
    """Set values that nobody chose."""
    send(Filled(group, values, notices))


def chosen(group: Group[ChoiceT]) -> ChoiceT:
    """Return a group's values."""
    return here().selection.of(group)


def shared() -> "State":
    """Return the values that all pages share."""
    return chosen(SHARED)


def settle(
    group: Group[ChoiceT], known: object = None, *, default: ChoiceT | None = None, only: Collection[str] | None = None
) -> ChoiceT:
    """Answer what the URL asks for, bring all values within their options, and return them; see `answer`."""
    now = here()
    now.selection = answer(now.selection, group, known, default=default, only=only)
    return now.selection.of(group)


def is_unread(group: Group[Any]) -> bool:
    """Return whether the URL, or a part of it, is still to be answered for a group."""
    return bool(here().selection.part(group).unread)


def pending(group: Group[Any], name: str) -> str | None:
    """Return the URL's text for a parameter, as long as it isn't answered."""
    return here().selection.part(group).pending.get(name)


def notices(group: Group[Any]) -> tuple[str, ...]:
    """Return a sentence for each part of the URL that is impossible, until a person chooses something else."""
    return here().selection.part(group).notices


def memory(kind: type[_Memory]) -> _Memory:
    """Return what a part of the app remembers in this visit: an instance of its class, made when first asked for."""
    memories = here().memories
    if kind not in memories:
        memories[kind] = kind()
    return memories[kind]


def run_again() -> NoReturn:
    """Run the page again from its beginning: something that its controls show, or depend on, is another by now."""
    st.rerun()


def went_through_history() -> bool:
    """Return whether the page runs because of Back or Forward: then the URL says what is chosen."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation
