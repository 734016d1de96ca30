"""A pen for matrix cells: by click, drag or keyboard."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TypeGuard, cast

from streamlit.components import v2 as components

from attention_viz.explorer import script
from attention_viz.ui import visit, widgets

__all__ = ["show_pen", "strokes"]

_KEY = "pen"

_HTML = """\
<div class="pen" tabindex="0" role="application" aria-label="Draw by keyboard">
  <span></span> <output></output>
</div>
"""

# Registered once, when the module is imported: a component's name stands for its code from then on.
_CSS = resources.files("attention_viz.ui.controls").joinpath("pen.css").read_text("utf-8")
_pen = components.component("attention_viz_pen", html=_HTML, css=_CSS, js=script("page/pen.js"))


@dataclass
class _LastStroke:
    stroke: int = 0


def show_pen(
    chart: str, labels: Sequence[str], colour: str, on_strokes: Callable[[], None], does: str = "blocks or opens"
) -> None:
    """Draw a pen over a square matrix, with instructions.

    Args:
        on_strokes: called before the page runs again; see `strokes`.
    """
    seen = visit.memory(_LastStroke).stroke
    data = {"chart": chart, "labels": list(labels), "colour": colour, "does": does, "seen": seen}
    _pen(key=_KEY, data=data, on_strokes_change=on_strokes)


def strokes(count: int) -> list[tuple[slice, slice]]:
    """Return new strokes' cells, oldest first, dropping other lengths."""
    message, seen = widgets.sent(_KEY, "strokes"), visit.memory(_LastStroke)
    found: list[tuple[slice, slice]] = []
    for stroke in cast("list[object]", message) if isinstance(message, list) else ():
        if not _whole(stroke) or stroke[0] <= seen.stroke:
            continue
        seen.stroke, length, top, bottom, left, right = stroke
        if length == count and 0 <= top <= bottom < count and 0 <= left <= right < count:
            found.append((slice(top, bottom + 1), slice(left, right + 1)))
    return found


def _whole(stroke: object) -> TypeGuard[list[int]]:
    """Check six integers, because browsers can send anything."""
    if not isinstance(stroke, list):
        return False
    numbers = cast("list[object]", stroke)
    return len(numbers) == 6 and all(type(number) is int for number in numbers)
