"""What wrote a number, as a browser component: what it is told, and the head that the reader chose in it."""

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st
from streamlit.components import v2 as components

from attention_viz.explorer import why_source
from attention_viz.ui.parts.explorer import show_channel

__all__ = ["chosen_head", "show_why", "tell_silenced"]

_KEY = "why-board"

# Registered once, when the module is imported: a component's name stands for its code from then on.
_html, _css, _js = why_source()
_board = components.component("attention_viz_why", html=_html, css=_css, js=_js)


def chosen_head() -> tuple[int, int] | None:
    """The head that the reader chose; None for none. What is no head at all counts as nothing."""
    choice: Any = getattr(st.session_state.get(_KEY), "choice", None)
    if not isinstance(choice, Mapping):
        return None
    layer, head = (_whole(choice, part) for part in ("layer", "head"))
    return None if layer is None or head is None else (layer, head)


def show_why(packed: bytes, place: tuple[int, int], on_choice: Callable[[], None]) -> None:
    """Show what wrote a number, and hear of the reader's choice.

    Args:
        packed: from `pack_why`; sent to the browser only when it changes.
        place: layer and head that the page shows.
        on_choice: called, before the page runs again, when the reader chose a head; `chosen_head` tells which.
    """
    _board(key=_KEY, data=packed, height="content", on_choice_change=on_choice)
    show_channel(_KEY, layer=place[0], head=place[1], seen=_seen())


def tell_silenced(place: tuple[int, int], after: Mapping[tuple[int, int], float]) -> None:
    """Tell what the number is without each of some heads.

    Args:
        place: layer and head that the page shows.
        after: by layer and head.
    """
    silenced = [[layer, head, number] for (layer, head), number in after.items()]
    show_channel(_KEY, "silenced", layer=place[0], head=place[1], seen=_seen(), silenced=silenced)


def _seen() -> int:
    choice = getattr(st.session_state.get(_KEY), "choice", None)
    return (_whole(choice, "serial") if isinstance(choice, Mapping) else None) or 0


def _whole(choice: Mapping[str, Any], name: str) -> int | None:
    """A whole number, 0 or more, as our script sends it."""
    number = choice.get(name)
    return number if type(number) is int and 0 <= number < 1_000_000 else None
