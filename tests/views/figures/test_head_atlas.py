import math

import numpy
import pandas
import pytest

import attention_viz as av
from attention_viz.analysis.head_table import head_table
from attention_viz.analysis.likeness import divergence, head_distances
from attention_viz.analysis.metrics import METRICS, metrics_for
from attention_viz.errors import ShapeError
from attention_viz.trace.kind import Unit
from attention_viz.trace.trace import Trace
from attention_viz.views import head_effects, head_grid, head_map, head_scatter, heatmap
from attention_viz.views.figures.points import heads_as_points
from attention_viz.views.style.scale import round_up
from attention_viz.views.style.theme import palette
from tests.shipped import shipped


@pytest.fixture(scope="module")
def trace() -> Trace:
    return shipped("all-MiniLM-L6-v2").trace("The cat sat because the cat was tired.")


@pytest.mark.parametrize("metric", metrics_for(Unit.WORD))
def test_the_grid_is_coloured_by_the_metric(trace: Trace, metric: str) -> None:
    table, cells = head_table(trace), head_grid(trace, metric).data[0]
    drawn = numpy.array(cells.z)
    assert drawn.shape == (6, 12)
    assert drawn.flatten().tolist() == pytest.approx(table[metric].tolist(), nan_ok=True)
    assert cells.zmax >= table[metric].max()
    assert f"{METRICS[metric].label}: {table.loc[(3, 1), metric]:.3f}" in cells.hovertext[3][1]


def test_the_scatter_places_each_head_by_two_metrics(trace: Trace) -> None:
    table, points = head_table(trace), head_scatter(trace, "previous", "distance", chosen=(2, 3)).data[0]
    assert list(points.x) == table["previous"].tolist()
    assert list(points.y) == table["distance"].tolist()
    assert [tuple(head) for head in points.customdata] == list(table.index)
    assert numpy.argmax(points.marker.size) == 2 * 12 + 3


def test_heads_that_stand_apart_are_named_in_the_scatter(trace: Trace) -> None:
    points = head_scatter(trace, "previous", "entropy", chosen=(2, 3)).data[0]
    table = head_table(trace)
    far = sum(((table[name] - table[name].median()) / table[name].std(ddof=0)) ** 2 for name in ("previous", "entropy"))
    apart = {f"{layer}·{head}" for layer, head in far[far > 4].index} | {"2·3"}
    named = {name for name in points.text if name}
    farthest = "·".join(map(str, far.idxmax()))
    assert {farthest, "2·3"} <= named <= apart and len(named) > 2


def test_no_name_lies_over_another_and_the_chosen_head_keeps_its_own() -> None:
    """Of hundreds of heads, those that stand apart together have one name."""
    random = numpy.random.default_rng(3)
    far = (random.normal(where, 0.1, (20, 2)) for where in (9, -9))
    places = numpy.concatenate([random.normal(0, 1, (230, 2)), *far])
    heads = pandas.MultiIndex.from_tuples([divmod(at, 9) for at in range(270)], names=["layer", "head"])
    across, up = places.T.tolist()
    points = heads_as_points(pandas.DataFrame(index=heads), across, up, (29, 8), palette("light")).data[0]
    named = [at for at, name in enumerate(points.text) if name]
    assert 1 < len(named) <= 10 and points.text[269] == "29·8"
    room = numpy.ptp(places, axis=0) * (0.06, 0.05)
    for at, one in enumerate(named):
        for other in named[at + 1 :]:
            assert (numpy.abs(places[one] - places[other]) >= room).any()


def test_in_the_map_heads_that_are_equal_share_a_place_and_the_farthest_stand_apart() -> None:
    trace = shipped("induction").trace("moon cheese frog moon cheese frog")
    points, distances = head_map(trace).data[0], head_distances(trace).numpy()
    places = numpy.stack([points.x, points.y], axis=1)
    apart = numpy.linalg.norm(places[:, None] - places, axis=-1)
    one, other = numpy.unravel_index(distances.argmax(), distances.shape)
    assert apart[one, other] == pytest.approx(distances[one, other], rel=0.25)
    # Two dimensions keep some of each distance and never add to it.
    assert (apart <= distances + 1e-9).all()


def test_distances_that_are_at_hand_place_the_heads_as_those_of_the_trace(trace: Trace) -> None:
    distances = head_distances(trace)
    drawn, again = head_map(trace, distances=distances).data[0], head_map(trace).data[0]
    assert list(drawn.x) == list(again.x) and list(drawn.y) == list(again.y)
    with pytest.raises(ShapeError, match=r"distances of 72 heads must be \(72, 72\); got \(2, 2\)"):
        head_map(trace, distances=distances[:2, :2])


def test_the_distance_of_two_heads_is_the_root_of_their_rows_mean_divergence(trace: Trace) -> None:
    distances, rows = head_distances(trace), list(trace.query_tokens().counted)
    for one, other in (((0, 4), (3, 1)), ((5, 11), (5, 0)), ((2, 2), (2, 2))):
        apart = divergence(trace.weights(*one)[rows], trace.weights(*other)[rows]).mean().sqrt()
        assert float(distances[one[0] * 12 + one[1], other[0] * 12 + other[1]]) == pytest.approx(float(apart), abs=1e-7)


def test_of_several_texts_the_grid_tells_the_mean_and_the_spread() -> None:
    model = shipped("induction")
    traces = [model.trace(text) for text in ("moon cheese moon cheese", "frog ring boat frog ring")]
    table = head_table(traces)
    cells = head_grid(traces[0], "previous", table=table).data[0]
    mean, spread = table.loc[(0, 0), "previous"], table.loc[(0, 0), "previous_spread"]
    assert spread > 0 and f"Previous token: {mean:.3f} ± {spread:.3f}" in cells.hovertext[0][0]


def test_one_token_and_one_head_are_drawn() -> None:
    trace = av.scratch("word", heads=1)
    for figure in (head_grid(trace, "self"), head_scatter(trace), head_map(trace)):
        assert len(figure.data) == 1


def test_a_metric_that_is_not_there_is_refused_with_those_that_are(trace: Trace) -> None:
    for draw in (head_grid, head_scatter):
        with pytest.raises(ShapeError, match="unknown metric 'speed'; choose entropy, previous"):
            draw(trace, "speed")


@pytest.mark.parametrize("largest", [0.0, 1e-7, 0.09, 1, 2.04, 3.3, 480])
def test_a_scale_ends_at_a_round_number(largest: float) -> None:
    full = round_up(largest)
    assert full == 1 if largest == 0 else largest <= full <= 1.4 * largest
    assert math.isclose(full / 4, float(f"{full / 4:.2g}"))


def test_effects_are_drawn_for_the_heads_that_were_tried(trace: Trace) -> None:
    moved = pandas.Series({(3, head): head / 100 for head in range(12)})
    cells = head_effects(trace, moved, chosen=(3, 2)).data[0]
    assert numpy.array(cells.z).tolist() == [[head / 100 for head in range(12)]]
    for wrong in (pandas.Series(dtype="float64"), pandas.Series({(99, 0): 0.1})):
        with pytest.raises(ShapeError, match="effects need"):
            head_effects(trace, wrong)


def test_a_matrix_without_names_has_the_same_weights_and_nothing_where_it_is_blocked() -> None:
    trace = shipped("induction").trace("moon cheese frog ring boat tree")
    named, nameless = heatmap(trace, 1, 1).data[0], heatmap(trace, 1, 1, names=False).data[0]
    ahead = ~numpy.tri(len(named.z), dtype=bool)
    assert numpy.isnan(nameless.z[ahead]).all() and not nameless.hoverongaps
    assert (nameless.z[~ahead] == named.z[~ahead]).all()
    assert nameless.zmax == named.zmax and nameless.hovertext is None and "%{z:.6f}" in nameless.hovertemplate
