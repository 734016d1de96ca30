"""The Cross-attention page's parts."""

import functools
import html
from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from attention_viz.serving.runs import Run
from attention_viz.trace.trace import Trace
from attention_viz.ui.address import State
from attention_viz.ui.controls import reading
from attention_viz.ui.pages.cross.page import STREAM
from attention_viz.ui.parts.downloads import show_read_downloads
from attention_viz.ui.parts.drawing import show_notes
from attention_viz.ui.parts.explorer import show_explorer
from attention_viz.ui.parts.matters import answer_later
from attention_viz.ui.parts.readings import show_reading
from attention_viz.ui.parts.selection import take_choice
from attention_viz.ui.presenting.host import present_findings
from attention_viz.ui.runner.loading import ReadStudy, load_text, settle_text, study_read
from attention_viz.ui.runner.page import Part, Parts
from attention_viz.ui.selection import Selection
from attention_viz.views.style.wording import one_line

_LONGEST_TARGET = 400
load, settle, study = load_text, settle_text, study_read


def _show_target(trace: Trace) -> None:
    origin = trace.provenance
    own = bool(origin.generated)
    target = one_line(origin.target or " ".join(trace.query_tokens(STREAM).written), _LONGEST_TARGET)
    who = "Output" if own else "Target"
    st.html(f'<p class="cross-said"><b>{who}</b> <span data-testid="said">{html.escape(target)}</span></p>')


def view(study: ReadStudy, selection: Selection) -> Parts:
    """Return the page's parts."""
    state, run, shown = selection.shared, study.run, study.shown
    parts = [
        Part("notes", functools.partial(show_notes, run, state, rows=False)),
        Part("said", functools.partial(_show_target, run.trace)),
    ]
    if shown is None:
        return Parts(parts, runs=[("", run)])
    parts += [
        Part("picture", functools.partial(_show, shown, run, state)),
        Part("words", functools.partial(show_reading, shown, state)),
    ]
    return Parts(
        parts,
        exports=functools.partial(show_read_downloads, run, shown, state),
        slides=functools.partial(present_findings, shown.alone(STREAM), state),
        runs=[("", run)],
    )


def _show(shown: Run, run: Run, state: State) -> Callable[[], None] | None:
    part = shown.alone(state.stream) if shown.trace.seen.sound is None else shown.part(STREAM)
    pair = (state.query, state.key)
    show_explorer(part, STREAM, state.layer, reading.head(state), take_choice, pair=pair)
    return answer_later(run, replace(state, stream=STREAM))
