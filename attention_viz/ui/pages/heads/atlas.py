"""The atlas of all heads inside a Streamlit page: a browser component of its own."""

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st
from streamlit.components import v2 as components

from attention_viz.explorer import atlas_source
from attention_viz.ui.parts.explorer import show_channel

__all__ = ["HEIGHT", "chosen_head", "show_atlas"]

HEIGHT = 420

_KEY = "heads-grid"

# Registered once, when the module is imported: a component's name stands for its code from then on.
_html, _css, _js = atlas_source(HEIGHT)
_atlas = components.component("attention_viz_atlas", html=_html, css=_css, js=_js)


def chosen_head(name: str) -> tuple[int, int] | None:
    """The head that the reader chose in the atlas ("choice") or wants to open ("open"); None for neither.

    Anything can come from a browser: what is no head at all counts as nothing.
    """
    choice: Any = getattr(st.session_state.get(_KEY), name, None)
    if not isinstance(choice, Mapping):
        return None
    layer, head = (_whole(choice, part) for part in ("layer", "head"))
    return None if layer is None or head is None else (layer, head)


def show_atlas(
    payload: bytes,
    chosen: tuple[int, int],
    metric: str,
    *,
    patterns: bool,
    address: Mapping[str, str],
    on_choice: Callable[[], None],
    on_open: Callable[[], None],
) -> None:
    """Show all heads, and hear of the reader's choice.

    Args:
        payload: from `attention_viz.explorer.atlas_payload.pack_atlas`; sent to the browser only when it changes.
        chosen: layer and head that the page shows now.
        metric: what colours the heads, a name in `METRICS`.
        patterns: whether each head is shown as its pattern, not as a colour.
        address: the parameters of the same screen on another page, for the link to Explore.
        on_choice: called, before the page runs again, when the reader chose a head, which is `chosen_head("choice")`.
        on_open: likewise, when a head is to be opened in Explore; `chosen_head("open")`.
    """
    _atlas(key=_KEY, data=payload, height="content", on_choice_change=on_choice, on_open_change=on_open)
    choice = getattr(st.session_state.get(_KEY), "choice", None)
    seen = (_whole(choice, "serial") if isinstance(choice, Mapping) else None) or 0
    layer, head = chosen
    show_channel(
        _KEY,
        layer=layer,
        head=head,
        seen=seen,
        metric=metric,
        patterns=patterns,
        address=dict(address),
    )


def _whole(choice: Mapping[str, Any], name: str) -> int | None:
    """A whole number, 0 or more, as our script sends it."""
    number = choice.get(name)
    return number if type(number) is int and 0 <= number < 1_000_000 else None
