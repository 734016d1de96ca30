"""A step's matrices as pictures with clickable cells."""

import functools
from dataclasses import replace

import plotly.graph_objects as go
import streamlit as st
import torch
from torch import Tensor

from attention_viz.operation.positional import rotation
from attention_viz.serving.own import run_widths
from attention_viz.steps.head import OpenHead
from attention_viz.steps.steps import Step, transposed
from attention_viz.ui.address import State
from attention_viz.ui.controls.plot import add_targets, show_picture, show_to_click
from attention_viz.ui.pages.steps.controls import take_cell
from attention_viz.ui.parts.themes import theme_name
from attention_viz.views import angles, learned, saturation, steps

__all__ = ["show_angles", "show_bias_part", "show_learned", "show_matrix", "show_part", "show_saturation"]

# As many cells as a browser handles as targets of a click; of a larger matrix, those around the chosen cell.
_TARGETS = 1600
_TARGETS_AROUND = 20


def show_matrix(
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


def show_learned(opened: OpenHead, name: str, notation: str) -> None:
    """Draw the head's learned "query", "key", "value" or "output" matrix, if known."""
    matrix = opened.projections.get(name) if name == "output" else opened.projection(name)
    if matrix is None:
        st.caption(f"W_{name[0].upper()} is not known here.".replace("_", r"\_"))
        return
    turned = "columns" if notation == "columns" else "rows"
    figure = learned(
        opened.trace, opened.layer, opened.head, name, matrix, opened.stream, notation=turned, theme=theme_name()
    )
    show_picture(figure, f"steps-learned-{name}", f"The learned matrix that makes the {name}")


def show_part(opened: OpenHead, name: str, part: Tensor, notation: str) -> None:
    """Draw one summand like the embeddings."""
    layers = list(opened.trace.layers[opened.stream])
    layers[opened.trace.layer_numbers(opened.stream).index(opened.layer)] = replace(opened.entry, embeddings=part)
    trace = opened.trace.derived(layers={**opened.trace.layers, opened.stream: tuple(layers)})
    figure = steps(trace, opened.layer, opened.head, "embeddings", opened.stream, notation=notation, theme=theme_name())
    figure.update_layout(title_text=name.capitalize())
    show_picture(figure, f"steps-part-{name}", name.capitalize())


def show_bias_part(opened: OpenHead, name: str, notation: str) -> None:
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


def show_angles(opened: OpenHead) -> None:
    """Draw each position's rotation of each dimension pair, if any."""
    if rotation(opened.unrotated("query"), opened.attention.query) is None:
        return
    figure = angles(opened.trace, opened.layer, opened.head, opened.stream, theme=theme_name())
    show_picture(figure, "steps-angles", "The angle by which each pair of dimensions was turned")


def show_saturation(opened: OpenHead, state: State) -> None:
    """Draw softmax sharpness over our own module's width."""
    text = opened.trace.provenance.text or ""
    traces = run_widths(text, state.heads, state.seed, state.positions)
    st.markdown("###### Why the scale: the same text through our own module, wider and wider")
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
