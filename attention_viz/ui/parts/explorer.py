"""The explorer inside a Streamlit page."""

import contextlib
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from attention_viz.errors import AttentionVizError
from attention_viz.explorer import beginning_source, channel_source, component_source, packet_source
from attention_viz.serving.runs import Run
from attention_viz.ui import visit, widgets
from attention_viz.ui.packing import channel_of, head_of, long_id_of, maps_in, payload_of, ranking_of
from attention_viz.ui.parts.markdown import as_sentence

_KEY = "explorer"

_explorer = widgets.component("explorer", *component_source())
_channel = widgets.component("channel", *channel_source())
_beginning = widgets.component("beginning", *beginning_source())
_packet = widgets.component("packet", *packet_source())


def chosen() -> dict[str, Any] | None:
    """Return stream, layer, head and serial number; None before a choice."""
    return widgets.sent(_KEY, "choice")


def asked_page() -> str | None:
    """Return the page just requested in the explorer."""
    return widgets.sent(_KEY, "open")


@dataclass
class _Handed:
    """The screen's content, held weakly; the last choice's number; its slot."""

    shown: Callable[[], Run | None] = lambda: None
    serial: int | None = None
    place: "HeadPlace | None" = None


class HeadPlace:
    """The slot that sends a long text's head, maps first if just chosen.

    The head's numbers, some megabytes, come last, because others wait behind.
    """

    def __init__(self) -> None:
        """Hold the slot, and send a chosen head's maps."""
        with st.container(key="handed"):
            maps, self._place = st.empty(), st.empty()
        handed = visit.memory(_Handed)
        choice, shown = chosen(), handed.shown()
        if shown is None or choice is None or choice["serial"] == handed.serial:
            return
        with contextlib.suppress(AttentionVizError):  # shown in the head's slot
            packed = head_of(shown, choice["stream"], int(choice["layer"]), int(choice["head"]))
            if packed is not None:
                with maps:
                    _beginning(key=f"{_KEY}-beginning", data=maps_in(packed))

    def fill(self, run: Run, stream: str, layer: int, head: int) -> None:
        """Send a head."""
        visit.memory(_Handed).serial = (chosen() or {}).get("serial")
        packed = head_of(run, stream, layer, head)
        if packed is not None:
            with self._place:
                _packet(key=f"{_KEY}-packet", data=packed)


def reserve_heads(*, first: bool) -> None:
    """Reserve a long text's slot: first on a page or beside the explorer."""
    visit.memory(_Handed).place = HeadPlace() if first else None


def show_explorer(
    shown: bytes | Run,
    stream: str,
    layer: int,
    head: int,
    on_choice: Callable[[], None],
    *,
    pair: tuple[int | None, int | None] = (None, None),
    mixing: Mapping[str, bool] | None = None,
) -> None:
    """Show a packed trace, sent only when it changes.

    Args:
        pair: by default the head's own.
        mixing: "arrived" and "single", the view of a layer without a softmax; by default the one on the screen.
    """
    payload = payload_of(shown) if isinstance(shown, Run) else shown
    _explorer(key=_KEY, data=payload, on_choice_change=on_choice, on_pair_change=_nothing, on_open_change=_nothing)
    head_and_pair = {"stream": stream, "layer": layer, "head": head, "query": pair[0], "key": pair[1]}
    message = {**head_and_pair, **(mixing or {}), "seen": (chosen() or {}).get("serial", 0)}
    show_channel(_KEY, **message)
    if isinstance(shown, Run) and (channel := channel_of(shown, stream, layer, head)) is not None:
        _packet(key=f"{_KEY}-channel-packet", data=channel)
    if isinstance(shown, Run) and long_id_of(shown) is not None:
        visit.memory(_Handed).shown = weakref.ref(shown)
        try:
            (visit.memory(_Handed).place or HeadPlace()).fill(shown, stream, layer, head)
        except AttentionVizError as error:
            st.warning(as_sentence(str(error)))
        if (ranking := ranking_of(shown, widgets.sent(_KEY, "pair"))) is not None:
            show_channel(_KEY, "ranking", **message, ranking=ranking)


def _nothing() -> None:
    """Do nothing: the next run answers."""


def show_channel(key: str, name: str = "channel", /, **message: object) -> None:
    """Update a component's view without sending its data again."""
    _channel(key=f"{key}-{name}", data={"explorer": key, **message})
