"""One step's, or all steps', matrices and arithmetic."""

import functools
import re
from collections.abc import Callable
from dataclasses import replace

import plotly.graph_objects as go
import streamlit as st
import torch
from streamlit.delta_generator import DeltaGenerator
from torch import Tensor

from attention_viz.operation.positional import rotation
from attention_viz.serving.own import run_widths
from attention_viz.steps.arithmetic import open_cell
from attention_viz.steps.head import OpenHead
from attention_viz.steps.steps import STEPS, Step, explanation_of, formula_of, shape_of_step, steps_of, transposed
from attention_viz.ui.address import State
from attention_viz.ui.controls.plot import add_targets, show_picture, show_to_click
from attention_viz.ui.pages.steps.controls import chosen_cell, take_cell
from attention_viz.ui.pages.steps.numbers import in_notation, show_arithmetic, show_statistics, show_window
from attention_viz.ui.pages.steps.page import StepChoice
from attention_viz.ui.parts.layout import theme_name
from attention_viz.ui.parts.markdown import plain
from attention_viz.views import angles, learned, saturation, steps
from attention_viz.views.style.theme import Palette, palette

# The most clickable cells that a browser handles; in a larger matrix, those around the chosen cell.
_TARGETS = 1600
_TARGETS_AROUND = 20
_PROJECTED = ("query", "key", "value")
_OF_PAIRS = ("scores", "scaled", "softcapped", "biased", "allowed", "weights")


def _show_matrix(
    opened: OpenHead,
    name: str,
    step: Step,
    notation: str,
    cell: tuple[int, int] | None,
    *,
    side: str = "query",
    opens: bool = True,
) -> None:
    """Draw one step's matrix; if it opens, a click chooses a cell."""
    figure = steps(
        opened.trace,
        opened.layer,
        opened.head,
        name,
        opened.stream,
        side=side,
        notation=notation,
        cell=cell,
        theme=theme_name(),
    )
    key = f"steps-picture-{name}-{side}"
    if cell is None or not opens:
        show_picture(figure, key, step.label)
    else:
        _show_to_click(figure, key, opened, step, notation, cell)


def _show_learned(opened: OpenHead, name: str, notation: str) -> None:
    """Draw the head's learned "query", "key", "value" or "output" matrix, if known."""
    matrix = opened.projections.get(name) if name == "output" else opened.projection(name)
    if matrix is None:
        st.caption(f"W_{name[0].upper()} isn't known here.".replace("_", r"\_"))
        return
    turned = "columns" if notation == "columns" else "rows"
    figure = learned(
        opened.trace, opened.layer, opened.head, name, matrix, opened.stream, notation=turned, theme=theme_name()
    )
    show_picture(figure, f"steps-learned-{name}", f"The learned matrix for the {name}")


def _show_part(opened: OpenHead, name: str, part: Tensor, notation: str) -> None:
    layers = list(opened.trace.layers[opened.stream])
    layers[opened.trace.layer_numbers(opened.stream).index(opened.layer)] = replace(opened.entry, embeddings=part)
    trace = opened.trace.derived(layers={**opened.trace.layers, opened.stream: tuple(layers)})
    figure = steps(trace, opened.layer, opened.head, "embeddings", opened.stream, notation=notation, theme=theme_name())
    figure.update_layout(title_text=name.capitalize())
    show_picture(figure, f"steps-part-{name}", name.capitalize())


def _show_bias_part(opened: OpenHead, name: str, notation: str) -> None:
    """Draw one bias summand, as a bias with scores 0."""
    layers = list(opened.trace.layers[opened.stream])
    call = opened.entry.attention
    alone = replace(call, query=torch.zeros_like(call.query), bias=opened.entry.bias_parts[name], softcap=None)
    place = opened.trace.layer_numbers(opened.stream).index(opened.layer)
    layers[place] = replace(opened.entry, attention=alone, bias_parts={})
    trace = opened.trace.derived(layers={**opened.trace.layers, opened.stream: tuple(layers)})
    figure = steps(trace, opened.layer, opened.head, "biased", opened.stream, notation=notation, theme=theme_name())
    figure.update_layout(title_text=_capitalized(name))
    show_picture(figure, f"steps-part-{name}", _capitalized(name))


def _capitalized(name: str) -> str:
    return name[:1].upper() + name[1:]


def _show_angles(opened: OpenHead) -> None:
    """Draw each position's rotation of each dimension pair, if any."""
    if rotation(opened.unrotated("query"), opened.attention.query) is None:
        return
    figure = angles(opened.trace, opened.layer, opened.head, opened.stream, theme=theme_name())
    show_picture(figure, "steps-angles", "The rotation angle of each pair of dimensions")


def _show_saturation(opened: OpenHead, state: State) -> None:
    text = opened.trace.provenance.text or ""
    traces = run_widths(text, state.heads, state.seed, state.positions)
    st.markdown("###### Why the scale: the same text in ever wider heads of our own module")
    show_picture(
        saturation(*traces, head=opened.head, chosen=opened.d_k, theme=theme_name()),
        "steps-saturation",
        "The softmax's largest weight and gradient against d_k",
    )


def _show_to_click(
    figure: go.Figure, key: str, opened: OpenHead, step: Step, notation: str, cell: tuple[int, int]
) -> None:
    matrix = step.function(opened)
    if matrix is not None:
        shape = tuple(matrix.shape)
        rows, columns = (_near(place, count, shape) for place, count in zip(cell, shape, strict=True))
        cells = [(row, column) for row in rows for column in columns]
        named = len(cells) == matrix.numel()
        add_targets(figure, cells, turned=transposed(step, notation), named=named)
    show_to_click(figure, key, f"{step.label} as a matrix of colours", functools.partial(take_cell, step.axes))


def _near(place: int, count: int, shape: tuple[int, ...]) -> range:
    if shape[0] * shape[1] <= _TARGETS:
        return range(count)
    return range(max(0, place - _TARGETS_AROUND), min(count, place + _TARGETS_AROUND))


def show_step(opened: OpenHead, as_run: OpenHead, chosen: StepChoice, state: State, *, own: bool) -> None:
    """Draw the chosen step in full."""
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
        _show_saturation(opened, state)


def show_all_steps(opened: OpenHead, as_run: OpenHead, chosen: StepChoice, state: State, *, own: bool) -> None:
    """Draw all steps."""
    colours = palette(theme_name())
    for name, step in steps_of(opened).items():
        matrix = step.function(opened)
        left, right = st.columns([5, 7], gap="medium")
        _show_step(opened, name, step, chosen, matrix, colours, (left, left))
        with right:
            if matrix is None:
                _show_unknown(step)
            else:
                _show_matrix(opened, name, step, chosen.notation, None)


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
    # Each of the three comes from the embeddings, not from the step listed before it.
    since = {"embeddings": "The input"} | dict.fromkeys(_PROJECTED, "From the input")
    changed = plain(in_notation(step.change(opened), step, chosen.notation))
    return (f"**Shape** {words} $({symbols})$", f"**{since.get(name, 'Since the last step')}** {changed}")


def _show_unknown(step: Step) -> None:
    st.info(f"{step.label}: not recorded in this trace, so there is nothing to show.")


def _coloured(formula: str, colours: Palette) -> str:
    """Colour Q, K and V, except within other names."""
    tones = {"Q": colours.query, "K": colours.key, "V": colours.value}
    return re.sub(
        r"(?<![A-Za-z\\])([QKV])(?![A-Za-z])", lambda found: rf"\textcolor{{{tones[found[1]]}}}{{{found[1]}}}", formula
    )


def _show_one(opened: OpenHead, chosen: StepChoice, cell: tuple[int, int]) -> None:
    _show_matrix(opened, chosen.step, STEPS[chosen.step], chosen.notation, cell)


def _show_projected(opened: OpenHead, chosen: StepChoice, cell: tuple[int, int]) -> None:
    for column, name in zip(st.columns(3), _PROJECTED, strict=True):
        with column:
            _show_matrix(opened, name, STEPS[name], chosen.notation, cell if name == chosen.step else None)


def _learned_three(opened: OpenHead, chosen: StepChoice) -> None:
    for column, name in zip(st.columns(3), _PROJECTED, strict=True):
        with column:
            _show_learned(opened, name, chosen.notation)


def _show_rotated(opened: OpenHead, chosen: StepChoice, cell: tuple[int, int]) -> None:
    *sides, turned = st.columns(3)
    for column, side in zip(sides, ("query", "key"), strict=True):
        with column:
            _show_matrix(opened, side, STEPS[side], chosen.notation, None)
            _show_matrix(
                opened, "rotated", STEPS["rotated"], chosen.notation, cell if side == "query" else None, side=side
            )
    with turned:
        _show_angles(opened)


def _parts(opened: OpenHead, chosen: StepChoice) -> None:
    if len(opened.parts) > 1:
        for column, (name, part) in zip(st.columns(len(opened.parts)), opened.parts.items(), strict=True):
            with column:
                _show_part(opened, name, part, chosen.notation)


def _bias_parts(opened: OpenHead, chosen: StepChoice) -> None:
    if len(opened.bias_parts) > 1:
        for column, name in zip(st.columns(len(opened.bias_parts)), opened.bias_parts, strict=True):
            with column:
                _show_bias_part(opened, name, chosen.notation)


def _learned_output(opened: OpenHead, chosen: StepChoice) -> None:
    _show_learned(opened, "output", chosen.notation)


# The figures of steps that have more than one, and the parts below a step's numbers.
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
