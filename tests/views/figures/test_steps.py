import numpy
import pytest
import torch

import attention_viz as av
from attention_viz.scratch.model import Scratch
from attention_viz.steps.head import open_head, row_statistics
from attention_viz.steps.steps import NOTATIONS, STEPS, steps_of, transposed
from attention_viz.views import learned, saturation, steps
from attention_viz.views.style.theme import DARK, LIGHT, Palette, ThemeName
from tests.views.printed import printed

NASTY = "</script> <b>x</b> =cmd() a&b"


@pytest.mark.parametrize("notation", NOTATIONS)
def test_each_figure_holds_the_numbers_of_its_step(notation: str) -> None:
    trace = Scratch(12, 3, 1).run("The cat sat on mat", av.masks.causal(5))
    opened = open_head(trace, 0, 2)
    for name, step in steps_of(opened).items():
        matrix = step.function(opened)
        assert matrix is not None
        expected = matrix.T if transposed(step, notation) else matrix
        drawn = numpy.array(steps(trace, 0, 2, name, notation=notation).data[0].z)
        assert numpy.array_equal(drawn, expected.masked_fill(expected.isneginf(), numpy.nan).numpy(), equal_nan=True)


def test_numbers_below_zero_have_a_minus_sign() -> None:
    trace = Scratch(12, 3, 1).run("The cat sat on mat")
    scores = numpy.array(steps(trace, 0, 2, "scores").data[0].z)
    figure = steps(trace, 0, 2, "scores")
    assert scores.min() < 0
    read = [[float(text.replace("−", "-")) for text in row] for row in printed(figure)]
    assert numpy.abs(read - scores).max() <= 0.005 + 1e-6
    assert not any("-" in text for row in printed(figure) for text in row)


@pytest.mark.parametrize("step", ["allowed", "weights"])
def test_blocked_cells_are_hatched_and_said(step: str) -> None:
    figure = steps(Scratch().run("a b c", av.masks.causal(3)), 0, 0, step)
    assert figure.data[1].name.startswith("blocked")
    assert figure.data[0].hovertext[0][2].endswith("blocked")


@pytest.mark.parametrize(("theme", "palette"), [("light", LIGHT), ("dark", DARK)])
def test_query_key_and_value_run_from_the_page_to_their_own_colour(theme: ThemeName, palette: Palette) -> None:
    for name in ("query", "key", "value"):
        figure = steps(av.scratch("a b"), 0, 0, name, theme=theme)
        colours = [colour for _, colour in figure.data[0].colorscale]
        assert colours[-1] == getattr(palette, name)
        assert colours[len(colours) // 2] == palette.background
        assert figure.data[0].zmin == -figure.data[0].zmax


@pytest.mark.parametrize("words", [1, 2, 12, 128])
def test_any_length_has_run_with_tokens_as_text(words: int) -> None:
    text = " ".join([NASTY, *["word"] * 128][: words or 1])
    trace = Scratch(12, 3).run(text)
    for name in STEPS:
        if name not in ("rotated", "softcapped", "biased", "picked"):
            figure = steps(trace, 0, 0, name, cell=(0, 0))
            assert not any("<b>" in label or "<script" in label for label in figure.layout.yaxis.ticktext)


def test_the_chosen_cell_is_outlined_where_it_has_run() -> None:
    trace = av.scratch("a b c d")
    upright = steps(trace, 0, 0, "query", cell=(3, 1), notation="columns").layout.shapes[0]
    assert (upright.x0, upright.y0) == (2.5, 0.5)


def test_a_learned_matrix_has_run_as_it_is() -> None:
    matrix = Scratch(12, 3, 1).projections()["query"]
    trace = Scratch(12, 3, 1).trace("a b")
    assert numpy.array_equal(numpy.array(learned(trace, 0, 0, "query", matrix).data[0].z), matrix.weight.numpy())
    turned = learned(trace, 0, 0, "query", matrix, notation="columns")
    assert numpy.array_equal(numpy.array(turned.data[0].z), matrix.weight.numpy().T)


def test_wider_heads_saturate_without_the_scale_and_not_with_it() -> None:
    traces = [Scratch(size, 1).trace("The cat sat on mat") for size in (1, 16, 256)]
    figure = saturation(*traces, chosen=16)
    lines = {line.name: line for line in figure.data}
    bare = lines["largest weight, no scale"]
    assert list(bare.x) == [1, 16, 256]
    weights = (traces[2].attention(0).scores[0]).softmax(-1)
    assert bare.y[2] == pytest.approx(row_statistics(weights).largest.mean().item(), abs=1e-6)
    assert bare.y[2] > 0.85 > 0.7 > lines["largest weight, scaled by 1/√d_k"].y[2]
    gradients = [lines[f"size of the gradient, {scale}"].y[2] for scale in ("no scale", "scaled by 1/√d_k")]
    assert 2 * gradients[0] < gradients[1]


def test_what_is_not_known_is_refused_in_words() -> None:
    trace = av.scratch("a b")
    with pytest.raises(av.ShapeError, match="unknown step 'no'"):
        steps(trace, 0, 0, "no")
    with pytest.raises(av.ShapeError, match="rotation of queries; this trace has none"):
        av.views.angles(trace, 0, 0)
    with pytest.raises(av.ShapeError, match="at least one trace"):
        saturation()


def test_a_rotation_has_run_before_and_after() -> None:
    from tests.steps.test_steps import shared

    opened = shared()
    drawn = steps(opened.trace, 0, 4, "rotated", side="key").data[0].z
    assert torch.equal(torch.tensor(numpy.array(drawn)), opened.attention.key)
    assert numpy.array(av.views.angles(opened.trace, 0, 4).data[0].z).shape == (5, 4)
