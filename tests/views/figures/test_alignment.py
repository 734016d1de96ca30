"""The lines between what was read and what is said are the weights."""

import functools
import json
from typing import Any

import numpy
import pytest
import torch

import attention_viz as av
from attention_viz.trace.trace import Trace
from attention_viz.views import alignment as figure_of
from attention_viz.views.style.theme import DARK, LIGHT, Palette, ThemeName
from tests.shipped import shipped
from tests.views.figures.test_heatmap import NASTY, trace_of

SENTENCE = "the boy finds the key and he sells it"


@functools.cache
def translated() -> Trace:
    return shipped("translation").trace(SENTENCE)


def cross_trace(said: tuple[str, ...], read: tuple[str, ...], allowed: torch.Tensor | None = None) -> Trace:
    generator = torch.Generator().manual_seed(5)
    query, key = (3 * torch.randn(2, count, 4, generator=generator) for count in (len(said), len(read)))
    layer = av.Layer(av.attend(query, key, torch.ones(2, len(read), 4), allowed), "0")
    return Trace(
        layers={"cross": (layer,)},
        queries={"cross": av.Tokens(said, tuple(range(len(said))))},
        keys={"cross": av.Tokens(read, tuple(range(len(read))))},
        output=torch.zeros(len(said), 2),
        provenance=av.Provenance(model="a <model>", text=" ".join(read)),
        fidelity=av.Fidelity(0.0, 0.0, 1e-5, "nothing"),
    )


def alignment(*wanted: Any, **also: Any) -> Any:
    """The figure, whose parts have no types that a checker knows."""
    return figure_of(*wanted, **also)


def links(figure: Any) -> dict[tuple[int, int], float]:
    (named,) = [one for one in figure.data if one.name == "links"]
    return {(int(query), int(key)): weight for query, key, weight in named.customdata}


def test_each_line_is_a_weight_and_none_of_note_is_missing() -> None:
    trace = translated()
    weights = trace.weights(0, 2, "cross").numpy()
    drawn = links(alignment(trace, 0, 2))
    assert set(drawn) == {tuple(cell) for cell in numpy.argwhere(weights >= 0.01).tolist()}
    assert all(weight == pytest.approx(float(weights[cell]), abs=1e-7) for cell, weight in drawn.items())


def test_what_is_read_stands_above_what_is_said() -> None:
    layout = alignment(translated(), 0, 1).layout
    assert layout.xaxis.side == "bottom" and layout.xaxis2.side == "top"
    assert "garçon" in layout.xaxis.ticktext
    assert "boy" in layout.xaxis2.ticktext


def test_a_line_runs_from_the_word_that_is_said_to_the_word_that_is_read() -> None:
    figure = alignment(
        cross_trace(("a", "b"), ("x", "y", "z"), torch.tensor([[True, False, False], [False] * 3])), 0, 0
    )
    xs = [x for line in figure.data if line.mode == "lines" for x in line.x if x is not None]
    ys = [y for line in figure.data if line.mode == "lines" for y in line.y if y is not None]
    ends = dict(zip(ys, xs, strict=True))
    assert (ends[0.0], ends[1.0]) == (pytest.approx(1 / 4), pytest.approx(1 / 6))


def test_the_heavier_is_wider_and_darker() -> None:
    lines = [one for one in alignment(translated(), 0, 2).data if one.mode == "lines"]
    widths = [one.line.width for one in lines]
    assert widths == sorted(widths)
    assert len(set(widths)) > 2
    first = [sum(bytes.fromhex(one.line.color[1:])) for one in lines if 0.0 in one.y]
    assert first == sorted(first, reverse=True)


def test_blocked_cells_have_no_line() -> None:
    allowed = torch.tensor([[True, False, True], [True, True, False]])
    drawn = links(alignment(cross_trace(("a", "b"), ("x", "y", "z"), allowed), 0, 1))
    assert not {(0, 1), (1, 2)} & set(drawn)


def test_hovering_says_who_looks_at_whom_and_how_much() -> None:
    trace = translated()
    (named,) = [one for one in alignment(trace, 0, 1).data if one.name == "links"]
    assert f"garçon attends to boy: {trace.weights(0, 1, 'cross')[1, 1]:.6f}" in named.hovertext


@pytest.mark.parametrize(("theme", "palette"), [("light", LIGHT), ("dark", DARK)])
def test_query_and_key_have_their_colours(theme: ThemeName, palette: Palette) -> None:
    figure = alignment(translated(), 0, 1, theme=theme)
    assert figure.layout.xaxis.title.font.color == palette.query
    assert figure.layout.xaxis2.title.font.color == palette.key
    colours = [one.line.color for one in figure.data if one.mode == "lines"]
    assert {palette.query, palette.key} <= set(colours)


def test_of_a_text_that_looks_at_itself_both_rows_are_that_text() -> None:
    layout = alignment(trace_of(("a", "b", "c")), 0, 1).layout
    assert layout.xaxis.ticktext == layout.xaxis2.ticktext == ("a", "b", "c")
    assert alignment(translated(), 0, 1, "encoder").layout.xaxis.ticktext[1] == "boy"


def test_tokens_stay_text() -> None:
    figure = alignment(cross_trace(NASTY, (*NASTY, "more")), 0, 0)
    text = json.dumps(figure.to_plotly_json(), default=str, ensure_ascii=False)
    for markup in ("<b>x", "</script>", "\u202e", "<model>"):
        assert markup not in text


def test_one_token_works_and_long_texts_stay_readable() -> None:
    assert links(alignment(cross_trace(("a",), ("x",)), 0, 0)) == {(0, 0): pytest.approx(1.0)}
    many = tuple(f"word{number}" for number in range(300))
    layout = alignment(cross_trace(many, many[:200]), 0, 0).layout
    assert len(layout.xaxis.ticktext) <= 48


def test_a_layer_that_is_not_there_is_named() -> None:
    with pytest.raises(av.TraceError, match="no layer 1"):
        alignment(translated(), 1, 0)
