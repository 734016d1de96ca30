"""Describe a figure's largest numbers for those who can't see it."""

import base64
import functools
import html
import operator
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy
import plotly.graph_objects as go

from attention_viz.views.style.wording import shortened

# Of a matrix, the largest of each row; of more rows than this, of those whose largest are largest. Several matrices
# beside each other share a larger number of rows. Of bars, the longest.
_ROWS, _ALL_ROWS, _BARS = 8, 24, 3
_LONGEST = 100
_FIELD = re.compile(r"%\{(\w+)(?::([^}]*))?\}")
_DIGITS = re.compile(r"(\.\d{3})\d+")


def alternative_text(figure: go.Figure, sentence: str) -> str:
    """Return a sentence about a figure, ended by a full stop, and its largest numbers."""
    return f"{sentence if sentence.endswith(('.', '!', '?')) else f'{sentence}.'} {spoken(figure)}".strip()


def spoken(figure: go.Figure) -> str:
    """Describe the largest numbers, as in "Largest: bank attends to river: 0.580; …".

    Matrices: each row's largest; else the longest bars; else lines' ends. Empty for points or without hover text.
    """
    parts: list[Any] = [one for one in figure.data if getattr(one, "hovertemplate", None)]
    matrices = [one for one in parts if one.type == "heatmap"]
    rows = max(1, min(_ROWS, _ALL_ROWS // max(1, len(matrices))))
    described = [words for one in matrices for words in _cells(one, rows)]
    if not matrices:
        described = [words for one in parts if one.type == "bar" for words in _bars(one)]
    if not described:
        return " ".join(_line(one) for one in parts if one.type == "scatter" and "lines" in (one.mode or ""))
    return f"Largest: {'; '.join(shortened(words, _LONGEST) for words in described if words)}."


def _cells(matrix: Any, rows: int) -> Iterator[str]:
    cells = _numbers(matrix.z).astype(float)
    if not cells.size:
        return
    sizes = numpy.abs(numpy.nan_to_num(cells))
    columns = sizes.argmax(axis=1)
    largest = numpy.argsort(-sizes[numpy.arange(len(sizes)), columns], kind="stable")[:rows]
    for row in sorted(largest.tolist()):
        column = int(columns[row])
        if not numpy.isnan(cells[row, column]):
            place = {"x": _middle(matrix.x, column, cells.shape[1]), "y": _middle(matrix.y, row, cells.shape[0])}
            yield _filled(matrix, {**place, "z": float(cells[row, column])}, row, column)


def _middle(axis: Any, at: int, count: int) -> object:
    """Return where a row or column is on its axis: its middle, if the axis has edges; without an axis, its number."""
    places = _numbers(axis)
    if places.size == count + 1:
        return float(places[at] + places[at + 1]) / 2
    return places.tolist()[at] if places.size == count else at


def _bars(bars: Any) -> Iterator[str]:
    across, up = _numbers(bars.x), _numbers(bars.y)
    lengths = (across if bars.orientation == "h" else up).astype(float)
    for at in numpy.argsort(-numpy.abs(lengths), kind="stable")[:_BARS].tolist():
        yield _filled(bars, {"x": across[at], "y": up[at]}, at)


def _line(line: Any) -> str:
    """Describe a line's ends; nothing if it only joins two points."""
    across, up = _numbers(line.x), _numbers(line.y)
    if len(across) <= 2:
        return ""
    first, last = (_filled(line, {"x": across[at], "y": up[at]}, at) for at in (0, -1))
    return f"First {first}; last {last}."


def _numbers(values: Any) -> numpy.ndarray:
    """Return numbers of axes or cells, unpacked from Plotly's JSON in copied figures."""
    if not isinstance(values, dict):
        return numpy.asarray([] if values is None else values)
    packed: dict[str, str] = values
    numbers = numpy.frombuffer(base64.b64decode(packed["bdata"]), dtype=packed["dtype"])
    return numbers.reshape([int(size) for size in packed["shape"].split(",")]) if "shape" in packed else numbers


def _filled(trace: Any, place: Mapping[str, object], *at: int) -> str:
    known = dict(place)
    for name in ("hovertext", "text", "customdata"):
        texts: Any = getattr(trace, name, None)
        if texts is not None:
            known[name] = texts if isinstance(texts, str) else functools.reduce(operator.getitem, at, texts)

    def fill(field: re.Match[str]) -> str:
        value = known.get(field[1])
        return format(value, field[2]) if field[2] and isinstance(value, int | float | numpy.number) else str(value)

    words = _FIELD.sub(fill, trace.hovertemplate.replace("<extra></extra>", ""))
    return _DIGITS.sub(r"\1", html.unescape(words.replace("<br>", ", ")))
