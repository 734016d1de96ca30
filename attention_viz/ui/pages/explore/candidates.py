"""Likeliest tokens, and the decoder's KV cache."""

from collections.abc import Mapping

import pandas
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz import views
from attention_viz.analysis.measured import word_stream
from attention_viz.explorer import is_long
from attention_viz.explorer.chart_payload import Bars
from attention_viz.serving.runs import Run, candidates, chance_of, reads_on
from attention_viz.trace.spelling import SPACE, set_apart
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace
from attention_viz.ui import widgets
from attention_viz.ui.address import State
from attention_viz.ui.controls.chart import show_bars
from attention_viz.ui.controls.plot import show_picture
from attention_viz.ui.controls.reading import is_raw
from attention_viz.ui.controls.sight import in_sight
from attention_viz.ui.pages.explore.page import CANDIDATES_TITLE, CANDIDATES_WIDTH, goes_on_for_sure, step
from attention_viz.ui.parts.layout import theme_name
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.predictions import hold_writes
from attention_viz.ui.parts.selection import show_why
from attention_viz.ui.selection import SHARED
from attention_viz.views.style.wording import drawn_names

_COUNT = 6
# The most predictions shown for a text with many masks; Python has the others.
_MOST_MASKS = 3


def _words(trace: Trace) -> Tokens:
    return trace.query_tokens(word_stream(trace))


def _show_steps(trace: Trace, back: int) -> None:
    made = trace.provenance.generated
    if not made:
        return
    with st.container(horizontal=True, gap="xsmall", vertical_alignment="center", key="steps"):
        st.button("‹ Earlier", on_click=step, args=(1,), disabled=back >= made)
        st.button("Later ›", on_click=step, args=(-1,), disabled=back <= 0)
        st.caption(f"{made - back} of {made}")


def _step_words(trace: Trace, position: int, state: State) -> str:
    tokens = _words(trace)
    if position + 1 >= len(tokens):
        return ""
    last, following = map(set_apart, tokens.names[position : position + 2])
    chance = chance_of(state.request, trace, position + 1)
    likely = "" if chance is None else f", with probability {chance[0]:.2f} and rank {chance[1]:,}"
    return f"After “{last}”, the model generated “{following}”{likely}."


def up_to_step(run: Run, state: State, back: int) -> Run:
    """Cut the text at the current step; a long one stays whole, see `row_of_step`."""
    return run.beginning(_position(run, back) + 1) if back and not _stays_whole(run, state) else run


def row_of_step(run: Run, state: State, back: int) -> tuple[int, int] | None:
    """Return a step's row and strongest key (sinks last); None if the text is cut."""
    if not back or not _stays_whole(run, state):
        return None
    stream = run.stream(state.stream)
    position, keys = _position(run, back), run.trace.key_tokens(stream)
    layer, head = run.place(stream, state.layer, state.head)
    row = run.trace.attention(layer, stream).head(head).rows([position]).weights[0].abs()

    def looked_at(key: int) -> tuple[bool, float]:
        return key > 0 and not keys.special[key], float(row[key])

    return position, max(range(position + 1), key=looked_at)


def uncut_words(run: Run, state: State, back: int) -> str:
    """Explain why stepping keeps the whole text; empty if it doesn't."""
    if not back or not _stays_whole(run, state):
        return ""
    return "A long text stays whole in the matrix, with this step's row selected."


def _stays_whole(run: Run, state: State) -> bool:
    """Avoid packing each step for seconds when rows are too thin."""
    return is_raw(state) and is_long(run.trace)


def _attending(run: Run, state: State) -> tuple[int, int] | None:
    """Return the nearest layer with a softmax, and head; None if there is none."""
    return run.place(run.words, state.layer, state.head) if run.words in run.trace.attention_streams else None


def _position(run: Run, back: int) -> int:
    return len(_words(run.trace)) - 1 - back


def _show_cache(trace: Trace, place: tuple[int, int] | None, position: int) -> None:
    """Show the KV cache once the model generates from it."""
    if not trace.provenance.generated or place is None:
        return
    words = _cache_words(trace, position)
    if in_sight("cache-in-sight", 200):
        figure = views.cache(trace, *place, position, theme=theme_name())
        show_picture(figure, "cache", f"The KV cache, one row per recent step. {words}")
    st.caption(plain(words))


def _cache_words(trace: Trace, position: int) -> str:
    """Count cached keys and values, their memory, and evictions."""
    calls = [layer.attention for layer in trace.layers["decoder"]]
    kept = calls[0].shape[-1] if calls[0].allowed is None else int(calls[0].allowed[0, position].sum())
    each = sum(
        matrix.shape[0] * matrix.shape[-1] * matrix.element_size()
        for call in calls
        for matrix in (call.key, call.value)
    )
    heads = sum(call.key.shape[0] for call in calls)
    gone = position + 1 - kept
    thrown = f"; {gone} older ones evicted" if gone and trace.provenance.edits else ""
    return f"{kept} keys and values in each of {heads} key heads, {kept * each / 1e6:.2g} MB{thrown}"


def _show_eviction(state: State) -> None:
    widgets.show_switch(
        "Evict old keys",
        SHARED,
        "evict",
        "evict-switch",
        help="Evicts old keys from the KV cache before each generated token. The keys kept don't change position.",
    )
    if state.evict == "on":
        with st.container(horizontal=True, gap="xsmall", key="kept-keys"):
            widgets.show(st.number_input, "First keys kept", 0, 64, of=SHARED, name="first_keys", width=110)
            widgets.show(st.number_input, "Recent keys kept", 1, 512, of=SHARED, name="last_keys", width=110)


def _show_sampling(state: State) -> None:
    widgets.show_switch(
        "Sample tokens",
        SHARED,
        "sample",
        "sample-switch",
        help="Generates each token at random, by the model's probabilities, instead of the likeliest.",
    )
    if state.sample == "on":
        with st.container(horizontal=True, gap="xsmall", key="sampling"):
            widgets.show(
                st.number_input, "Temperature", 0.05, 5.0, of=SHARED, name="temperature", width=110, step=0.1,
                format="%g", help="Below 1, likely tokens are drawn more often; above 1, less often.",
            )  # fmt: skip
            widgets.show(
                st.number_input, "Top-p", 0.01, 1.0, of=SHARED, name="top_p", width=110, step=0.05, format="%g",
                help="Draws from the fewest likeliest tokens whose probabilities sum to at least this.",
            )  # fmt: skip
            widgets.show(st.number_input, "Seed", 0, 9999, of=SHARED, name="sampling_seed", width=110)


def show_way_back(place: DeltaGenerator, state: State) -> None:
    """Draw the active eviction switch after a failed run: a model may refuse eviction."""
    if state.more and state.evict == "on":
        with place.container():
            _show_eviction(state)
    else:
        place.empty()


def find_candidates(run: Run, state: State, back: int) -> Mapping[int, pandas.DataFrame]:
    """Return likeliest tokens by position; empty for file traces."""
    return {} if run.fit is None else candidates(state.request, run.trace, _COUNT, back)


def show_candidates(
    run: Run, found: Mapping[int, pandas.DataFrame], state: State, uncut: str = ""
) -> DeltaGenerator | None:
    """Draw the predictions; return the written words' slot, see `hold_writes`."""
    trace, writes = run.trace, None
    if not found:
        st.empty()
        return None
    decoder = reads_on(trace, state.facts)
    frame = (
        st.container(gap="small") if goes_on_for_sure(state) else st.container(key="candidates", width=CANDIDATES_WIDTH)
    )
    with frame:
        for position, likely in list(found.items())[:_MOST_MASKS]:
            mask = _words(trace).names[position]
            title = CANDIDATES_TITLE if decoder else f"Prediction at {mask}"
            st.markdown(f"**{plain(title)}**")
            if decoder:
                _show_steps(trace, len(_words(trace)) - 1 - position)
                if uncut:
                    st.caption(plain(uncut))
            st.caption(plain(_sentence(trace, position, likely, state, decoder=decoder)))
            names = [_words(trace).write(token) for token in likely.token]
            show_bars(Bars(names, list(likely.probability), largest=1, words=title), f"candidates-{position}")
            if (place := _attending(run, state)) is not None and not run.beside:
                _show_row(trace, place, position, _head_in_words(run, state, place))
            if position == next(iter(found)):
                writes = hold_writes(run, state)
            if decoder:
                _show_sampling(state)
            # Beside an image, each token is generated by a run of the whole.
            if decoder and not run.beside:
                _show_cache(trace, place, position)
                if place is not None:
                    _show_eviction(state)
            if decoder and place is not None and position == len(_words(trace)) - 1 and not state.own:
                _offer_why(trace, likely)
    return writes


def _head_in_words(run: Run, state: State, place: tuple[int, int]) -> str:
    """Name a head of the words' own attention; another kind of layer may be chosen."""
    stream, (layer, head) = run.stream(state.stream), place
    if stream == run.words:
        return f"the chosen head, {layer}·{head}"
    if stream in run.trace.mixers:
        return f"{layer}·{head}, the nearest softmax head"
    return f"{layer}·{head} of the {run.words}"


def _show_row(trace: Trace, place: tuple[int, int], position: int, named: str) -> None:
    """Show the head's largest weights of the row that the prediction comes from."""
    (layer, head), stream = place, word_stream(trace)
    last = set_apart(trace.query_tokens(stream).names[position])
    row = trace.attention(layer, stream).head(head).rows([position]).weights[0].detach().float().cpu()
    heaviest = [int(key) for key in row.topk(min(_COUNT, len(row))).indices if row[key] > 0]
    names = drawn_names(trace.key_tokens(stream))
    which = "the last token, " if position == len(trace.query_tokens(stream)) - 1 else ""
    title = f"In {named}, {which}“{last}” attends to"
    labels, weights = [names[key] for key in heaviest], [float(row[key]) for key in heaviest]
    show_bars(Bars(labels, weights, largest=1, colour="key", title=title), f"candidates-row-{position}")


def _offer_why(trace: Trace, likely: pandas.DataFrame) -> None:
    words = [_words(trace).write(token).strip(f"{SPACE} ") for token in likely.token]
    words = [word for word in dict.fromkeys(words) if word]
    if not words:
        return
    pressed = st.pills("Compare next tokens", words, selection_mode="multi", key="asked-words")
    first, *others = [*pressed[:2]] or words[:1]
    beside = f" and not “{others[0]}”" if others else ""
    if st.button(plain(f"Why “{first}”{beside}?"), key="why-word"):
        show_why(first, *others)


def _sentence(trace: Trace, position: int, likely: pandas.DataFrame, state: State, *, decoder: bool) -> str:
    best = set_apart(_words(trace).write(likely.token[0]))
    if not decoder:
        return f"Likeliest at position {position}, from all heads together: “{best}”."
    last = set_apart(_words(trace).names[-1])
    if words := _step_words(trace, position, state):
        return words
    return f"Likeliest after the last row, “{last}”, from all heads together: “{best}”."
