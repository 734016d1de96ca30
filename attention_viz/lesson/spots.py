"""Places of words in a Plotly picture, for pressing them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from attention_viz.lesson.links import trained_words
from attention_viz.lesson.scene import Scene

__all__ = ["Spot", "asking_words", "bar_spots", "line_spots", "row_spots", "written_spots"]

# Along a bar's row, in parts of the width.
_ALONG = (0.03, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9)


@dataclass(frozen=True)
class Spot:
    """A pressable place.

    Attributes:
        y: on the axis that goes down.
        option: of the control if it has words, else by `Scene.word`.
        axis: Plotly's axis pair; "" is the first.
        name: hover text; "" for the picture's.
    """

    x: float
    y: float
    option: str
    axis: str = ""
    name: str = ""


def line_spots(
    places: Sequence[float], names: Sequence[str], options: Collection[str], heights: Sequence[float]
) -> tuple[Spot, ...]:
    """Return spots of words on lines, for the selectable ones."""
    return tuple(
        Spot(x, height, str(at), name=name)
        for at, (x, name) in enumerate(zip(places, names, strict=True))
        if str(at) in options
        for height in heights
    )


def bar_spots(options: Sequence[str]) -> tuple[Spot, ...]:
    """Return spots of horizontal bars, one for each option; "" chooses nothing."""
    return tuple(Spot(x, y, option) for y, option in enumerate(options) if option for x in _ALONG)


def row_spots(figure: go.Figure, options: Sequence[str], *, upright: bool = False) -> tuple[Spot, ...]:
    """Return spots of all matrices with a row for each option; "" chooses nothing."""
    found = list[Spot]()
    matrices: list[Any] = [one for one in figure.data if isinstance(one, go.Heatmap)]
    for axis, shape in {(one.xaxis or "x")[1:]: one.z.shape for one in matrices}.items():
        words, others = shape[::-1] if upright else shape
        if words != len(options):
            continue
        places = [(word, other) for word in range(words) for other in range(others) if options[word]]
        found += [Spot(*((a, b) if upright else (b, a)), options[a], axis) for a, b in places]
    return tuple(found)


def written_spots(figure: go.Figure, name: str) -> tuple[Spot, ...]:
    """Return spots of words with axes of their own, by place."""
    traces: list[Any] = list(figure.data)
    found = [one for one in traces if one.name == name]
    return tuple(
        Spot(x, y, str(at), one.xaxis[1:]) for one in found for at, (x, y) in enumerate(zip(one.x, one.y, strict=True))
    )


def asking_words(scene: Scene) -> tuple[str, ...]:
    """Map our module's words to a trained model's; "" if none matches."""
    words, _ = trained_words(scene)
    known = {label.casefold(): place for place, label in reversed([*words.items()])}
    if len(words) == len(scene.words):
        return tuple(words)
    return tuple(known.get(word.casefold(), "") for word in scene.words)
