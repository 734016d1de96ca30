"""A visit, the one state of a session."""

import threading
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
    """A person's state in one tab, as long as it is open.

    Attributes:
        asked: parameters that one page sets on the next, until that is shown.
        brought: the uploads, by kind; nothing else keeps them alive.
        lock: held while the selection is replaced: a run that was overtaken may still be at work in another thread.
    """

    selection: Selection = field(default_factory=Selection)
    file: "Run | None" = None
    asked: dict[str, str] = field(default_factory=dict[str, str])
    brought: "dict[str, Upload]" = field(default_factory=dict[str, "Upload"])
    memories: dict[type, Any] = field(default_factory=dict[type, Any])
    lock: Any = field(default_factory=threading.RLock, compare=False)


def here() -> Visit:
    """Return the current visitor's visit."""
    if _KEY not in st.session_state:
        st.session_state[_KEY] = Visit()
    return st.session_state[_KEY]


def send(event: Event) -> None:
    """Apply an event to the selection, before the page runs or during it."""
    now = here()
    with now.lock:
        now.selection = update(now.selection, event)
    if not now.selection.file:
        now.file = None


def replace(before: Selection, after: Selection) -> bool:
    """Replace a selection unless a person has chosen since; return whether it was replaced."""
    now = here()
    with now.lock:
        if now.selection is not before:
            return False
        now.selection = after
        return True


def pick(group: Group[Any], **values: Any) -> None:
    """Set a person's choices."""
    send(Picked(group, values))


def fill(group: Group[Any], notices: tuple[str, ...] = (), **values: Any) -> None:
    """Set values that no person chose."""
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
    """Answer the URL, and return the values within their options; see `answer`."""
    now = here()
    with now.lock:
        now.selection = answer(now.selection, group, known, default=default, only=only)
    return now.selection.of(group)


def is_unread(group: Group[Any]) -> bool:
    """Return whether a group's URL parameters are unanswered, even in part."""
    return bool(here().selection.part(group).unread)


def pending(group: Group[Any], name: str) -> str | None:
    """Return a parameter's URL text until it is answered."""
    return here().selection.part(group).pending.get(name)


def notices(group: Group[Any]) -> tuple[str, ...]:
    """Return a sentence for each impossible part of the URL, until a choice."""
    return here().selection.part(group).notices


def memory(kind: type[_Memory]) -> _Memory:
    """Return this visit's instance of a class, made at first use."""
    memories = here().memories
    if kind not in memories:
        memories[kind] = kind()
    return memories[kind]


def run_again() -> NoReturn:
    """Rerun the page, because its controls are outdated."""
    st.rerun()


def went_through_history() -> bool:
    """Return whether Back or Forward reran the page: then the URL decides the selection."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation
