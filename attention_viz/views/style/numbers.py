"""Write legible numbers in cells, except tiny weights."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy
import plotly.graph_objects as go

from attention_viz.views.style.theme import ink_on, on_ramp

__all__ = ["LEAST", "NUMBERS", "add_numbers", "heatmaps"]

# A weight or a change of one that is less than this isn't written: its cell is as good as empty. The explorer's
# `data/scale.js` has the same.
LEAST = 0.05
# What the cells are called that hold numbers in the other ink.
NUMBERS = "numbers"


_CLEAR = "rgba(0,0,0,0)"
# Plotly fits letters to cells by those that have some: an empty cell counts as well.
_EMPTY = " "


def add_numbers(
    figure: go.Figure,
    written: Callable[[float], str] | Sequence[Sequence[str]],
    *,
    at: int = 0,
    least: float = 0.0,
    blocked: Any = None,
    size: int | None = None,
    **place: Any,
) -> None:
    """Write numbers into heatmap cells in legible ink.

    A heatmap has one ink, so clear cells without hover, drawn last, hold the other's.

    Args:
        written: a number format, or each cell's text, without foreign markup.
        at: the heatmap's trace; sets colours and range.
        size: of letters; as large as fits by default.
    """
    parts: Any = figure.data
    cells = parts[at]
    values: Any = numpy.asarray(cells["z"], dtype=float)
    stops: list[str] = [colour for _, colour in cells["colorscale"]]
    low, high = float(cells["zmin"]), float(cells["zmax"])
    shown = ~numpy.isnan(values) & (numpy.abs(numpy.nan_to_num(values)) >= least)
    shown = shown if blocked is None else shown & ~blocked
    inks = [
        [ink_on(on_ramp(stops, (value - low) / (high - low))) if here else "" for value, here in zip(*row, strict=True)]
        for row in zip(values.tolist(), shown.tolist(), strict=True)
    ]
    texts = values.tolist() if callable(written) else written
    write: Callable[[Any], str] = written if callable(written) else str
    for number, ink in enumerate(sorted({ink for row in inks for ink in row if ink})):
        text = [
            [write(one) if its == ink else _EMPTY for one, its in zip(*row, strict=True)]
            for row in zip(texts, inks, strict=True)
        ]
        print_in = {"text": text, "texttemplate": "%{text}", "textfont": {"color": ink, "size": size}}
        if number == 0:
            cells.update(print_in)
        else:
            figure.add_trace(_over(cells, values, print_in), **place)


def heatmaps(figure: go.Figure) -> list[Any]:
    """Return the heatmaps, including number holders."""
    parts: Any = figure.data
    return [part for part in parts if part.type == "heatmap"]


def _over(cells: go.Heatmap, values: Any, print_in: dict[str, Any]) -> go.Heatmap:
    return go.Heatmap(
        z=numpy.zeros_like(values),
        zmin=0,
        zmax=1,
        colorscale=[[0, _CLEAR], [1, _CLEAR]],
        showscale=False,
        hoverinfo="skip",
        name=NUMBERS,
        xgap=cells["xgap"],
        ygap=cells["ygap"],
        **print_in,
    )
