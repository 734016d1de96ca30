"""Two heads side by side: the numbers in the pictures are the comparison's, and what only one text has is marked."""

import json

import numpy
import plotly.graph_objects as go
import pytest
import torch

import attention_viz as av
from attention_viz.analysis.comparison.compare import Comparison
from attention_viz.analysis.comparison.head_divergences import divergences
from attention_viz.scratch.model import Scratch
from attention_viz.views import compare, compared_heads, training
from attention_viz.views.figures.compare import PARTS
from attention_viz.views.style.theme import DARK, LIGHT, Palette, ThemeName
from tests.views.printed import drawn, printed

MODULE = Scratch(d_model=12, heads=3)


def pair(one: str = "the cat sat", other: str = "the old cat ran", head: int = 1) -> Comparison:
    return av.compare(MODULE.trace(one), MODULE.trace(other), 0, head, align="token")


def test_the_three_pictures_hold_the_numbers_of_the_comparison_on_common_axes() -> None:
    found = pair()
    matrices = {"one": found.weights, "other": found.other_weights, "difference": found.difference}
    for part in PARTS:
        figure = compare(found, part=part)
        assert numpy.array_equal(figure.data[0].z, matrices[part].numpy(), equal_nan=True)
        assert list(figure.layout.xaxis.ticktext) == ["the", "+ old", "cat", "− sat", "+ ran"]
        assert list(figure.layout.yaxis.ticktext) == list(figure.layout.xaxis.ticktext)
    whole = compare(found)
    assert len(drawn(whole)) == 3
    for cells, part in zip(drawn(whole), PARTS, strict=True):
        assert numpy.array_equal(cells.z, matrices[part].numpy(), equal_nan=True)


def test_both_heads_have_one_scale_and_that_of_the_difference_is_even_about_nought() -> None:
    long = " ".join(f"w{i}" for i in range(60))
    found = av.compare(MODULE.trace(long), MODULE.trace(long), 0, 0, other_head=2)
    one, other, apart = (compare(found, part=part).data[0] for part in PARTS)
    assert (one.zmin, one.zmax) == (other.zmin, other.zmax)
    assert one.zmax < 1
    assert one.zmax >= max(found.weights.max(), found.other_weights.max()) * (1 - 1e-6)
    assert -apart.zmin == apart.zmax == pytest.approx(float(found.difference.abs().max()))


@pytest.mark.parametrize(("theme", "palette"), [("light", LIGHT), ("dark", DARK)])
def test_no_difference_has_the_colour_of_the_page(theme: ThemeName, palette: Palette) -> None:
    colours = compare(pair(), part="difference", theme=theme).data[0].colorscale
    assert colours[len(colours) // 2][1].upper() == palette.background
    apart = divergences(MODULE.trace("a b"), MODULE.trace("a c"))
    heads = compared_heads(MODULE.trace("a b"), MODULE.trace("a c"), apart, theme=theme).data[0]
    assert heads.colorscale[0][1].upper() == palette.background


def test_what_only_one_text_has_lies_in_a_band_and_the_pointer_is_told() -> None:
    found = pair()
    figure = compare(found, part="one")
    bands = {(band.x0, band.x1, band.y0, band.y1) for band in figure.layout.shapes}
    # Columns 1 and 3 to 4, and the rows alike.
    assert bands == {(0.5, 1.5, -0.5, 4.5), (2.5, 4.5, -0.5, 4.5), (-0.5, 4.5, 0.5, 1.5), (-0.5, 4.5, 2.5, 4.5)}
    told = figure.data[0].hovertext
    assert told[0][1] == f"the attends to old: not in the first, {found.other_weights[0, 1]:.6f} in the second"
    assert not compare(pair("the cat", "the cat"), part="one").layout.shapes


def test_words_that_replace_each_other_stand_together_between_lines() -> None:
    found = av.compare(MODULE.trace("the cat sat"), MODULE.trace("the dog sat"), 0, 1)
    figure = compare(found, part="difference")
    assert list(figure.layout.xaxis.ticktext) == ["the", "cat→dog", "sat"]
    assert {(one.x0, one.x1, one.fillcolor) for one in figure.layout.shapes} == {(0.5, 1.5, None), (-0.5, 2.5, None)}
    assert not numpy.isnan(figure.data[0].z).any()
    assert figure.data[0].hovertext[0][1].startswith("the attends to cat→dog: ")


def test_lines_of_replaced_words_never_cover_a_long_text() -> None:
    for words, replaced, lines in ((130, 5, 30), (130, 10, 0), (40, 10, 60)):
        one = [f"w{place}" for place in range(words)]
        other = [f"v{place}" if place % 3 == 0 and place < 3 * replaced else word for place, word in enumerate(one)]
        found = av.compare(MODULE.trace(" ".join(one)), MODULE.trace(" ".join(other)), 0, 1)
        assert len(compare(found).layout.shapes) == lines


def test_a_pair_is_framed_where_it_stands_in_both_texts() -> None:
    found = pair()  # the [+ old] cat [- sat] [+ ran]

    def framed(part: str, of: tuple[int, int]) -> set[tuple[float, float]]:
        return marked(compare(found, part=part, pair=of))

    assert [framed(part, (0, 1)) for part in PARTS] == [{(0, 2)}] * 3
    assert [framed(part, (1, 2)) for part in PARTS] == [{(2, 3)}, {(2, 4)}, {(2, 3), (2, 4)}]
    assert marked(compare(found, part="other", cells=[(0, 2), (1, 3)])) == {(0, 2), (1, 3)}


def marked(figure: go.Figure) -> set[tuple[float, float]]:
    """The row and the column of each cell that is framed."""
    return {(one.y0 + 0.5, one.x0 + 0.5) for one in figure.layout.shapes if one.line.color == LIGHT.accent}


def test_where_cells_are_too_small_blocks_carry_the_largest_change_and_no_line_covers_them() -> None:
    words = [f"w{place}" for place in range(20)]
    found = av.compare(MODULE.trace(" ".join(words)), MODULE.trace(" ".join([*words[:7], "cat", *words[8:]])), 0, 1)
    change = found.difference.numpy()
    figure = compare(found, part="difference", pair=(7, 7), most=100)
    cells = figure.data[0].z
    blocks = change.reshape(10, 2, 10, 2).transpose(0, 2, 1, 3).reshape(10, 10, 4)
    assert numpy.array_equal(numpy.abs(cells), numpy.abs(blocks).max(axis=2))
    assert "drawn in blocks of 2 × 2: the largest change of each" in figure.layout.title.text
    # The block of the seventh row and key, framed with room around it, and nothing else.
    (frame,) = figure.layout.shapes
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (3.5, 9.5, 3.5, 9.5)
    assert len(compare(found, part="difference").layout.shapes) > 1


def test_blocked_cells_are_hatched_and_absent_ones_are_not() -> None:
    causal = MODULE.trace("the cat sat", edits=[av.Allow(av.masks.causal(3))])
    before = MODULE.trace("the cat sat")
    found = av.compare(before, causal, 0, 1)
    assert [len(drawn(compare(found, part=part))) for part in PARTS] == [1, 2, 1]
    assert compare(found).data[2].xaxis == "x2"
    assert len(drawn(compare(av.compare(causal, causal, 0, 1), part="difference"))) == 2
    assert len(drawn(compare(pair(), part="other"))) == 1


def test_a_gain_is_printed_with_a_plus_and_a_loss_with_a_minus_sign() -> None:
    figure = compare(pair(), part="difference")
    assert sum(map(bool, (text for row in printed(figure) for text in row))) >= 2
    for numbers, said in zip(figure.data[0].z, printed(figure), strict=True):
        for number, text in zip(numbers, said, strict=True):
            if numpy.isnan(number) or abs(number) < 0.05:
                assert text == ""
            else:
                assert text == f"{number:+.2f}".replace("-", "−").replace("0.", ".")


def test_every_head_is_in_the_grid_with_its_divergence_and_the_chosen_one_is_framed() -> None:
    one, other = MODULE.trace("the cat sat"), MODULE.trace("the cat ran")
    apart = divergences(one, other)
    figure = compared_heads(one, other, apart, chosen=(0, 2))
    assert numpy.array_equal(figure.data[0].z, apart.numpy())
    (frame,) = figure.layout.shapes
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (1.5, 2.5, -0.5, 0.5)
    assert compared_heads(one, other, av.head_divergences(one, other)).data[0].z.tolist() == apart.tolist()
    with pytest.raises(av.ShapeError, match="the table has other heads"):
        compared_heads(one, other, av.head_divergences(one, other).rename(index={2: 7}, level="head"))
    nothing = divergences(MODULE.trace("a"), MODULE.trace("b c"))
    assert compared_heads(MODULE.trace("a"), MODULE.trace("b c"), nothing).data[0].zmax == 1
    with pytest.raises(av.ShapeError, match="divergences must fit"):
        compared_heads(one, other, torch.zeros(2, 3))


def test_the_curve_of_a_training_runs_through_the_measured_numbers() -> None:
    figure = training({0: 0.1, 50: 0.4, 100: 0.9}, {0: 0.0, 50: 0.5, 100: 1.0}, "Induction", marked=(50, 100))
    assert (figure.data[0].x, figure.data[0].y) == ((0, 50, 100), (0.1, 0.4, 0.9))
    assert figure.data[1].y == (0.0, 0.5, 1.0)
    assert (figure.data[2].x, figure.data[2].y) == ((50, 100), (0.4, 0.9))
    with pytest.raises(av.ShapeError, match="the same for both"):
        training({0: 0.1}, {1: 0.1}, "Induction")


def test_tokens_stay_text() -> None:
    found = pair("<b>x</b> & <script>", "<i>x</i> a&b")
    for figure in (compare(found), *(compare(found, part=part) for part in PARTS)):
        written = json.dumps(figure.to_plotly_json(), default=str)
        assert "<b>" not in written and "<script>" not in written and "<i>" not in written


def test_what_stands_above_a_matrix_is_no_wider_than_that() -> None:
    long = "the old cat that lives in the house on the hill sat down on the mat beside the door"
    above = [note for note in compare(pair(long, f"{long} again")).layout.annotations if note.y == 1]
    first, second, change = ([line for line in note.text.split("<br>")] for note in above)
    assert first[:-1] == second[:-1] == ["scratch · encoder layer 0, head 1"] and change == ["second − first"]
    # On a page of 800 pixels a letter of 12 is some 6.5 wide, and a matrix some 225.
    assert max(map(len, [*first, *second])) <= 34
    assert first[-1].startswith("“the old cat that lives") and first[-1].endswith("…”")


def test_texts_with_nothing_in_common_and_single_tokens_are_drawn() -> None:
    for one, other in (("a", "b"), ("a", "a"), ("a", " ".join(["b"] * 100))):
        assert len(compare(pair(one, other)).data) >= 3


def test_a_part_that_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(av.ShapeError, match="unknown part 'sum'; choose one, other, difference"):
        compare(pair(), part="sum")


def test_a_change_next_to_nothing_is_neither_coloured_nor_written() -> None:
    text = "the cat sat on"
    nearly = MODULE.trace(text, edits=[av.Temperature(1.00001)])
    found = av.compare(MODULE.trace(text), nearly, 0, 1)
    assert 0 < float(found.difference.abs().max()) < 1e-4
    figure = compare(found, part="difference")
    cells = figure.data[0]
    assert {number for row in printed(figure) for number in row} == {""}
    assert numpy.abs(cells.z).max() < 0.01 * cells.zmax
