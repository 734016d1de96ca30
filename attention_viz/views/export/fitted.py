"""Lay out a Plotly figure so that all text fits on paper."""

import html
import re
from collections.abc import Mapping
from typing import Any, cast

import numpy

from attention_viz.views.export.narrow import fold_panels, in_few_lines, keep_bars_readable, keep_words_apart
from attention_viz.views.export.sheet import Sheet, wrapped
from attention_viz.views.style.marks import NUMBERS

# What figures are drawn for, in pixels.
_WIDTH, _HEIGHT, _LETTERS = 800.0, 560.0, 12.0
# The smallest letters that can be read, 5 points, and how wide a digit is beside its size.
_READABLE, _DIGIT = 5 * 96 / 72, 0.56
# Lines of text, beside the size of their letters.
_LINE = 1.3
# From a label to the next, beside the size of its letters.
_PITCH = 1.25
# So many bars have their names each, in a picture that is as high as that takes.
_BARS = 60
# How low a picture may be under its title, in letters.
_LOWEST = 21


def fitted(figure: Mapping[str, Any], sheet: Sheet, below: float = 0.0) -> dict[str, Any]:
    """Lay out a figure for a sheet as plain values, with this many pixels used below; unchanged without settings."""
    plain: dict[str, Any] = {"data": [dict(one) for one in figure["data"]], "layout": dict(figure["layout"])}
    layout = plain["layout"]
    drawn = layout.get("width") or _WIDTH, layout.get("height") or _HEIGHT
    factor = sheet.letters / _LETTERS
    # Letters don't shrink with the picture, so that what is drawn small is as high as they need it.
    own = drawn[1] * max((sheet.width or drawn[0]) / drawn[0], 0.55 * factor if sheet.width else 1.0)
    layout["width"] = sheet.width or drawn[0]
    layout["height"] = own if sheet.height is None else max(sheet.height - below, 60.0)
    fold_panels(plain, sheet)
    if sheet.width is not None or sheet.font_size is not None:
        plain = cast("dict[str, Any]", _scaled(plain, factor))
        layout = plain["layout"]
        layout["font"] = {**layout.get("font", {}), "size": sheet.letters}
    _entitle(layout, sheet)
    if sheet.width is not None or sheet.height is not None:
        _name_bars(plain, sheet)
        _place_legend(plain, sheet)
        _thin(layout, sheet.letters)
    if sheet.width is not None:
        keep_words_apart(plain)
        keep_bars_readable(plain, sheet)
    if not sheet.numbers or (sheet.width is not None and not _legible(plain)):
        plain["data"] = [_numberless(one) for one in plain["data"] if one.get("name") != NUMBERS]
    return plain


def _scaled(value: Any, factor: float, name: str = "") -> Any:
    if isinstance(value, dict):
        known = cast("dict[str, Any]", value)
        if name.endswith("font") and isinstance(known.get("size"), int | float):
            known = {**known, "size": known["size"] * factor}
        return {one: _scaled(part, factor, one) for one, part in known.items()}
    if isinstance(value, list | tuple) and name in ("annotations", "data"):
        return [_scaled(part, factor) for part in cast("list[Any]", value)]
    return value


def _entitle(layout: dict[str, Any], sheet: Sheet) -> None:
    known = layout.get("title") or {}
    title: dict[str, Any] = {"text": known} if isinstance(known, str) else known
    text = title.get("text") or ""
    if sheet.title is True and sheet.width is None:
        return
    text = html.escape(str(sheet.title)) if isinstance(sheet.title, str) else text if sheet.title else ""
    size = title.get("font", {}).get("size", sheet.letters)
    lines = _lines(text, layout["width"] - 16, size)
    room = _LINE * (size * len(lines) + sheet.letters * _rows_above(layout, sheet)) + 12
    # Plotly begins several lines at the foot of the first, and a single one at its head.
    above = 6 + (0.8 * size if len(lines) > 1 else 0)
    layout["margin"] = {**layout.get("margin", {}), "t": room}
    _heighten(layout, sheet)
    # From the top of the page down, whatever the picture's height.
    place = {"yref": "container", "y": 1 - above / layout["height"], "yanchor": "top", "x": 8 / layout["width"]}
    layout["title"] = {**title, **place, "text": "<br>".join(lines)}


def _lines(text: str, width: float, letters: float) -> list[str]:
    """Wrap a Plotly text, which has its own line break."""
    return [
        html.escape(line, quote=False)
        for part in re.split(r"<br\s*/?>", text)
        if part
        for line in wrapped(html.unescape(part), width, letters)
    ]


def _rows_above(layout: dict[str, Any], sheet: Sheet) -> float:
    """Count the lines of wrapped panel names and axes above the picture."""
    axes = [one for name, one in layout.items() if name.startswith("xaxis")]
    across = max(1, len({tuple(one.get("domain") or (0, 1)) for one in axes}))
    rows, kept = 0.0, list[dict[str, Any]]()
    for one in layout.get("annotations") or ():
        note = dict(one)
        kept.append(note)
        if note.get("y", 0) < 0.999 or not note.get("text"):
            continue
        if across > 1 and sheet.width is not None:
            size = note.get("font", {}).get("size", sheet.letters)
            note["text"] = in_few_lines(_lines(note["text"], 0.8 * sheet.width / across, size))
        rows = max(rows, 1 + note["text"].count("<br>"))
    layout["annotations"] = kept
    return rows + (3 if any(one.get("side") == "top" for one in axes) else 0)


def _heighten(layout: dict[str, Any], sheet: Sheet) -> None:
    if sheet.height is None and sheet.width is not None:
        layout["height"] = max(layout["height"], layout["margin"]["t"] + _LOWEST * sheet.letters)


def _place_legend(plain: dict[str, Any], sheet: Sheet) -> None:
    layout = plain["layout"]
    several = len(plain["data"]) > 1
    named = [one for one in plain["data"] if one.get("showlegend", several and one.get("type") != "heatmap")]
    named = [one for one in named if one.get("name")]
    if not named or not layout.get("showlegend", True):
        return
    letters = sheet.letters
    widest = max(_DIGIT * letters * len(html.unescape(str(one["name"]))) + 5 * letters for one in named)
    beside = max(1, int((layout["width"] - 20) / widest))
    rows = -(-len(named) // beside)
    margin = layout.get("margin", {})
    above = _LINE * letters * _rows_above(layout, sheet)
    layout["margin"] = {**margin, "t": margin.get("t", 40) + rows * 1.7 * letters}
    before = layout["height"]
    _heighten(layout, sheet)
    title = layout.get("title") or {}
    if "y" in title:  # as far from the top as before
        layout["title"] = {**title, "y": 1 - (1 - title["y"]) * before / layout["height"]}
    tall = max(40.0, layout["height"] - layout["margin"]["t"] - 6 * letters)
    place = {"orientation": "h", "x": 0, "xanchor": "left", "yref": "paper", "y": 1 + above / tall, "yanchor": "bottom"}
    layout["legend"] = {**layout.get("legend", {}), **place}


def _name_bars(plain: dict[str, Any], sheet: Sheet) -> None:
    layout = plain["layout"]
    axis = layout.get("yaxis", {})
    count = len(axis.get("ticktext") or ())
    lying = any(one.get("type") == "bar" and one.get("orientation") == "h" for one in plain["data"])
    if sheet.height is not None or not lying or "domain" in axis:
        return
    if count > _BARS:  # their names are thinned, and they need to be seen all the same
        count = _BARS // 2
    size = axis.get("tickfont", {}).get("size", sheet.letters)
    high = layout.get("margin", {}).get("t", 40) + 6 * sheet.letters + _PITCH * size * count
    title, before = layout.get("title") or {}, layout["height"]
    layout["height"] = max(before, high)
    if "y" in title:  # as far from the top as before
        layout["title"] = {**title, "y": 1 - (1 - title["y"]) * before / layout["height"]}


def _thin(layout: dict[str, Any], letters: float) -> None:
    for name in [one for one in layout if one.startswith(("xaxis", "yaxis"))]:
        axis: dict[str, Any] = dict(layout[name])
        layout[name] = axis
        low, high = axis.get("domain") or (0, 1)
        across = name.startswith("x")
        above = layout.get("margin", {}).get("t", 40)
        side = layout["width"] - 12 * letters if across else layout["height"] - above - 6 * letters
        _shorten(axis, side * (high - low), letters)
        texts, places = axis.get("ticktext"), axis.get("tickvals")
        if texts is None or places is None or not len(places):
            continue
        if across and _crowded(layout, axis, letters):
            axis["showticklabels"] = False
            continue
        size = axis.get("tickfont", {}).get("size", letters)
        most = max(1, int(max(side, 20) * (high - low) / (_PITCH * size) + 1e-6))
        step = -(-len(places) // most)
        longest = max(3, min(18, int(0.22 * layout["width"] / (0.62 * size))))
        short = [_cut(str(text), longest) for text in texts][::step]
        axis.update(tickvals=list(places)[::step], ticktext=short)
        if across and axis.get("tickangle") == 0:
            widest = max((len(html.unescape(text)) for text in short), default=0)
            if widest * 0.62 * size * len(short) > side * (high - low):
                axis["tickangle"] = -90
        elif across and axis.get("tickangle") is not None:
            axis["tickangle"] = -90


def _shorten(axis: dict[str, Any], side: float, letters: float) -> None:
    """Fit an axis title: "query: attending token" as "query", or in two lines."""
    title = axis.get("title")
    if not isinstance(title, dict) or not title.get("text"):
        return
    known = cast("dict[str, Any]", title)
    text, size = str(known["text"]), known.get("font", {}).get("size", letters)
    if _DIGIT * size * len(html.unescape(text)) > side:
        text = text.partition(":")[0]
        axis["title"] = {**known, "text": "<br>".join(_lines(text, side, size))}


def _crowded(layout: dict[str, Any], axis: dict[str, Any], letters: float) -> bool:
    own = layout.get(f"yaxis{str(axis.get('anchor') or 'y')[1:]}", {}).get("domain") or (0, 1)
    others = [layout[name].get("domain") or (0, 1) for name in layout if name.startswith("yaxis")]
    below = max((high for _, high in others if high <= own[0]), default=None)
    room = 0.0 if below is None else (own[0] - below) * (layout["height"] - layout.get("margin", {}).get("t", 40))
    return below is not None and room < 5 * letters


def _cut(text: str, longest: int) -> str:
    plain = html.unescape(text)
    return text if len(plain) <= longest else html.escape(plain[: longest - 1]) + "…"


def _legible(plain: dict[str, Any]) -> bool:
    layout = plain["layout"]
    for one in plain["data"]:
        if one.get("type") != "heatmap" or one.get("texttemplate") is None:
            continue
        texts = numpy.asarray(one["text"], dtype=object)
        axis = layout.get(f"xaxis{str(one.get('xaxis') or 'x')[1:]}", {})
        low, high = axis.get("domain") or (0, 1)
        labels = max(
            (len(html.unescape(str(text))) for text in layout.get("yaxis", {}).get("ticktext") or ()), default=3
        )
        letters = layout.get("font", {}).get("size", _LETTERS)
        room = (layout["width"] - 0.62 * letters * labels - 8 * letters) * (high - low)
        # A percent sign is as wide as two digits; a digit's width stays free beside each number.
        longest = max((len(str(text).strip()) + str(text).count("%") for text in texts.ravel()), default=1)
        if room / max(1, texts.shape[-1]) < (longest + 1) * _DIGIT * _READABLE:
            return False
    return True


def _numberless(part: dict[str, Any]) -> dict[str, Any]:
    if part.get("type") != "heatmap":
        return part
    return {name: value for name, value in part.items() if name not in ("text", "texttemplate", "textfont")}
