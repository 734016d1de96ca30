"""Pictures of before and after: their numbers are the traces' own."""

import json

import numpy
import pytest
import torch

import attention_viz as av
from attention_viz.edits.effects import moved_output, moved_weight
from attention_viz.scratch.model import Scratch
from attention_viz.trace.trace import Trace
from attention_viz.views import changed_heads, changed_outputs, difference, heatmap
from attention_viz.views.style.theme import DARK, LIGHT, Palette, ThemeName
from tests.views.printed import printed

MODULE = Scratch(d_model=12, heads=3)


def pair(text: str = "The cat sat on mat") -> tuple[Trace, Trace]:
    before = MODULE.trace(text)
    count = len(before.query_tokens())
    return before, MODULE.trace(text, edits=[av.Allow(av.masks.causal(count), head=1)])


def test_the_difference_is_after_minus_before_on_a_scale_even_about_nought() -> None:
    before, after = pair()
    figure = difference(before, after, 0, 1)
    expected = (after.weights(0, 1) - before.weights(0, 1)).numpy()
    assert numpy.allclose(figure.data[0].z, expected, atol=1e-7)
    assert figure.data[0].zmin == -figure.data[0].zmax == pytest.approx(-abs(expected).max())
    weights = before.weights(0, 1)[4, 2].item(), after.weights(0, 1)[4, 2].item()
    assert figure.data[0].hovertext[4][2] == f"mat attends to sat: {weights[0]:.6f} before, {weights[1]:.6f} after"


@pytest.mark.parametrize(("theme", "palette"), [("light", LIGHT), ("dark", DARK)])
def test_no_difference_has_the_colour_of_the_page(theme: ThemeName, palette: Palette) -> None:
    before, after = pair()
    colours = difference(before, after, 0, 0, theme=theme).data[0].colorscale
    assert colours[len(colours) // 2][1].upper() == palette.background
    assert changed_heads(before, after, theme=theme).data[0].colorscale[0][1].upper() == palette.background


def test_the_difference_is_hatched_where_cells_are_blocked_now() -> None:
    before, after = pair()
    for head, hatched in ((1, True), (0, False)):
        names = [part.name for part in difference(before, after, 0, head).data]
        assert ("blocked: may not attend there" in names) == hatched


def test_changes_next_to_nothing_are_not_printed() -> None:
    before, after = pair()
    assert {text for row in printed(difference(before, after, 0, 0)) for text in row} == {""}
    figure = difference(before, after, 0, 1)
    for numbers, said in zip(figure.data[0].z, printed(figure), strict=True):
        assert [bool(text) for text in said] == [abs(number) >= 0.05 for number in numbers]


def test_a_loss_is_printed_with_a_minus_sign_and_a_gain_with_a_plus() -> None:
    before, after = pair()
    figure = difference(before, after, 0, 1)
    cells = figure.data[0]
    written = [
        (number, text)
        for row, said in zip(cells.z, printed(figure), strict=True)
        for number, text in zip(row, said, strict=True)
        if text
    ]
    assert min(cells.z.flat) < -0.05
    assert {text[0] for number, text in written if number < 0} == {"−"}
    assert {text[0] for number, text in written if number > 0} == {"+"}


def test_heads_and_outputs_hold_the_measured_numbers() -> None:
    before, after = pair()
    assert numpy.allclose(changed_heads(before, after).data[0].z, moved_weight(before, after))
    assert numpy.allclose(changed_outputs(before, after).data[0].x, moved_output(before, after))


def test_tokens_stay_text() -> None:
    before, after = pair("<b>x</b> <script> a&b")
    for figure in (difference(before, after, 0, 1), changed_outputs(before, after)):
        assert "<b>" not in json.dumps(figure.to_plotly_json(), default=str)
        assert "<script>" not in json.dumps(figure.to_plotly_json(), default=str)


@pytest.mark.parametrize("count", [1, 2, 128])
def test_any_length_has_run(count: int) -> None:
    before, after = pair(" ".join(f"w{i}" for i in range(count)))
    assert len(difference(before, after, 0, 1).layout.xaxis.tickvals) <= 30
    assert len(changed_outputs(before, after).data[0].x) == count


def test_a_fully_blocked_row_has_no_numbers() -> None:
    allowed = torch.ones(3, 3, dtype=torch.bool)
    allowed[1] = False
    trace = MODULE.trace("one two three", edits=[av.Allow(allowed)])
    assert printed(heatmap(trace, 0, 2))[1] == ["", "", ""]
