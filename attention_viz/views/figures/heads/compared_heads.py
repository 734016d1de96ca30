"""Show each head's distance between two runs."""

from collections.abc import Sequence

import numpy
import pandas
import plotly.graph_objects as go
import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.errors import ShapeError
from attention_viz.trace.trace import Trace
from attention_viz.views.figures.heads.grid_of_heads import framed, grid_of_heads
from attention_viz.views.style.scale import colour_bar, round_up
from attention_viz.views.style.theme import ThemeName, palette
from attention_viz.views.style.wording import escaped

__all__ = ["compared_heads"]


def compared_heads(
    one: Trace,
    other: Trace,
    apart: pandas.DataFrame | Float[Tensor, "layer head"],
    stream: str | None = None,
    *,
    chosen: tuple[int, int] | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """How far apart two runs are, head by head: layers down, heads across, mean Jensen–Shannon divergence in bits.

    Where there are many more layers than heads, layers stand across and heads down.

    Args:
        one: the first run.
        other: the second, whose heads these are.
        apart: from `attention_viz.head_divergences`; or one number a head, (layer, head), NaN where there is none.
        stream: of the second run; the only one there is, if none is named.
        chosen: layer and head to frame.
        theme: "light" or "dark".

    Raises:
        ShapeError: as many numbers didn't come as the second run has heads.
    """
    stream, colours = other.stream(stream), palette(theme)
    layers = other.layer_numbers(stream)
    heads = range(max(other.head_count(layer, stream) for layer in layers))
    if isinstance(apart, pandas.DataFrame):
        apart = _matrix(apart, layers, heads)
    if tuple(apart.shape) != (len(layers), len(heads)):
        raise ShapeError(
            f"divergences of {tuple(apart.shape)} heads came; the {stream} has {len(layers)} × {len(heads)}"
        )
    numbers, names = apart.tolist(), sorted({_model(one), _model(other)})
    return grid_of_heads(
        apart.numpy(),
        [other.label(layer, stream) for layer in layers],
        colours,
        title=escaped(f"How far apart each head is · {' and '.join(names)}"),
        stops=colours.increases,
        full=round_up(float(numpy.nanmax(apart.numpy(), initial=0.0))),
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
        raise ShapeError("a table of other heads came; needed: that of av.head_divergences for these two runs")
    numbers = table["divergence"].reindex(wanted).to_numpy(dtype=float)
    return torch.tensor(numbers.reshape(len(layers), len(heads)))


def _model(trace: Trace) -> str:
    origin = trace.provenance
    return f"{origin.model} {origin.revision}" if origin.revision else origin.model
