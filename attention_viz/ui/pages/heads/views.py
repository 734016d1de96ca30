"""The Heads page's figures of all heads."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from attention_viz import views
from attention_viz.analysis.metrics import METRICS
from attention_viz.explorer import atlas_source, behind_source
from attention_viz.serving.runs import Run
from attention_viz.trace.kind import Unit
from attention_viz.trace.trace import STREAMS
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.plot import show_to_click
from attention_viz.ui.pages.heads.choice import HEADS_CHOICES, METRIC_VIEWS, ROLE_NAMES, VIEWS, HeadsChoice
from attention_viz.ui.pages.heads.numbers import distances, packed
from attention_viz.ui.pages.heads.one import linking_heads, links_words
from attention_viz.ui.pages.heads.search import Atlas, take_head
from attention_viz.ui.pages.heads.silence import show_tested
from attention_viz.ui.pages.heads.words import metric_words, missing_words
from attention_viz.ui.parts.explorer import show_channel
from attention_viz.ui.parts.exports import show_figure_exports
from attention_viz.ui.parts.layout import theme_name
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.selection import Filled
from attention_viz.views.style.theme import ThemeName

_HEIGHT = 420
# Up to so many heads, the atlas needs little height.
_FEW = 8

_KEY = "heads-grid"

_behind = widgets.component("behind", *behind_source())
_atlas = widgets.component("atlas", *atlas_source(_HEIGHT))


def hold_cards() -> None:
    """Reserve the role cards' slot, behind the chosen head on phones."""
    _behind(key="heads-behind", height="content")


@dataclass
class _Open:
    now: bool = False


def show_view(atlas: Atlas, run: Run, state: State, choice: HeadsChoice) -> Callable[[], object]:
    """Draw all heads as chosen; return what tests them once the page is drawn."""
    with st.container(key="heads-view-row", horizontal=True, vertical_alignment="center", gap="small"):
        _pick_view(choice.view)
        for name, label, used in (("metric", "Metric", ("colours", "scatter")), ("beside", "Against", ("scatter",))):
            if choice.view in used:
                _pick_metric(name, label, atlas)
    if choice.view not in ("scatter", "map"):
        return _show_grid(atlas, run, state, choice)
    (_show_scatter if choice.view == "scatter" else _show_map)(atlas, state, choice)
    return lambda: None


def _pick_view(view: str) -> None:
    """Draw the views, those of metrics behind one button."""
    last = view if view in METRIC_VIEWS else next(iter(METRIC_VIEWS))
    first = {name: label for name, label in VIEWS.items() if name not in METRIC_VIEWS} | {last: "Metrics"}
    pickers.switch("Atlas view", first, HEADS_CHOICES, "view")
    if view in METRIC_VIEWS:
        pickers.switch("Metrics", METRIC_VIEWS, HEADS_CHOICES, "view", key="heads-metrics")


def _pick_metric(name: str, label: str, atlas: Atlas) -> None:
    there = atlas.table if name == "beside" or visit.chosen(HEADS_CHOICES).view != "colours" else atlas.every_metric
    offered = {one for one in METRICS if one in there and METRICS[one].of in ("", _of(atlas))}
    if (now := getattr(visit.chosen(HEADS_CHOICES), name)) in there:
        offered.add(now)
    elif offered:
        first = next(one for one in METRICS if one in offered)
        visit.send(Filled(HEADS_CHOICES, {name: first}))
    widgets.show(
        st.selectbox,
        label,
        of=HEADS_CHOICES,
        name=name,
        options={one: _label(atlas, one) for one in METRICS if one in offered},
        width=150,
        label_visibility="collapsed",
    )


def _of(atlas: Atlas) -> str:
    """Return what only this input's metrics need."""
    return {Unit.WORD: "ids", Unit.PATCH: "patches"}.get(atlas.trace.query_tokens(atlas.stream).unit, "")


def _label(atlas: Atlas, metric: str) -> str:
    return METRICS[metric].in_mixers.label if atlas.mixes and metric in atlas.table else METRICS[metric].label


def export_view(atlas: Atlas, state: State, choice: HeadsChoice) -> None:
    """Export the figure of all heads, if the view has one."""
    if choice.view not in ("colours", "scatter", "map"):
        return
    makers = {"colours": _grid, "scatter": _scatter, "map": _map}

    def figure() -> go.Figure:
        return makers[choice.view](atlas, state, choice, "light")

    show_figure_exports(
        f"heads-{choice.view}", figure, atlas.table.reset_index, atlas.trace, stream=atlas.stream, title="This figure"
    )


def opened_in_explore() -> bool:
    """Return whether a double click or card link just opened a head in Explore."""
    asked = visit.memory(_Open)
    now, asked.now = asked.now, False
    return now


def _show_grid(atlas: Atlas, run: Run, state: State, choice: HeadsChoice) -> Callable[[], object]:
    # It reserves the height until the component arrives; very many heads need more.
    few = "-few" if choice.view == "roles" and sum(len(part.roles) for part in atlas.parts.values()) <= _FEW else ""
    with st.container(key=f"heads-atlas-{choice.view}{few}"):
        choice = replace(choice, metric=atlas.metric(choice.metric))
        _show_atlas(atlas, state, choice)
        test = show_tested(atlas, run, state) if choice.view == "silenced" else lambda: None
    if choice.view in ("roles", "colours") and any(name in atlas.trace.mixers for name in atlas.parts):
        st.caption("Without a softmax, roles and metrics go by shares of size: |weight| over its row’s Σ|weight|.")
    if choice.view == "colours":
        st.markdown(metric_words(choice.metric, formula=True, mixes=atlas.mixes))
        if missing := missing_words(atlas.table, (choice.metric,)):
            st.caption(plain(missing))
    return test


def _show_atlas(atlas: Atlas, state: State, choice: HeadsChoice) -> None:
    _atlas(
        key=_KEY,
        data=packed(atlas.trace, atlas.parts, atlas.texts),
        height="content",
        on_choice_change=_take_choice,
        on_open_change=_take_open,
        on_role_change=_take_role,
    )
    show_channel(
        _KEY,
        stream=atlas.stream,
        layer=state.layer,
        head=state.head,
        seen=widgets.serial(_KEY),
        view=choice.view,
        metric=choice.metric,
        role=choice.role,
        linking=[[*head, stream] for stream, head, _ in linking_heads(atlas, state)],
        links=links_words(atlas, state),
        over="heads-one-head",
    )


def _show_scatter(atlas: Atlas, state: State, choice: HeadsChoice) -> None:
    if len(atlas.parts) > 1:
        st.caption(_drawn_words(atlas))
    figure = _scatter(atlas, state, choice, theme_name()).update_layout(height=_HEIGHT)
    show_to_click(figure, "heads-scatter", "Every head as a point, by two metrics; later layers are darker", take_head)
    st.caption(
        "Each point is a head; later layers are darker, and outliers have labels. Click a point to choose its head."
    )


def _show_map(atlas: Atlas, state: State, choice: HeadsChoice) -> None:
    if len(atlas.parts) > 1:
        st.caption(_drawn_words(atlas))
    figure = _map(atlas, state, choice, theme_name()).update_layout(height=_HEIGHT)
    show_to_click(figure, "heads-map", "Every head as a point; similar heads are close together", take_head)
    st.caption(
        "The closer two heads, the more similar their rows (Jensen–Shannon divergence). The axes have no meaning of "
        "their own. Click a point to choose its head."
    )


def _drawn_words(atlas: Atlas) -> str:
    if atlas.mixes:
        return "These are the layers without a softmax. Choose a softmax head in the atlas to see the others."
    return "These are the softmax layers. Choose a head of another layer in the atlas to see the others."


def _grid(atlas: Atlas, state: State, choice: HeadsChoice, theme: ThemeName) -> go.Figure:
    chosen = (state.layer, state.head)
    return views.head_grid(
        atlas.trace, atlas.own_metric(choice.metric), atlas.stream, chosen=chosen, table=atlas.table, theme=theme
    )


def _scatter(atlas: Atlas, state: State, choice: HeadsChoice, theme: ThemeName) -> go.Figure:
    chosen = (state.layer, state.head)
    return views.head_scatter(
        atlas.trace,
        atlas.own_metric(choice.metric),
        atlas.own_metric(choice.beside),
        atlas.stream,
        chosen=chosen,
        table=atlas.table,
        theme=theme,
    )


def _map(atlas: Atlas, state: State, _choice: HeadsChoice, theme: ThemeName) -> go.Figure:
    apart = distances(atlas.trace, atlas.stream)
    chosen = (state.layer, state.head)
    return views.head_map(atlas.trace, atlas.stream, chosen=chosen, table=atlas.table, distances=apart, theme=theme)


def _stream_sent(name: str) -> str | None:
    message: Any = widgets.sent(_KEY, name)
    stream = message.get("stream") if isinstance(message, Mapping) else None
    # A browser may send anything.
    return stream if stream in (*STREAMS, *visit.shared().facts.mixers) else None


def _take_choice() -> None:
    if (head := widgets.sent_pair(_KEY, "choice")) is not None:
        take_head(head, _stream_sent("choice"))


def _take_open() -> None:
    if (head := widgets.sent_pair(_KEY, "open")) is not None:
        take_head(head, _stream_sent("open"))
        visit.memory(_Open).now = True


def _take_role() -> None:
    role = widgets.sent(_KEY, "role")
    visit.pick(HEADS_CHOICES, role=role if role in ROLE_NAMES else None)
