"""What can be taken away: made from the trace when a button is pressed, never from what the screen shows."""

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import streamlit as st

if TYPE_CHECKING:
    from attention_viz.trace import Trace

__all__ = ["BUTTONS", "show_downloads"]

# Of a model's name in a file's: file systems take 255 bytes for all of it.
_LONGEST_NAME = 60


def _weights(trace: "Trace", stream: str, layer: int, head: int) -> bytes:
    from attention_viz.table import to_csv

    # The mark at the start tells spreadsheets that this is UTF-8.
    return b"\xef\xbb\xbf" + to_csv(trace.table(layer, head, stream)).encode()


def _tensors(trace: "Trace", stream: str, layer: int, head: int) -> bytes:
    from attention_viz.tensors import to_safetensors

    return to_safetensors(trace, layer, head, stream)


def _picture(trace: "Trace", stream: str, layer: int, head: int) -> bytes:
    from attention_viz.views import heatmap_svg

    return heatmap_svg(trace, layer, head, stream).encode()


def _page(trace: "Trace", stream: str, layer: int, head: int) -> bytes:
    from attention_viz.explorer import explore

    return explore(trace, stream=stream, layer=layer, head=head).html().encode()


# Label, ending, media type, what it holds, and what makes it.
BUTTONS: dict[str, tuple[str, str, str, Callable[["Trace", str, int, int], bytes]]] = {
    "Weights (CSV)": ("csv", "text/csv", "Every weight of this head, a row each, for a spreadsheet", _weights),
    "Tensors (safetensors)": (
        "safetensors",
        "application/octet-stream",
        "Query, key, value and every step to the output of this head, as exact numbers",
        _tensors,
    ),
    "Picture (SVG)": ("svg", "image/svg+xml", "This head as a picture for print or slides", _picture),
    "Explorer (HTML)": ("html", "text/html", "This explorer with all heads as one file that works offline", _page),
}


def show_downloads(
    trace: "Trace",
    stream: str,
    layer: int,
    head: int,
    labels: Sequence[str] = tuple(BUTTONS),
    instead: Mapping[str, Callable[[], bytes]] = MappingProxyType({}),
) -> None:
    """A button each, in sight; the file is made when it is pressed, and the page doesn't run again for it.

    Args:
        trace: what is on the screen.
        stream: of the head on the screen.
        layer: of the head on the screen.
        head: the head on the screen.
        labels: which of `BUTTONS` to show.
        instead: by label, what makes a file that this page fills in its own way.
    """
    name = re.sub(r"[^\w.-]+", "-", trace.provenance.model)[:_LONGEST_NAME].strip("-.") or "model"
    for label in labels:
        ending, media, help_text, make = BUTTONS[label]
        st.download_button(
            label,
            data=instead.get(label) or functools.partial(make, trace, stream, layer, head),
            file_name=f"attention_{name}_layer{layer}_head{head}.{ending}",
            mime=media,
            help=help_text,
            on_click="ignore",
            key=f"download-{ending}",
        )
