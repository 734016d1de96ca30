"""Compare two heads and their difference on common axes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
import plotly.graph_objects as go
from plotly.subplots import make_subplots
from torch import Tensor

from attention_viz.analysis.blocks import MOST_CELLS, Blocks, matrix_blocks
from attention_viz.analysis.comparison.align import AlignedAxis
from attention_viz.analysis.comparison.compare import Comparison, Side
from attention_viz.analysis.comparison.shares import in_shares
from attention_viz.errors import ShapeError
from attention_viz.trace.spelling import weight_text
from attention_viz.views.style.axes import FOLDS, arrange, labelled_axis, pair_axes
from attention_viz.views.style.blocks import block_coordinates, block_note, cells, hover_texts, spans
from attention_viz.views.style.captions import caption, caption_lines
from attention_viz.views.style.marks import LEAST, add_hatch, add_numbers
from attention_viz.views.style.scale import colour_bar, full_change, full_colour, lying_bar
from attention_viz.views.style.signed import largest_of
from attention_viz.views.style.theme import Palette, ThemeName, palette
from attention_viz.views.style.wording import escaped, one_line, readable, with_minus

__all__ = ["PARTS", "compare"]

PARTS = ("one", "other", "difference")

# Matrices up to this size have their numbers printed: three of them share the width of a page.
_PRINTED_UP_TO = 14
_GONE, _ADDED = "−", "+"
_SPACE = 0.02
# Letters across one of three panels.
_LONGEST = 34
_BELOW = 150
# In a text of more positions than this, at most so many replaced words have their lines.
_LONG, _LINES = 100, 6


def compare(
    comparison: Comparison,
    *,
    part: str | None = None,
    pair: tuple[int, int] | None = None,
    cells: Sequence[tuple[int, int]] = (),
    most: int = MOST_CELLS,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw two heads on common axes, and the second minus the first: queries down, keys across.

    "−" marks a token that only the first text has, "+" one that only the second has; two that replace each other share
    a label, as "river→city". Dashed lines mark their rows and columns, unless they would cover the cells of a long
    text. Both heads have one scale; the difference's scale is symmetric. Above `most` cells, each block of neighbours
    is drawn as its largest weight or change, and the title says so.

    If a side has no softmax, both are drawn as signed shares of size: each weight over its row's sum of sizes.

    Args:
        comparison: from `attention_viz.compare`.
        part: only the first head ("one"), the second ("other") or the difference; all three side by side by default.
        pair: the query and the key to mark, as positions in the first text; in the second text, their counterparts.
        cells: indices on the common axes to mark as well, the query's first.
        most: the number of cells drawn one by one.
        theme: "light" or "dark".

    Raises:
        ShapeError: the part is unknown.
    """
    if part is not None and part not in PARTS:
        raise ShapeError(f"unknown part {part!r}; choose {', '.join(PARTS)}, or None for all")
    colours, comparison = palette(theme), in_shares(comparison)
    parts = PARTS if part is None else (part,)
    several = len(parts) > 1
    titles = [_caption(comparison, name, whole=several) for name in parts]
    blocks = {name: _blocks(comparison, name, most // len(parts)) for name in PARTS}
    figure = make_subplots(
        rows=1, cols=len(parts), shared_yaxes=True, horizontal_spacing=_SPACE, subplot_titles=titles if several else ()
    )
    note = block_note(blocks[parts[0]], "the largest change" if part == "difference" else "the largest")
    arrange(figure, _far(comparison) if several else titles[0], colours, note=note)
    places = dict[str, int]()
    for column, name in enumerate(parts, start=1):
        figure.add_trace(_cells(comparison, blocks, name, colours, bar=not several), row=1, col=column)
        places[name] = len(_drawn(figure)) - 1
        _hatch(figure, blocks[name], column, colours)
        _mark(figure, comparison, column, colours, lines=blocks[name].whole)
        for cell in (*_cells_of(comparison, name, pair), *cells):
            _frame(figure, cell, column, colours, blocks[name].size)
        _name_axes(figure, comparison, column, colours)
    if several:
        _bars_below(figure, note)
    else:
        figure.update_traces(colorbar=lying_bar(0, 1, above=True), selector={"type": "heatmap"})
        figure.update_layout(margin_t=92 if note else 76, title_y=0.95, title_yanchor="middle")
    for column, (name, at) in enumerate(places.items(), start=1):
        if _printed(blocks[name]):
            write = _signed if name == "difference" or _mixes(comparison) else _short
            add_numbers(figure, write, at=at, least=LEAST, row=1, col=column)
    return figure


def _blocks(comparison: Comparison, part: str, most: int) -> Blocks:
    """Return a matrix on common axes; NaN for missing tokens."""
    values: Tensor = getattr(comparison, {"one": "weights", "other": "other_weights"}.get(part, part))
    return matrix_blocks(values.numpy(), _blocked(comparison, part), most)


def _name_axes(figure: go.Figure, comparison: Comparison, column: int, colours: Palette) -> None:
    queries, keys = _labels(comparison.queries), _labels(comparison.keys)
    key, query = pair_axes(queries, keys, colours, mixes=_mixes(comparison))
    across, down = labelled_axis(*key, colours, vertical=False), labelled_axis(*query, colours, vertical=True)
    if column > 1:
        down |= {"title": None, "showticklabels": False}
    figure.update_xaxes(**across, row=1, col=column)
    figure.update_yaxes(**down, row=1, col=column)


def _caption(comparison: Comparison, part: str, *, whole: bool) -> str:
    if part == "difference":
        return "second − first"
    side = comparison.one if part == "one" else comparison.other
    if not whole:
        return escaped(caption(side.trace, side.layer, side.head, side.stream))
    origin = side.trace.provenance
    notes = caption_lines(side.trace, side.layer, side.head, side.stream, _LONGEST)
    notes += [f"“{one_line(origin.text, _LONGEST - 2)}”"] if origin.text is not None else []
    notes += [one_line(f"edited: {edit}", _LONGEST) for edit in origin.edits]
    return "<br>".join(map(escaped, notes))


def _far(comparison: Comparison) -> str:
    if numpy.isnan(comparison.mean):
        return "No row that could differ" if comparison.shared else "No token in common"
    rows = comparison.rows
    return f"Mean Jensen–Shannon divergence of {rows} row{'s' * (rows != 1)}: {comparison.mean:.3f} bits"


def _labels(axis: AlignedAxis) -> list[str]:
    """Label tokens, marking those of one text; replacements show both."""
    signs = dict.fromkeys(axis.removed, f"{_GONE} ") | dict.fromkeys(axis.inserted, f"{_ADDED} ")
    return [signs.get(place, "") + label for place, label in enumerate(readable(axis.names))]


def _cells(
    comparison: Comparison, blocks: Mapping[str, Blocks], part: str, colours: Palette, *, bar: bool
) -> go.Heatmap:
    drawn, difference = blocks[part], part == "difference"
    gap, mixes = 1 if _printed(drawn) else 0, _mixes(comparison)
    low, largest = _range(blocks, difference=difference, mixes=mixes)
    stops = colours.differences if difference or mixes else colours.weights
    # Where a text lacks a token, the page shows through: nothing is to be said there.
    look: dict[str, Any] = {"hoverongaps": True, "xgap": gap, "ygap": gap, "showscale": bar}
    look["colorbar"] = colour_bar(_meaning(blocks, largest, difference=difference, mixes=mixes))
    texts = _hover_texts(comparison, blocks)
    return cells(drawn.values, (low, largest), stops, texts, **look, **block_coordinates(drawn))


def _mixes(comparison: Comparison) -> bool:
    return comparison.one.mixes or comparison.other.mixes


def _meaning(blocks: Mapping[str, Blocks], largest: float, *, difference: bool, mixes: bool) -> str:
    """Explain a colour; the deepest weight colour may include larger ones."""
    if difference:
        return "change of share" if mixes else "change"
    if mixes:
        return "share of size"
    beyond = any(numpy.nanmax(blocks[side].values, initial=0.0) > largest for side in PARTS[:2])
    return f"weight, alike from {largest:.2g} on" if beyond else "weight"


def _range(blocks: Mapping[str, Blocks], *, difference: bool, mixes: bool) -> tuple[float, float]:
    """Return the colour range: common to both heads, symmetric for a difference and for signed shares."""
    if difference:
        largest = full_change(blocks["difference"].values)
        return -largest, largest
    both = [blocks[side] for side in PARTS[:2]]
    if mixes:
        largest = max(largest_of(one) for one in both)
        return -largest, largest
    return 0.0, max(full_colour(numpy.nan_to_num(one.values), max(one.shape)) for one in both)


def _printed(blocks: Blocks) -> bool:
    return max(blocks.shape) <= _PRINTED_UP_TO


def _short(weight: float) -> str:
    return escaped(weight_text(weight))


def _signed(change: float) -> str:
    return with_minus(f"{change:+.2f}").replace("0.", ".", 1)


def _hover_texts(comparison: Comparison, blocks: Mapping[str, Blocks]) -> numpy.ndarray:
    one, other = blocks["one"], blocks["other"]
    most = "" if one.whole else "at most "

    def side(value: float, which: str) -> str:
        return f"not in the {which}" if numpy.isnan(value) else f"{most}{with_minus(f'{value:.6f}')} in the {which}"

    def pair(query: str, key: str) -> str:
        return f"{key} to {query}, share of size" if _mixes(comparison) else f"{query} attends to {key}"

    return hover_texts(
        spans(one, 0, readable(comparison.queries.names)),
        spans(one, 1, readable(comparison.keys.names)),
        lambda query, key, i, j: (
            f"{pair(query, key)}: {side(one.values[i, j], 'first')}, {side(other.values[i, j], 'second')}"
        ),
    )


def _hatch(figure: go.Figure, blocks: Blocks, column: int, colours: Palette) -> None:
    add_hatch(figure, blocks.blocked, colours, key=False, size=blocks.size)
    if blocks.blocked.any() and column > 1:
        lines: Any = _drawn(figure)[-1]
        lines.update(xaxis=f"x{column}", yaxis=f"y{column}")


def _blocked(comparison: Comparison, part: str) -> numpy.ndarray:
    """Return blocked cells; in the difference, those blocked on both sides."""
    sides = {"one": (comparison.one, comparison.queries.one, comparison.keys.one)}
    sides["other"] = (comparison.other, comparison.queries.other, comparison.keys.other)
    wanted = [sides[part]] if part in sides else list(sides.values())
    return numpy.logical_and.reduce([_on_axes(side, rows, columns) for side, rows, columns in wanted])


def _on_axes(side: Side, rows: tuple[int | None, ...], columns: tuple[int | None, ...]) -> numpy.ndarray:
    placed = numpy.zeros((len(rows), len(columns)), dtype=bool)
    placed[numpy.ix_(*([at is not None for at in axis] for axis in (rows, columns)))] = side.blocked.numpy()
    return placed


def _mark(figure: go.Figure, comparison: Comparison, column: int, colours: Palette, *, lines: bool) -> None:
    ends = len(comparison.keys) - 0.5, len(comparison.queries) - 0.5
    for axis, down in ((comparison.keys, False), (comparison.queries, True)):
        runs = [(run, True) for run in _runs(sorted((*axis.removed, *axis.inserted)))]
        replaced = _runs(sorted(axis.substituted))
        # In a long text a line is as wide as a cell, or covers the blocks that changed.
        shown = replaced if lines and (len(axis) <= _LONG or len(replaced) <= _LINES) else []
        for (first, last), lacking in [*runs, *((run, False) for run in shown)]:
            across = (-0.5, ends[0], first - 0.5, last + 0.5) if down else (first - 0.5, last + 0.5, -0.5, ends[1])
            x0, x1, y0, y1 = across
            edges: dict[str, Any] = {"type": "rect", "x0": x0, "x1": x1, "y0": y0, "y1": y1, "row": 1, "col": column}
            if lacking:
                figure.add_shape(fillcolor=colours.line, opacity=0.45, line_width=0, layer="below", **edges)
            figure.add_shape(line={"color": colours.muted, "width": 1, "dash": "dot"}, **edges)


def _cells_of(comparison: Comparison, part: str, pair: tuple[int, int] | None) -> tuple[tuple[int, int], ...]:
    """Place a first-text pair in a matrix; the difference may have two places."""
    if pair is None:
        return ()
    axes = comparison.queries, comparison.keys
    here = axes[0].place_of(pair[0]), axes[1].place_of(pair[1])
    query, key = axes[0].partner(here[0]), axes[1].partner(here[1])
    there = () if query is None or key is None else ((query, key),)
    found = {"one": (here,), "other": there, "difference": tuple(dict.fromkeys((here, *there)))}
    return found[part]


def _frame(figure: go.Figure, cell: tuple[int, int], column: int, colours: Palette, size: tuple[int, int]) -> None:
    """Frame a cell, or a small block without covering neighbours."""
    edges = dict[str, float]()
    for side, at, length in zip("yx", cell, size, strict=True):
        start, free = at // length * length, 0 if size == (1, 1) else length
        edges |= {f"{side}0": start - free - 0.5, f"{side}1": start + length + free - 0.5}
    figure.add_shape(type="rect", line={"color": colours.accent, "width": 2}, row=1, col=column, **edges)


def _runs(places: list[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for place in places:
        if found and found[-1][1] == place - 1:
            found[-1] = found[-1][0], place
        else:
            found.append((place, place))
    return found


def _bars_below(figure: go.Figure, note: str) -> None:
    layout: Any = figure.layout
    matrices = [one for one in _drawn(figure) if one.type == "heatmap"]
    for matrix, first, last in ((matrices[0], "xaxis", "xaxis2"), (matrices[-1], "xaxis3", "xaxis3")):
        matrix.update(showscale=True, colorbar=lying_bar(layout[first].domain[0], layout[last].domain[1]))
    change, full = matrices[-1], float(matrices[-1].zmax)
    change.colorbar.update(tickvals=[-full, 0, full], ticktext=[f"−{full:.2g}", "0", f"{full:.2g}"], tickangle=0)
    lines = max(str(note.text).count("<br>") for note in layout.annotations)
    figure.update_annotations(font_size=12)
    layout.height += _BELOW // 2  # for slanted tokens, what they are, and the bars
    figure.update_layout(margin_t=64 + 16 * (lines + bool(note)), margin_b=_BELOW, meta=FOLDS)
    figure.update_layout(title_y=1 - 12 / layout.height, title_yanchor="top")


def _drawn(figure: go.Figure) -> list[Any]:
    """Type a figure's traces, which plotly leaves untyped."""
    return list(figure.data)
