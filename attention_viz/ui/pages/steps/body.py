"""The Step by step page's body: one head as a pipeline, every step's matrix, and every cell as its arithmetic."""

import functools

import streamlit as st

from attention_viz.errors import AttentionVizError
from attention_viz.serving.runs import Drawn
from attention_viz.serving.verifying import verify
from attention_viz.steps.head import OpenHead
from attention_viz.steps.steps import STEPS, step_tensors, steps_of
from attention_viz.trace.tensors import to_safetensors
from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.pages.steps.choice import STEP_CHOICES, Possible, StepChoice, is_pipeline
from attention_viz.ui.pages.steps.controls import (
    as_the_model,
    possible,
    show_cell_pickers,
    show_step_list,
    show_switches,
    variants,
)
from attention_viz.ui.pages.steps.pipeline import asked_step, chosen_pair, show_pipeline
from attention_viz.ui.pages.steps.places import Places
from attention_viz.ui.pages.steps.runs import Run, run
from attention_viz.ui.pages.steps.view import show_all_steps, show_step
from attention_viz.ui.parts.badge import Badge
from attention_viz.ui.parts.downloads import show_downloads
from attention_viz.ui.parts.drawing import draw_in_place, show_notes, show_problem
from attention_viz.ui.parts.notices import show_notices, tell
from attention_viz.ui.parts.selection import pair_of, settle_selection, show_why, take_pair
from attention_viz.ui.presenting.host import present_steps

__all__ = ["show_body"]

# Kept for a visit: the pair that the page last showed because it was chosen on all pages.
_PAIR = "steps-pair"
_DOWNLOADS = ("Weights (CSV)", "Tensors (safetensors)", "Picture (SVG)")


def show_body(state: State, places: Places, height: int) -> None:
    """Run the sentence, open the chosen head, and fill the places.

    Args:
        state: what the pickers say.
        places: a place for each part of the page.
        height: of the picture, in pixels.
    """
    settle = functools.partial(settle_selection, state=state)
    drawn = draw_in_place(state, places.picture, height, keep=True, settle=settle)
    heads = None
    if drawn is not None:
        with places.notes:
            show_notes(drawn, state)
        _follow_selection(drawn, state)
        try:
            heads = _open(drawn, state, places)
        except AttentionVizError as error:
            show_problem(error, places.picture)
    pickers.keep(state, STEP_CHOICES)
    if drawn is not None and heads is not None:
        present_steps(heads[0], *pair_of(drawn, state))
        with places.bar:
            _show_bar(*heads, drawn, state)


def _open(drawn: Drawn, state: State, places: Places) -> tuple[OpenHead, OpenHead]:
    """Show the pipeline or the chosen step; gives the head as it is shown, and as the model ran it."""
    own = state.own and drawn.fit is not None
    ran = _run(drawn, state, own=own)
    as_run, chosen = _controls(ran, drawn, state, places, own=own)
    _hand_on(drawn, state, chosen)
    opened = ran.head(state, chosen.scale, None if chosen.precision == "model" else chosen.precision)
    with places.notes:
        show_notices(visit.notices(STEP_CHOICES))
        if chosen.precision not in ("model", "float32"):
            tell(
                f"Query, key, value, weights and output are rounded to {chosen.precision}; the sums between them are "
                "kept in float32, as on a graphics card."
            )
        if opened.head != state.head:
            tell(f"This variant has one head, head {opened.head}; the picker's is not used.")
    if is_pipeline(chosen):
        with places.pipeline:
            pair = chosen.query, chosen.key
            show_pipeline(opened, pair, chosen.terms, on_choice=_take_pipeline_pair, on_open=_open_step)
        if asked_step() == "why":
            show_why()
    else:
        places.pipeline.empty()
        with places.picture.container():
            (show_all_steps if chosen.all == "yes" else show_step)(opened, as_run, chosen, state, own=own)
    return opened, as_run


def _take_pipeline_pair() -> None:
    """What was chosen in the pipeline becomes the page's own choice."""
    if (pair := chosen_pair()) is not None:
        visit.pick(STEP_CHOICES, query=pair[0], key=pair[1])


def _open_step() -> None:
    """Open the matrix that was asked for in the pipeline."""
    if (step := asked_step()) in STEPS:
        visit.pick(STEP_CHOICES, step=step)


def _follow_selection(drawn: Drawn, state: State) -> None:
    """Open the pair that is chosen on all pages, wherever it was chosen since this page last ran."""
    pair = pair_of(drawn, state)
    if st.session_state.get(_PAIR) != pair:
        st.session_state[_PAIR] = pair
        if not visit.is_unread(STEP_CHOICES):
            visit.pick(STEP_CHOICES, query=pair[0], key=pair[1])


def _hand_on(drawn: Drawn, state: State, chosen: StepChoice) -> None:
    """What was chosen here is what the other pages show."""
    pair = chosen.query, chosen.key
    if pair != pair_of(drawn, state):
        take_pair(*pair)
        st.session_state[_PAIR] = pair


def _run(drawn: Drawn, state: State, *, own: bool) -> Run:
    chosen = visit.settle(STEP_CHOICES, Possible({"variant": variants()}, own=own), only=("variant",))
    return run(drawn, state, chosen.variant)


def _controls(ran: Run, drawn: Drawn, state: State, places: Places, *, own: bool) -> tuple[OpenHead, StepChoice]:
    """The list of steps and the switches; what they say, and the head as the model ran it."""
    as_run = ran.head(state)
    options = possible(as_run)
    trace = as_run.trace
    wording = (*trace.query_tokens(as_run.stream).labels, *trace.key_tokens(as_run.stream).labels)
    query, key = pair_of(drawn, state)
    chosen = visit.settle(
        STEP_CHOICES,
        Possible(options, as_the_model(as_run), own),
        default=StepChoice(query=query, key=key),
        labels=(*as_the_model(as_run).values(), *wording),
    )
    with places.below if is_pipeline(chosen) else places.controls:
        show_step_list(steps_of(as_run))
        show_cell_pickers(as_run)
    with places.options:
        show_switches(options, as_run, state, own=own)
    return as_run, chosen


def _show_bar(opened: OpenHead, as_run: OpenHead, drawn: Drawn, state: State) -> None:
    """How far the run can be trusted, what is not as the model did it, and downloads of what is on the screen."""
    if opened.switched:
        st.badge(f"Not as the model: {', '.join(opened.switched)}", color="orange")
    tensors = functools.partial(
        to_safetensors, opened.trace, opened.layer, opened.head, opened.stream, functools.partial(step_tensors, opened)
    )
    show_downloads(
        opened.trace,
        opened.stream,
        opened.layer,
        opened.head,
        _DOWNLOADS,
        {"Tensors (safetensors)": tensors},
        # Of our own module, the variant that is shown; of any other model, what ran, with all its streams.
        as_run.trace if state.own else drawn.trace,
    )
    badge = Badge()
    if drawn.fit is not None:
        verify(Drawn(as_run.trace, drawn.fit))
    badge.show(as_run.trace, from_file=drawn.fit is None, switched=bool(opened.switched))
