"""A lesson's figure for a page without Python: both themes, short numbers, and the places to press."""

import base64
import json
import math
from typing import Any

import numpy

from attention_viz.lesson.export.picture import fitted, with_spots
from attention_viz.lesson.lesson import Shown
from attention_viz.views.style.description import alternative_text

__all__ = ["figure_data", "plotly_data"]

# More digits than any screen can show a place by, or any label writes.
_DIGITS = 6


def figure_data(light: Shown, dark: Shown, *, few: bool) -> dict[str, object]:
    """Return a figure as the page draws it, by theme, and the option of each place that can be pressed."""
    return {
        "light": plotly_data(light, few=few),
        "dark": plotly_data(dark, few=few),
        "alt": alternative_text(light.figure, light.says),
        "spots": [spot.option for spot in light.spots],
    }


def plotly_data(shown: Shown, *, few: bool) -> object:
    """Return a figure without its title as Plotly's JSON values, with the places to press."""
    figure = fitted(shown.figure, few=few)
    if shown.spots:
        with_spots(figure, shown.spots)
    made: Any = json.loads(str(figure.to_json()))
    used = {one.get("type", "scatter") for one in made["data"]}
    # The template has every kind of trace; a figure has two or three.
    template = made["layout"].get("template", {})
    template["data"] = {name: one for name, one in template.get("data", {}).items() if name in used}
    return _short({"data": made["data"], "layout": made["layout"]})


def _short(part: Any) -> Any:
    """Round numbers, and write arrays as lists."""
    if isinstance(part, dict):
        if set(part) >= {"dtype", "bdata"}:
            return _short(_array(part).tolist())
        return {name: _short(inner) for name, inner in part.items()}
    if isinstance(part, list):
        return [_short(inner) for inner in part]
    if isinstance(part, float):
        return _rounded(part)
    return part


def _array(part: dict[str, str]) -> "numpy.ndarray[Any, Any]":
    numbers = numpy.frombuffer(base64.b64decode(part["bdata"]), dtype=part["dtype"])
    return numbers.reshape([int(one) for one in str(part.get("shape", numbers.size)).split(",")])


def _rounded(number: float) -> float | int | None:
    if not math.isfinite(number):
        return None
    short = float(f"{number:.{_DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 10**_DIGITS else short
