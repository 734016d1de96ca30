"""The Heads page: all heads of a model as one atlas, what each does in numbers, and which link two words."""

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import streamlit as st

from attention_viz.errors import AttentionVizError
from attention_viz.ui import pickers
from attention_viz.ui.badge import Badge
from attention_viz.ui.drawing import draw_in_place, tell
from attention_viz.ui.heads_choice import PREFIX, HeadsChoice, begin_heads, held, told
from attention_viz.ui.heads_words import found_words, head_words, metric_words, safe_csv
from attention_viz.ui.markdown import plain
from attention_viz.ui.menu import show_header
from attention_viz.ui.notices import tell_notices
from attention_viz.ui.serving import verify
from attention_viz.ui.state import State
from attention_viz.ui.themes import theme_name
from attention_viz.ui.what_if import EDITS, show_what_if

if TYPE_CHECKING:
    import pandas
    import plotly.graph_objects as go

    from attention_viz.trace import Trace

__all__ = ["show_page"]

_HEIGHT = 420
_LISTED = 12
_CONFIG: dict[str, Any] = {"displaylogo": False, "displayModeBar": False}

# Of traces that the app keeps, made once each: everybody who looks at a text wants the same table.
_tables: "WeakKeyDictionary[Trace, pandas.DataFrame]" = WeakKeyDictionary()


def show_page() -> None:
    """Everything on the page, top to bottom; what takes long comes last and has its place kept."""
    pickers.begin()
    show_header()
    state = pickers.choose()
    controls = st.container(key="heads-pickers", horizontal=True, vertical_alignment="bottom")
    bar = st.container(key="bar", horizontal=True, vertical_alignment="center")
    notes, place = st.container(), st.empty()
    drawn = draw_in_place(state, place, _HEIGHT)
    if drawn is None:
        pickers.keep(state)
        return
    from attention_viz.metrics import METRICS

    begin_heads(st.query_params.to_dict(), {"metric": METRICS, "beside": METRICS, "edit": EDITS})
    with controls:
        _show_pickers()
    choice = held()
    pickers.keep(state, **choice.address())
    trace = drawn.alone(state).trace
    table = _table(trace)
    with notes:
        tell(drawn, state)
        tell_notices(told())
    with bar:
        badge = Badge()
        st.download_button(
            "Head table (CSV)",
            data=lambda: safe_csv(table),
            file_name="heads.csv",
            mime="text/csv",
            on_click="ignore",
            key="download-heads",
        )
    with place.container():
        _show_atlas(trace, table, state, choice)
        show_what_if(drawn, state, choice.edit)
        _show_all(trace, table, state, choice)
    if drawn.fit is not None:
        verify(drawn)
    badge.show(drawn.trace, from_file=drawn.fit is None)


def _table(trace: "Trace") -> "pandas.DataFrame":
    from attention_viz.metrics import head_table

    if trace not in _tables:
        _tables[trace] = head_table(trace)
    return _tables[trace]


def _show_pickers() -> None:
    """Which metric colours the heads, and the two words of the search."""
    from attention_viz.metrics import METRICS

    def called(name: str) -> str:
        return METRICS[name].label

    for name, label in (("metric", "Metric"), ("beside", "Against")):
        st.selectbox(label, list(METRICS), format_func=called, key=PREFIX + name, width=190, persist_state="session")
    for name, label in (("query", "Word that looks"), ("key", "Word looked at")):
        st.text_input(label, key=PREFIX + name, width=190, persist_state="session")


def _show_atlas(trace: "Trace", table: "pandas.DataFrame", state: State, choice: HeadsChoice) -> None:
    """The atlas, the chosen head and the search side by side."""
    from attention_viz.views import head_grid, heatmap

    theme, chosen = theme_name(), (state.layer, state.head)
    atlas, one, search = st.columns([4.6, 4.6, 2.8])
    with atlas:
        grid = head_grid(trace, choice.metric, chosen=chosen, table=table, theme=theme)
        _add_targets(grid, table)
        _chart_to_click(grid, "heads-grid", f"{metric_words(choice.metric)} by head: {head_words(table, chosen)}")
        st.markdown(metric_words(choice.metric, formula=True))
    with one:
        picture = heatmap(trace, state.layer, state.head, theme=theme)
        picture.update_layout(height=_HEIGHT, title_text=f"Layer {state.layer}, head {state.head}")
        words = head_words(table, chosen)
        st.plotly_chart(picture, theme=None, key="heads-one", config=_CONFIG, alt=f"The chosen head. {words}")
        st.caption(plain(words))
        st.page_link("app.py", label="Open this head in Explore", query_params=pickers.address())
    with search:
        _show_search(trace, choice)


def _show_all(trace: "Trace", table: "pandas.DataFrame", state: State, choice: HeadsChoice) -> None:
    """Two pictures of all heads, and all numbers."""
    from attention_viz.views import head_map, head_scatter

    theme, chosen = theme_name(), (state.layer, state.head)
    st.markdown("##### All heads")
    left, right = st.columns(2)
    with left:
        scatter = head_scatter(trace, choice.metric, choice.beside, chosen=chosen, table=table, theme=theme)
        _chart_to_click(scatter, "heads-scatter", "Every head as a point, by two metrics; later layers are darker")
        st.caption("Every head is a point; later layers are darker. A click chooses one.")
    with right:
        _chart_to_click(
            head_map(trace, chosen=chosen, table=table, theme=theme),
            "heads-map",
            "Heads that look alike stand together",
        )
        st.caption(
            "The closer two heads, the more alike their rows (Jensen–Shannon divergence). The axes mean nothing by "
            "themselves."
        )
    _show_numbers(table)


def _show_search(trace: "Trace", choice: HeadsChoice) -> None:
    """The heads that link the two words, heaviest first."""
    from attention_viz.search import find_heads

    st.markdown("**Which heads link two words**")
    if not choice.query.strip() or not choice.key.strip():
        st.caption("Type the word that looks and the word that it looks at.")
        return
    try:
        found = find_heads(trace, choice.query, choice.key)
    except AttentionVizError as error:
        st.info(plain(str(error)[:1].upper() + str(error)[1:]))
        return
    shown = found.head(_LISTED)
    st.dataframe(
        shown[["layer", "head", "weight"]],
        hide_index=True,
        height=_HEIGHT - 40,
        key="heads-found",
        on_select=lambda: _take_row("heads-found", list(zip(shown["layer"], shown["head"], strict=True))),
        selection_mode="single-row",
        column_config={
            "layer": st.column_config.NumberColumn(width=50),
            "head": st.column_config.NumberColumn(width=50),
            "weight": st.column_config.ProgressColumn(width=125, min_value=0, max_value=1, format="%.3f"),
        },
    )
    st.caption(plain(found_words(trace, found, choice)))


def _show_numbers(table: "pandas.DataFrame") -> None:
    """All metrics of all heads, to sort."""
    numbers = table.round(4).reset_index()
    heads = list(zip(numbers["layer"], numbers["head"], strict=True))
    st.dataframe(
        numbers,
        hide_index=True,
        key="heads-table",
        on_select=lambda: _take_row("heads-table", heads),
        selection_mode="single-row",
    )
    st.caption("A click on a column's name sorts by it; a click on a row's box chooses that head.")


def _add_targets(figure: "go.Figure", table: "pandas.DataFrame") -> None:
    """Invisible points over the cells: Plotly reports clicks on points, not on cells of a heatmap."""
    heads = [(int(layer), int(head)) for layer, head in table.index]
    unseen = {"marker": {"opacity": 0}}
    figure.add_scatter(
        x=[head for _, head in heads],
        y=[layer for layer, _ in heads],
        customdata=heads,
        mode="markers",
        marker={"size": 18, "opacity": 0},
        selected=unseen,
        unselected=unseen,
        hoverinfo="none",
        showlegend=False,
    )


def _chart_to_click(figure: "go.Figure", key: str, said: str) -> None:
    figure.update_layout(height=_HEIGHT, hovermode="closest", clickmode="event+select", dragmode=False)
    st.plotly_chart(
        figure,
        theme=None,
        key=key,
        config=_CONFIG,
        alt=said,
        on_select=lambda: _take_click(key),
        selection_mode="points",
    )


def _take_click(key: str) -> None:
    points = st.session_state[key]["selection"]["points"]
    if points:
        _take(*points[0]["customdata"])


def _take_row(key: str, heads: list[tuple[int, int]]) -> None:
    rows = st.session_state[key]["selection"]["rows"]
    if rows and rows[0] < len(heads):
        _take(*heads[rows[0]])


def _take(layer: int, head: int) -> None:
    st.session_state["layer"], st.session_state["head"] = int(layer), int(head)
