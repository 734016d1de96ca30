"""The chosen head's parts."""

import html
from collections.abc import Callable, Mapping, Sequence
from weakref import WeakKeyDictionary

import pandas
import plotly.graph_objects as go
import streamlit as st
import torch

from attention_viz import views
from attention_viz.analysis.plane import queries_and_keys_plane
from attention_viz.analysis.roles import ROLES
from attention_viz.analysis.rows import QueryRows
from attention_viz.analysis.signed import has_channels, mixer_of
from attention_viz.analysis.sinks import attention_sinks
from attention_viz.errors import AttentionVizError
from attention_viz.serving.runs import Run, ask
from attention_viz.trace.slots import are_alike
from attention_viz.trace.spelling import weight_text
from attention_viz.trace.trace import Trace
from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls import reading as readings
from attention_viz.ui.controls.plot import show_picture
from attention_viz.ui.pages.heads.choice import HEADS_CHOICES, PLOTS, HeadsChoice
from attention_viz.ui.pages.heads.matrix import MATRIX_HEIGHT, head_figure, show_matrix
from attention_viz.ui.pages.heads.numbers import made_once
from attention_viz.ui.pages.heads.search import Atlas, take_head
from attention_viz.ui.pages.heads.silence import show_silence
from attention_viz.ui.pages.heads.words import head_words, metric_rows, named, pair_words, role_words
from attention_viz.ui.parts.exports import show_figure_exports
from attention_viz.ui.parts.layout import theme_name
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.predictions import hold_writes, show_writes
from attention_viz.ui.parts.selection import pair_of, take_pair
from attention_viz.views.style.captions import layer_name
from attention_viz.views.style.theme import ThemeName

_LISTED = 5
# Pages that show the chosen head, by what the link says.
_LINKS = {"In Explore": "app.py", "In Steps": "pages/steps.py", "In Why": "pages/why.py"}

Head = tuple[int, int]
# Longer texts have too many weights per layer for a one-line note.
_LONGEST = 256

# By trace in the app's cache: a line for each head viewed.
_lines: "WeakKeyDictionary[Trace, dict[tuple[str, int, int], str]]" = WeakKeyDictionary()


def show_one(atlas: Atlas, run: Run, state: State, choice: HeadsChoice) -> Callable[[], object]:
    """Show the head or board; return what fills its words once the page is drawn."""
    with st.container(key="heads-one-head", gap="small"):
        _show_title(atlas, run, state)
        words = "" if _per_channel(atlas, state) else head_words(atlas.table, (state.layer, state.head))
        with st.container(key="heads-matrix", gap="small"):
            if _plot(atlas, state, choice) == "vectors":
                _show_vectors(atlas, state)
            else:
                arrived = _plot(atlas, state, choice) == "arrived"
                show_matrix(atlas, run, state, choice, words, arrived=arrived)
        _show_linking(atlas, state)
        # Experiments belong on the first screen; further notes may come below.
        send = show_silence(atlas, run, state, choice)
        if not atlas.mixes:
            _show_sink(run, state)
        # What all channels of a layer write together isn't one head's.
        writes = None if _per_channel(atlas, state) else hold_writes(run, state)
        if not _per_channel(atlas, state):
            _show_metrics(atlas.table, (state.layer, state.head), words)

    def finish() -> None:
        send()
        show_writes(writes, run, state, pair_of(run, state)[0])

    return finish


def _per_channel(atlas: Atlas, state: State) -> bool:
    """Return whether the chosen layer has a matrix per channel, so that all of them are shown together."""
    return has_channels(atlas.trace, atlas.stream, state.layer)


def _plots(atlas: Atlas, state: State) -> tuple[str, ...]:
    if not atlas.mixes:
        return ("weights", "vectors")
    return ("arrived",) if _per_channel(atlas, state) else ("weights", "arrived")


def _plot(atlas: Atlas, state: State, choice: HeadsChoice) -> str:
    """Return how the head is shown: as chosen, if its layer can be shown so."""
    offered = _plots(atlas, state)
    return choice.plot if choice.plot in offered else offered[0]


def _table(atlas: Atlas, state: State) -> pandas.DataFrame:
    table = atlas.trace.table(state.layer, state.head, atlas.stream)
    return table.rename(columns={"weight": "arrived"}) if _per_channel(atlas, state) else table


def export_one(atlas: Atlas, run: Run, state: State, choice: HeadsChoice) -> None:
    """Export the figure of the head's weights, or of its queries and keys."""
    place = (state.layer, state.head, atlas.stream)
    if _plot(atlas, state, choice) != "vectors":
        show_figure_exports(
            "heads-weights",
            lambda: head_figure(atlas, run, state, arrived=_plot(atlas, state, choice) == "arrived"),
            lambda: _table(atlas, state),
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
    head, pair = (state.layer, state.head), pair_of(run, state)
    role, score = ("mixed", float("nan")) if head not in atlas.jobs.index else atlas.jobs.loc[head, ["role", "score"]]
    with st.container(key="heads-one-title"):
        st.markdown(f"**{_head_title(atlas, state)}**")
    st.markdown(plain(role_words(atlas.trace, atlas.stream, (str(role), float(score)))))
    offered = _plots(atlas, state)
    if visit.chosen(HEADS_CHOICES).plot not in offered:
        visit.fill(HEADS_CHOICES, plot=offered[0])
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="heads-one-row"):
        pickers.switch("Head view", {name: PLOTS[name] for name in offered}, HEADS_CHOICES, "plot")
        with st.container(horizontal=True, gap="small", width="content", key="heads-one-links"):
            for label, page in _LINKS.items():
                st.page_link(page, label=label, query_params=pickers.address())
    st.markdown(f"{plain(pair_words(atlas.trace, atlas.stream, head, str(role), pair, run.findings))}.")


def _show_metrics(table: pandas.DataFrame, head: Head, words: str) -> None:
    """Fold a head's metrics under a line that names the one it leads by."""
    rows = [
        f"<tr><th scope=row>{html.escape(label)}</th><td>{html.escape(number)}</td><td>{html.escape(rank)}</td></tr>"
        for label, number, rank in metric_rows(table, head)
    ]
    if not rows:
        return
    head_row = "<tr><th scope=col>Metric</th><th scope=col>Mean</th><th scope=col>Rank</th></tr>"
    summary = html.escape(words or "This head’s metrics")
    st.html(
        f'<details class="heads-metrics"><summary>{summary}</summary><table><thead>{head_row}</thead>'
        f"<tbody>{''.join(rows)}</tbody></table></details>"
    )


def _head_title(atlas: Atlas, state: State) -> str:
    if not atlas.mixes:
        return f"Layer {state.layer}, {readings.head_name(state)}"
    which = "all channels" if _per_channel(atlas, state) else f"head {state.head}"
    return f"{layer_name(atlas.trace, state.layer, atlas.stream)}, {which}"


def _show_vectors(atlas: Atlas, state: State) -> None:
    figure = _vectors(atlas, state, theme_name()).update_layout(height=MATRIX_HEIGHT)
    show_picture(figure, "heads-vectors", "The head's queries and keys as points, with lines for the strongest links")
    st.caption("This head's queries and keys, along their first two principal components.")


def _vectors(atlas: Atlas, state: State, theme: ThemeName) -> go.Figure:
    figure = views.queries_and_keys(atlas.trace, state.layer, state.head, atlas.stream, theme=theme)
    return figure


def linking_heads(atlas: Atlas, state: State) -> list[tuple[str, Head, float]]:
    """Return the chosen pair's heads with their streams, heaviest first; without a softmax by the share of size."""
    pair = _pair(atlas, state)
    if pair is None:
        return []
    streams = tuple(atlas.parts)
    return made_once(atlas.trace, ("linking", streams, pair), lambda: _linking(atlas.trace, streams, *pair))


def links_words(atlas: Atlas, state: State) -> str:
    """Say what the heads that link the chosen pair do, for the legend; empty without a pair."""
    pair = _pair(atlas, state)
    if pair is None:
        return ""
    queries, keys = atlas.trace.query_tokens(atlas.stream), atlas.trace.key_tokens(atlas.stream)
    return f"link {named(queries, pair[0])} → {named(keys, pair[1])} most"


def _show_linking(atlas: Atlas, state: State) -> None:
    """Show these heads as buttons, or how to choose a pair."""
    pair = _pair(atlas, state)
    if pair is None:
        return
    queries, keys = atlas.trace.query_tokens(atlas.stream), atlas.trace.key_tokens(atlas.stream)
    # In full: of many patches in one part of the image, these two.
    names = [
        f"{tokens.placed_at(at) or named(tokens, at)} ({at})" for tokens, at in zip((queries, keys), pair, strict=True)
    ]
    if any(stream in atlas.trace.mixers for stream in atlas.parts):
        words = f"{names[0]} has the largest share of {names[1]}"
    else:
        words = f"{names[0]} looks at {names[1]} most"
    silent = visit.chosen(HEADS_CHOICES).silence == "on"
    with st.container(key="heads-linking", gap="small"):
        st.caption(plain(f"Heads where {words}, marked with a dot in the atlas:"))
        with st.container(horizontal=True, gap="small"):
            for stream, (layer, head), weight in linking_heads(atlas, state):
                here = (stream, layer, head) == (atlas.stream, state.layer, state.head)
                own = "" if stream in atlas.trace.attention_streams else f"-{stream}"
                name = f"~~{layer}·{head}~~" if here and silent else f"{layer}·{head}"
                st.button(
                    f"{name}  {weight_text(weight)}",
                    key=f"heads-link-{layer}-{head}{own}",
                    type="primary" if here else "secondary",
                    on_click=take_head,
                    args=((layer, head), stream if len(atlas.parts) > 1 else None),
                    help=f"{layer_name(atlas.trace, layer, stream)}, head {head}",
                )
            st.button("Clear pair", key="heads-link-none", type="tertiary", on_click=take_pair, args=(None, None))


def _pair(atlas: Atlas, state: State) -> tuple[int, int] | None:
    if state.query is None or state.key is None:
        return None
    counts = len(atlas.trace.query_tokens(atlas.stream)), len(atlas.trace.key_tokens(atlas.stream))
    return (state.query, state.key) if state.query < counts[0] and state.key < counts[1] else None


def _linking(trace: Trace, streams: Sequence[str], query: int, key: int) -> list[tuple[str, Head, float]]:
    found = list[tuple[str, Head, float]]()
    for stream in streams:
        for layer in trace.layer_numbers(stream):
            attention = trace.attention(layer, stream)
            for head in range(trace.head_count(layer, stream)):
                if stream in trace.mixers:
                    weight = mixer_of(trace, stream, layer).head(head).rows([query]).shares[0, key]
                else:
                    weight = torch.as_tensor(attention.tile(head, [query], [key])).reshape(-1)[0]
                found.append((stream, (layer, head), float(weight.nan_to_num(0))))
    found.sort(key=lambda one: -one[2])
    return [one for one in found[:_LISTED] if one[2] > 0]


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
    first = QueryRows.of(queries, keys, alike=are_alike(stream, queries, keys)).first
    row = dict(zip(table.columns, table.to_numpy()[table.index.get_loc((layer, head))].tolist(), strict=True))
    return sink_words(row, named(keys, first))


def sink_words(row: Mapping[str, float], first: str) -> str:
    """Describe a head's attention sink; empty if it has none."""
    if not row["weight"] >= ROLES["first"].threshold or not row["others"] > 0:
        return ""
    weight = weight_text(float(row["weight"]))
    return (
        f"On average, this head gives {weight} of its weight to {first}, the first token. The value vector "
        f"there has {row['length'] / row['others']:.2f} times the norm of the others, and adds {row['fetched']:.2f} of "
        "the total (norm × weight)."
    )
