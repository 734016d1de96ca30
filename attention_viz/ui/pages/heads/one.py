"""The chosen head's parts."""

from collections.abc import Mapping
from weakref import WeakKeyDictionary

import plotly.graph_objects as go
import streamlit as st
import torch
from streamlit.delta_generator import DeltaGenerator

from attention_viz import views
from attention_viz.analysis.places import after_the_sound
from attention_viz.analysis.plane import queries_and_keys_plane
from attention_viz.analysis.roles import ROLES
from attention_viz.analysis.rows import QueryRows
from attention_viz.analysis.sinks import attention_sinks
from attention_viz.errors import AttentionVizError
from attention_viz.serving.runs import Run, ask
from attention_viz.trace.trace import Trace
from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls import reading as readings
from attention_viz.ui.controls.plot import add_targets, show_picture, show_to_click
from attention_viz.ui.pages.heads.board import cannot_draw, mark_drawn, show_board_pen
from attention_viz.ui.pages.heads.choice import HEADS_CHOICES, PLOTS, HeadsChoice
from attention_viz.ui.pages.heads.numbers import made_once
from attention_viz.ui.pages.heads.search import Atlas, take_head
from attention_viz.ui.pages.heads.silence import show_silence
from attention_viz.ui.pages.heads.words import head_words, named, seen_words
from attention_viz.ui.parts.drawing import PicturePlace
from attention_viz.ui.parts.exports import show_figure_exports
from attention_viz.ui.parts.layout import theme_name
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.predictions import hold_writes
from attention_viz.ui.parts.readings import heatmap, read_in_place, show_reading
from attention_viz.ui.parts.selection import pair_of, take_pair
from attention_viz.views.style.axes import begin, lower
from attention_viz.views.style.theme import ThemeName
from attention_viz.views.style.wording import readable

_HEIGHT = 350
# Up to this many tokens, hovering over a cell of the chosen head names them; up to this many, a click keeps the pair.
_NAMED_UP_TO, _CLICKED_UP_TO = 128, 48
_LISTED = 5

Head = tuple[int, int]
# Longer texts have too many weights per layer for a one-line note.
_LONGEST = 256

# By trace in the app's cache: a line for each head viewed.
_lines: "WeakKeyDictionary[Trace, dict[tuple[str, int, int], str]]" = WeakKeyDictionary()


def show_one(atlas: Atlas, run: Run, state: State, choice: HeadsChoice) -> DeltaGenerator | None:
    """Show the head or board; return the words' slot, see `hold_writes`."""
    with st.container(key="heads-one-head", gap="small"):
        _show_title(atlas, run, state)
        words = head_words(atlas.table, (state.layer, state.head))
        if choice.plot == "vectors":
            _show_vectors(atlas, state)
        else:
            _show_matrix(atlas, run, state, choice, words)
        _show_linking(atlas, state)
        # Experiments belong on the first screen; further notes may come below.
        show_silence(run, state, choice)
        _show_sink(run, state)
        writes = hold_writes(run, state)
        if words:
            st.caption(plain(words))
    return writes


def export_one(atlas: Atlas, state: State, choice: HeadsChoice) -> None:
    """Export the figure of the head's weights, or of its queries and keys."""
    place = (state.layer, state.head, atlas.stream)
    if choice.plot != "vectors":
        show_figure_exports(
            "heads-weights",
            lambda: views.heatmap(atlas.trace, *place, theme="light"),
            lambda: atlas.trace.table(*place),
            atlas.trace,
            *place,
            title="The chosen head",
        )
        return
    show_figure_exports(
        "heads-vectors",
        lambda: _vectors(atlas, state, "light"),
        lambda: queries_and_keys_plane(atlas.trace, state.layer, state.head, atlas.stream).table(
            atlas.trace, atlas.stream
        ),
        atlas.trace,
        *place,
        title="Queries and keys",
    )


def _show_title(atlas: Atlas, run: Run, state: State) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="heads-one-title"):
        words = ""
        if (state.layer, state.head) in atlas.jobs.index:
            role, score = atlas.jobs.loc[(state.layer, state.head), ["role", "score"]]
            label, _ = ROLES[role].wording(atlas.trace.query_tokens(atlas.stream).unit)
            words = f" :small[{label.lower()}{'' if score != score else f' {score:.2f}'}]"
        st.markdown(f"**Layer {state.layer}, {readings.head_name(state)}**{words}", width="stretch")
        st.page_link("app.py", label="Open in Explore", query_params=pickers.address())
    pickers.switch("Head view", PLOTS, HEADS_CHOICES, "plot")
    query, key = pair_of(run, state)
    st.markdown(plain(seen_words(atlas.trace, atlas.stream, (state.layer, state.head), query, key)))


def _show_matrix(atlas: Atlas, run: Run, state: State, choice: HeadsChoice, words: str) -> None:
    board = choice.search == "pattern" and not cannot_draw(atlas.trace, atlas.stream, state)
    place = PicturePlace.of(readings.is_raw(state))
    shown = read_in_place(run, state, place.place, _HEIGHT)
    if shown is not None:
        with place.picture():
            _draw_matrix(atlas, shown, state, choice, words, board=board)
    if board:
        show_board_pen("heads-one", atlas.trace.query_tokens(atlas.stream))
    if not readings.is_raw(state):
        show_reading(shown, state)
        st.caption("The reading changes only this matrix. Roles, numbers, patterns and the search use raw weights.")


def _draw_matrix(atlas: Atlas, shown: Run, state: State, choice: HeadsChoice, words: str, *, board: bool) -> None:
    figure = _matrix(shown, state, atlas.stream)
    queries, keys = len(atlas.trace.query_tokens(atlas.stream)), len(atlas.trace.key_tokens(atlas.stream))
    description = f"The chosen head. {words}"
    if board:
        mark_drawn(figure, choice.pattern, queries)
    if board or not readings.is_raw(state) or max(queries, keys) > _CLICKED_UP_TO:
        show_picture(figure, "heads-one", description)
        return
    cells = [(query, key) for query in range(queries) for key in range(keys)]
    size = max(4, min(14, 280 // max(queries, keys)))
    add_targets(figure, cells, size=size)
    show_to_click(figure, "heads-one", f"{description} Click a cell to choose its pair.", _take_cell)


def _take_cell(cell: tuple[int, int]) -> None:
    take_pair(*cell)


def _matrix(shown: Run, state: State, stream: str) -> go.Figure:
    trace, theme = shown.trace, theme_name()
    if readings.is_raw(state):
        longest = max(len(trace.query_tokens(stream)), len(trace.key_tokens(stream)))
        figure = views.heatmap(trace, state.layer, state.head, stream, names=longest <= _NAMED_UP_TO, theme=theme)
    else:
        figure = heatmap(trace, state, stream, theme)
    lower(figure, _HEIGHT).update_layout(title_text="", margin_t=8)
    _leave_silence(figure, trace, stream)
    return figure


def _leave_silence(figure: go.Figure, trace: Trace, stream: str) -> None:
    """Show only the audio's own frames: models pad their input."""
    axes = ((figure.layout.xaxis, trace.key_tokens(stream), 1), (figure.layout.yaxis, trace.query_tokens(stream), -1))
    for axis, tokens, direction in axes:
        after = after_the_sound(trace.seen, tokens)
        if any(after) and not all(after):
            begin(axis, readable(tokens.written), after.index(True))
            axis.range = axis.range[::direction]


def _show_vectors(atlas: Atlas, state: State) -> None:
    figure = _vectors(atlas, state, theme_name()).update_layout(height=_HEIGHT)
    show_picture(figure, "heads-vectors", "The head's queries and keys as points, with lines for the strongest links")
    st.caption("This head's queries and keys, along their first two principal components.")


def _vectors(atlas: Atlas, state: State, theme: ThemeName) -> go.Figure:
    figure = views.queries_and_keys(atlas.trace, state.layer, state.head, atlas.stream, theme=theme)
    return figure


def linking_heads(atlas: Atlas, state: State) -> list[tuple[Head, float]]:
    """Return the chosen pair's heads, heaviest first."""
    pair = _pair(atlas, state)
    if pair is None:
        return []
    return made_once(atlas.trace, ("linking", atlas.stream, pair), lambda: _linking(atlas.trace, atlas.stream, *pair))


def _show_linking(atlas: Atlas, state: State) -> None:
    """Show these heads as buttons, or how to choose a pair."""
    pair = _pair(atlas, state)
    if pair is None:
        return
    queries, keys = atlas.trace.query_tokens(atlas.stream), atlas.trace.key_tokens(atlas.stream)
    words = f"{named(queries, pair[0])} ({pair[0]}) looks at {named(keys, pair[1])} ({pair[1]})"
    with st.container(key="heads-linking", gap="small"):
        st.caption(plain(f"Heads where {words} most, marked with a dot in the atlas:"))
        with st.container(horizontal=True, gap="small"):
            for (layer, head), weight in linking_heads(atlas, state):
                here = (layer, head) == (state.layer, state.head)
                st.button(
                    f"{layer}·{head}  {weight:.2f}",
                    key=f"heads-link-{layer}-{head}",
                    type="primary" if here else "secondary",
                    on_click=take_head,
                    args=((layer, head),),
                    help=f"Layer {layer}, head {head}",
                )
            st.button("Clear pair", key="heads-link-none", type="tertiary", on_click=take_pair, args=(None, None))


def _pair(atlas: Atlas, state: State) -> tuple[int, int] | None:
    if state.query is None or state.key is None:
        return None
    counts = len(atlas.trace.query_tokens(atlas.stream)), len(atlas.trace.key_tokens(atlas.stream))
    return (state.query, state.key) if state.query < counts[0] and state.key < counts[1] else None


def _linking(trace: Trace, stream: str, query: int, key: int) -> list[tuple[Head, float]]:
    found = list[tuple[Head, float]]()
    for layer in trace.layer_numbers(stream):
        attention = trace.attention(layer, stream)
        for head in range(trace.head_count(layer, stream)):
            weight = float(torch.as_tensor(attention.tile(head, [query], [key])).reshape(-1)[0].nan_to_num(0))
            found.append(((layer, head), weight))
    found.sort(key=lambda one: -one[1])
    return [one for one in found[:_LISTED] if one[1] > 0]


def _show_sink(run: Run, state: State) -> None:
    """Show the chosen head's sink line; none for files, which have no model."""
    stream = run.stream(state.stream)
    if run.fit is None or len(run.trace.key_tokens(stream)) > _LONGEST:
        return
    place = (stream, *run.place(stream, state.layer, state.head))
    lines = _lines.setdefault(run.trace, {})
    if place not in lines:
        lines[place] = _line(run.trace, state, *place)
    if lines[place]:
        st.caption(plain(lines[place]))


def _line(trace: "Trace", state: State, stream: str, layer: int, head: int) -> str:
    try:
        table = ask(state.request, lambda model: attention_sinks(model, trace, stream, layer))
    except AttentionVizError:  # this model's W_O is unknown
        return ""
    queries, keys = trace.query_tokens(stream), trace.key_tokens(stream)
    first = QueryRows.of(queries, keys, alike=stream != "cross").first
    row = dict(zip(table.columns, table.to_numpy()[table.index.get_loc((layer, head))].tolist(), strict=True))
    return sink_words(row, named(keys, first))


def sink_words(row: Mapping[str, float], first: str) -> str:
    """Describe a head's attention sink; empty if it has none."""
    if not row["weight"] >= ROLES["first"].threshold or not row["others"] > 0:
        return ""
    return (
        f"On average, this head gives {row['weight']:.2f} of its weight to {first}, the first token. The value vector "
        f"there has {row['length'] / row['others']:.2f} times the norm of the others, and adds {row['fetched']:.2f} of "
        "the total (norm × weight)."
    )
