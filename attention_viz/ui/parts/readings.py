"""Readings of weights, made once for all visitors."""

import itertools
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz import views
from attention_viz.analysis import readings
from attention_viz.analysis.attribution import flow_steps
from attention_viz.analysis.readings import READINGS
from attention_viz.errors import AttentionVizError, TraceError
from attention_viz.operation.modules import Projection
from attention_viz.serving.cache import SharedCache
from attention_viz.serving.runs import Run, ask, projections
from attention_viz.serving.settings import SETTINGS
from attention_viz.trace.derived import merge_words
from attention_viz.trace.kind import CROSSING_STREAMS
from attention_viz.trace.trace import Trace
from attention_viz.ui.address import State
from attention_viz.ui.controls.reading import head, is_raw, together
from attention_viz.ui.parts.drawing import hold, show_problem
from attention_viz.ui.parts.markdown import plain
from attention_viz.views.style.theme import ThemeName

# The most that flow may cost here, in flows times edges: some three seconds.
_MOST_FLOW = 15_000_000
# This many multiplications take some three seconds, too.
_MOST_ZEROED = 6e10

_MERGED = (
    "Whole words: weights are averaged over the query word's tokens and summed over the key word's tokens, "
    r"$M_{ab} = \frac{1}{|a|}\sum_{i\in a}\sum_{j\in b} R_{ij}$ (Clark et al. 2019, section 4.1)."
)


def read(run: Run, state: State) -> Run:
    """Read the shown stream once for all visitors, in turn with runs."""
    if is_raw(state):
        return run
    return _cache.get(_identity(run, state), lambda: _read(run, state))


def read_in_place(run: Run, state: State, place: DeltaGenerator, height: int) -> Run | None:
    """Read with the slot filled, at this height in pixels; None after a problem."""
    if is_raw(state):
        return run
    made = _identity(run, state) in _cache
    if not made:
        hold(state, place, height)
    try:
        found = read(run, state)
    except AttentionVizError as error:
        show_problem(error, place)
        return None
    if not made:
        place.empty()
    return found


def heatmap(trace: Trace, state: State, stream: str, theme: ThemeName) -> go.Figure:
    """Draw the shown matrix in Plotly, with a named colour scale."""
    figure = views.heatmap(trace, state.layer, head(state), stream, theme=theme)
    if state.reading != "raw":
        figure.update_traces(colorbar_title_text="share of row", selector={"type": "heatmap"})
    return figure


def show_reading(shown: Run | None, state: State) -> None:
    """Explain a reading's meaning, origin and limits."""
    if shown is None:
        return
    one = READINGS[state.reading]
    words = [f"**{one.label}**, ${one.formula}$ ({plain(one.source)}). {plain(one.meaning)}"]
    words.append(f"It doesn’t show: {plain(one.limits[:1].lower() + one.limits[1:])}")
    if one.function is not None:
        words.append("It reads the recorded run, which was verified.")
    if state.reading == "gradient":
        words.append(plain(f"Here the gradient is that {_subject(shown.trace)}."))
    if one.scaled:
        words.append("Each row is divided by its sum, so that you can compare rows; a row of zeros stays zeros.")
    if together(state):
        words.append(f"All heads are combined; head {state.head} stays chosen for other readings.")
    if state.words == "on":
        words.append(_MERGED)
    if not is_raw(state) and state.facts.predicts and not state.facts.is_encoder_decoder and shown.fit is not None:
        words.append("The row shown with the likeliest tokens, if any, has raw weights.")
    with st.container(key="reading-words"):
        st.caption(" ".join(words))


def _subject(trace: Trace) -> str:
    done = next(edit for edit in trace.provenance.edits if edit.startswith("read afterwards"))
    return done.split(", ", 1)[1].removesuffix(", rows divided by their sums")


@dataclass(frozen=True)
class _Matrices:
    name: str
    state: State
    stream: str

    def projections(self, layer: int, stream: str | None = None) -> Mapping[str, Projection]:
        return projections(self.state.request, layer, stream or self.stream)


def _read(run: Run, state: State) -> Run:
    stream = run.stream(state.stream)
    _check_length(run.trace, stream)

    def do(model: object) -> Trace:
        matrices = None if model is None else _Matrices(run.trace.provenance.model, state, stream)
        found = readings.read(state.reading, run.trace, matrices, stream)
        found = merge_words(found) if state.words == "on" else found
        return found.detached()  # so that the run and its model needn't be kept for it

    if state.reading == "flow":
        _check_flow(run.trace, stream)
    if state.reading == "zeroing":
        _check_zeroing(run.trace, stream)
    return Run(do(None) if run.fit is None else ask(state.request, do), run.fit, run.second)


def _check_length(trace: Trace, stream: str) -> None:
    tokens = max(len(trace.query_tokens(stream)), len(trace.key_tokens(stream)))
    if tokens > SETTINGS.longest_study:
        raise TraceError(
            f"readings and whole words need all weights of all heads, at most {SETTINGS.longest_study:,} tokens here, "
            f"and this text has {tokens:,}; shorten it, or choose raw weights"
        )


def _check_flow(trace: Trace, stream: str) -> None:
    layers, tokens = trace.layer_count(stream), len(trace.query_tokens(stream))
    if stream not in CROSSING_STREAMS and flow_steps(layers, tokens) > _MOST_FLOW:
        most = next(count for count in range(tokens, 0, -1) if flow_steps(layers, count) <= _MOST_FLOW)
        raise TraceError(
            f"Flow is slow, so with {layers} layers this app allows at most {most} tokens, and this text has {tokens}; "
            "shorten it, choose Rollout, or use attention_viz.flow in Python"
        )


def _check_zeroing(trace: Trace, stream: str) -> None:
    """Refuse slow zeroing: each key runs every layer."""
    layers, call = trace.layer_count(stream), trace.attention(trace.layer_numbers(stream)[0], stream)
    heads, queries, keys = call.shape
    width = heads * call.value.shape[-1]
    # The size of a layer's matrices together, with a feed-forward part of the usual size.
    most = int((_MOST_ZEROED / (layers * 12 * width**2)) ** 0.5)
    if queries * keys > most**2:
        raise TraceError(
            f"value zeroing is slow: with {layers} layers of this size, this app allows {most} tokens; this text has "
            f"{max(queries, keys)}. Shorten it, choose Norms, or use Trace.value_zeroing in Python"
        )


def _identity(run: Run, state: State) -> tuple[object, ...]:
    trace = run.trace
    with _numbering:
        number = _numbers.setdefault(trace, next(_counter))
    return number, run.stream(state.stream), state.reading, state.words


def _size(run: Run) -> int:
    layers = [layer for found in run.trace.layers.values() for layer in found]
    return sum(4 * heads * queries * keys for heads, queries, keys in (layer.attention.shape for layer in layers))


_cache: "SharedCache[tuple[object, ...], Run]" = SharedCache(SETTINGS.trace_memory * 1_000_000, _size)
# Each run gets its own number, because memory addresses are reused.
_numbers: "WeakKeyDictionary[Trace, int]" = WeakKeyDictionary()
_counter = itertools.count()
_numbering = threading.Lock()
