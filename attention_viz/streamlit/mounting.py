"""Components registered for a page without the app's other pages, and the reader's choice in them."""

import hashlib
import re
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st
from streamlit.components import v2 as components

from attention_viz.explorer.source import channel_source, embedded, in_column, packet_source, rest_source
from attention_viz.explorer.widgets.head_selection import Selection, heard, merged, moved_to

if TYPE_CHECKING:
    from attention_viz.trace.trace import Trace

Wanted = Selection | Mapping[str, Any] | None
# No serial number of a browser's is larger.
_LARGEST = 1_000_000_000


def register(name: str, source: tuple[str, str, str]) -> Callable[..., Any]:
    """Register a component, marked so that links to the app's other pages don't show."""
    html, css, js = embedded(source)
    # In the app a component is as wide as the window; elsewhere it may be in a column.
    css = in_column(css)
    return components.component(f"attention_viz_embedded_{name}", html=html, css=css, js=js)


def _unseen(name: str, source: tuple[str, str, str]) -> Callable[..., Any]:
    html, css, js = source
    return components.component(f"attention_viz_embedded_{name}", html=html, css=css, js=js)


_channel = _unseen("channel", channel_source())
_packet = _unseen("packet", packet_source())
_rest = _unseen("rest", rest_source())


def name_of(key: str) -> str:
    """Return a key that is the same as a class name, which the browser finds a component by."""
    if re.fullmatch(r"[\w-]+", key, re.ASCII):
        return key
    # Two keys may be one class name: a checksum sets them apart.
    return f"key-{hashlib.blake2b(key.encode(), digest_size=8).hexdigest()}"


@dataclass
class _Followed:
    """A component's selection, the name of its numbers, the last choice's number, and the last `selection=`."""

    of: Hashable = None
    serial: int = 0
    wanted: Wanted = None
    shown: Selection | None = None


def follow(
    name: str,
    trace: "Trace",
    of: Hashable,
    message: Mapping[str, Any] | None,
    wanted: Wanted,
    opening: Callable[[], Selection],
    *,
    stays: bool = True,
) -> tuple[Selection, int]:
    """Return the choice to show, the reader's or the program's, whichever is newer, and the last choice's number.

    Args:
        of: names the trace's numbers, so that an equal trace of the next run counts as the same.
        message: the browser's last choice.
        wanted: the program's choice, which counts when it changes.
        stays: whether other numbers keep the head.
    """
    state: _Followed = st.session_state.setdefault(f"attention_viz {name}", _Followed())
    serial = serial_of(message)
    if state.shown is None:
        shown = opening()
    elif state.of != of:
        shown = moved_to(trace, state.shown, opening) if stays else opening()
    else:
        shown = heard(trace, state.shown, message) if serial > state.serial else state.shown
    if wanted is not None and (wanted != state.wanted or state.shown is None):
        shown = merged(trace, shown, wanted)
    state.of, state.serial, state.shown = of, serial, shown
    state.wanted = dict(wanted) if isinstance(wanted, Mapping) else wanted
    return shown, serial


def serial_of(message: Mapping[str, Any] | None) -> int:
    """Return a choice's number; 0 before the first, or if a browser sent none."""
    serial = message.get("serial") if isinstance(message, Mapping) else None
    return serial if type(serial) is int and 0 <= serial < _LARGEST else 0


def sent(result: Any, name: str) -> Mapping[str, Any] | None:
    """Return what a mounted component sent; None for nothing."""
    found = getattr(result, name, None)
    return found if isinstance(found, Mapping) else None


def stored(name: str, part: str) -> Mapping[str, Any] | None:
    """Return what a component sent, before it is mounted in this run; None for nothing."""
    return sent(st.session_state.get(name), part)


def picked(name: str, sent_now: object, allowed: Collection[str]) -> str | None:
    """Return the name picked last, or None; any other text of a browser unpicks it."""
    key = f"attention_viz {name} picked"
    if isinstance(sent_now, str):
        st.session_state[key] = sent_now if sent_now in allowed else None
    return st.session_state.get(key)


def tell(name: str, shown: Selection, about: str = "channel", /, **message: object) -> None:
    """Send a component what to show, without its data again."""
    chosen = {one: getattr(shown, one) for one in ("stream", "layer", "head", "query", "key")}
    _channel(key=f"{name}-{about}", data={"explorer": name, **chosen, **message})


def hand_head(name: str, packed: bytes) -> None:
    """Send one head of a long text."""
    _packet(key=name, data=packed)


def hand_rest(name: str, packed: bytes) -> None:
    """Send the rest of a layer."""
    _rest(key=name, data=packed)


def nothing() -> None:
    """Do nothing: the next run answers."""
