"""The sheet to draw an image of shapes on."""

from collections.abc import Callable
from typing import Any

from attention_viz.errors import UnusablePicture
from attention_viz.explorer import drawing_source
from attention_viz.inputs.media.drawn import MOST_SHAPES, is_drawn, name_of, shapes_of
from attention_viz.inputs.media.shapes import CENTRES, COLOURS, COLUMNS, DRAWN, GROUND, ROWS, SHAPES, SIDE, Shape
from attention_viz.ui import widgets

_KEY = "drawing"
_sheet = widgets.component("drawing", *drawing_source())


def show_sheet(shown: str, on_drawn: Callable[[str], None]) -> None:
    """Show the sheet with the shown drawing or sample's shapes; `on_drawn` takes a drawing's name."""

    def take() -> None:
        sent = widgets.sent(_KEY, "drawn")
        # A browser may send anything.
        if isinstance(sent, str) and is_drawn(sent):
            try:
                name = name_of(shapes_of(sent))
            except UnusablePicture:
                return
            on_drawn(name)

    shapes = shapes_of(shown) if is_drawn(shown) else DRAWN.get(shown, ())
    _sheet(key=_KEY, data=_data(shapes), height="content", on_drawn_change=take)


def _data(shapes: tuple[Shape, ...]) -> dict[str, Any]:
    drawn = {f"{one.row}-{one.column}": {"colour": one.colour, "shape": one.shape} for one in shapes}
    return {
        "side": SIDE,
        "ground": _css(GROUND),
        "centres": list(CENTRES),
        "radius": Shape.radius,
        "colours": {name: _css(colour) for name, colour in COLOURS.items()},
        "shapes": list(SHAPES),
        "rows": list(ROWS),
        "columns": list(COLUMNS),
        "most": MOST_SHAPES,
        "drawn": drawn,
    }


def _css(colour: tuple[int, int, int]) -> str:
    return f"rgb({' '.join(map(str, colour))})"
