"""The menu "Export", with files from the trace, never from the screen."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import streamlit as st

from attention_viz.analysis.readings import READINGS
from attention_viz.analysis.speech import to_webvtt
from attention_viz.analysis.word_times import said_words, word_times
from attention_viz.errors import TraceError
from attention_viz.explorer.page import ExplorerPage, opening_of
from attention_viz.serving.runs import Run, lent
from attention_viz.serving.settings import SETTINGS
from attention_viz.trace.export import head_tensors, to_safetensors
from attention_viz.trace.files.arrow import parquet_bytes
from attention_viz.trace.provenance import MERGED
from attention_viz.trace.trace import Trace
from attention_viz.ui.address import State
from attention_viz.ui.controls import reading as readings
from attention_viz.ui.parts.exports import (
    NO_BROWSER,
    all_heads_bytes,
    csv_bytes,
    file_button,
    model_part,
    show_link,
    trace_button,
)
from attention_viz.ui.parts.selection import pair_of
from attention_viz.views import heatmap_svg
from attention_viz.views.export.browsers import at_hand
from attention_viz.views.export.save import printed
from attention_viz.views.export.svg import overlay_svg

# A head with more weights than this gets no table and no tensors, at a hundred bytes per weight.
_MOST_WEIGHTS = 4_000_000


@dataclass(frozen=True)
class _Export:
    """A file of one head; `every` if it has all numbers."""

    ending: str
    holds: str
    make: Callable[[Trace, str, int, int], bytes]
    every: bool = False


# Every head's files, by the labels of their buttons.
EXPORTS = {
    "Weights (CSV)": _Export(
        "csv",
        "Every weight of this head, one per row, for a spreadsheet",
        lambda trace, stream, layer, head: csv_bytes(trace.table(layer, head, stream)),
        every=True,
    ),
    "Tensors (safetensors)": _Export(
        "safetensors",
        "This head's query, key, value and every step to its output, as exact numbers",
        lambda trace, stream, layer, head: to_safetensors(trace, layer, head, stream),
        every=True,
    ),
    "Picture (SVG)": _Export(
        "svg",
        "This head as a figure for print or slides",
        lambda trace, stream, layer, head: printed(heatmap_svg(trace, layer, head, stream), ("svg",))["svg"],
    ),
    "Explorer (HTML)": _Export(
        "html",
        "This explorer as one offline file; for a long text, with full numbers for this layer only",
        lambda trace, stream, layer, head: (
            ExplorerPage(trace, opening_of(trace, stream=stream, layer=layer, head=head)).html().encode()
        ),
    ),
}


def too_large(trace: Trace, stream: str, layer: int) -> str:
    """Explain why a layer's weights are too large; "" if not."""
    _, queries, keys = trace.attention(layer, stream).shape
    if queries * keys <= _MOST_WEIGHTS:
        return ""
    return (
        f"A head has {queries * keys:,} weights here, but a file may have at most {_MOST_WEIGHTS:,}; "
        "attention_viz.Trace.load opens the trace in Python"
    )


def show_downloads(
    trace: Trace,
    stream: str,
    layer: int,
    head: int,
    labels: Sequence[str] = tuple(EXPORTS),
    instead: Mapping[str, Callable[[], bytes]] = MappingProxyType({}),
    run: Trace | None = None,
    first: Callable[[], None] = lambda: None,
    later: Callable[[], Trace] | None = None,
) -> None:
    """Draw the menu "Export"."""
    # Whatever the buttons hold lives as long as the page.
    later = later or (lambda: trace)
    whole = later if run is None else lambda: run
    model = model_part(run or trace)
    name = f"attention_{model_part(trace)}_{_place(trace, layer, head)}"
    refusal = too_large(trace, stream, layer)
    with st.popover("Export", key="export"):
        first()
        for label in labels:
            one = EXPORTS[label]
            make = instead.get(label) or functools.partial(_made, one, later, stream, layer, head)
            refused = refusal if one.every else ""
            file_button(label, name, one.ending, make, one.ending, holds=one.holds, refused=refused)
        draws = at_hand() is not None
        if not draws:
            st.caption(f"Pictures as PNG or PDF {NO_BROWSER} *Picture (SVG)* needs no browser.")
        buttons, refusals = st.container(), st.empty()
        with buttons:
            for form in ("png", "pdf") if draws else ():
                make = functools.partial(_printed, later, stream, layer, head, form)
                file_button(f"Picture ({form.upper()})", name, form, make, f"more-{form}", refusals=refusals)
            if draws:
                make = functools.partial(_all_heads, whole, stream)
                file = f"attention_{model}_all_heads"
                file_button("All heads (PDF)", file, "pdf", make, "all-heads-pdf", refusals=refusals)
            if not refusal:
                make = functools.partial(_parquet, later, stream, layer, head)
                file_button("Weights (parquet)", name, "parquet", make, "more-parquet")
            trace_button(whole, model, refusals)
        st.caption(
            "*Tensors* hold this head only. *Trace* holds the whole run with every head; *Open a trace* reads it."
        )
        show_link()


def _made(one: _Export, later: Callable[[], Trace], stream: str, layer: int, head: int) -> bytes:
    return one.make(later(), stream, layer, head)


def _printed(later: Callable[[], Trace], stream: str, layer: int, head: int, form: str) -> bytes:
    return printed(heatmap_svg(later(), layer, head, stream), (form,))[form]


def _all_heads(whole: Callable[[], Trace], stream: str) -> bytes:
    return all_heads_bytes(whole(), stream)


def _parquet(later: Callable[[], Trace], stream: str, layer: int, head: int) -> bytes:
    return parquet_bytes(later().table(layer, head, stream), later().provenance.as_dict())


def _place(trace: Trace, layer: int, head: int) -> str:
    read = trace.provenance.reading
    together = read in READINGS and not READINGS[read].per_head
    parts = [f"layer{layer}", "all-heads" if together else f"head{head}", *([read] if read != "raw" else [])]
    return "_".join([*parts, *(["words"] if MERGED in trace.provenance.edits else [])])


def show_read_downloads(drawn: Run, shown: Run, state: State, longest: int = SETTINGS.longest_study) -> None:
    """Draw the export menu of a reading's head; its tensors are the recorded head's, since a reading has none."""
    stream, head = drawn.stream(state.stream), readings.head(state)
    if readings.is_raw(state):
        page = _page_of_part(drawn, stream, state.layer, head)
        first = functools.partial(_show_seen, drawn, state)
        later = lent(drawn, state.request, longest)
        show_downloads(drawn.trace, stream, state.layer, head, instead=page, first=first, later=later)
        return
    tensors = {"Tensors (safetensors)": lambda: _read_tensors(drawn.trace, shown.trace, stream, state)}
    show_downloads(shown.trace, stream, state.layer, head, instead=tensors, run=drawn.trace)


def _read_tensors(trace: Trace, read: Trace, stream: str, state: State) -> bytes:
    layer, name = state.layer, f"reading_{state.reading}{'_of_words' * (state.words == 'on')}"
    numbers = read.weights(layer, readings.head(state), stream)
    return to_safetensors(
        trace, layer, state.head, stream, lambda: {**head_tensors(trace, layer, state.head, stream), name: numbers}
    )


def _page_of_part(run: Run, stream: str, layer: int, head: int) -> Mapping[str, Callable[[], bytes]]:
    """Export audio's explorer with one stream; all are too large."""
    if run.trace.seen.sound is None:
        return {}
    part = run.part(stream).trace
    return {"Explorer (HTML)": lambda: EXPORTS["Explorer (HTML)"].make(part, stream, layer, head)}


def _show_seen(run: Run, state: State) -> None:
    """Draw the buttons of an image or audio."""
    trace = run.trace
    if trace.seen.picture is not None:
        layer, head = run.place(state.stream, state.layer, state.head)
        document = functools.partial(overlay_svg, trace, layer, head, pair_of(run, state)[0])
        name = f"overlay_{model_part(trace)}_layer{layer}_head{head}"
        # All but the first are drawn by a browser.
        for form in ("svg", "png", "pdf") if at_hand() is not None else ("svg",):
            make = functools.partial(_drawn, document, form)
            file_button(f"Picture with overlay ({form.upper()})", name, form, make, f"seen-{form}")
    elif _has_words(trace):
        name, times = f"words_{model_part(trace)}", functools.partial(word_times, _OwnerName(trace), trace)
        file_button("Word times (CSV)", name, "csv", lambda: csv_bytes(times()), "seen-csv")
        file_button("Word times (WebVTT)", name, "vtt", lambda: to_webvtt(times()).encode(), "seen-vtt")


class _OwnerName:
    def __init__(self, trace: Trace) -> None:
        self.name = trace.provenance.model


def _has_words(trace: Trace) -> bool:
    try:
        return "cross" in trace.attention_streams and trace.seen.sound is not None and bool(said_words(trace))
    except TraceError:  # the transcript is empty
        return False


def _drawn(document: Callable[[], str], form: str) -> bytes:
    return printed(document(), (form,))[form]
