"""The pictures that open a head: three roles, one score, one row of the softmax, one output among the values."""

import json
import math

import numpy
import plotly.graph_objects as go
import pytest
import torch

import attention_viz as av
from attention_viz.analysis.plane import beyond, corners
from attention_viz.scratch.model import Scratch
from attention_viz.steps.head import open_head
from attention_viz.steps.steps import NOTATIONS
from attention_viz.trace.trace import Fidelity, Layer, Provenance, Trace
from attention_viz.views import hull, products, roles, saturation, shares
from attention_viz.views.figures.hull import free_sides
from attention_viz.views.style.theme import DARK, LIGHT, Palette, ThemeName
from tests.views.printed import drawn as drawn_of

NASTY = ("</script>", "<b>x</b>", "=cmd()", "\u202eevil", "a&b", '"', "👩‍👩‍👧", "عربي")


def trace_of(labels: tuple[str, ...], *, d_v: int = 2, causal: bool = False, sinks: bool = False) -> Trace:
    n, generator = len(labels), torch.Generator().manual_seed(5)
    query, key, value = (2 * torch.randn(2, n, width, generator=generator) for width in (3, 3, d_v))
    allowed = av.masks.causal(n) if causal else None
    call = av.attend(query, key, value, allowed, sinks=torch.tensor([0.5, 1.0]) if sinks else None)
    tokens, stream = av.Tokens(labels, tuple(range(n))), "decoder" if causal else "encoder"
    fidelity = Fidelity(0.0, 0.0, 1e-5, "nothing")
    return Trace(
        {stream: (Layer(call, "0"),)},
        {stream: tokens},
        {stream: tokens},
        torch.zeros(n, 2),
        Provenance(model="a <model>"),
        fidelity,
    )


def drawn(figure: go.Figure) -> str:
    return json.dumps(figure.to_plotly_json(), default=str, ensure_ascii=False)


@pytest.mark.parametrize("labels", [("one",), NASTY, ("a",) * 30])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_tokens_stay_text_and_any_number_of_them_has_run(labels: tuple[str, ...], theme: ThemeName) -> None:
    trace = trace_of(labels)
    for figure in (
        roles(trace, 0, 1, theme=theme),
        products(trace, 0, 1, len(labels) - 1, 0, theme=theme),
        shares(trace, 0, 1, 0, theme=theme),
        hull(trace, 0, 1, 0, theme=theme),
    ):
        for markup in ("<b>x", "</script>", "\u202e", "<model>"):
            assert markup not in drawn(figure)


@pytest.mark.parametrize(("theme", "colours"), [("light", LIGHT), ("dark", DARK)])
def test_the_three_roles_hold_the_numbers_in_their_own_colours(theme: ThemeName, colours: Palette) -> None:
    trace = trace_of(("a", "b", "c", "d"), d_v=5)
    call = trace.attention(0)
    for notation in NOTATIONS:
        figure = roles(trace, 0, 1, notation=notation, theme=theme)
        for part, made, name in zip(
            drawn_of(figure), (call.query, call.key, call.value), ("query", "key", "value"), strict=True
        ):
            expected = made[1].mT if notation == "columns" else made[1]
            assert numpy.array_equal(numpy.array(part.z), expected.numpy())
            assert part.colorscale[-1][1] == getattr(colours, name)
        assert [title.text for title in figure.layout.annotations] == ["Query", "Key", "Value"]


def test_a_score_is_opened_as_products_that_add_up_to_the_outlined_cell() -> None:
    trace = trace_of(("a", "b", "c"))
    query, key = (trace.attention(0).head(1).query[2], trace.attention(0).head(1).key[0])
    figure = products(trace, 0, 1, 2, 0)
    matrix, *lines = (numpy.array(part.z) for part in figure.data)
    assert numpy.allclose(lines[0][0, :3], query) and numpy.allclose(lines[1][1, :3], key)
    assert numpy.allclose(lines[2][2, :3], query * key, atol=1e-6)
    assert lines[2][2, 3] == pytest.approx(matrix[2, 0], abs=1e-5) == pytest.approx(float(query @ key), abs=1e-5)
    assert math.isnan(lines[0][0, 3]) and math.isnan(lines[2][0, 0])
    assert [line.colorscale[-1][1] for line in figure.data[1:3]] == [LIGHT.query, LIGHT.key]
    outline = figure.layout.shapes[0]
    assert (outline.x0, outline.y0) == (-0.5, 1.5)
    turned = products(trace, 0, 1, 2, 0, notation="keys down")
    assert numpy.array_equal(numpy.array(turned.data[0].z), matrix.T)


def test_a_row_is_opened_from_what_enters_to_shares_that_are_the_weights() -> None:
    trace = trace_of(("a", "b", "c", "d"), causal=True)
    entries, exponentials, weights = shares(trace, 0, 0, 2).data
    masked = trace.attention(0).masked[0, 2].double()
    assert numpy.allclose(entries.x[:3], masked[:3]) and numpy.allclose(
        exponentials.x, (masked - masked.max()).exp(), atol=1e-6
    )
    assert numpy.allclose(weights.x, trace.weights(0, 0)[2], atol=1e-6)
    assert sum(weights.x) == pytest.approx(1)
    assert entries.text[3] == "blocked" and entries.hovertext[3].endswith("blocked") and weights.x[3] == 0


def test_a_sink_takes_its_share_in_the_opened_row() -> None:
    trace = trace_of(("a", "b"), sinks=True)
    weights = shares(trace, 0, 1, 0).data[2]
    assert numpy.allclose(weights.x[:2], trace.weights(0, 1)[0], atol=1e-6)
    assert len(weights.x) == 3 and sum(weights.x) == pytest.approx(1)


def test_of_a_long_row_the_largest_shares_have_bars_and_all_others_stand_together() -> None:
    trace = trace_of(("a", "b: c") * 300, sinks=True)
    entries, exponentials, weights = shares(trace, 0, 0, 9).data
    exact, entered = trace.weights(0, 0)[9], trace.attention(0).masked[0, 9].double()
    assert {len(part.x) for part in (entries, exponentials, weights)} == {30}
    named = [name for name in weights.hovertext[:-1] if not name.startswith("sink (dropped), ")]
    in_text = [int(name.split("(")[1].split(")")[0]) for name in named]
    assert in_text == sorted(in_text) and len(in_text) >= 28
    assert numpy.allclose(weights.x[: len(in_text)], exact[in_text], atol=1e-6)
    others = torch.ones(600, dtype=torch.bool).index_fill(0, torch.tensor(in_text), False)
    assert exact[others].max() <= exact[in_text].min()
    assert sum(weights.x) == pytest.approx(1)
    assert entries.x[-1] == pytest.approx(float(entered[others].max()), abs=1e-6)
    assert entries.text[-1].startswith("≤ ") and entries.hovertext[-1].startswith("572 others, enters: at most")


def test_a_row_that_may_look_at_nothing_has_run_as_blocked() -> None:
    trace = Scratch().run("a b", torch.zeros(2, 2, dtype=torch.bool))
    for part in shares(trace, 0, 0, 1).data:
        assert list(part.x) == [0, 0]


def test_the_output_has_run_among_the_values_and_repeated_tokens_are_named_once() -> None:
    trace = Scratch(4, 2, positions="none").trace("the bank of the river")
    figure = hull(trace, 0, 1, 1)
    one = trace.attention(0).head(1)
    output, points = figure.data[-2], figure.data[-1]
    assert numpy.allclose(numpy.stack([points.x, points.y], 1), one.value)
    assert (output.x[0], output.y[0]) == pytest.approx(tuple((one.weights @ one.value)[1].tolist()), abs=1e-6)
    assert (output.marker.color, points.marker.color) == (LIGHT.query, LIGHT.value)
    assert list(points.text) == ["the", "bank", "of", "", "river"]
    widths = [line.line.width for line in figure.data[1:6]]
    assert numpy.argmax(widths) == int(one.weights[1].argmax())


def test_corners_go_around_the_points_and_lines_and_single_points_have_a_hull_too() -> None:
    square = numpy.array([[0.0, 0], [2, 0], [1, 1], [2, 2], [0, 2], [0, 2]])
    assert {tuple(corner) for corner in corners(square)} == {(0, 0), (2, 0), (2, 2), (0, 2)}
    assert beyond(square, numpy.array([1.0, 0.5])) == pytest.approx(-0.5)
    assert beyond(square, numpy.array([3.0, 1.0])) == pytest.approx(1)
    line = numpy.array([[0.0, 0], [1, 1], [3, 3]])
    assert sorted(map(tuple, corners(line))) == [(0, 0), (3, 3)]
    assert beyond(line, numpy.array([2.0, 2.0])) == pytest.approx(0, abs=1e-12)
    assert beyond(line, numpy.array([4.0, 3.0])) == pytest.approx(1)
    same = numpy.ones((4, 2))
    assert len(corners(same)) == 1
    assert beyond(same, numpy.array([1.0, 3.0])) == 2


@pytest.mark.parametrize("seed", range(20))
def test_weights_keep_any_mixture_within_the_hull(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(7, 2, generator=generator, dtype=torch.float64)
    mixture = torch.rand(7, generator=generator, dtype=torch.float64).softmax(-1) @ values
    assert beyond(values.numpy(), mixture.numpy()) < 0


def test_of_several_traces_as_wide_the_saturation_is_their_mean() -> None:
    traces = [Scratch(8, 1, seed).trace("The cat sat on mat") for seed in (0, 1)]
    lines = {line.name: line for line in saturation(*traces).data}
    drawn = lines["largest weight, no scale"]
    largest = [open_head(trace, 0, 0, scale="none").weights.amax(-1).mean().item() for trace in traces]
    assert list(drawn.x) == [8] and drawn.y[0] == pytest.approx(sum(largest) / 2)
    assert abs(largest[0] - largest[1]) > 1e-3


def test_what_is_not_there_is_refused_in_words() -> None:
    trace = trace_of(("a", "b"), d_v=3)
    with pytest.raises(av.ShapeError, match="values of two numbers; this head's have 3"):
        hull(trace, 0, 0, 0)
    for picture in (shares, hull):
        with pytest.raises(av.ShapeError, match="no position 2; the text has positions 0 to 1"):
            picture(trace_of(("a", "b")), 0, 0, 2)
    with pytest.raises(av.ShapeError, match="cell"):
        products(trace, 0, 0, 0, 2)
    with pytest.raises(av.ShapeError, match="head 2"):
        roles(trace, 0, 2)


def test_names_beside_near_points_cover_neither_points_nor_each_other() -> None:
    values = numpy.array([[0.53, 0.41], [0.7, 0.17], [1.05, 0.07], [1.31, 0.38], [-2.5, 2.6], [-2.4, -1.8]])
    names = ["[SEP]", "[CLS]", "the", "was", "bank", "river"]
    sides = free_sides(values, names, list(range(6)))
    assert sides[4] == sides[5] == (0, 1)
    assert sides[0] != sides[1] and len({*sides[:4]}) > 1
    # No side is free for a point among many.
    crowd = numpy.array([[0.01 * at, 0.01 * at] for at in range(40)] + [[9.0, 9.0]])
    assert None in free_sides(crowd, ["word"] * 41, list(range(41)))
