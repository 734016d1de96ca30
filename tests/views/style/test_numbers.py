"""Numbers in cells: in the ink that can be read there, and none where a weight is next to nothing."""

import numpy
import plotly.graph_objects as go
import pytest

from attention_viz.views.style.marks import LEAST, NUMBERS, add_numbers, heatmaps
from attention_viz.views.style.theme import DARK, LIGHT, Palette, colour_scale, ink_on, on_ramp
from tests.views.printed import inks, printed

VALUES = numpy.array([[0.0, 0.04, 0.05], [0.5, numpy.nan, 1.0]])


def figure_of(colours: Palette, values: numpy.ndarray = VALUES) -> go.Figure:
    cells = go.Heatmap(z=values, zmin=0, zmax=1, colorscale=colour_scale(colours.weights), xgap=1, ygap=1)
    return go.Figure([cells])


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_each_number_is_written_once_in_the_ink_of_its_cell(colours: Palette) -> None:
    figure = figure_of(colours)
    add_numbers(figure, "{:.2f}".format, least=LEAST)
    assert printed(figure) == [["", "", "0.05"], ["0.50", "", "1.00"]]
    at = lambda weight: ink_on(on_ramp(colours.weights, weight))  # noqa: E731
    assert inks(figure) == [["", "", at(0.05)], [at(0.5), "", at(1)]]
    assert at(0.05) != at(1)


def test_numbers_of_the_other_ink_are_clear_cells_that_say_nothing_to_the_pointer() -> None:
    figure = figure_of(LIGHT)
    add_numbers(figure, "{:.2f}".format)
    cells, over = heatmaps(figure)
    assert (over.name, over.hoverinfo, over.showscale) == (NUMBERS, "skip", False)
    assert {colour for _, colour in over.colorscale} == {"rgba(0,0,0,0)"}
    assert (over.xgap, over.ygap) == (cells.xgap, cells.ygap)
    # An empty cell counts where Plotly fits letters to cells: no text of it is missing.
    assert all(text for part in (cells, over) for row in part.text for text in row)


def test_one_ink_needs_no_cells_of_its_own_and_nothing_to_write_none_at_all() -> None:
    pale = figure_of(LIGHT, numpy.array([[0.1, 0.2]]))
    add_numbers(pale, "{:.1f}".format)
    assert len(pale.data) == 1 and printed(pale) == [["0.1", "0.2"]]
    empty = figure_of(LIGHT, numpy.array([[0.01, numpy.nan]]))
    add_numbers(empty, "{:.1f}".format, least=LEAST)
    assert len(empty.data) == 1 and empty.data[0].text is None


def test_changes_next_to_nothing_are_left_out_on_either_side_of_nought() -> None:
    cells = go.Heatmap(z=[[-0.04, -0.06, 0.04, 0.06]], zmin=-1, zmax=1, colorscale=colour_scale(DARK.differences))
    figure = go.Figure([cells])
    add_numbers(figure, "{:+.2f}".format, least=LEAST)
    assert printed(figure) == [["", "-0.06", "", "+0.06"]]
