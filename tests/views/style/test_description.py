"""What figures say to those who can't see them: their largest numbers, as the pointer is told them."""

import copy

import numpy
import plotly.graph_objects as go
import pytest

from attention_viz import views
from attention_viz.trace.spelling import number_repeats
from attention_viz.trace.trace import Trace
from attention_viz.views.style.description import spoken
from tests.shipped import shipped


@pytest.fixture(scope="module")
def bank() -> Trace:
    return shipped("all-MiniLM-L6-v2").trace("The bank of the river was flooded")


@pytest.mark.parametrize("names", [True, False])
def test_a_matrix_tells_what_each_token_looks_at_most(bank: Trace, names: bool) -> None:
    said = spoken(views.heatmap(bank, 0, 4, names=names))
    assert spoken(copy.deepcopy(views.heatmap(bank, 0, 4, names=names))) == said
    weights = bank.weights(0, 4)
    labels = number_repeats(bank.query_tokens().labels) if names else [f"position {at}" for at in range(9)]
    best = weights.argmax(dim=-1).tolist()
    told = [
        f"{labels[row]} attends to {labels[best[row]]}: {float(weights[row, best[row]]):.6f}"[:-3] for row in range(9)
    ]
    assert sum(one in said for one in told) == 8  # of more rows than eight, those that look hardest
    assert f"{labels[2]} attends to {labels[5]}: 0.580" in said


@pytest.mark.parametrize(("places", "told"), [([0.5, 0.7], "0.70"), ([0.4, 0.6, 0.8], "0.70"), (None, "1")])
def test_a_cell_is_told_by_its_place_on_the_axis_and_not_by_its_number(places: list[float] | None, told: str) -> None:
    written = "%{x:.2f}" if places else "%{x}"
    figure = go.Figure(go.Heatmap(z=[[0.1, 0.9]], x=places, hovertemplate=f"{written} s: %{{z:.2f}}<extra></extra>"))
    assert spoken(figure) == f"Largest: {told} s: 0.90."


def test_several_matrices_share_the_room_and_bars_tell_the_longest(bank: Trace) -> None:
    assert spoken(views.side_by_side(bank, 0)).count(" attends to ") == 24
    said = spoken(views.looks(bank, 0, 4, 2))
    assert said.startswith("Largest: bank attends to river: 0.580; bank attends to flooded: ")
    assert said.count(";") == 2


def test_signs_are_taken_for_no_markup_and_long_words_are_cut() -> None:
    words = numpy.array([["&lt;b&gt; attends to " + "x" * 200 + ": 0.5"]])
    figure = go.Figure(go.Heatmap(z=[[0.5]], hovertext=words, hovertemplate="%{hovertext}<extra></extra>"))
    assert spoken(figure).startswith("Largest: <b> attends to xxx")
    assert len(spoken(figure)) < 120


def test_lines_tell_where_they_begin_and_end() -> None:
    said = spoken(views.training({0: 0.1, 100: 0.5, 200: 0.9}, {0: 0.0, 100: 0.2, 200: 1.0}, "Induction"))
    assert said.startswith("First after 0 steps: Induction 0.100; last after 200 steps: Induction 0.900.")


def test_a_figure_without_numbers_to_tell_says_nothing(bank: Trace) -> None:
    assert spoken(views.paths(bank, 1, 3)) == ""
    assert spoken(go.Figure()) == ""
    assert spoken(go.Figure(go.Heatmap(z=[[float("nan")]], hovertemplate="%{z}"))) == ""
