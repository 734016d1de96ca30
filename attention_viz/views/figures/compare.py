"""Two heads side by side on common axes, and their difference; and how far apart every head of two runs is."""

from typing import Any

import numpy
import plotly.graph_objects as go
from jaxtyping import Float
from plotly.subplots import make_subplots
from torch import Tensor

from attention_viz.analysis.align import Axis
from attention_viz.analysis.compare import Comparison, Side
from attention_viz.errors import ShapeError
from attention_viz.trace.trace import Trace
from attention_viz.views.figures.by_head import grid_of_heads
from attention_viz.views.figures.heatmap import add_hatch, arrange, colour_bar, full_colour, labelled_axis, round_up
from attention_viz.views.style.theme import Palette, ThemeName, colour_scale, diverging, palette, ramp
from attention_viz.views.style.wording import caption, escaped, one_line, readable, with_minus

__all__ = ["PARTS", "compare", "compared_heads"]

PARTS = ("one", "other", "difference")

# Matrices up to this size have their numbers printed: three of them share the width of a page.
_PRINTED_UP_TO = 14
_GONE, _COME = "−", "+"
_SPACE = 0.02
_LONGEST = 44
_BELOW = 150

Matrix = Float[numpy.ndarray, "query key"]


def compare(comparison: Comparison, *, part: str | None = None, theme: ThemeName = "light") -> go.Figure:
    """Two heads on common axes, and the second minus the first: queries down, keys across.

    A token that only the first text has is marked by "−" before it, one that only the second has by "+", and its row
    and column lie between dashed lines. Both heads have one scale; that of the difference reaches as far down as up.

    Args:
        comparison: from `attention_viz.compare`.
        part: only the first head ("one"), the second ("other") or the difference; all three side by side by default.
        theme: "light" or "dark".

    Raises:
        ShapeError: there is no such part.
    """
    if part is not None and part not in PARTS:
        raise ShapeError(f"the part {part!r} was asked for; there are {', '.join(PARTS)}, or None for all of them")
    colours = palette(theme)
    parts = PARTS if part is None else (part,)
    titles = [_caption(comparison, name, whole=part is None) for name in parts]
    several = len(parts) > 1
    figure = make_subplots(
        rows=1,
        cols=len(parts),
        shared_yaxes=True,
        horizontal_spacing=_SPACE,
        subplot_titles=titles if several else None,
    )
    arrange(figure, _far(comparison) if part is None else titles[0], colours)
    for column, name in enumerate(parts, start=1):
        figure.add_trace(_cells(comparison, name, colours, bar=not several), row=1, col=column)
        _hatch(figure, comparison, name, column, colours)
        _mark(figure, comparison, column, colours)
        queries, keys = _labels(comparison.queries), _labels(comparison.keys)
        across = labelled_axis(keys, "key: who is looked at", colours.key, colours, vertical=False)
        down = labelled_axis(queries, "query: who is looking", colours.query, colours, vertical=True)
        if column > 1:
            down |= {"title": None, "showticklabels": False}
        figure.update_xaxes(**across, row=1, col=column)
        figure.update_yaxes(**down, row=1, col=column)
    if several:
        _bars_below(figure)
    else:
        figure.update_traces(colorbar=_lying(0, 1, above=True), selector={"type": "heatmap"})
        figure.update_layout(margin_t=76, title_y=0.95, title_yanchor="middle")
    return figure


def compared_heads(
    one: Trace,
    other: Trace,
    apart: Float[Tensor, "layer head"],
    stream: str | None = None,
    *,
    chosen: tuple[int, int] | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """How far apart two runs are, head by head: layers down, heads across, mean Jensen–Shannon divergence in bits.

    Args:
        one: the first run.
        other: the second, whose heads these are.
        apart: from `attention_viz.analysis.compare.head_divergences`.
        stream: of the second run; the only one there is, if none is named.
        chosen: layer and head to frame.
        theme: "light" or "dark".

    Raises:
        ShapeError: as many numbers didn't come as the second run has heads.
    """
    stream, colours = other.stream(stream), palette(theme)
    layers = range(other.layer_count(stream))
    heads = range(max(other.head_count(layer, stream) for layer in layers))
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
        stops=ramp(colours.difference_middle, colours.difference_high),
        full=round_up(float(numpy.nanmax(apart.numpy(), initial=0.0))),
        said=[
            [f"layer {layer}, head {head}: {value:.6f} bits" for head, value in enumerate(row)]
            for layer, row in enumerate(numbers)
        ],
        written=[["" if numpy.isnan(value) else f"{value:.2f}" for value in row] for row in numbers],
        bar=colour_bar("bits"),
        chosen=chosen,
    )


def _model(trace: Trace) -> str:
    origin = trace.provenance
    return f"{origin.model} {origin.revision}" if origin.revision else origin.model


def _caption(comparison: Comparison, part: str, *, whole: bool) -> str:
    """Which head this is; of a picture of all three also of which text, and what was changed in its run."""
    if part == "difference":
        return "second − first"
    side = comparison.one if part == "one" else comparison.other
    origin = side.trace.provenance
    told = [caption(side.trace, side.layer, side.head, side.stream)]
    if whole:
        told += [f"“{one_line(origin.text, _LONGEST)}”"] if origin.text is not None else []
        told += [f"edited: {one_line(edit, _LONGEST)}" for edit in origin.edits]
    return "<br>".join(map(escaped, told))


def _far(comparison: Comparison) -> str:
    if numpy.isnan(comparison.mean):
        return "No token in common"
    rows = sum(comparison.queries.counted)
    return f"Mean Jensen–Shannon divergence of {rows} row{'s' * (rows != 1)}: {comparison.mean:.3f} bits"


def _labels(axis: Axis) -> list[str]:
    """Each token, with a sign before it where only one text has it."""
    signs = dict.fromkeys(axis.gone, f"{_GONE} ") | dict.fromkeys(axis.come, f"{_COME} ")
    return [signs.get(place, "") + label for place, label in enumerate(readable(axis.labels))]


def _matrix(comparison: Comparison, part: str) -> Matrix:
    matrices = {
        "one": lambda: comparison.weights,
        "other": lambda: comparison.other_weights,
        "difference": lambda: comparison.difference,
    }
    return matrices[part]().numpy()


def _cells(comparison: Comparison, part: str, colours: Palette, *, bar: bool) -> go.Heatmap:
    values, difference = _matrix(comparison, part), part == "difference"
    printed = max(values.shape) <= _PRINTED_UP_TO
    if difference:
        largest = float(numpy.nanmax(numpy.abs(values), initial=0.0)) or 1.0
        low = -largest
        stops = diverging(colours.difference_low, colours.difference_middle, colours.difference_high)
    else:
        both = [_matrix(comparison, side) for side in PARTS[:2]]
        low, largest = 0.0, max(full_colour(numpy.nan_to_num(one)) for one in both)
        stops = ramp(colours.weight_low, colours.weight_high)
    return go.Heatmap(
        z=values,
        zmin=low,
        zmax=largest,
        colorscale=colour_scale(stops),
        hovertext=_said(comparison),
        hovertemplate="%{hovertext}<extra></extra>",
        # A blocked cell is 0 and not about 0.
        text=[
            ["0" if stop else _number(one, signed=difference) for one, stop in zip(row, stops_here, strict=True)]
            for row, stops_here in zip(values.tolist(), _blocked(comparison, part).tolist(), strict=True)
        ],
        texttemplate="%{text}" if printed else None,
        # Where a text lacks a token, the page shows through: nothing is to be said there.
        hoverongaps=True,
        xgap=1 if printed else 0,
        ygap=1 if printed else 0,
        showscale=bar,
        colorbar=colour_bar("change" if difference else "weight"),
    )


def _number(value: float, *, signed: bool) -> str:
    if numpy.isnan(value):
        return ""
    if signed:
        # Without "−.00", which is neither a gain nor a loss; and as short as the weights beside it.
        return with_minus(f"{value:+.2f}").replace("0.", ".", 1) if abs(value) >= 0.005 else "0"
    return f"{value:.2f}"


def _said(comparison: Comparison) -> list[list[str]]:
    """What the pointer is told of each cell: both weights, and which text lacks a token."""
    sides = [(_matrix(comparison, "one"), "first"), (_matrix(comparison, "other"), "second")]
    queries, keys = readable(comparison.queries.labels), readable(comparison.keys.labels)
    return [
        [
            f"{query} looks at {key}: "
            + ", ".join(
                f"not in the {which}" if numpy.isnan(matrix[i, j]) else f"{matrix[i, j]:.6f} in the {which}"
                for matrix, which in sides
            )
            for j, key in enumerate(keys)
        ]
        for i, query in enumerate(queries)
    ]


def _hatch(figure: go.Figure, comparison: Comparison, part: str, column: int, colours: Palette) -> None:
    blocked = _blocked(comparison, part)
    add_hatch(figure, blocked, colours, key=False)
    if blocked.any() and column > 1:
        lines: Any = _drawn(figure)[-1]
        lines.update(xaxis=f"x{column}", yaxis=f"y{column}")


def _blocked(comparison: Comparison, part: str) -> numpy.ndarray:
    """What is blocked: of the difference, what is blocked on both sides."""
    sides = {"one": (comparison.one, comparison.queries.one, comparison.keys.one)}
    sides["other"] = (comparison.other, comparison.queries.other, comparison.keys.other)
    wanted = [sides[part]] if part in sides else list(sides.values())
    return numpy.logical_and.reduce([_on_axes(side, rows, columns) for side, rows, columns in wanted])


def _on_axes(side: Side, rows: tuple[int | None, ...], columns: tuple[int | None, ...]) -> numpy.ndarray:
    placed = numpy.zeros((len(rows), len(columns)), dtype=bool)
    there = [[place for place, at in enumerate(axis) if at is not None] for axis in (rows, columns)]
    placed[numpy.ix_(*there)] = side.blocked.numpy()
    return placed


def _mark(figure: go.Figure, comparison: Comparison, column: int, colours: Palette) -> None:
    """A band along the rows and columns of tokens that only one text has."""
    ends = (len(comparison.keys) - 0.5, len(comparison.queries) - 0.5)
    for axis, down in ((comparison.keys, False), (comparison.queries, True)):
        for first, last in _runs(sorted((*axis.gone, *axis.come))):
            across = (-0.5, ends[0], first - 0.5, last + 0.5) if down else (first - 0.5, last + 0.5, -0.5, ends[1])
            x0, x1, y0, y1 = across
            edges: dict[str, Any] = {"type": "rect", "x0": x0, "x1": x1, "y0": y0, "y1": y1, "row": 1, "col": column}
            figure.add_shape(fillcolor=colours.line, opacity=0.45, line_width=0, layer="below", **edges)
            figure.add_shape(line={"color": colours.muted, "width": 1, "dash": "dot"}, **edges)


def _runs(places: list[int]) -> list[tuple[int, int]]:
    """The first and last of each stretch of neighbours."""
    found: list[tuple[int, int]] = []
    for place in places:
        if found and found[-1][1] == place - 1:
            found[-1] = found[-1][0], place
        else:
            found.append((place, place))
    return found


def _bars_below(figure: go.Figure) -> None:
    """One colour bar for both heads and one for the difference, lying below their matrices."""
    layout: Any = figure.layout
    matrices = [one for one in _drawn(figure) if one.type == "heatmap"]
    for cells, first, last in ((matrices[0], "xaxis", "xaxis2"), (matrices[-1], "xaxis3", "xaxis3")):
        cells.update(showscale=True, colorbar=_lying(layout[first].domain[0], layout[last].domain[1]))
    lines = max(str(note.text).count("<br>") for note in layout.annotations)
    figure.update_annotations(font_size=12)
    # Below the matrices stand slanted tokens, what they are, and the bars.
    figure.update_layout(margin_t=64 + 16 * lines, margin_b=_BELOW, height=layout.height + _BELOW // 2)


def _lying(left: float, right: float, *, above: bool = False) -> dict[str, Any]:
    """How a colour bar lies below matrices, or above them, where it takes nothing from their width."""
    place = {"orientation": "h", "x": (left + right) / 2, "len": (right - left) * (1 if above else 0.8)}
    if above:
        return place | {"y": 1.03, "yanchor": "bottom", "thickness": 7, "ypad": 0, "title_side": "right"}
    return place | {"y": 0, "yref": "container", "yanchor": "bottom", "thickness": 10, "title_side": "right"}


def _drawn(figure: go.Figure) -> list[Any]:
    """What stands in a figure; plotly tells nobody what kind of thing that is."""
    return list(figure.data)
