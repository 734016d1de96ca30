"""The explorer inside a Streamlit page."""

from collections.abc import Callable
from typing import Any

import streamlit as st
from streamlit.components import v2 as components

from attention_viz.explorer import channel_source, component_source

__all__ = ["chosen", "show_channel", "show_explorer"]

_KEY = "explorer"

# Registered once, when the module is imported: a component's name stands for its code from then on.
_html, _css, _js = component_source()
_explorer = components.component("attention_viz_explorer", html=_html, css=_css, js=_js)
_html, _css, _js = channel_source()
_channel = components.component("attention_viz_channel", html=_html, css=_css, js=_js)


def chosen() -> dict[str, Any] | None:
    """What the reader chose in the explorer: stream, layer, head and a serial number; None before any choice."""
    return getattr(st.session_state.get(_KEY), "choice", None)


def show_explorer(payload: bytes, stream: str, layer: int, head: int, on_choice: Callable[[], None]) -> None:
    """Show a packed trace at one head, and hear of the reader's choice.

    Args:
        payload: from `attention_viz.explorer.pack`; sent to the browser only when it changes.
        stream: the stream that the page shows now.
        layer: the layer that the page shows now.
        head: the head that the page shows now.
        on_choice: called, before the page runs again, when the reader chose another head; `chosen` tells which.
    """
    _explorer(key=_KEY, data=payload, on_choice_change=on_choice)
    show_channel(_KEY, stream=stream, layer=layer, head=head, seen=(chosen() or {}).get("serial", 0))


def show_channel(key: str, **message: object) -> None:
    """Tell a component of ours what the page shows, apart from its data, which would be sent whole again.

    Args:
        key: of the component.
        message: what it is told, `seen` among it: the serial number of the reader's last choice that the page heard of.
    """
    _channel(key=f"{key}-channel", data={"explorer": key, **message})
