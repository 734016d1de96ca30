"""What wrote a number, as a browser component: what it is told, and the head that the reader chose in it."""

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
    """Return the head that the reader chose; None for none. A browser may send anything."""
    layer, head = (whole(sent(_KEY, "choice"), part) for part in ("layer", "head"))
    return None if layer is None or head is None else (layer, head)


def asked_number() -> dict[str, Any]:
    """What the reader asked to have opened, just now: `pair` of a layer, a head, a query and a key, or a `side`.

    A browser may ask for anything: what is neither counts as nothing.
    """
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
    """Show what wrote a number, and hear of the reader's choice.

    Args:
        packed: from `pack_why`; sent to the browser only when it changes.
        on_choice: called, before the page runs again, when the reader chose a head; `chosen_head` tells which.
        on_open: called, before the page runs again, when another number was asked for; `asked_number` tells which.
    """
    _board(key=_KEY, data=packed, height="content", on_choice_change=on_choice, on_open_change=on_open)
    show_channel(_KEY, layer=place[0], head=place[1], seen=_seen(), by=by)


def tell_silenced(name: str, place: tuple[int, int], after: Mapping[tuple[int, int], float], which: str) -> None:
    """Tell what a number is without each of some heads."""
    silenced = [[layer, head, number] for (layer, head), number in after.items()]
    message = {"about": "silenced", "of": name, "silenced": silenced}
    show_channel(_KEY, f"silenced-{which}", layer=place[0], head=place[1], seen=_seen(), **message)


def tell_put(name: str, place: tuple[int, int], other: str, after: Mapping[tuple[int, int], float], which: str) -> None:
    """Tell what a number is with each head's output from another text."""
    put = [[layer, head, number] for (layer, head), number in after.items()]
    message = {"about": "put", "of": name, "other": other, "put": put}
    show_channel(_KEY, f"put-{which}", layer=place[0], head=place[1], seen=_seen(), **message)


def tell_writes(name: str, place: tuple[int, int], words: Words) -> None:
    """Tell which words a head writes for and against."""
    message = {"about": "writes", "of": name, "writes": [list(one) for one in words]}
    show_channel(_KEY, "writes", layer=place[0], head=place[1], seen=_seen(), **message)


def _seen() -> int:
    return whole(sent(_KEY, "choice"), "serial") or 0
