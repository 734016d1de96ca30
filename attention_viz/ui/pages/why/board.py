"""A number's writers, as a browser component with choosable heads."""

from collections.abc import Callable, Mapping
from typing import Any

from streamlit.components import v2 as components

from attention_viz.explorer import why_source
from attention_viz.serving.why import Words
from attention_viz.ui.pages.why.choice import SIDES
from attention_viz.ui.parts.explorer import show_channel
from attention_viz.ui.widgets import sent, whole

__all__ = ["asked_number", "chosen_head", "show_why", "tell_put", "tell_silenced", "tell_writes"]

_KEY = "why-board"

# Registered once, when the module is imported: a component's name stands for its code from then on.
_html, _css, _js = why_source()
_board = components.component("attention_viz_why", html=_html, css=_css, js=_js)


def chosen_head() -> tuple[int, int] | None:
    """Return the chosen head; None for none, or invalid browser data."""
    layer, head = (whole(sent(_KEY, "choice"), part) for part in ("layer", "head"))
    return None if layer is None or head is None else (layer, head)


def asked_number() -> dict[str, Any]:
    """Return the number just opened: `pair` (layer, head, query, key) or `side`; ignore invalid browser data."""
    asked = sent(_KEY, "open")
    if not isinstance(asked, Mapping):
        return {}
    pair = asked.get("pair")
    if isinstance(pair, list) and len(pair) == 4 and all(type(one) is int and 0 <= one < 1_000_000 for one in pair):
        return {"pair": tuple(pair)}
    return {"side": asked["side"]} if asked.get("side") in SIDES else {}


def show_why(
    packed: bytes, place: tuple[int, int], by: str, on_choice: Callable[[], None], on_open: Callable[[], None]
) -> None:
    """Show a number's writers, and receive choices before the rerun.

    Args:
        packed: from `pack_why`; sent only when it changes.
    """
    _board(key=_KEY, data=packed, height="content", on_choice_change=on_choice, on_open_change=on_open)
    show_channel(_KEY, layer=place[0], head=place[1], seen=_seen(), by=by)


def tell_silenced(name: str, place: tuple[int, int], after: Mapping[tuple[int, int], float], which: str) -> None:
    """Send the number without each of some heads."""
    silenced = [[layer, head, number] for (layer, head), number in after.items()]
    message = {"about": "silenced", "of": name, "silenced": silenced}
    show_channel(_KEY, f"silenced-{which}", layer=place[0], head=place[1], seen=_seen(), **message)


def tell_put(name: str, place: tuple[int, int], other: str, after: Mapping[tuple[int, int], float], which: str) -> None:
    """Send the number with each head patched."""
    put = [[layer, head, number] for (layer, head), number in after.items()]
    message = {"about": "put", "of": name, "other": other, "put": put}
    show_channel(_KEY, f"put-{which}", layer=place[0], head=place[1], seen=_seen(), **message)


def tell_writes(name: str, place: tuple[int, int], words: Words) -> None:
    """Send a head's favoured and disfavoured words."""
    message = {"about": "writes", "of": name, "writes": [list(one) for one in words]}
    show_channel(_KEY, "writes", layer=place[0], head=place[1], seen=_seen(), **message)


def _seen() -> int:
    return whole(sent(_KEY, "choice"), "serial") or 0
