"""The drawer of layers without a softmax: each step's matrix and arithmetic."""

import functools
from collections.abc import Sequence

import streamlit as st
import torch
from torch import Tensor

from attention_viz.errors import ShapeError
from attention_viz.serving.runs import Run
from attention_viz.steps.mixer_steps import MIXER_STEPS, mixer_steps_of, mixer_tensors, open_mixer_cell
from attention_viz.steps.mixing import MixerHead, open_mixer
from attention_viz.steps.pair import MixerPair, erasers, open_pair
from attention_viz.trace.export import to_safetensors
from attention_viz.ui.address import State
from attention_viz.ui.pages.steps.controls import chosen_cell, show_picker, take_cell
from attention_viz.ui.pages.steps.grids import Numbers, show_numbers
from attention_viz.ui.pages.steps.numbers import cell_html, label_of, number_html, show_arithmetic, table_html
from attention_viz.ui.pages.steps.page import PIPELINE, Possible, StepChoice
from attention_viz.ui.parts.downloads import show_downloads
from attention_viz.ui.parts.markdown import plain

_ERASERS = 8
_OF_A_PAIR = ("query", "key")


def mixes(run: Run, state: State) -> bool:
    """Return whether the chosen stream has no softmax."""
    return run.stream(state.stream) in run.trace.mixers


def head_of(run: Run, state: State) -> MixerHead:
    """Open the chosen head or channel."""
    stream = run.stream(state.stream)
    return open_mixer(run.trace, *run.place(stream, state.layer, state.head), stream)


def known_choices(opened: MixerHead) -> Possible:
    """Return the page's choices for this head."""
    queries, keys = opened.mixer.shape
    widest = max(opened.mixer.value.shape[-1], opened.mixer.query.shape[-1])
    only = {
        "scale": ["model"],
        "precision": ["model"],
        "notation": ["rows"],
        "variant": ["multi"],
        "all": ["no", "yes"],
    }
    steps = [PIPELINE, *mixer_steps_of(opened)]
    return Possible({"step": steps, "query": range(queries), "key": range(keys), "dimension": range(widest), **only})


def _show_pickers(opened: MixerHead, axes: tuple[str, ...], shape: Sequence[int]) -> None:
    with st.container(key="steps-switches", horizontal=True, vertical_alignment="bottom", gap="small"):
        for axis, count in zip(axes, shape, strict=True):
            if axis != "one" and count > 1:
                show_picker(axis, opened.trace, opened.stream, count)


def show_mixer_exports(opened: MixerHead) -> None:
    """Draw the export menu; its tensors are all steps' matrices."""
    place = (opened.layer, opened.head, opened.stream)
    tensors = functools.partial(to_safetensors, opened.trace, *place, functools.partial(mixer_tensors, opened))
    labels = ("Weights (CSV)", "Tensors (safetensors)", "Picture (SVG)")
    made = {"Tensors (safetensors)": tensors}
    show_downloads(opened.trace, opened.stream, opened.layer, opened.head, labels, made)


def show_mixer_step(opened: MixerHead, choice: StepChoice) -> None:
    """Draw the chosen step's matrix with its numbers, or all matrices."""
    if choice.all == "yes":
        for name in mixer_steps_of(opened):
            left, right = st.columns([5, 7], gap="medium")
            with left:
                st.markdown(f"##### {MIXER_STEPS[name].label}")
                _show_words(opened, name)
            with right:
                show_numbers(opened, _numbers(opened, name), f"steps-picture-{name}")
        return
    name, step, matrix = choice.step, MIXER_STEPS[choice.step], _matrix(opened, choice.step)
    row, column = (min(at, count - 1) for at, count in zip(chosen_cell(step), matrix.shape, strict=True))
    cell = (row, 0 if step.axes[1] == "one" else column)
    _show_words(opened, name)
    take = functools.partial(take_cell, step.axes)
    show_numbers(opened, _numbers(opened, name), f"steps-picture-{name}", cell, take)
    # The pair is chosen in the pipeline, which stays in sight.
    if step.axes[1] not in _OF_A_PAIR:
        _show_pickers(opened, step.axes[1:], matrix.shape[1:])
    show_arithmetic(opened, step, cell, open_mixer_cell(opened, name, *cell), "rows")
    if name == "erased":
        _show_erasers(open_pair(opened, *cell))


def _numbers(opened: MixerHead, name: str) -> Numbers:
    """Return a step's matrix; from later tokens nothing arrives."""
    step, matrix = MIXER_STEPS[name], _matrix(opened, name)
    later = None
    if opened.mixer.is_causal and step.axes == ("query", "key"):
        later = torch.ones_like(matrix, dtype=torch.bool).triu(1)
    return Numbers(step.label, matrix, step.axes, blocked=later)


def _matrix(opened: MixerHead, name: str) -> Tensor:
    found = MIXER_STEPS[name].function(opened)
    if found is None:
        raise ShapeError(f"{name} isn't a step of {opened.mixer.kind}")
    return found


def _show_words(opened: MixerHead, name: str) -> None:
    step = MIXER_STEPS[name]
    st.markdown(f"{step.explanation} {plain(step.change(opened))}")


def _show_erasers(pair: MixerPair) -> None:
    """Show the later tokens that changed the weight most by erasing."""
    found = erasers(pair)
    if not found:
        return
    head = [cell_html(name, "th") for name in ("token", "erased", "weight without it", "change")]
    lines = [
        [
            cell_html(f"{one.position} · {label_of(pair.opened, 'key', one.position)}", "th"),
            *(number_html(number) for number in (-one.erased, one.without, one.change)),
        ]
        for one in found[:_ERASERS]
    ]
    rest = f" These {_ERASERS} of {len(found)} change it most." if len(found) > _ERASERS else ""
    st.markdown(
        "###### Which later tokens erased it\n\n“Weight without it” is the weight if this one token erased nothing and "
        f"all others did.{rest}"
    )
    st.html(table_html(head, lines, "erasers"))
