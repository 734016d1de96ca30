"""A step's matrices as pictures, whose cells open at a click."""

from typing import TYPE_CHECKING, Any

import streamlit as st

from attention_viz.ui.state import State
from attention_viz.ui.step_controls import take_cell
from attention_viz.ui.step_runs import widths
from attention_viz.ui.themes import theme_name

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from torch import Tensor

    from attention_viz.open_head import OpenHead
    from attention_viz.steps import Step

__all__ = ["show_angles", "show_learned", "show_matrix", "show_part", "show_saturation"]

# As many cells as a browser handles as targets of a click; of a larger matrix, those around the chosen cell.
_TARGETS = 1600
_TARGETS_AROUND = 20


def show_matrix(
    opened: "OpenHead",
    name: str,
    step: "Step",
    notation: str,
    cell: tuple[int, int] | None,
    *,
    side: str = "query",
    opens: bool = True,
) -> None:
    """One step's matrix; where it opens, a click on a cell makes it the chosen one."""
    from attention_viz.views import steps

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
        _show(figure, key, step.label)
    else:
        _show_to_click(figure, key, opened, step, notation, cell)


def show_learned(opened: "OpenHead", name: str, notation: str) -> None:
    """The learned matrix of this head for "query", "key", "value" or "output", where it is known."""
    from attention_viz.views import learned

    matrix = opened.projections.get(name) if name == "output" else opened.projection(name)
    if matrix is None:
        st.caption(f"W_{name[0].upper()} is not known here.".replace("_", r"\_"))
        return
    turned = "columns" if notation == "columns" else "rows"
    figure = learned(
        opened.trace, opened.layer, opened.head, name, matrix, opened.stream, notation=turned, theme=theme_name()
    )
    _show(figure, f"steps-learned-{name}", f"The learned matrix that makes the {name}")


def show_part(opened: "OpenHead", name: str, part: "Tensor", notation: str) -> None:
    """One summand of the embeddings, drawn as they are."""
    from dataclasses import replace

    from attention_viz.views import steps

    layers = list(opened.trace.layers[opened.stream])
    layers[opened.layer] = replace(opened.entry, embeddings=part)
    trace = replace(opened.trace, layers={**opened.trace.layers, opened.stream: tuple(layers)}, complete=None)
    figure = steps(trace, opened.layer, opened.head, "embeddings", opened.stream, notation=notation, theme=theme_name())
    figure.update_layout(title_text=name.capitalize())
    _show(figure, f"steps-part-{name}", name.capitalize())


def show_angles(opened: "OpenHead") -> None:
    """By how much each position turned each pair of dimensions, where pairs were turned."""
    from attention_viz.rotation import rotation
    from attention_viz.views import angles

    if rotation(opened.unrotated("query"), opened.attention.query) is None:
        return
    figure = angles(opened.trace, opened.layer, opened.head, opened.stream, theme=theme_name())
    _show(figure, "steps-angles", "The angle by which each pair of dimensions was turned")


def show_saturation(opened: "OpenHead", state: State) -> None:
    """How sharp the softmax gets as our own module gets wider."""
    from attention_viz.views import saturation

    text = opened.trace.provenance.text or ""
    traces = widths(text, state.heads, state.seed, state.positions)
    st.markdown("###### Why the scale: the same text through our own module, wider and wider")
    _show(
        saturation(*traces, head=opened.head, chosen=opened.d_k, theme=theme_name()),
        "steps-saturation",
        "The softmax's largest weight and gradient against d_k",
    )


_CONFIG: dict[str, Any] = {"displaylogo": False, "displayModeBar": False}


def _show(figure: "go.Figure", key: str, said: str) -> None:
    st.plotly_chart(figure, theme=None, key=key, config=_CONFIG, alt=said)


def _show_to_click(
    figure: "go.Figure", key: str, opened: "OpenHead", step: "Step", notation: str, cell: tuple[int, int]
) -> None:
    from attention_viz.steps import transposed

    matrix = step.function(opened)
    if matrix is not None:
        _add_targets(figure, tuple(matrix.shape), cell, turned=transposed(step, notation))
    st.plotly_chart(
        figure,
        theme=None,
        key=key,
        config=_CONFIG,
        alt=f"{step.label} as a matrix of colours",
        on_select=lambda: _take_click(key, step.axes),
        selection_mode="points",
    )


def _add_targets(figure: "go.Figure", shape: tuple[int, ...], cell: tuple[int, int], *, turned: bool) -> None:
    """Invisible points over the cells: Plotly reports clicks on points, not on cells of a heatmap."""
    rows, columns = (_near(place, count, shape) for place, count in zip(cell, shape, strict=True))
    places = [(row, column) for row in rows for column in columns]
    down, across = [row for row, _ in places], [column for _, column in places]
    unseen = {"marker": {"opacity": 0}}
    figure.add_scatter(
        x=down if turned else across,
        y=across if turned else down,
        customdata=places,
        mode="markers",
        marker={"size": 14, "opacity": 0},
        selected=unseen,
        unselected=unseen,
        hoverinfo="none" if len(places) == shape[0] * shape[1] else "skip",
        showlegend=False,
    )
    figure.update_layout(hovermode="closest", clickmode="event+select", dragmode=False)


def _near(place: int, count: int, shape: tuple[int, ...]) -> range:
    if shape[0] * shape[1] <= _TARGETS:
        return range(count)
    return range(max(0, place - _TARGETS_AROUND), min(count, place + _TARGETS_AROUND))


def _take_click(key: str, axes: tuple[str, str]) -> None:
    points = st.session_state[key]["selection"]["points"]
    if points:
        row, column = points[0]["customdata"]
        take_cell(axes, (int(row), int(column)))
