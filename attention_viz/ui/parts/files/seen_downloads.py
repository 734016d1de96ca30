"""More downloads of pictures and sounds: overlays, and words with times."""

import functools
from collections.abc import Callable, Mapping

import streamlit as st

from attention_viz.analysis.speech import to_webvtt
from attention_viz.analysis.word_times import said_words, word_times
from attention_viz.errors import TraceError
from attention_viz.explorer import explore
from attention_viz.serving.run import Run
from attention_viz.trace.trace import Trace
from attention_viz.ui.address import State
from attention_viz.ui.parts.exports import csv_bytes, model_part
from attention_viz.ui.parts.selection import pair_of
from attention_viz.views.export.browsers import at_hand
from attention_viz.views.export.save import printed
from attention_viz.views.export.svg import overlay_svg

__all__ = ["instead_of_page", "show_seen_downloads"]

_MEDIA = {"svg": "image/svg+xml", "png": "image/png", "pdf": "application/pdf", "csv": "text/csv", "vtt": "text/vtt"}

_OVERLAYS = {
    "svg": "Picture with overlay (SVG)",
    "png": "Picture with overlay (PNG)",
    "pdf": "Picture with overlay (PDF)",
}


def show_seen_downloads(run: Run, state: State) -> None:
    """Draw their buttons above every head's; none for a text."""
    trace = run.trace
    if trace.seen.picture is not None:
        layer, head = run.place(state.stream, state.layer, state.head)
        position = pair_of(run, state)[0]
        document = functools.partial(overlay_svg, trace, layer, head, position)
        name = f"overlay_{model_part(trace)}_layer{layer}_head{head}"
        for form, label in _OVERLAYS.items():
            # All but the first are drawn by a browser.
            if form == "svg" or at_hand() is not None:
                _button(label, name, form, functools.partial(_drawn, document, form))
    elif _has_words(trace):
        name = f"words_{model_part(trace)}"
        _button("Word times (CSV)", name, "csv", lambda: csv_bytes(word_times(_OwnerName(trace), trace)))
        _button("Word times (WebVTT)", name, "vtt", lambda: to_webvtt(word_times(_OwnerName(trace), trace)).encode())


def instead_of_page(run: Run, stream: str, layer: int, head: int) -> Mapping[str, Callable[[], bytes]]:
    """Export a sound's explorer with one stream; all are too large."""
    if run.trace.seen.sound is None:
        return {}
    part = run.part(stream).trace
    return {"Explorer (HTML)": lambda: explore(part, stream=stream, layer=layer, head=head).html().encode()}


class _OwnerName:
    def __init__(self, trace: Trace) -> None:
        self.name = trace.provenance.model


def _has_words(trace: Trace) -> bool:
    try:
        return "cross" in trace.streams and trace.seen.sound is not None and bool(said_words(trace))
    except TraceError:  # nothing is said
        return False


def _drawn(document: Callable[[], str], form: str) -> bytes:
    return document().encode() if form == "svg" else printed(document(), (form,))[form]


def _button(label: str, name: str, ending: str, make: Callable[[], bytes]) -> None:
    st.download_button(
        label,
        data=make,
        file_name=f"{name}.{ending}",
        mime=_MEDIA[ending],
        on_click="ignore",
        key=f"download-seen-{ending}",
    )
