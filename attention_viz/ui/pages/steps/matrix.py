"""One step's, or all steps', matrices and arithmetic, in the drawer over the pipeline."""

import functools
import re
from collections.abc import Callable, Mapping

import streamlit as st
from torch import Tensor

from attention_viz.operation.positional import rotation
from attention_viz.serving.own import run_widths
from attention_viz.steps.arithmetic import open_cell
from attention_viz.steps.head import OpenHead
from attention_viz.steps.steps import STEPS, Step, explanation_of, formula_of, shape_of_step, steps_of, transposed
from attention_viz.trace.kind import CROSSING_STREAMS
from attention_viz.ui.address import State
from attention_viz.ui.controls.plot import show_picture
from attention_viz.ui.controls.sight import in_sight
from attention_viz.ui.pages.steps.controls import chosen_cell, show_cell_pickers, take_cell
from attention_viz.ui.pages.steps.grids import Numbers, show_numbers
from attention_viz.ui.pages.steps.numbers import in_notation, show_arithmetic, show_statistics
from attention_viz.ui.pages.steps.page import StepChoice
from attention_viz.ui.parts.layout import theme_name
from attention_viz.ui.parts.markdown import plain
from attention_viz.views import saturation
from attention_viz.views.style.theme import Palette, palette

_PROJECTED = ("query", "key", "value")
_OF_PAIRS = ("scores", "scaled", "softcapped", "biased", "allowed", "weights")
_SATURATION_HEIGHT = 420


def show_step(opened: OpenHead, as_run: OpenHead, chosen: StepChoice) -> None:
    """Draw the chosen step in full."""
    name, step = chosen.step, STEPS[chosen.step]
    matrix = step.function(opened)
    _show_words(opened, name, step, chosen)
    if matrix is None:
        _show_unknown(step)
        return
    cell = chosen_cell(step)
    _show_matrix(opened, name, matrix, chosen, cell)
    st.markdown(_facts(opened, name, step, chosen, matrix))
    show_cell_pickers(as_run)
    show_arithmetic(opened, step, cell, open_cell(opened, name, *cell), chosen.notation)
    if name in _OF_PAIRS:
        show_statistics(opened, as_run, step, cell[0], chosen.notation)
    for one in _BELOW.get(name, _nothing)(opened, chosen):
        st.markdown(f"###### {plain(one.title)}")
        show_numbers(opened, one, f"steps-picture-{name}-{one.title}")


def show_all_steps(opened: OpenHead, chosen: StepChoice) -> None:
    """Draw all steps."""
    for name, step in steps_of(opened).items():
        matrix = step.function(opened)
        left, right = st.columns([5, 7], gap="medium")
        with left:
            st.markdown(f"##### {step.label}")
            _show_words(opened, name, step, chosen)
            if matrix is not None:
                st.markdown(_facts(opened, name, step, chosen, matrix))
        with right:
            if matrix is None:
                _show_unknown(step)
            else:
                _show_matrix(opened, name, matrix, chosen, None)


def show_saturation(opened: OpenHead, state: State) -> None:
    """Draw how the softmax of ever wider heads of our own module saturates, once its place is seen."""
    st.markdown("###### Why the scale: the same text in ever wider heads of our own module")
    if in_sight("steps-saturation-sight", _SATURATION_HEIGHT):
        traces = run_widths(opened.trace.provenance.text or "", state.heads, state.seed, state.positions)
        figure = saturation(*traces, head=opened.head, chosen=opened.d_k, theme=theme_name())
        show_picture(figure, "steps-saturation", "The softmax's largest weight and gradient against d_k")


def _show_matrix(opened: OpenHead, name: str, matrix: Tensor, chosen: StepChoice, cell: tuple[int, int] | None) -> None:
    step = STEPS[name]
    turned = transposed(step, chosen.notation)
    blocked = opened.attention.masked.isneginf() if name == "weights" else None
    numbers = Numbers(step.label, matrix, step.axes, name == "weights", blocked, turned)
    take = None if cell is None else functools.partial(take_cell, step.axes)
    show_numbers(opened, numbers, f"steps-picture-{name}", cell, take)


def _show_words(opened: OpenHead, name: str, step: Step, chosen: StepChoice) -> None:
    formula = _coloured(formula_of(opened, name, chosen.notation), palette(theme_name()))
    st.markdown(f"{in_notation(explanation_of(opened, name), step, chosen.notation)}  \n${formula}$")


def _facts(opened: OpenHead, name: str, step: Step, chosen: StepChoice, matrix: Tensor) -> str:
    words, symbols = shape_of_step(step, matrix, chosen.notation, crossing=opened.stream in CROSSING_STREAMS)
    # Each of the three comes from the embeddings, not from the step listed before it.
    since = {"embeddings": "The input"} | dict.fromkeys(_PROJECTED, "From the input")
    changed = plain(in_notation(step.change(opened), step, chosen.notation))
    return f"**Shape** {words} $({symbols})$  \n**{since.get(name, 'Since the last step')}** {changed}"


def _show_unknown(step: Step) -> None:
    st.info(f"{step.label}: not recorded in this trace, so there is nothing to show.")


def _coloured(formula: str, colours: Palette) -> str:
    """Colour Q, K and V, except within other names."""
    tones = {"Q": colours.query, "K": colours.key, "V": colours.value}
    return re.sub(
        r"(?<![A-Za-z\\])([QKV])(?![A-Za-z])", lambda found: rf"\textcolor{{{tones[found[1]]}}}{{{found[1]}}}", formula
    )


def _nothing(_opened: OpenHead, _chosen: StepChoice) -> list[Numbers]:
    return []


def _learned(opened: OpenHead, chosen: StepChoice) -> list[Numbers]:
    """Return the learned matrix that made this step, if known."""
    name = "output" if chosen.step == "joined" else chosen.step
    matrix = opened.projections.get(name) if name == "output" else opened.projection(name)
    if matrix is None:
        st.caption(f"W_{name[0].upper()} isn't known here.".replace("_", r"\_"))
        return []
    turned = chosen.notation == "columns"
    return [Numbers(f"The learned matrix W_{name[0].upper()}", matrix.weight, ("d_model", "d_k"), turned=turned)]


def _rotated(opened: OpenHead, chosen: StepChoice) -> list[Numbers]:
    """Return the key after its rotation, both vectors before it, and each pair's angle."""
    turned, call = chosen.notation == "columns", opened.attention
    found = [
        Numbers("Rotated key", call.key, ("key", "d_k"), turned=turned),
        Numbers("Query before", opened.unrotated("query"), ("query", "d_k"), turned=turned),
        Numbers("Key before", opened.unrotated("key"), ("key", "d_k"), turned=turned),
    ]
    angles = rotation(opened.unrotated("query"), call.query)
    if angles is not None:
        found.append(Numbers("Angle in radians, by pair of dimensions", angles.angles, ("query", "pair")))
    return found


def _summands(parts: Mapping[str, Tensor], chosen: StepChoice) -> list[Numbers]:
    step = STEPS[chosen.step]
    axes, turned = step.axes, transposed(step, chosen.notation)
    named = {f"{name[:1].upper()}{name[1:]}": part for name, part in parts.items()}
    return [Numbers(name, part, axes, turned=turned) for name, part in named.items()] if len(parts) > 1 else []


# The matrices below a step's own numbers.
_BELOW: dict[str, Callable[[OpenHead, StepChoice], list[Numbers]]] = {
    "embeddings": lambda opened, chosen: _summands(opened.parts, chosen),
    "biased": lambda opened, chosen: _summands(opened.bias_parts, chosen),
    **dict.fromkeys(_PROJECTED, _learned),
    "joined": _learned,
    "rotated": _rotated,
}
