"""Set a matrix's deepest colour and colour bar."""

import math
from typing import Any

import numpy
from jaxtyping import Float
from numpy import ndarray

# Above this many tokens hardly a weight comes near 1, and a scale to 1 would leave the picture blank.
_SCALE_TO_ONE_UP_TO = 48
# Of more weights than this most count instead of the largest, where that is so many times as much; and how often an
# even share the deepest colour is then.
_CROWDED, _MOST, _TOWERS, _SHARES = 1000, 0.99, 6, 4
# Ten times what is written as 0 where changes are written with two digits.
_LEAST_CHANGE = 0.05
# A logarithmic scale goes from the largest number down to what looks like 0: four decades.
_DECADES = 4
_ROUND = (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10)


def colour_bar(title: str) -> dict[str, Any]:
    """Make a colour bar, numbers below their lines to clear the title."""
    return {
        "title": {"text": title, "font": {"size": 12}},
        "tickformat": ".3~g",
        "ticklabelposition": "outside bottom",
        "thickness": 10,
        "outlinewidth": 0,
    }


def full_colour(weights: Float[ndarray, "query key"], longest: int | None = None) -> float:
    """Return the deepest colour's weight: 1; for many tokens the largest, or the 99th percentile if few tower."""
    largest = float(weights.max(initial=0.0))
    if (longest or max(weights.shape)) <= _SCALE_TO_ONE_UP_TO or largest == 0:
        return 1.0
    some = weights[weights > 0]
    if some.size > _CROWDED:
        most = max(float(numpy.quantile(some, _MOST)), _SHARES / (longest or max(weights.shape)))
        largest = most if most < largest / _TOWERS else largest
    return round_up(largest)


def weight_bar(full: float, largest: float) -> dict[str, Any]:
    """Make the weights' bar, noting if the deepest colour covers larger ones."""
    ends = [f"{number:.3g}" for number in quarters(full)]
    beyond = [*ends[:-1], f"≥ {ends[-1]}"] if largest > full else ends
    return {**colour_bar("weight"), "tickvals": quarters(full), "ticktext": beyond}


def full_change(changes: Float[ndarray, "query key"]) -> float:
    """Return the deepest colour's change, the largest on either side, above numbers that print as 0."""
    return max(float(numpy.nanmax(numpy.abs(changes), initial=0.0)), _LEAST_CHANGE)


def round_up(largest: float) -> float:
    """Round up to a number with short quarters; 1 for 0."""
    if largest <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(largest))
    return next(digits * power for digits in _ROUND if digits * power >= largest * (1 - 1e-6))


def quarters(full: float) -> list[float]:
    """Return a colour bar's five ticks, from 0."""
    return [full * quarter / 4 for quarter in range(5)]


def lying_bar(left: float, right: float, *, above: bool = False) -> dict[str, Any]:
    """Lay a colour bar below or above matrices, keeping their width."""
    place = {"orientation": "h", "x": (left + right) / 2, "len": (right - left) * (1 if above else 0.8)}
    if above:
        return place | {"y": 1.03, "yanchor": "bottom", "thickness": 7, "ypad": 0, "title_side": "right"}
    return place | {"y": 0, "yref": "container", "yanchor": "bottom", "thickness": 10, "title_side": "right"}


def log_places(values: Float[ndarray, "*any"], largest: Float[ndarray, "*any"] | float) -> Float[ndarray, "*any"]:
    """Return places from −1 to 1 in equal steps for equal factors; 0 below a ten-thousandth of the largest."""
    with numpy.errstate(divide="ignore", invalid="ignore"):
        sizes = 1 + numpy.log10(numpy.abs(values) / numpy.where(largest == 0, 1.0, largest)) / _DECADES
    return numpy.sign(values) * numpy.nan_to_num(sizes, neginf=0.0).clip(0, 1)
