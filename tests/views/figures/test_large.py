"""No picture is larger than what can be seen: of more than 250,000 cells, blocks are drawn, and the picture says so."""

import functools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy
import pytest
import torch

import attention_viz as av
from attention_viz import views
from attention_viz.operation.modules import Projection
from attention_viz.trace.trace import Fidelity, Layer, Provenance, Trace
from attention_viz.views.style.description import spoken

COUNT = 701  # a prime: no block divides it evenly
LIMIT = 250_000


def trace_of(count: int, d_k: int = 5, seed: int = 3, heads: int = 2) -> Trace:
    generator = torch.Generator().manual_seed(seed)
    query, key, value = (3 * torch.randn(heads, count, d_k, generator=generator) for _ in range(3))
    tokens = av.Tokens(tuple(f"w{at}" for at in range(count)), tuple(range(count)))
    layer = Layer(av.attend(query, key, value, av.masks.causal(count)), "0")
    return Trace(
        {"decoder": (layer,)},
        {"decoder": tokens},
        {"decoder": tokens},
        torch.zeros(count, 2),
        Provenance(model="a model"),
        Fidelity(0.0, 0.0, 1e-5, "nothing"),
    )


@functools.cache
def long_trace(seed: int = 3) -> Trace:
    return trace_of(COUNT, seed=seed)


def cells(figure: Any) -> list[Any]:
    return [one for one in figure.data if one.type == "heatmap"]


def matrices() -> dict[str, Any]:
    trace, other = long_trace(), long_trace(4)
    wide = Projection(torch.randn(1_000, 300), None)
    return {
        "heatmap": lambda: views.heatmap(trace, 0, 1),
        "heatmap without names": lambda: views.heatmap(trace, 0, 1, names=False),
        "difference": lambda: views.difference(trace, other, 0, 1),
        "compare": lambda: views.compare(av.compare(trace, other, 0, 1)),
        "compare, one part": lambda: views.compare(av.compare(trace, other, 0, 1), part="difference"),
        "side by side": lambda: views.side_by_side(trace, 0),
        "scores": lambda: views.steps(trace, 0, 1, "scores"),
        "allowed, keys down": lambda: views.steps(trace, 0, 1, "allowed", notation="keys down", cell=(700, 3)),
        "weights": lambda: views.steps(trace, 0, 1, "weights"),
        "learned": lambda: views.learned(trace, 0, 1, "query", wide),
        "products": lambda: views.products(trace, 0, 1, 5, 3),
        "roles": lambda: views.roles(trace_of(1_100, 230, heads=1), 0, 0),
    }


@pytest.mark.parametrize("name", sorted(matrices()))
def test_no_picture_has_more_cells_than_can_be_seen_and_it_says_that_blocks_are_drawn(name: str) -> None:
    figure = matrices()[name]()
    drawn = [numpy.asarray(one.z).size for one in cells(figure)]
    assert 10_000 < max(drawn) <= LIMIT and (name == "roles" or sum(drawn) <= LIMIT)
    assert "drawn in blocks of" in figure.layout.title.text
    assert len(json.dumps(figure.to_plotly_json(), default=lambda one: one.tolist())) < 40e6


def test_a_block_holds_the_largest_weight_and_says_of_which_positions() -> None:
    trace = long_trace()
    exact, (drawn,) = trace.weights(0, 1).numpy(), cells(views.heatmap(trace, 0, 1))
    values = numpy.asarray(drawn.z)
    assert values.shape == (234, 234) and (drawn.dx, drawn.dy, drawn.x0, drawn.y0) == (3, 3, 1, 1)
    expected = numpy.pad(exact, (0, 1)).reshape(234, 3, 234, 3).max(axis=(1, 3))
    assert numpy.allclose(values, expected, atol=1e-6)
    assert drawn.hovertext[20][7] == f"w60 … w62 (60–62) attend to w21 … w23 (21–23): at most {values[20, 7]:.6f}"
    assert drawn.hovertext[0][233] == "w0 … w2 (0–2) attend to w699 … w700 (699–700): blocked"
    (nameless,) = cells(views.heatmap(trace, 0, 1, names=False))
    assert nameless.hovertext[20][7] == f"positions 60–62 attend to positions 21–23: at most {values[20, 7]:.6f}"
    assert "at most" in spoken(views.heatmap(trace, 0, 1))


def test_a_difference_and_a_step_hold_the_number_furthest_from_nought() -> None:
    trace, other = long_trace(), long_trace(4)
    wanted = {
        "difference": ((other.weights(0, 1) - trace.weights(0, 1)).numpy(), views.difference(trace, other, 0, 1)),
        "scores": (trace.attention(0).head(1).scores.numpy(), views.steps(trace, 0, 1, "scores")),
    }
    for exact, figure in wanted.values():
        drawn = numpy.asarray(cells(figure)[0].z)
        parts = numpy.pad(exact, (0, 1)).reshape(234, 3, 234, 3)
        assert numpy.allclose(numpy.abs(drawn), numpy.abs(parts).max(axis=(1, 3)), atol=1e-4)
        assert (drawn > 0).any() and (drawn < 0).any()
        assert numpy.isclose(drawn[9, 4], parts[9, :, 4, :].ravel()[numpy.abs(parts[9, :, 4, :]).argmax()], atol=1e-4)


def test_hatching_and_outlines_lie_over_the_positions_that_they_are_about() -> None:
    trace = long_trace()
    figure = views.heatmap(trace, 0, 1)
    lines: Any = figure.data[1]
    ends = [(x, y) for x, y in zip(lines.x, lines.y, strict=True) if x is not None]
    assert len(ends) > 20 and all(-1 < place <= COUNT + 2 for end in ends for place in end)
    assert max(x for x, _ in ends) > COUNT - 20
    for start, end in zip(ends[::2], ends[1::2], strict=True):
        assert (start[0] + end[0]) / 2 > (start[1] + end[1]) / 2  # keys after queries: above the diagonal
    outline: Any = views.steps(trace, 0, 1, "weights", cell=(301, 200)).layout
    edges = outline.shapes[0]
    assert (edges.y0, edges.y1, edges.x0, edges.x1) == (299.5, 302.5, 197.5, 200.5)


def test_a_row_and_the_outputs_have_no_more_bars_than_can_be_seen_and_say_of_which_tokens() -> None:
    trace = long_trace()
    figure: Any = views.looks(trace, 0, 1, 700)
    (bars,) = figure.data
    weights = trace.weights(0, 1)[700]
    assert len(bars.x) == 117 and bars.x[3] == pytest.approx(float(weights[18:24].max())) and bars.y[3] == 20.5
    assert bars.hovertext[3].startswith("w700 attends to w18 … w23 (18–23): at most ")
    assert "701 tokens, 6 per bar: the largest number of each" in figure.layout.title.text
    moved: Any = views.changed_outputs(*(replace_output(trace, output) for output in (1.0, 2.0)))
    assert len(moved.data[0].x) == 117 and set(moved.data[0].x) == {1.0}
    assert "6 per bar" in moved.layout.title.text and moved.data[0].text[0] == "w0 … w5 (0–5)"


def replace_output(trace: Trace, output: float) -> Trace:
    axes = {"decoder": trace.query_tokens()}
    outputs = torch.full((COUNT, 2), output)
    return Trace({"decoder": trace.layers["decoder"]}, axes, axes, outputs, trace.provenance, trace.fidelity)


def test_a_long_way_has_no_more_arcs_than_can_be_seen_and_still_arrives() -> None:
    for start, end in ((3, 690), (690, 3)):
        figure: Any = views.paths(long_trace(), start, end)
        arcs = [one for one in figure.data if one.mode == "lines+markers"]
        assert len(arcs) <= 65 and any(arc.x[-1] == pytest.approx(end) for arc in arcs[:-1])
        assert "687 steps against 1" in figure.layout.title.text and "first way is 11 steps" in figure.layout.title.text


def test_the_svg_has_run_from_blocks_and_says_so() -> None:
    svg = views.heatmap_svg(long_trace(), 0, 1)
    texts = " ".join(ElementTree.fromstring(svg).itertext())
    assert "701 × 701 cells, drawn in blocks of 3 × 3: the largest weight of each" in texts
    assert len(svg) < 400_000


def test_a_text_of_many_tokens_keeps_every_cell_up_to_the_limit() -> None:
    (drawn,) = cells(views.heatmap(trace_of(500, heads=1), 0, 0, names=False))
    assert numpy.asarray(drawn.z).shape == (500, 500)
    assert (drawn.dx, drawn.hovertext) == (None, None)


def test_of_very_many_links_the_heaviest_are_drawn() -> None:
    trace = trace_of(2_300, 2, heads=1)
    figure: Any = views.alignment(trace, 0, 0)
    (named,) = [one for one in figure.data if one.name == "links"]
    drawn = {(int(query), int(key)): weight for query, key, weight in named.customdata}
    assert len(drawn) == 1_500 and "the 1,500 heaviest links" in figure.layout.title.text
    first = trace.attention(0).tile(0, slice(0, 40), slice(0, 40))
    assert all(drawn[cell] == pytest.approx(float(first[cell]), abs=1e-6) for cell in drawn if max(cell) < 40)
    assert drawn[0, 0] == pytest.approx(1)


OPENED = """
import resource, sys
import attention_viz as av
from attention_viz import views
from attention_viz.explorer.payload import pack
from attention_viz.views.style.description import spoken
trace = av.Trace.load(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
picture = views.heatmap(trace, 0, 0)
spoken(picture)
views.heatmap_svg(trace, 0, 0)
drawn = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    pack(trace)
except av.TraceError as error:
    assert '7,700' in str(error) or '7700' in str(error), error
else:
    raise SystemExit('a browser would be sent more than it holds')
print((drawn - before) // 1024, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_a_small_file_of_a_long_text_has_run_in_little_memory(tmp_path: Path) -> None:
    count = 7_700
    nothing = torch.zeros(1, count, 0)
    tokens = av.Tokens(("a",) * count, tuple(range(count)))
    layer = Layer(av.attend(nothing, nothing, nothing), "0")
    axes = {"encoder": tokens}
    provenance, fidelity = Provenance(model="a model"), Fidelity(0.0, 0.0, 1e-5, "nothing")
    Trace({"encoder": (layer,)}, axes, axes, torch.zeros(count, 2), provenance, fidelity).save(tmp_path / "long")
    assert (tmp_path / "long").stat().st_size < 1_000_000
    command = [sys.executable, "-c", OPENED, str(tmp_path / "long")]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240)
    drawn, packed = map(int, answer.stdout.split())  # MiB more than with the trace alone; whole, they were 9,000
    assert drawn < 400 and packed < 900
