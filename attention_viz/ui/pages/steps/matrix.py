"""One step or all: formula, shape, change, matrix and arithmetic."""

import re
from collections.abc import Callable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from torch import Tensor

from attention_viz.steps.arithmetic import open_cell
from attention_viz.steps.head import OpenHead
from attention_viz.steps.steps import STEPS, Step, explanation_of, formula_of, shape_of_step, steps_of, transposed
from attention_viz.ui.address import State
from attention_viz.ui.pages.steps.choice import StepChoice
from attention_viz.ui.pages.steps.controls import chosen_cell
from attention_viz.ui.pages.steps.matrices import (
    show_angles,
    show_bias_part,
    show_learned,
    show_matrix,
    show_part,
    show_saturation,
    theme_name,
)
from attention_viz.ui.pages.steps.numbers import in_notation, show_arithmetic, show_statistics, show_window
from attention_viz.ui.parts.markdown import plain
from attention_viz.views.style.theme import Palette, palette

__all__ = ["show_all_steps", "show_step"]

_PROJECTED = ("query", "key", "value")
_OF_PAIRS = ("scores", "scaled", "softcapped", "biased", "allowed", "weights")


def show_step(opened: OpenHead, as_run: OpenHead, chosen: StepChoice, state: State, *, own: bool) -> None:
    """The chosen step alone, in full."""
    name, step, colours = chosen.step, STEPS[chosen.step], palette(theme_name())
    matrix = step.function(opened)
    if matrix is None:
        _show_step(opened, name, step, chosen, None, colours, _abreast())
        _show_unknown(step)
        return
    cell, wide = chosen_cell(step), name in (*_PROJECTED, "rotated") or step.axes[1] == "d_model"
    _show_step(opened, name, step, chosen, matrix, colours, _abreast())
    if wide:
        _PICTURES.get(name, _show_one)(opened, chosen, cell)
    left, right = st.columns(2 if wide else [7, 5], gap="medium")
    with left:
        if not wide:
            _PICTURES.get(name, _show_one)(opened, chosen, cell)
        show_window(opened, step, matrix, cell, turned=transposed(step, chosen.notation))
        if name in _OF_PAIRS:
            show_statistics(opened, as_run, step, cell[0], chosen.notation)
    with right:
        show_arithmetic(opened, step, cell, open_cell(opened, name, *cell), chosen.notation)
    if name in _BELOW:
        _BELOW[name](opened, chosen)
    if own and name in ("scaled", "weights") and chosen.variant == "multi":
        show_saturation(opened, state)


def show_all_steps(opened: OpenHead, as_run: OpenHead, chosen: StepChoice, state: State, *, own: bool) -> None:
    """Draw all steps with formula, shape, change and matrix."""
    colours = palette(theme_name())
    for name, step in steps_of(opened).items():
        matrix = step.function(opened)
        left, right = st.columns([5, 7], gap="medium")
        _show_step(opened, name, step, chosen, matrix, colours, (left, left))
        with right:
            if matrix is None:
                _show_unknown(step)
            else:
                show_matrix(opened, name, step, chosen.notation, None)


def _show_step(
    opened: OpenHead,
    name: str,
    step: Step,
    chosen: StepChoice,
    matrix: Tensor | None,
    colours: Palette,
    places: tuple[DeltaGenerator, DeltaGenerator],
) -> None:
    words, formula = places
    words.markdown(f"##### {step.label}\n{in_notation(explanation_of(opened, name), step, chosen.notation)}")
    written = rf"$\displaystyle {_coloured(formula_of(opened, name, chosen.notation), colours)}$"
    facts = () if matrix is None else _facts(opened, name, step, chosen, matrix)
    formula.markdown("  \n".join((written, *facts)))


def _abreast() -> tuple[DeltaGenerator, DeltaGenerator]:
    """Save height, so the matrix fits the first screen."""
    left, right = st.columns([4, 8], gap="medium")
    return left, right


def _facts(opened: OpenHead, name: str, step: Step, chosen: StepChoice, matrix: Tensor) -> tuple[str, str]:
    words, symbols = shape_of_step(step, matrix, chosen.notation, crossing=opened.stream == "cross")
    # Each of the three is made of the embeddings, not of the one that stands before it.
    since = {"embeddings": "What comes in"} | dict.fromkeys(_PROJECTED, "From what comes in")
    changed = plain(in_notation(step.change(opened), step, chosen.notation))
    return (
        f"**Shape** {words} $({symbols})$",
        f"**{since.get(name, 'Since the step before')}** {changed}",
    )


def _show_unknown(step: Step) -> None:
    st.info(f"{step.label}: not known for this trace. It was not recorded, so there is nothing to show here.")


def _coloured(formula: str, colours: Palette) -> str:
    """Colour Q, K and V, except within other names."""
    tones = {"Q": colours.query, "K": colours.key, "V": colours.value}
    return re.sub(
        r"(?<![A-Za-z\\])([QKV])(?![A-Za-z])", lambda found: rf"\textcolor{{{tones[found[1]]}}}{{{found[1]}}}", formula
    )


def _show_one(opened: OpenHead, chosen: StepChoice, cell: tuple[int, int]) -> None:
    show_matrix(opened, chosen.step, STEPS[chosen.step], chosen.notation, cell)


def _show_projected(opened: OpenHead, chosen: StepChoice, cell: tuple[int, int]) -> None:
    for column, name in zip(st.columns(3), _PROJECTED, strict=True):
        with column:
            show_matrix(opened, name, STEPS[name], chosen.notation, cell if name == chosen.step else None)


def _learned_three(opened: OpenHead, chosen: StepChoice) -> None:
    for column, name in zip(st.columns(3), _PROJECTED, strict=True):
        with column:
            show_learned(opened, name, chosen.notation)


def _show_rotated(opened: OpenHead, chosen: StepChoice, cell: tuple[int, int]) -> None:
    *sides, turned = st.columns(3)
    for column, side in zip(sides, ("query", "key"), strict=True):
        with column:
            show_matrix(opened, side, STEPS[side], chosen.notation, None)
            show_matrix(
                opened, "rotated", STEPS["rotated"], chosen.notation, cell if side == "query" else None, side=side
            )
    with turned:
        show_angles(opened)


def _parts(opened: OpenHead, chosen: StepChoice) -> None:
    if len(opened.parts) > 1:
        for column, (name, part) in zip(st.columns(len(opened.parts)), opened.parts.items(), strict=True):
            with column:
                show_part(opened, name, part, chosen.notation)


def _bias_parts(opened: OpenHead, chosen: StepChoice) -> None:
    if len(opened.bias_parts) > 1:
        for column, name in zip(st.columns(len(opened.bias_parts)), opened.bias_parts, strict=True):
            with column:
                show_bias_part(opened, name, chosen.notation)


def _learned_output(opened: OpenHead, chosen: StepChoice) -> None:
    show_learned(opened, "output", chosen.notation)


# What is drawn of a step where that is more than its matrix, and what stands below its numbers.
_PICTURES: dict[str, Callable[[OpenHead, StepChoice, tuple[int, int]], None]] = {
    **dict.fromkeys(_PROJECTED, _show_projected),
    "rotated": _show_rotated,
}
_BELOW: dict[str, Callable[[OpenHead, StepChoice], None]] = {
    "embeddings": _parts,
    "biased": _bias_parts,
    **dict.fromkeys(_PROJECTED, _learned_three),
    "joined": _learned_output,
}
