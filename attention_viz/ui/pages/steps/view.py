"""The Step by step page's parts."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field

import streamlit as st
from torch import Tensor

from attention_viz.errors import AttentionVizError
from attention_viz.explorer import pipeline_source
from attention_viz.explorer.pipeline_payload import pack_pipeline
from attention_viz.operation.modules import Projection
from attention_viz.serving.own import run_own
from attention_viz.serving.run import OwnModule
from attention_viz.serving.runs import Run, projections
from attention_viz.steps.head import OpenHead, open_head
from attention_viz.steps.mixer_steps import MIXER_STEPS, mixer_steps_of
from attention_viz.steps.mixing import MixerHead
from attention_viz.steps.steps import STEPS, step_tensors, steps_of
from attention_viz.trace.export import to_safetensors
from attention_viz.trace.trace import Trace
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import State
from attention_viz.ui.pages.steps.controls import (
    as_the_model,
    possible,
    show_step_list,
    show_switches,
    variants,
)
from attention_viz.ui.pages.steps.drawer import show_drawer
from attention_viz.ui.pages.steps.matrix import show_all_steps, show_saturation, show_step
from attention_viz.ui.pages.steps.mixing import (
    head_of,
    known_choices,
    mixes,
    show_mixer_exports,
    show_mixer_step,
)
from attention_viz.ui.pages.steps.page import PIPELINE, STEP_CHOICES, Possible, StepChoice, is_pipeline
from attention_viz.ui.pages.steps.rest import show_rest
from attention_viz.ui.parts.downloads import show_downloads
from attention_viz.ui.parts.drawing import show_notes
from attention_viz.ui.parts.explorer import show_channel
from attention_viz.ui.parts.notices import tell
from attention_viz.ui.parts.selection import pair_of, ran, show_why, take_pair
from attention_viz.ui.presenting.host import present_mixer_steps, present_steps
from attention_viz.ui.runner.loading import load_text, study_as_it_is
from attention_viz.ui.runner.page import Part, Parts, Slots, raise_again
from attention_viz.ui.selection import SHARED, Filled, Selection, answer, resolve, update

_KEY = "steps-pipeline"

_pipeline = widgets.component("pipeline", *pipeline_source())


_DOWNLOADS = ("Weights (CSV)", "Tensors (safetensors)", "Picture (SVG)")
study = study_as_it_is


@dataclass(frozen=True, eq=False)
class OpenRun:
    """A trace, with its known learned matrices and embedding summands."""

    trace: Trace
    projections: Mapping[str, Projection] = field(default_factory=dict[str, "Projection"])
    parts: Mapping[str, Tensor] = field(default_factory=dict[str, "Tensor"])

    def head(self, state: State, scale: str = "model", precision: str | None = None) -> OpenHead:
        """Return the head, switched or as run; the nearest if the variant lacks it."""
        stream = self.trace.attention_streams[0]
        head = min(state.head, self.trace.head_count(state.layer, stream) - 1)
        return open_head(
            self.trace,
            state.layer,
            head,
            stream,
            scale=scale,
            precision=precision,
            projections=self.projections,
            parts=self.parts,
        )


def _open_run(run: Run, state: State, variant: str) -> OpenRun:
    """Return the run, or our own module's chosen variant."""
    if mixes(run, state):
        return OpenRun(run.trace)
    if run.fit is None:
        return OpenRun(run.alone(state.stream).trace)
    if state.own:
        own = run_own(run.fit.kept, OwnModule(state.d_model, state.heads, state.seed, state.positions), variant)
        return OpenRun(own.trace, own.projections, own.parts)
    return OpenRun(run.alone(state.stream).trace, projections(state.request, state.layer, run.stream(state.stream)))


@dataclass(frozen=True, eq=False)
class StepsStudy:
    """A run and its open part, or an error."""

    run: Run
    opens: OpenRun | AttentionVizError

    def own(self, state: State) -> bool:
        """Return whether our own module, which has variants, ran."""
        return state.own and self.run.fit is not None


def load(state: State, slots: Slots) -> StepsStudy | None:
    """Run the sentence and chosen variant; None after a problem."""
    run = load_text(state, slots)
    if run is None:
        return None
    own = state.own and run.fit is not None
    try:
        opens = _open_run(run, state, _with_variant(visit.here().selection, own=own).of(STEP_CHOICES).variant)
    except AttentionVizError as error:
        return StepsStudy(run, error)
    return StepsStudy(run, opens)


def _with_variant(selection: Selection, *, own: bool) -> Selection:
    return answer(selection, STEP_CHOICES, Possible({"variant": variants()}, own=own), only=("variant",))


def settle(selection: Selection, study: StepsStudy) -> Selection:
    """Select the best finding, within its head's limits."""
    selection = resolve(selection, ran(study.run))
    if isinstance(study.opens, AttentionVizError):
        return selection
    state, unread = selection.shared, bool(selection.part(STEP_CHOICES).unread)
    pair = pair_of(study.run, state)
    if mixes(study.run, state):
        known = known_choices(head_of(study.run, state))
    else:
        as_run = study.opens.head(state)
        known = Possible(possible(as_run), as_the_model(as_run), study.own(state))
    default = StepChoice(query=pair[0], key=pair[1])
    selection = answer(_with_variant(selection, own=known.own), STEP_CHOICES, known, default=default)
    choice = selection.of(STEP_CHOICES)
    if (choice.query, choice.key) == pair:
        return selection
    # A link's half pair is completed and becomes the pair of all pages; otherwise this page takes theirs.
    if unread:
        return update(selection, Filled(SHARED, {"query": choice.query, "key": choice.key}, stays=True))
    return update(selection, Filled(STEP_CHOICES, {"query": pair[0], "key": pair[1]}))


def view(study: StepsStudy, selection: Selection) -> Parts:
    """Return the pipeline or a step's matrix."""
    state, choice = selection.shared, selection.of(STEP_CHOICES)
    if mixes(study.run, state) and not isinstance(study.opens, AttentionVizError):
        return _view_mixer(study, state, choice)
    notes = Part("notes", functools.partial(show_notes, study.run.alone(state.stream), state))
    if isinstance(study.opens, AttentionVizError):
        return Parts([notes, Part("picture", functools.partial(raise_again, study.opens))])
    as_run = study.opens.head(state)
    opened = study.opens.head(state, choice.scale, None if choice.precision == "model" else choice.precision)
    own = study.own(state)
    parts = [
        notes,
        Part("notes", functools.partial(_show_notes, opened, choice, state)),
        Part("below", functools.partial(show_step_list, steps_of(as_run))),
        Part("options", functools.partial(show_switches, possible(as_run), as_run, state, own=own)),
        Part("pipeline", functools.partial(_show_pipeline, opened, choice)),
    ]
    if not is_pipeline(choice):
        show = functools.partial(show_step, opened, as_run, choice)
        if choice.all == "yes":
            show = functools.partial(show_all_steps, opened, choice)
        parts.append(Part("drawer", functools.partial(show_drawer, steps_of(as_run), show)))
    if own and choice.step in ("scaled", "weights") and choice.variant == "multi":
        parts.append(Part("below", functools.partial(show_saturation, opened, state)))
    parts.append(Part("rest", functools.partial(show_rest, study.run, opened, choice.query)))
    # For our own module, export the shown variant; for any other model, the whole run.
    exported = as_run.trace if state.own else study.run.trace
    return Parts(
        parts,
        exports=functools.partial(_show_exports, opened, exported),
        slides=functools.partial(present_steps, opened, *pair_of(study.run, state)),
        runs=[("", Run(as_run.trace, study.run.fit))],
        switched=bool(opened.switched),
    )


def _view_mixer(study: StepsStudy, state: State, choice: StepChoice) -> Parts:
    """Return a layer's parts that has no softmax; its head has no scale or precision to change."""
    opened = head_of(study.run, state)
    steps = mixer_steps_of(opened)
    parts = [
        Part("notes", functools.partial(show_notes, study.run, state)),
        Part("below", functools.partial(show_step_list, steps)),
        Part("pipeline", functools.partial(_show_pipeline, opened, choice)),
    ]
    if not is_pipeline(choice):
        parts.append(
            Part("drawer", functools.partial(show_drawer, steps, functools.partial(show_mixer_step, opened, choice)))
        )
    parts.append(Part("rest", functools.partial(show_rest, study.run, opened, choice.query)))
    slides = functools.partial(present_mixer_steps, opened, choice.query, choice.key)
    return Parts(parts, exports=functools.partial(show_mixer_exports, opened), slides=slides, runs=[("", study.run)])


def _show_notes(opened: OpenHead, choice: StepChoice, state: State) -> None:
    if choice.precision not in ("model", "float32"):
        tell(
            f"Query, key, value, weights and output are rounded to {choice.precision}; the sums between them stay in "
            "float32, as on a GPU."
        )
    if opened.head != state.head:
        tell(f"This variant has only head {opened.head}, so the Head picker has no effect.")


def _show_pipeline(opened: OpenHead | MixerHead, choice: StepChoice) -> None:
    pair = choice.query, choice.key
    packed = pack_pipeline(opened, *pair)
    _pipeline(key=_KEY, data=packed, height="content", on_choice_change=_take_pipeline_pair, on_open_change=_open_step)
    head = {"layer": opened.layer, "head": opened.head, "stream": opened.stream}
    show_channel(_KEY, **head, query=pair[0], key=pair[1], seen=widgets.serial(_KEY), terms=choice.terms)
    if widgets.sent(_KEY, "open") == "why":
        show_why()


def _take_pipeline_pair() -> None:
    if (pair := widgets.sent_pair(_KEY, "choice", ("query", "key"))) is not None:
        take_pair(*pair)


def _open_step() -> None:
    step = widgets.sent(_KEY, "open")
    # A browser may send anything.
    if isinstance(step, str) and step in (PIPELINE, *STEPS, *MIXER_STEPS):
        visit.pick(STEP_CHOICES, step=step, all="no")


def _show_exports(opened: OpenHead, exported: Trace) -> None:
    if opened.switched:
        st.badge(f"Differs from the model: {', '.join(opened.switched)}", color="orange")
    tensors = functools.partial(
        to_safetensors, opened.trace, opened.layer, opened.head, opened.stream, functools.partial(step_tensors, opened)
    )
    show_downloads(
        opened.trace, opened.stream, opened.layer, opened.head, _DOWNLOADS, {"Tensors (safetensors)": tensors}, exported
    )
