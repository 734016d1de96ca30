"""The chosen pair's pipeline through a head, as a browser component."""

from collections.abc import Callable

from streamlit.components import v2 as components

from attention_viz.explorer import pipeline_source
from attention_viz.explorer.pipeline_payload import pack_pipeline
from attention_viz.steps.head import OpenHead
from attention_viz.ui import widgets
from attention_viz.ui.parts.explorer import show_channel

__all__ = ["asked_step", "chosen_pair", "show_pipeline"]

_KEY = "steps-pipeline"

# Registered once, when the module is imported: a component's name stands for its code from then on.
_html, _css, _js = pipeline_source()
_pipeline = components.component("attention_viz_pipeline", html=_html, css=_css, js=_js)


def chosen_pair() -> tuple[int, int] | None:
    """Return the pipeline's chosen query and key; None for none, or invalid browser data."""
    choice = widgets.sent(_KEY, "choice")
    query, key = (widgets.whole(choice, side) for side in ("query", "key"))
    return None if query is None or key is None else (query, key)


def asked_step() -> str | None:
    """Return the step just opened."""
    asked = widgets.sent(_KEY, "open")
    return asked if isinstance(asked, str) else None


def show_pipeline(
    opened: OpenHead,
    pair: tuple[int, int],
    terms: int,
    *,
    on_choice: Callable[[], None],
    on_open: Callable[[], None],
) -> None:
    """Show a head's pipeline for a pair, and receive choices before the rerun."""
    packed = pack_pipeline(opened, *pair)
    _pipeline(key=_KEY, data=packed, height="content", on_choice_change=on_choice, on_open_change=on_open)
    seen = widgets.whole(widgets.sent(_KEY, "choice"), "serial") or 0
    head = {"layer": opened.layer, "head": opened.head, "stream": opened.stream}
    show_channel(_KEY, **head, query=pair[0], key=pair[1], seen=seen, terms=terms)
