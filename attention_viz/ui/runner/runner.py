"""The runner."""

import importlib
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.errors import AttentionVizError
from attention_viz.serving.imports import one_importer
from attention_viz.serving.runs import Run
from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.address.titles import folder_of, title
from attention_viz.ui.controls import pickers
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.badge import Badge
from attention_viz.ui.parts.drawing import hold, show_problem
from attention_viz.ui.parts.explorer import reserve_heads
from attention_viz.ui.parts.menu import show_header
from attention_viz.ui.parts.notices import show_notices
from attention_viz.ui.parts.selection import show_asked_page
from attention_viz.ui.presenting.button import presented
from attention_viz.ui.runner.page import Page, Parts, Slots, View

# Pages whose bodies are imported whole.
READY: set[str] = set()


@contextmanager
def importing(page: str, state: State | None, place: DeltaGenerator | None, height: int) -> Generator[None]:
    """Import a page's body, one thread at a time, with its slot filled."""
    if page not in READY and place is not None:
        hold(state, place, height)
    with one_importer:
        yield
    READY.add(page)


def show_page(page: Page) -> None:
    """Show a page, slow parts last."""
    reserve_heads(first=page.heads_first)
    pickers.begin(*page.groups, example=page.example(st.query_params.to_dict()))
    if page.first is not None:
        page.first()
    show_header()
    row = page.row()
    state = page.state(visit.here().selection)
    page.controls(state, row)
    state = page.state(visit.here().selection)
    _show_notices(page)
    st.set_page_config(page_title=title(page.name, state))
    if not page.address_follows_run:
        _write_address(page)
    if (say_why := page.unfit(state)) is not None:
        say_why()
        return
    tools = None if page.badges == "none" else _Tools.reserved(row.bar, page.badges)
    slots = page.layout(state, row)
    if tools is not None:
        slots = replace(slots, named={**slots.named, "exports": tools.exports})
    if page.recorded is not None and (run_meanwhile := page.recorded(state, slots)) is not None:
        with importing(page.name, state, None, slots.height):
            _ = _view_of(page)
        run_meanwhile()
        visit.run_again()
    with importing(page.name, state, slots.picture.to_fill(), slots.height):
        view = _view_of(page)
    run = view.load(state, slots)
    if run is not None:
        _settle(view, run)
        show_asked_page()
    _write_address(page)
    _show_notices(page)
    if run is None:
        if tools is not None:
            tools.line.empty()
        return
    selection = visit.here().selection
    _show(view.view(view.study(run, selection, slots), selection), slots, tools)


def _view_of(page: Page) -> View:
    return cast(View, importlib.import_module(f"attention_viz.ui.pages.{folder_of(page.name)}.view"))


def _settle(view: View, run: Any) -> None:
    """Settle on the run; rerun if the row is outdated, or if a person chose meanwhile in a newer run."""
    before = visit.here().selection
    settled = view.settle(before, run)
    if not visit.replace(before, settled) or settled.shared != before.shared:
        visit.run_again()


def _write_address(page: Page) -> None:
    """Write the URL, a Back step if new; links can't carry files, so an open one keeps the URL."""
    if opening.opened() is None:
        address = page.address(visit.here().selection)
        st.query_params.from_dict(address | presented(st.query_params.to_dict()))


def _show_notices(page: Page) -> None:
    for group in page.carried(visit.here().selection)[1]:
        show_notices(visit.notices(group))


@dataclass(frozen=True)
class _Tools:
    """The row's end; `line` is emptied if there is nothing to show."""

    line: DeltaGenerator
    exports: DeltaGenerator
    badge: Badge | None
    several: DeltaGenerator | None

    @classmethod
    def reserved(cls, bar: DeltaGenerator, badges: str) -> "_Tools":
        """Reserve slots for one badge or several."""
        line = bar.empty()
        with line.container(key="tools", horizontal=True, vertical_alignment="center", gap="small"):
            exports = st.container(key="downloads", width="content", horizontal=True, vertical_alignment="center")
            if badges == "several":
                return cls(line, exports, None, st.container(key="compare-badges", width="content", gap=None))
            return cls(line, exports, Badge(), None)

    def badges(self, runs: Sequence[tuple[str, Run]]) -> list[tuple[Badge, Run]]:
        """Return each run's badge, several with labels."""
        if self.several is None:
            return [(cast(Badge, self.badge), run) for _, run in runs]
        found = list[tuple[Badge, Run]]()
        for label, run in runs:
            with self.several.container(horizontal=True, vertical_alignment="center", width="content", gap="xsmall"):
                st.caption(label, width="content")
                found.append((Badge(f"badge-{label}"), run))
        return found


def _show(parts: Parts, slots: Slots, tools: _Tools | None) -> None:
    badges = [] if tools is None else tools.badges(parts.runs)
    last = list[Callable[[], object]]()
    for part in parts.parts:
        slot = slots[part.slot]
        try:
            with slot:
                later = part.draw()
        except AttentionVizError as error:
            # One element replaces the whole slot; a container would keep its progress below the error.
            show_problem(error, slots.picture.place if part.slot == "picture" else slot)
            continue
        if callable(later):
            last.append(cast(Callable[[], object], later))
    if parts.exports is not None and tools is not None:
        with tools.exports:
            parts.exports()
    if parts.slides is not None:
        parts.slides()
    for badge, run in badges:
        _verify(badge, run, switched=parts.switched)
    for show in last:
        show()


def _verify(badge: Badge, run: Run, *, switched: bool) -> None:
    from attention_viz.serving.verifying import verify

    if run.fit is not None:
        verify(run, still_wanted=badge.wait)
    badge.show(run.trace, from_file=run.fit is None, switched=switched)
