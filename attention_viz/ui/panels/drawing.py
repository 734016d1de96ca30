"""The panels below Explore: each in its place, once it is there."""

from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from importlib import resources
from importlib.metadata import EntryPoint
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from attention_viz.explorer import script
from attention_viz.explorer.widgets.head_selection import Selection
from attention_viz.serving.runs import Run
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import State
from attention_viz.ui.controls.plot import show_picture
from attention_viz.ui.panels.running import MOST_ROWS, PanelOutcome, panels, run_panel
from attention_viz.ui.parts.layout import colour_rules, theme_name
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.selection import pair_of
from attention_viz.views.style.wording import shortened

# In seconds: how often a page looks whether a panel is there, and how long a run waits for a quick one.
_LOOK, _QUICK = 0.5, 0.1
_LONGEST_NAME, _LONGEST_ERROR, _HEIGHT = 80, 300, 360
# No scripts, forms, windows or requests: only what the HTML itself brings.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:"

_frame = widgets.component("panel", "<div></div>\n", js=script("page/panel.js"))
_CSS = resources.files("attention_viz.ui.panels").joinpath("panel.css").read_text("utf-8")


@dataclass
class _Wanted:
    """The outcomes that this visit's page waits for, by panel."""

    futures: dict[int, Future[PanelOutcome]] = field(default_factory=dict[int, "Future[PanelOutcome]"])


def show_panels(run: Run, state: State) -> None:
    """Draw the installed panels of a run's chosen head."""
    found = panels()
    if not found:
        return
    stream = run.stream(state.stream)
    selection = Selection(stream, *run.place(stream, state.layer, state.head), *pair_of(run, state))
    for number, panel in enumerate(found):
        st.markdown(f"#### {plain(shortened(panel.name, _LONGEST_NAME))}")
        future = run_panel(panel, run.trace, selection)
        _leave_others(number, future)
        if not _is_there(future):
            st.fragment(_wait, run_every=_LOOK)(future)
            continue
        with st.container(key=f"panel-{number}"):
            _show(number, panel, future.result())


def _leave_others(number: int, future: "Future[PanelOutcome]") -> None:
    """Cancel the outcome of the head before, unless it has begun."""
    wanted = visit.memory(_Wanted).futures
    before = wanted.get(number)
    wanted[number] = future
    if before is not None and before is not future:
        before.cancel()


def _is_there(future: "Future[PanelOutcome]") -> bool:
    try:
        future.result(_QUICK)
    except (TimeoutError, CancelledError):
        return False
    return True


def _wait(future: "Future[PanelOutcome]") -> None:
    st.caption("Computing …")
    if future.done():
        visit.run_again()


def _show(number: int, panel: EntryPoint, outcome: PanelOutcome) -> None:
    error = outcome.error
    if not error:
        try:
            _draw(number, panel, outcome.shown)
        except Exception as problem:  # a table or figure that can't be sent
            error = f"{type(problem).__name__}: {problem}"
    if error:
        st.warning(plain(f"This panel failed. {shortened(error, _LONGEST_ERROR)}"))


def _draw(number: int, panel: EntryPoint, shown: Any) -> None:
    if isinstance(shown, str):
        _frame(key=f"panel-frame-{number}", data={"html": _page(shown), "title": panel.name, "height": _HEIGHT})
    elif isinstance(shown, go.Figure):
        show_picture(shown, f"panel-figure-{number}", panel.name, theme="streamlit")
    else:
        st.dataframe(shown.head(MOST_ROWS), key=f"panel-table-{number}")
        if len(shown) > MOST_ROWS:
            st.caption(f"The first {MOST_ROWS:,} of {len(shown):,} rows.")


def _page(html: str) -> str:
    """Return a panel's HTML below its policy, in the page's colours; its links open nothing."""
    head = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    style = colour_rules(theme_name()) + _CSS
    return f'<!DOCTYPE html><html><head>{head}<base target="_blank"><style>{style}</style></head><body>{html}'
