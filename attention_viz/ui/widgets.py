"""Streamlit's widgets as displays of the selection, set at every run; they send picked values.

A widget's own state is never the truth. Streamlit drops it when the widget isn't drawn, and the browser holds a choice
by its label, which may belong to another option by now.
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import streamlit as st
from streamlit.components import v2 as components

from attention_viz.ui.address.kinds import nearest
from attention_viz.ui.selection import Group
from attention_viz.ui.visit import chosen, memory, pick

# No position, layer or head that a browser sends is larger.
_LARGEST = 1_000_000
# In pixels: a picker without its words, and a letter of them, wide enough for most fonts.
_PICKER, _LETTER = 58, 7.6


def show(
    widget: Callable[..., Any],
    label: str,
    *args: Any,
    of: Group[Any],
    name: str,
    key: str = "",
    options: Collection[Any] | None = None,
    then: Callable[[], object] | None = None,
    **look: Any,
) -> None:
    """Draw a widget for a parameter."""
    key = key or of.key(name)
    kind = of.parameters()[name].kind
    preset(key, kind.to_widget(getattr(chosen(of), name)))
    lists = () if options is None else (list(options),)
    if isinstance(options, Mapping):
        look["format_func"] = options.__getitem__
    widget(label, *lists, *args, key=key, on_change=_take, args=(of, name, key, options, then), **look)


def fitting(words: str) -> int:
    """Return the width of a picker that shows these words whole, in pixels."""
    return _PICKER + math.ceil(_LETTER * len(words))


def show_switch(label: str, of: Group[Any], name: str, key: str, **look: Any) -> None:
    """Draw a switch for a parameter of two words, off first."""
    off, on = _words(of, name)
    preset(key, getattr(chosen(of), name) == on)

    def take() -> None:
        pick(of, **{name: on if content(key) else off})

    st.toggle(label, key=key, on_change=take, **look)


def _words(of: Group[Any], name: str) -> tuple[str, str]:
    words = {*(of.parameters()[name].kind.allowed(None, None) or ())}
    off = next(one for one in ("off", "no") if one in words)
    return off, next(one for one in ("on", "yes") if one in words)


def _take(
    of: Group[Any], name: str, key: str, options: Collection[Any] | None, then: Callable[[], object] | None
) -> None:
    """Send the picked value; ignore an outdated label in its place."""
    parameter = of.parameters()[name]
    held = content(key)
    value = parameter.kind.from_widget(held)
    wanted = parameter.kind.holds if parameter.default is None else type(parameter.default)
    if isinstance(value, str) and options is None:
        value = value.rstrip("\r\n")  # a line break at the end of a text would reach the URL
    nothing = value is None and parameter.default is None and parameter.kind.to_widget(None) == held
    known = options is None or nothing or any(type(one) is type(held) and one == held for one in options)
    if known and (isinstance(value, wanted) or nothing):
        pick(of, **{name: value})
        if then is not None:
            then()


@dataclass
class Drafts:
    """Widgets' values before they are a choice, such as an unadded change."""

    values: dict[str, Any] = field(default_factory=dict[str, Any])


def draft(
    widget: Callable[..., Any],
    label: str,
    *args: Any,
    key: str,
    default: Any,
    options: Collection[Any] = (),
    **look: Any,
) -> Any:
    """Draw a widget and return its value, which isn't a choice yet; it outlives the page."""
    values = memory(Drafts).values
    value = values.setdefault(key, default)
    if options:
        values[key] = nearest(value, options, default)
    if isinstance(options, Mapping):
        look["format_func"] = options.__getitem__
    preset(key, values[key])

    def take() -> None:
        values[key] = content(key)

    widget(label, *([list(options)] if options else []), *args, key=key, on_change=take, **look)
    return values[key]


def drafted(key: str, default: Any = None) -> Any:
    """Return a `draft` widget's value."""
    return memory(Drafts).values.get(key, default)


def preset(key: str, value: Any) -> None:
    """Set a widget's value before it is drawn, even if it seems to hold it.

    Its label may belong to another option by now, and on another page Streamlit is about to forget its value.
    """
    st.session_state[key] = value


def content(key: str, default: Any = None) -> Any:
    """Return a widget's value; the default if it isn't there."""
    return st.session_state.get(key, default)


def sent(key: str, name: str) -> Any:
    """Return a component's value, unchecked; None for nothing."""
    return getattr(st.session_state.get(key), name, None)


def component(name: str, html: str | None = None, css: str | None = None, js: str | None = None) -> Callable[..., Any]:
    """Register a component of ours, once, at its module's import: its name then stands for its code."""
    return components.component(f"attention_viz_{name}", html=html, css=css, js=js)


def serial(key: str) -> int:
    """Return a component's last serial number; 0 before a choice."""
    return whole(sent(key, "choice"), "serial") or 0


def sent_pair(key: str, name: str, parts: tuple[str, str] = ("layer", "head")) -> tuple[int, int] | None:
    """Return two whole numbers from a component; None if invalid."""
    message = sent(key, name)
    first, second = (whole(message, part) for part in parts)
    return None if first is None or second is None else (first, second)


def whole(message: Any, name: str) -> int | None:
    """Return a component's whole number, 0 or more, else None."""
    number = message.get(name) if isinstance(message, Mapping) else None
    return number if type(number) is int and 0 <= number < _LARGEST else None


def clicked_point(key: str) -> Any:
    """Return the clicked Plotly point's numbers; None for none."""
    points = st.session_state[key]["selection"]["points"]
    return points[0].get("customdata") if points else None


def picked_row(key: str) -> int | None:
    """Return the ticked table row; None for none."""
    rows = st.session_state[key]["selection"]["rows"]
    return rows[0] if rows else None


@dataclass
class _Renewed:
    """Each widget's number of replacements."""

    counts: dict[str, int] = field(default_factory=dict[str, int])


def fresh(name: str) -> str:
    """Return a key that is new after each `renew`, which closes a popover and empties an upload field."""
    return f"{name}-{memory(_Renewed).counts.get(name, 0)}"


def renew(name: str) -> None:
    """Replace that widget at the next run."""
    counts = memory(_Renewed).counts
    counts[name] = counts.get(name, 0) + 1
