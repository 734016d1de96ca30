import json
from xml.etree import ElementTree

import numpy
import pytest
import torch

import attention_viz as av
from attention_viz.errors import TraceError
from attention_viz.trace.spelling import weight_text
from attention_viz.trace.trace import Fidelity, Layer, Provenance, Trace
from attention_viz.views import VIEWS, heatmap, heatmap_svg
from attention_viz.views.style.marks import segments
from attention_viz.views.style.scale import full_colour, weight_bar
from attention_viz.views.style.theme import DARK, LIGHT, Palette, ThemeName, ink_on, on_ramp
from attention_viz.views.style.wording import escaped
from tests.views.printed import inks, printed

NASTY = ("</script>", "<b>x</b>", "=cmd()", "\u202eevil", "a&b", '"', "👩‍👩‍👧", "عربي")


def trace_of(labels: tuple[str, ...], *, causal: bool = False, heads: int = 3, d_k: int = 5, size: float = 3) -> Trace:
    n = len(labels)
    generator = torch.Generator().manual_seed(3)
    query, key, value = (size * torch.randn(heads, n, d_k, generator=generator) for _ in range(3))
    allowed = av.masks.causal(n) if causal else None
    tokens = av.Tokens(labels, tuple(range(n)))
    layer = Layer(av.attend(query, key, value, allowed), "0")
    fidelity = Fidelity(0.0, 0.0, 1e-5, "nothing")
    provenance = Provenance(model="a <model>", text="\n".join(labels))
    stream = "decoder" if causal else "encoder"
    return Trace({stream: (layer,)}, {stream: tokens}, {stream: tokens}, torch.zeros(n, 2), provenance, fidelity)


@pytest.mark.parametrize("name", sorted(VIEWS))
def test_every_picture_has_one_function_and_a_first_sentence(name: str) -> None:
    assert VIEWS[name].__name__ == name
    assert getattr(av.views, name) is VIEWS[name]
    assert VIEWS[name].__doc__


def test_the_figure_holds_the_weights_queries_down_keys_across() -> None:
    trace = trace_of(("a", "b", "c", "d"))
    figure = heatmap(trace, 0, 2)
    assert numpy.allclose(figure.data[0].z, trace.weights(0, 2).numpy(), atol=1e-7)
    assert list(figure.layout.yaxis.range) == [3.5, -0.5]
    assert list(figure.layout.xaxis.ticktext) == ["a", "b", "c", "d"]


def test_weights_that_are_not_numbers_are_refused_rather_than_left_blank() -> None:
    query = torch.ones(1, 3, 2)
    query[0, 1] = 1e30  # its scores overflow
    broken = av.Trace.from_qkv(query, 1e30 * torch.ones(1, 3, 2), torch.ones(1, 3, 2))
    for draw in (heatmap, heatmap_svg):
        with pytest.raises(TraceError, match="can't draw the head: some of its weights aren't finite"):
            _ = draw(broken, 0, 0)


def test_the_key_to_blocked_cells_stands_beside_a_picture_that_has_some() -> None:
    assert [">blocked<" in heatmap_svg(trace_of(("a", "b"), causal=causal), 0, 0) for causal in (True, False)] == [
        True,
        False,
    ]


def test_hovering_says_who_looks_at_whom_and_how_much() -> None:
    trace = trace_of(("a", "b", "c"), causal=True)
    said = heatmap(trace, 0, 1).data[0].hovertext
    assert said[2][1] == f"c attends to b: {trace.weights(0, 1)[2, 1].item():.6f}"
    assert said[0][2] == "a attends to c: blocked"


@pytest.mark.parametrize(("theme", "palette"), [("light", LIGHT), ("dark", DARK)])
def test_zero_has_the_colour_of_the_page_and_the_scale_ends_at_one(theme: ThemeName, palette: Palette) -> None:
    figure = heatmap(trace_of(("a", "b")), 0, 0, theme=theme)
    assert figure.data[0].colorscale[0][1] == palette.background
    assert figure.layout.paper_bgcolor == palette.background
    assert (figure.data[0].zmin, figure.data[0].zmax) == (0, 1)


@pytest.mark.parametrize("largest", [1, 0.93, 0.31, 0.0123, 2e-5])
def test_in_a_long_text_the_deepest_colour_is_about_the_largest_weight(largest: float) -> None:
    weights = numpy.zeros((60, 60))
    weights[3, 4] = largest
    full = full_colour(weights)
    assert largest * (1 - 1e-6) <= full <= 1.4 * largest
    assert all(len(f"{full * quarter / 4:.2g}") == len(f"{full * quarter / 4:.3g}") for quarter in range(5))


def test_the_first_tokens_own_weight_leaves_no_long_text_blank() -> None:
    # As in a decoder: an even share of what came before, and a first row of a single 1.
    weights = numpy.tril(numpy.ones((400, 400))) / numpy.arange(1, 401)[:, None]
    full = full_colour(weights)
    assert 4 / 400 <= full < 0.1
    assert numpy.median(weights[weights > 0]) > full / 20
    bar = weight_bar(full, 1.0)
    assert bar["ticktext"][-1] == f"≥ {full:.3g}" and bar["tickvals"][-1] == full
    assert weight_bar(1.0, 1.0)["ticktext"] == ["0", "0.25", "0.5", "0.75", "1"]


def test_where_weights_beyond_the_deepest_colour_are_drawn_figure_and_svg_say_so() -> None:
    trace = trace_of(tuple(f"w{place}" for place in range(120)), causal=True, size=0.3)
    (cells,) = [one for one in heatmap(trace, 0, 0).data if one.type == "heatmap"]
    assert cells.zmax < 0.5 and cells.colorbar.ticktext[-1] == f"≥ {cells.zmax:.3g}"
    assert f"≥ {cells.zmax:.3g}" in heatmap_svg(trace, 0, 0)


def test_tokens_stay_text_in_the_figure() -> None:
    text = json.dumps(heatmap(trace_of(NASTY), 0, 0).to_plotly_json(), default=str, ensure_ascii=False)
    for markup in ("<b>x", "</script>", "\u202e", "<model>"):
        assert markup not in text


def test_tokens_stay_text_in_the_svg_and_it_is_well_formed() -> None:
    svg = heatmap_svg(trace_of(NASTY, causal=True), 0, 0)
    root = ElementTree.fromstring(svg)
    texts = "".join(root.itertext())
    assert "</script>" in texts
    assert "<b>x</b>" in texts
    assert "\u202e" not in svg
    assert {element.tag.rpartition("}")[2] for element in root.iter()}.isdisjoint({"script", "b", "foreignObject"})


def test_the_svg_says_where_it_comes_from() -> None:
    texts = " ".join(ElementTree.fromstring(heatmap_svg(trace_of(("one", "two")), 0, 2)).itertext())
    for part in ("a <model>", "layer 0", "head 2", "one two", "weight", "query", "key"):
        assert part in texts


def test_the_svg_prints_the_weights_where_they_fit() -> None:
    trace = trace_of(("a", "b"))
    texts = "".join(ElementTree.fromstring(heatmap_svg(trace, 0, 0)).itertext())
    assert f"{trace.weights(0, 0).max().item():.2f}" in texts


@pytest.mark.parametrize("count", [1, 25, 400])
def test_any_length_has_run(count: int) -> None:
    trace = trace_of(tuple(f"token{i}" for i in range(count)), causal=True)
    assert len(heatmap(trace, 0, 0).layout.xaxis.tickvals) <= 30
    assert len(heatmap_svg(trace, 0, 0)) < 400_000


@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (40, 3), (90, 110)])
def test_hatching_covers_blocked_cells_and_no_others(shape: tuple[int, int]) -> None:
    blocked = numpy.random.default_rng(1).random(shape) < 0.4
    crossed = numpy.zeros(shape, dtype=bool)
    for (x0, y0), (x1, y1) in segments(blocked):
        assert x1 - x0 == y0 - y1 > 0
        for step in range(round(x1 - x0)):
            crossed[round(y0 - 0.5) - step, round(x0 + 0.5) + step] = True
    assert not (crossed & ~blocked).any()
    if sum(shape) < 96:
        assert (crossed == blocked).all()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_weight_that_isnt_blocked_is_printed_in_the_ink_that_can_be_read(theme: ThemeName) -> None:
    trace = trace_of(tuple("abcdefgh"), causal=True)
    figure = heatmap(trace, 0, 1, theme=theme)
    cells = figure.data[0]
    assert printed(figure)[0] == ["1.00", *[""] * 7]
    weights = trace.weights(0, 1).tolist()
    expected = [
        ["" if key > query else escaped(weight_text(one)) for key, one in enumerate(row)]
        for query, row in enumerate(weights)
    ]
    assert printed(figure) == expected
    assert len({ink for row in inks(figure) for ink in row if ink}) == 2
    stops = [colour for _, colour in cells.colorscale]
    for row, said in zip(cells.z, inks(figure), strict=True):
        assert all(not ink or ink == ink_on(on_ramp(stops, weight)) for weight, ink in zip(row, said, strict=True))


def test_a_causal_matrix_is_hatched_above_its_diagonal() -> None:
    figure = heatmap(trace_of(("a", "b", "c"), causal=True), 0, 0)
    assert figure.data[1].name.startswith("blocked")
    assert not any(one.name.startswith("blocked") for one in heatmap(trace_of(("a", "b")), 0, 0).data if one.name)


def test_a_head_or_layer_that_is_not_there_is_refused_by_its_number() -> None:
    trace = trace_of(("a", "b"))
    with pytest.raises(av.ShapeError, match="no head 3"):
        heatmap(trace, 0, 3)
    with pytest.raises(av.TraceError, match="no layer 1"):
        heatmap_svg(trace, 1, 0)
