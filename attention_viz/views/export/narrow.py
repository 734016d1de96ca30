"""Stack panels and keep text readable in narrow figures."""

import html
from collections.abc import Sequence
from typing import Any, cast

from attention_viz.views.export.sheet import Sheet, wrapped
from attention_viz.views.style.axes import FOLDS

# A panel that is narrower than this, in letters, is too small to be read beside others.
_NARROW = 18.0
# What stands between two panels, below them, and how high one is at least and at most, in letters.
_LABELS, _BARS, _LOWEST, _HIGHEST = 7.5, 8.0, 13.0, 26.0
_LINE, _DIGIT, _MOST_LINES = 1.3, 0.6, 3
# The smallest letters that can be read, 5 points, in pixels.
_READABLE = 5 * 96 / 72


def fold_panels(plain: dict[str, Any], sheet: Sheet) -> None:
    """Stack panels with `layout.meta = FOLDS` if the sheet is too narrow."""
    layout = plain["layout"]
    columns = sorted((name for name in layout if name.startswith("xaxis")), key=lambda name: _domain(layout, name))
    rows = [f"y{name[1:]}" for name in columns]
    if layout.get("meta") != FOLDS or sheet.width is None or sheet.height is not None:
        return
    if sheet.width / len(columns) >= _NARROW * sheet.letters:
        return
    notes = [dict(one) for one in layout.get("annotations") or ()]
    titles = [one for one in notes if one.get("y") == 1 and one.get("xref", "paper") == "paper" and one.get("text")]
    for one in titles:
        one["text"] = _wrapped(one["text"], 0.72 * sheet.width, sheet.letters)
    above = _LINE * max((1 + one["text"].count("<br>") for one in titles), default=0)
    panel = _panel_height(plain, layout, rows[0])
    whole = len(columns) * panel + (len(columns) - 1) * (_LABELS + above)
    for place, (across, down) in enumerate(zip(columns, rows, strict=True)):
        top = 1 - place * (panel + _LABELS + above) / whole
        layout[across] = {**layout[across], "domain": [0.0, 1.0]}
        layout[down] = {**layout[down], "domain": [max(0.0, top - panel / whole), top], "showticklabels": True}
        if place < len(columns) - 1:
            layout[across]["title"] = None
        if place < len(titles):
            titles[place].update(x=0.5, xanchor="center", y=top, yanchor="bottom")
    layout["margin"] = {**layout.get("margin", {}), "b": (_LABELS + _BARS) * sheet.letters}
    layout["height"] = (whole + above + 2 * _LABELS + _BARS) * sheet.letters
    layout["annotations"] = [*notes, *_bars_beside(plain, sheet.letters)]


def keep_words_apart(plain: dict[str, Any]) -> None:
    """Shrink words in a row to fit, while readable."""
    layout = plain["layout"]
    for part in plain["data"]:
        if part.get("mode") != "text" or part.get("text") is None or len(set(part.get("y") or ())) != 1:
            continue
        axis = layout.get(f"xaxis{str(part.get('xaxis') or 'x')[1:]}", {})
        low, high = axis.get("domain") or (0, 1)
        span = axis.get("range") or (min(part["x"]), max(part["x"]))
        places = max(1.0, abs(span[1] - span[0]))
        room = 0.94 * layout["width"] * (high - low) / places
        longest = max(len(html.unescape(str(one)).replace("<b>", "").replace("</b>", "")) for one in part["text"])
        known: dict[str, Any] = part.get("textfont") or {}
        size = known.get("size", layout.get("font", {}).get("size", 12.0))
        part["textfont"] = {**known, "size": max(_READABLE, min(size, room / (_DIGIT * longest)))}


def keep_bars_readable(plain: dict[str, Any], sheet: Sheet) -> None:
    """Heighten horizontal bars for their numbers, unless a height is set."""
    layout = plain["layout"]
    for part in plain["data"]:
        if part.get("type") != "bar" or part.get("orientation") != "h" or part.get("text") is None:
            continue
        part["constraintext"] = "none"
        if sheet.height is None:
            axis = layout.get(f"yaxis{str(part.get('yaxis') or 'y')[1:]}", {})
            low, high = axis.get("domain") or (0, 1)
            needed = 1.35 * sheet.letters * (len(part["text"]) + 1) / max(high - low, 0.05)
            margin = layout.get("margin", {})
            layout["height"] = max(layout["height"], needed + margin.get("t", 40) + margin.get("b", 20))


def in_few_lines(lines: Sequence[str]) -> str:
    """Wrap a panel name to three lines, with a sign for the rest."""
    kept = list(lines[:_MOST_LINES])
    if len(lines) > len(kept):
        kept[-1] = f"{kept[-1].rstrip('…')}…"
        opened = kept[-1].rfind("“") > kept[-1].rfind("”")
        kept[-1] += "”" * opened
    return "<br>".join(kept)


def _domain(layout: dict[str, Any], name: str) -> tuple[float, float]:
    low, high = layout.get(name, {}).get("domain") or (0.0, 1.0)
    return float(low), float(high)


def _panel_height(plain: dict[str, Any], layout: dict[str, Any], axis: str) -> float:
    """Return a panel's height in letters: a line per label, within bounds."""
    labels = len(layout.get(axis, {}).get("ticktext") or ())
    return min(max(1.5 * labels, _LOWEST), _HIGHEST) if plain["data"] else _LOWEST


def _wrapped(text: str, width: float, letters: float) -> str:
    lines = [line for part in text.split("<br>") for line in wrapped(html.unescape(part), width, letters)]
    return in_few_lines([html.escape(line, quote=False) for line in lines])


def _bars_beside(plain: dict[str, Any], letters: float) -> list[dict[str, Any]]:
    lying = [one for one in plain["data"] if one.get("showscale") and (one.get("colorbar") or {}).get("orientation")]
    found: list[dict[str, Any]] = []
    for place, part in enumerate(lying):
        bar = cast("dict[str, Any]", part["colorbar"])
        title = cast("dict[str, Any]", bar.get("title") or {})
        centre = (place + 0.5) / len(lying)
        part["colorbar"] = {**bar, "x": centre, "len": 0.8 / len(lying), "title": {**title, "text": ""}}
        down = (_LABELS + _BARS - 4.2) * letters
        text = {"text": title.get("text", ""), "x": centre, "xanchor": "center", "y": 0, "yshift": -down}
        found.append({**text, "xref": "paper", "yref": "paper", "yanchor": "bottom", "showarrow": False})
    return found
