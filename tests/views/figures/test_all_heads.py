"""Every pattern of every head on one page: each matrix in its place, its weights as dots, blocked cells hatched."""

import base64
import io
from typing import Any

import numpy
import pytest
import torch
from PIL import Image

import attention_viz as av
from attention_viz.views.style.theme import DARK, LIGHT
from tests.shipped import shipped

LAYERS, HEADS, TOKENS = 2, 3, 4


def weights_of(layer: int, head: int) -> torch.Tensor:
    """A pattern of each head's own: every query looks so many back, or at the first."""
    looked = (torch.arange(TOKENS) - layer * HEADS - head).clamp_min(0)
    return torch.nn.functional.one_hot(looked, TOKENS).float()


def dots(figure: Any) -> numpy.ndarray:
    (image,) = figure.layout.images
    data = base64.b64decode(image.source.partition(",")[2])
    return numpy.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)


def colour(name: str) -> list[int]:
    return [int(name[at : at + 2], 16) for at in (1, 3, 5)]


@pytest.mark.parametrize(("theme", "colours"), [("light", LIGHT), ("dark", DARK)])
def test_each_head_stands_in_its_place_with_its_own_weights(theme: Any, colours: Any) -> None:
    layers = [torch.stack([weights_of(layer, head) for head in range(HEADS)]) for layer in range(LAYERS)]
    trace = av.Trace.from_weights(layers, list("abcd"), allowed=av.masks.causal(TOKENS))
    figure = av.views.all_heads(trace, theme=theme)
    drawn = dots(figure)
    high, wide = drawn.shape[0] / LAYERS, drawn.shape[1] / HEADS
    deep, page = colour(colours.weights[-1]), colour(colours.background)
    for layer in range(LAYERS):
        for head in range(HEADS):
            tile = drawn[int(layer * high) + 3 : int((layer + 1) * high) - 3]
            tile = tile[:, int(head * wide) + 3 : int((head + 1) * wide) - 3]
            side = len(tile) / TOKENS
            for query in range(TOKENS):
                for key in range(TOKENS):
                    cell = tile[int(query * side) + 2 : int((query + 1) * side) - 2]
                    cell = cell[:, int(key * side) + 2 : int((key + 1) * side) - 2].reshape(-1, 3)
                    kinds = {tuple(dot) for dot in cell.tolist()}
                    weight = float(weights_of(layer, head)[query, key])
                    if key > query:
                        assert len(kinds) == 2 and tuple(colour(colours.blocked)) in kinds, "blocked is hatched"
                    else:
                        assert len(kinds) == 1 and abs(cell[0] - (deep if weight else page)).max() <= 6
    said = figure.data[0].hovertext
    assert said[1][2].startswith("layer 1, head 2: largest weight, ") and figure.data[0].z.shape == (LAYERS, HEADS)
    assert figure.layout.yaxis.scaleanchor == "x", "matrices are squares"


def test_a_large_model_and_a_long_text_stay_a_small_file() -> None:
    query = torch.randn(32, 70, 4, generator=torch.Generator().manual_seed(0))
    trace = av.Trace.from_qkv([query] * 32, [query] * 32, [query] * 32, name="<b>")
    figure: Any = av.views.all_heads(trace)
    assert len(figure.to_json()) < 3_000_000 and max(dots(figure).shape) <= 2400
    assert "&lt;b&gt;" in figure.layout.title.text and "blocks of 2 × 2" in figure.layout.title.text


def test_a_stream_has_to_be_named_where_there_are_several() -> None:
    trace = shipped("translation").trace("the boy finds the key")
    with pytest.raises(av.TraceError, match="no stream was named"):
        av.views.all_heads(trace)
    assert "cross" in av.views.all_heads(trace, "cross").layout.title.text
