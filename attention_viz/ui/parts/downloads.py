"""Downloads, made from the trace, never from the screen."""

import functools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import streamlit as st

from attention_viz.analysis.readings import READINGS
from attention_viz.explorer import explore
from attention_viz.trace.export import to_safetensors
from attention_viz.trace.provenance import MERGED
from attention_viz.trace.trace import Trace
from attention_viz.ui.parts.exports import csv_bytes, model_part, show_more_formats
from attention_viz.views import heatmap_svg

__all__ = ["BUTTONS", "show_downloads", "too_large"]

# What holds every number of a head.
_NUMBERS = ("Weights (CSV)", "Tensors (safetensors)")


# Of a head with more weights than this no table and no tensors are made: each weight takes a hundred bytes there.
_MOST_WEIGHTS = 4_000_000


def too_large(trace: Trace, stream: str, layer: int) -> str:
    """Explain why a layer's weights are too large; "" if not."""
    _, queries, keys = trace.attention(layer, stream).shape
    if queries * keys <= _MOST_WEIGHTS:
        return ""
    return (
        f"A head has {queries * keys:,} weights here, and files are made of at most {_MOST_WEIGHTS:,}; "
        "attention_viz.Trace.load opens the trace in Python"
    )


def _weights(trace: Trace, stream: str, layer: int, head: int) -> bytes:
    return csv_bytes(trace.table(layer, head, stream))


def _tensors(trace: Trace, stream: str, layer: int, head: int) -> bytes:
    return to_safetensors(trace, layer, head, stream)


def _picture(trace: Trace, stream: str, layer: int, head: int) -> bytes:
    return heatmap_svg(trace, layer, head, stream).encode()


def _page(trace: Trace, stream: str, layer: int, head: int) -> bytes:
    return explore(trace, stream=stream, layer=layer, head=head).html().encode()


# Label, ending, media type, what it holds, and what makes it.
BUTTONS: dict[str, tuple[str, str, str, Callable[[Trace, str, int, int], bytes]]] = {
    "Weights (CSV)": ("csv", "text/csv", "Every weight of this head, a row each, for a spreadsheet", _weights),
    "Tensors (safetensors)": (
        "safetensors",
        "application/octet-stream",
        "Query, key, value and every step to the output of this head, as exact numbers",
        _tensors,
    ),
    "Picture (SVG)": ("svg", "image/svg+xml", "This head as a picture for print or slides", _picture),
    "Explorer (HTML)": (
        "html",
        "text/html",
        "This explorer as one file that works offline; of a long text with this layer",
        _page,
    ),
}


def _made(
    make: Callable[[Trace, str, int, int], bytes], later: Callable[[], Trace], stream: str, layer: int, head: int
) -> bytes:
    return make(later(), stream, layer, head)


def _place(trace: Trace, layer: int, head: int) -> str:
    read = trace.provenance.reading
    together = read in READINGS and not READINGS[read].per_head
    parts = [f"layer{layer}", "all-heads" if together else f"head{head}", *([read] if read != "raw" else [])]
    return "_".join([*parts, *(["words"] if MERGED in trace.provenance.edits else [])])


def show_downloads(
    trace: Trace,
    stream: str,
    layer: int,
    head: int,
    labels: Sequence[str] = tuple(BUTTONS),
    instead: Mapping[str, Callable[[], bytes]] = MappingProxyType({}),
    run: Trace | None = None,
    first: Callable[[], None] = lambda: None,
    later: Callable[[], Trace] | None = None,
) -> None:
    """Draw the menu "Export": files and the link as chosen so far."""
    # What is handed to buttons lives as long as the page does.
    later = later or (lambda: trace)
    name = f"attention_{model_part(trace)}_{_place(trace, layer, head)}"
    refusal = too_large(trace, stream, layer)
    with st.popover("Export", key="export"):
        first()
        for label in labels:
            refused = label in _NUMBERS and bool(refusal)
            ending, media, help_text, make = BUTTONS[label]
            st.download_button(
                label,
                data=instead.get(label) or functools.partial(_made, make, later, stream, layer, head),
                file_name=f"{name}.{ending}",
                mime=media,
                help=refusal if refused else help_text,
                disabled=refused,
                on_click="ignore",
                key=f"download-{ending}",
            )
        model = model_part(run or trace)
        show_more_formats(
            later, stream, layer, head, name, later if run is None else lambda: run, model, tables=not refusal
        )
