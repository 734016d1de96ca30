"""A number per head: layers down, heads across, turned if many."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy
import pandas
import plotly.graph_objects as go
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from attention_viz.analysis.head_table import head_table
from attention_viz.edits.effects import moved_weight
from attention_viz.errors import ShapeError
from attention_viz.trace.trace import Trace
from attention_viz.views.figures.points import metric_in, metrics_text
from attention_viz.views.style.axes import arrange, label_axes
from attention_viz.views.style.blocks import cells
from attention_viz.views.style.marks import add_numbers
from attention_viz.views.style.scale import colour_bar, round_up
from attention_viz.views.style.theme import Palette, ThemeName, palette
from attention_viz.views.style.wording import escaped

if TYPE_CHECKING:
    import pandas

__all__ = [
    "changed_heads",
    "compared_heads",
    "framed",
    "grid_of_heads",
    "head_effects",
    "head_grid",
    "is_turned",
    "written",
]

# Up to this many heads and layers, each cell's number stands in it.
_PRINTED_UP_TO = 16


def grid_of_heads(
    values: Float[ndarray, "layer head"],
    layers: Sequence[str],
    colours: Palette,
    *,
    title: str,
    stops: Sequence[str],
    ends: tuple[float, float],
    said: Sequence[Sequence[str]],
    written: Callable[[float], str],
    bar: dict[str, Any],
    chosen: tuple[int, int] | None = None,
) -> go.Figure:
    """Colour each head by its number between `ends`, layers down; see `is_turned`."""
    turned = is_turned(*values.shape)
    texts = list(zip(*said, strict=True)) if turned else said
    drawn = cells(values.T if turned else values, ends, stops, texts, xgap=1, ygap=1, colorbar=bar)
    figure = go.Figure([drawn])
    if max(values.shape) <= _PRINTED_UP_TO:
        add_numbers(figure, written)
    arrange(figure, title, colours)
    named = {"head": [str(head) for head in range(values.shape[1])], "layer": [escaped(layer) for layer in layers]}
    across, down = ("layer", "head") if turned else ("head", "layer")
    label_axes(figure, colours, (named[across], across, colours.ink), (named[down], down, colours.ink))
    if chosen is not None:
        row, column = reversed(chosen) if turned else chosen
        edges = {"x0": column - 0.5, "x1": column + 0.5, "y0": row - 0.5, "y1": row + 0.5}
        figure.add_shape(type="rect", line={"color": colours.ink, "width": 2}, **edges)
    return figure


def is_turned(layers: int, heads: int) -> bool:
    """Return whether layers run across: with many, rows would be strips."""
    return layers > _PRINTED_UP_TO and layers > 2 * heads


def framed(chosen: tuple[int, int] | None, layers: Sequence[int]) -> tuple[int, int] | None:
    """Return a head's row and column; None if its layer is missing."""
    return None if chosen is None or chosen[0] not in layers else (layers.index(chosen[0]), chosen[1])


def head_grid(
    trace: Trace,
    metric: str = "entropy",
    stream: str | None = None,
    *,
    chosen: tuple[int, int] | None = None,
    table: "pandas.DataFrame | None" = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw every head as a cell coloured by a metric: layers down, heads across.

    With many more layers than heads, layers are across and heads down.

    Args:
        trace: the run.
        metric: a name in `METRICS`.
        stream: the attention type; None for the only one.
        chosen: layer and head to frame.
        table: from `head_table`, such as of several texts; by default that of the trace.
        theme: "light" or "dark".

    Raises:
        ShapeError: the metric is unknown, these layers don't have it, or the table has other layers than the trace.
        TraceError: the stream is missing, or there are several and none was named.
    """
    stream, colours = trace.stream(stream), palette(theme)
    table = head_table(trace, stream) if table is None else table
    shown = metric_in(table, metric)
    values, numbers = table[metric].unstack("head").to_numpy(), trace.layer_numbers(stream)
    if tuple(table.index.unique("layer")) != numbers:
        raise ShapeError(f"the table must have the layers of the {stream}: {', '.join(map(str, numbers))}")
    low = float(numpy.nanmin(values, initial=0.0))
    largest = round_up(max(float(numpy.nanmax(values, initial=0.0)), -low))
    return grid_of_heads(
        values,
        [trace.label(layer, stream) for layer in numbers],
        colours,
        title=f"{shown.label}, by head",
        stops=colours.differences if low < 0 else colours.weights,
        ends=(-largest if low < 0 else 0, largest),
        said=[[metrics_text(table, layer, head) for head in range(values.shape[1])] for layer in numbers],
        written=written,
        bar=colour_bar(shown.unit),
        chosen=framed(chosen, numbers),
    )


def written(number: float) -> str:
    """Write a head's number for its cell."""
    return f"{number:.2f}" if number < 10 else f"{number:.1f}"


def changed_heads(before: Trace, after: Trace, stream: str | None = None, *, theme: ThemeName = "light") -> go.Figure:
    """Draw the moved weight of every head, from 0 to 1: layers down, heads across.

    With many more layers than heads, layers are across and heads down.

    Raises:
        TraceError: the traces aren't of the same tokens and layers.
    """
    stream, colours = before.stream(stream), palette(theme)
    moved = moved_weight(before, after, stream).numpy()
    labels = [before.label(layer, stream) for layer in before.layer_numbers(stream)]
    return grid_of_heads(
        moved,
        labels,
        colours,
        title=f"Share of the {'size' if stream in before.mixers else 'weight'} that moved, by head",
        stops=colours.increases,
        ends=(0, 1),
        said=[
            [f"layer {escaped(label)}, head {head}: {one:.4f} of its weight moved" for head, one in enumerate(row)]
            for label, row in zip(labels, moved.tolist(), strict=True)
        ],
        written="{:.2f}".format,
        bar=colour_bar("moved"),
    )


def head_effects(
    trace: Trace,
    moved: "pandas.Series",
    stream: str | None = None,
    *,
    chosen: tuple[int, int] | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw every head as a cell coloured by how far the output moved when that head was changed.

    Layers are down and heads across, or the other way round with many more layers than heads.

    Args:
        trace: the run without a change.
        moved: by (layer, head), the mean of `changes.moved_output`; untried heads are left out.
        stream: the heads' attention type; None for the only one.
        chosen: layer and head to frame.
        theme: "light" or "dark".

    Raises:
        ShapeError: no head was tried, or one that the trace doesn't have.
    """
    stream, colours = trace.stream(stream), palette(theme)
    tried = dict(zip(cast("list[tuple[int, int]]", list(moved.index)), moved.tolist(), strict=True))
    layers = sorted({layer for layer, _ in tried})
    if not tried or not set(layers) <= set(trace.layer_numbers(stream)):
        part = layers and stream in trace.kept and not trace.kept[stream].whole
        there = trace.kept[stream] if part else f"{trace.layer_count(stream)} layers"
        raise ShapeError(f"effects need one or more heads of the {stream}, which has {there}; got {len(tried)}")
    heads = range(max(trace.head_count(layer, stream) for layer in layers))
    values = numpy.array([[tried.get((layer, head), numpy.nan) for head in heads] for layer in layers])
    largest = float(numpy.nanmax(values))
    digits = 1 if largest >= 0.005 else 3
    return grid_of_heads(
        values,
        [trace.label(layer, stream) for layer in layers],
        colours,
        title="How far the output moves if a head is changed",
        stops=colours.increases,
        ends=(0, round_up(largest)),
        said=[
            [f"layer {layer}, head {head}: {_percent(tried.get((layer, head)))}" for head in heads] for layer in layers
        ],
        written=lambda share: f"{share:.{digits}%}",
        bar={**colour_bar("moved"), "tickformat": ".0%" if largest > 0.04 else f".{digits}%"},
        chosen=framed(chosen, layers),
    )


def _percent(moved: float | None) -> str:
    return "not tried" if moved is None else f"the output moves by {moved:.2%}"


def compared_heads(
    one: Trace,
    other: Trace,
    apart: pandas.DataFrame | Float[Tensor, "layer head"],
    stream: str | None = None,
    *,
    chosen: tuple[int, int] | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw how much two runs differ in each head: layers down, heads across, mean Jensen–Shannon divergence in bits.

    With many more layers than heads, layers are across and heads down.

    Args:
        one: the first run.
        other: the second run, which the heads belong to.
        apart: from `attention_viz.head_divergences`; or one number per head, (layer, head), NaN for none.
        stream: the second run's attention type; None for the only one.
        chosen: layer and head to frame.
        theme: "light" or "dark".

    Raises:
        ShapeError: the numbers don't fit the second run's heads.
    """
    stream, colours = other.stream(stream), palette(theme)
    layers = other.layer_numbers(stream)
    heads = range(max(other.head_count(layer, stream) for layer in layers))
    if isinstance(apart, pandas.DataFrame):
        apart = _matrix(apart, layers, heads)
    if tuple(apart.shape) != (len(layers), len(heads)):
        raise ShapeError(
            f"divergences must fit the heads of the {stream}, {len(layers)} × {len(heads)}; got {tuple(apart.shape)}"
        )
    numbers, names = apart.tolist(), sorted({_model(one), _model(other)})
    return grid_of_heads(
        apart.numpy(),
        [other.label(layer, stream) for layer in layers],
        colours,
        title=escaped(f"Difference of each head · {' and '.join(names)}"),
        stops=colours.increases,
        ends=(0, round_up(float(numpy.nanmax(apart.numpy(), initial=0.0)))),
        said=[
            [f"layer {layer}, head {head}: {value:.6f} bits" for head, value in enumerate(row)]
            for layer, row in zip(layers, numbers, strict=True)
        ],
        written="{:.2f}".format,
        bar=colour_bar("bits"),
        chosen=framed(chosen, layers),
    )


def _matrix(table: pandas.DataFrame, layers: Sequence[int], heads: Sequence[int]) -> Float[Tensor, "layer head"]:
    wanted = pandas.MultiIndex.from_product([layers, heads])
    if "divergence" not in table or table.index.difference(wanted).size:
        raise ShapeError("the table has other heads; pass that of av.head_divergences for these two runs")
    numbers = table["divergence"].reindex(wanted).to_numpy(dtype=float)
    return torch.tensor(numbers.reshape(len(layers), len(heads)))


def _model(trace: Trace) -> str:
    origin = trace.provenance
    return f"{origin.model} {origin.revision}" if origin.revision else origin.model
