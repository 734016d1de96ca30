"""A picture's overlay and a sound's words hold the trace's numbers, where the patches and the frames are."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import attention_viz as av
from attention_viz.edits.edit import edited
from attention_viz.trace.seen import Seen
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace
from attention_viz.views.export.svg import overlay_svg
from attention_viz.views.figures.seen import blocked_patches, laid_over, touching
from tests.analysis.planted import planted

PLACES = [(float(row), float(column)) for row in range(4) for column in range(5)]
PATCHES = Tokens(
    ("[CLS]", *(f"{row:g},{column:g}" for row, column in PLACES)),
    None,
    special=(True, *[False] * 20),
    place=(None, *PLACES),
)


def at(row: int, column: int) -> int:
    return 1 + row * 5 + column


@pytest.fixture(scope="module")
def cat() -> Trace:
    made = planted(PATCHES, {(0, 1, 0, at(1, 2)): 0.8})
    dots = torch.arange(56 * 70 * 3).reshape(56, 70, 3).remainder(251).to(torch.uint8)
    return Trace(made.layers, made.queries, made.keys, made.output, made.provenance, made.fidelity, seen=Seen(dots))


def test_an_overlay_tells_each_patchs_weight(cat: Trace) -> None:
    figure: Any = av.views.overlay(cat, 0, 1, 0)
    expected = cat.weights(0, 1)[0, 1:].reshape(4, 5).numpy()
    assert np.abs(np.asarray(figure.data[0].z) - expected).max() < 1e-12
    assert len(figure.layout.images) == 1 and not figure.layout.shapes
    framed: Any = av.views.overlay(cat, 0, 1, at(3, 4))
    assert (framed.layout.shapes[0].x0, framed.layout.shapes[0].y0) == (3.5, 2.5)


def test_patches_that_a_position_may_not_look_at_are_hatched_on_screen_and_in_print(cat: Trace) -> None:
    allowed = torch.ones(21, 21, dtype=torch.bool)
    allowed[0, [at(1, 2), at(3, 4)]] = False
    allowed[at(0, 0), 0] = False  # no patch, so nothing of the picture
    layers = tuple(
        replace(layer, attention=edited([av.Allow(allowed)], ("encoder", number), layer.attention))
        for number, layer in enumerate(cat.layers["encoder"])
    )
    blind = Trace({"encoder": layers}, cat.queries, cat.keys, cat.output, cat.provenance, cat.fidelity, seen=cat.seen)
    assert np.argwhere(blocked_patches(blind, 0, 1, 0)).tolist() == [[1, 2], [3, 4]]
    assert np.argwhere(blocked_patches(blind, 0, 1, at(1, 2), column=True)).tolist() == []
    assert not blocked_patches(blind, 0, 1, at(0, 0)).any() and not blocked_patches(cat, 0, 1, 0).any()
    figure: Any = av.views.overlay(blind, 0, 1, 0)
    xs = [one for one in figure.data[1].x if one is not None]
    assert {round(one) for one in xs} <= {1, 2, 3, 4} and len(figure.data) == 2
    assert "<path" in overlay_svg(blind, 0, 1, 0) and "<path" not in overlay_svg(cat, 0, 1, 0)


def test_light_is_where_the_weight_is_and_the_rest_is_dark() -> None:
    picture = np.zeros((40, 50, 3), np.uint8)
    picture[..., 0] = 200
    grid = np.zeros((4, 5))
    grid[1, 2] = 0.5
    dots = laid_over(picture, grid, smooth=False)
    high, wide, _ = dots.shape
    assert dots[high * 3 // 8, wide // 2].tolist() == [200, 0, 0]
    assert dots[5, 5].tolist() == [56, 0, 0]  # 0.28 of it
    half = laid_over(picture, grid + 0.25 * (grid == 0), smooth=False)
    assert half[5, 5].tolist() == [128, 0, 0]


def test_a_trace_of_a_text_has_no_overlay() -> None:
    text = planted(PATCHES, {})
    for draw in (av.views.overlay, overlay_svg):
        with pytest.raises(av.TraceError, match="need a trace of an image with patches"):
            draw(text, 0, 0, 0)


def test_an_overlay_for_print_says_where_it_comes_from_and_names_the_patch(cat: Trace) -> None:
    document = overlay_svg(cat, 0, 1, at(1, 2), column=True)
    assert "weights on patch 1, 2" in document and "model made" in document
    assert document.count("<rect") == 2 and "<script" not in document
    lines = re.findall(r"<text [^>]*>([^<]*)</text>", document)
    assert " ".join(lines).count("weights on patch 1, 2") == 1
    assert all(len(line) <= 88 for line in lines) and len(lines[0]) <= 58  # what fits beside the margin


def test_words_stand_against_the_time_within_the_sound() -> None:
    from attention_viz.analysis.word_times import said_words
    from tests.shipped import shown

    trace = shown("whisper-tiny.en", "window")
    figure: Any = av.views.spoken(trace, 2, 1)
    rows, frames = np.asarray(figure.data[0].z).shape
    assert (rows, frames) == (len(said_words(trace)), 153)
    (row,) = said_words(trace)[3][1]
    starts = list(trace.key_tokens("cross").frames.values())
    # A cell of the frame that starts at 1.64 s is from there to 1.66 s, and not around 1.64 s.
    assert np.allclose(figure.data[0].x, starts[: frames + 1])
    assert np.abs(np.asarray(figure.data[0].z)[3] - trace.weights(2, 1, "cross")[row, :153].numpy()).max() < 1e-6


def test_patches_lie_together_that_touch_the_heaviest_and_have_half_of_its_weight() -> None:
    weights = np.zeros((4, 5))
    weights[0, 0], weights[0, 1], weights[3, 4], weights[1, 1] = 0.4, 0.3, 0.39, 0.21
    assert [tuple(one) for one in np.argwhere(touching(weights))] == [(0, 0), (0, 1), (1, 1)]
