"""A number for each head in one picture: many layers stand across, so that no head becomes a strip."""

import numpy as np
import pytest

from attention_viz.views.figures.grids import grid_of_heads, is_turned
from attention_viz.views.style.scale import colour_bar
from attention_viz.views.style.theme import palette


@pytest.mark.parametrize(("layers", "heads"), [(6, 12), (12, 3), (30, 9), (32, 32), (48, 64)])
def test_each_head_keeps_its_number_words_and_frame_whichever_way_the_grid_stands(layers: int, heads: int) -> None:
    values = np.random.default_rng(0).random((layers, heads))
    said = [[f"{layer}, {head}" for head in range(heads)] for layer in range(layers)]
    names, colours = [f"layer {layer}" for layer in range(layers)], palette("light")
    figure = grid_of_heads(
        values,
        names,
        colours,
        title="",
        stops=colours.increases,
        ends=(0, 1),
        said=said,
        written="{:.2f}".format,
        bar=colour_bar("bits"),
        chosen=(5, 2),
    )
    drawn, frame, turned = figure.data[0], figure.layout.shapes[-1], is_turned(layers, heads)
    row, column = (2, 5) if turned else (5, 2)
    assert drawn.z[row][column] == values[5, 2] and drawn.hovertext[row][column] == "5, 2"
    assert (frame.y0, frame.x0) == (row - 0.5, column - 0.5)
    sides = figure.layout.xaxis.title.text, figure.layout.yaxis.title.text
    assert sides == (("layer", "head") if turned else ("head", "layer"))
    assert turned == ((layers, heads) == (30, 9))
