"""Weights where the patches of a picture and the times of a sound are."""

import base64
import io

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Bool, Float, UInt8
from PIL import Image

from attention_viz.analysis.places import after_the_sound
from attention_viz.analysis.word_times import said_words
from attention_viz.errors import TraceError
from attention_viz.trace.spelling import weight_text
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace
from attention_viz.views.style.axes import arrange, label_axes, number_axis
from attention_viz.views.style.captions import caption
from attention_viz.views.style.marks import add_hatch
from attention_viz.views.style.scale import colour_bar
from attention_viz.views.style.theme import ThemeName, colour_scale, palette
from attention_viz.views.style.wording import escaped, readable

__all__ = ["blocked_patches", "called", "laid_over", "over_patches", "overlay", "png_data", "spoken", "touching"]

# The longer side of the picture, in dots, and how bright it is where there is no weight.
_SIDE, _DARK = 448, 0.28
# Patches that lie together have at least this share of the largest weight among them.
_TOGETHER = 0.5
_STREAM = "cross"


def overlay(trace: Trace, layer: int, head: int, position: int, *, theme: ThemeName = "light") -> go.Figure:
    """Draw the input image, lit where one position attends and dark elsewhere.

    Patches that it may not attend to are hatched.

    Args:
        trace: of an image.
        layer: its number, the model's own.
        head: the head, from 0.
        position: the position that attends, from 0.
        theme: "light" or "dark".

    Raises:
        TraceError: the trace isn't of an image with patches, or the layer is missing.
        ShapeError: the head or position is missing.
    """
    stream, colours = trace.attention_stream(None), palette(theme)
    picture, tokens = trace.seen.picture, trace.key_tokens(stream)
    if picture is None or not tokens.patches:
        raise TraceError("weights over an image need a trace of an image with patches")
    tokens.require(position)
    row = trace.attention(layer, stream).head(head).rows([position])
    grid = over_patches(row.weights[0].detach().double().cpu().numpy(), tokens)
    dots = laid_over(picture.numpy(), grid)
    figure = go.Figure(
        go.Heatmap(
            z=grid, opacity=0, showscale=False, hovertemplate="row %{y}, column %{x} (from 0): %{z:.4f}<extra></extra>"
        )
    )
    shut, line = blocked_patches(trace, layer, head, position), {"color": colours.muted, "width": 1.5}
    add_hatch(figure, shut, colours, key=False, line=line)
    title = f"Weights of {escaped(called(tokens, position))} · {escaped(caption(trace, layer, head, stream))}"
    most = escaped(weight_text(float(grid.max())))
    arrange(figure, title, colours, note=f"fully lit: {most}, the patch with the most; dark: 0")
    down, across = grid.shape
    everywhere = {"xref": "x", "yref": "y", "x": -0.5, "y": -0.5, "sizex": across, "sizey": down, "sizing": "stretch"}
    figure.add_layout_image(source=_data(dots, "jpeg", quality=88), layer="below", **everywhere)
    hidden = {"visible": False, "constrain": "domain"}
    side, height = {**hidden, "range": [-0.5, across - 0.5]}, {**hidden, "range": [down - 0.5, -0.5]}
    label_axes(figure, colours, side, {**height, "scaleanchor": "x"})
    _frame(figure, tokens, position, colours.query)
    return figure


def over_patches(line: Float[np.ndarray, " position"], tokens: Tokens) -> Float[np.ndarray, "row column"]:
    """Arrange weights as in the image's patches."""
    places = tokens.patches
    grid = np.zeros((max(row for row, _ in places.values()) + 1, max(column for _, column in places.values()) + 1))
    for at, place in places.items():
        grid[place] = line[at]
    return grid


def blocked_patches(
    trace: Trace, layer: int, head: int, position: int, *, column: bool = False
) -> Bool[np.ndarray, "row column"]:
    """Return the patches a position may not attend to; by column, those blocked from it."""
    stream = trace.attention_stream(None)
    one, tokens = trace.attention(layer, stream).head(head), trace.key_tokens(stream)
    shut = np.zeros(len(tokens))
    if one.allowed is not None:
        allowed = np.broadcast_to(one.allowed.cpu().numpy(), one.shape)
        shut = ~(allowed[:, position] if column else allowed[position])
    return over_patches(shut.astype(np.float64), tokens) > 0


def touching(weights: Float[np.ndarray, "row column"]) -> Bool[np.ndarray, "row column"]:
    """Find patches touching the heaviest with at least half its weight, as the explorer's `seen/patches.js`."""
    enough = weights >= _TOGETHER * weights.max()
    region = np.zeros_like(enough)
    if not weights.max() > 0:
        return region
    region[np.unravel_index(weights.argmax(), weights.shape)] = True
    while True:
        grown = region.copy()
        grown[1:] |= region[:-1]
        grown[:-1] |= region[1:]
        grown[:, 1:] |= region[:, :-1]
        grown[:, :-1] |= region[:, 1:]
        grown &= enough
        if (grown == region).all():
            return region
        region = grown


def laid_over(
    picture: UInt8[np.ndarray, "row column 3"], grid: Float[np.ndarray, "down across"], *, smooth: bool = True
) -> UInt8[np.ndarray, "high wide 3"]:
    """Return the picture's pixels, darkened but for the light of the weights, as the explorer's `seen/veil.js`."""
    factor = max(1, _SIDE // max(picture.shape[:2]))
    size = picture.shape[1] * factor, picture.shape[0] * factor
    colour = np.asarray(Image.fromarray(picture).resize(size, Image.Resampling.BICUBIC), np.float64)
    share = Image.fromarray((grid / (grid.max() or 1)).astype(np.float32))
    how = Image.Resampling.BILINEAR if smooth else Image.Resampling.NEAREST
    light = np.asarray(share.resize(size, how), np.float64).clip(0, 1)[..., None]
    return np.rint(colour * (_DARK + (1 - _DARK) * light)).clip(0, 255).astype(np.uint8)


def called(tokens: Tokens, position: int) -> str:
    """Name a patch by row and column from 0, else by label."""
    return tokens.placed_at(position) or tokens.labels[position]


def png_data(dots: UInt8[np.ndarray, "high wide 3"]) -> str:
    """Encode pixels losslessly as a data URL."""
    return _data(dots, "png", optimize=True)


def _data(dots: UInt8[np.ndarray, "high wide 3"], form: str, **how: int) -> str:
    content = io.BytesIO()
    Image.fromarray(dots).save(content, form.upper(), **how)
    return f"data:image/{form};base64,{base64.b64encode(content.getvalue()).decode()}"


def _frame(figure: go.Figure, tokens: Tokens, position: int, colour: str) -> None:
    if (place := tokens.patches.get(position)) is not None:
        box = {"x0": place[1] - 0.5, "x1": place[1] + 0.5, "y0": place[0] - 0.5, "y1": place[0] + 0.5}
        figure.add_shape(type="rect", line={"color": colour, "width": 3}, **box)


def spoken(trace: Trace, layer: int, head: int, *, theme: ThemeName = "light") -> go.Figure:
    """Draw a head's weights on the audio for each word: words down, time across.

    A word of several subword tokens has the mean of their rows. Weight after the end of the audio is left out, so rows
    may sum to less than 1. A cell reaches from its frame's start to the next; on hover it has the time between.

    Args:
        trace: a transcription of audio.
        layer: its number in the cross-attention, the model's own.
        head: the head, from 0.
        theme: "light" or "dark".

    Raises:
        TraceError: the trace isn't a transcription of audio, or the layer is missing.
        ShapeError: the head is missing.
    """
    colours, words = palette(theme), said_words(trace)
    seconds = _seconds(trace)
    weights = trace.weights(layer, head, _STREAM).detach().double().cpu().numpy()
    rows = np.stack([weights[list(positions)].mean(axis=0)[: len(seconds)] for _, positions in words])
    labels = readable([word for word, _ in words])
    cells = go.Heatmap(
        z=rows,
        x=_edges(trace, seconds),
        y=list(range(len(labels))),
        customdata=np.repeat(np.array([[escaped(one)] for one in labels]), len(seconds), axis=1),
        colorscale=colour_scale(colours.weights),
        zmin=0,
        hovertemplate="%{customdata} attends to %{x:.2f} s: %{z:.4f}<extra></extra>",
        colorbar=colour_bar("weight"),
    )
    figure = go.Figure(cells)
    arrange(figure, f"Each word's weights on the audio · {escaped(caption(trace, layer, head, _STREAM))}", colours)
    time = {"title": {"text": "seconds of the audio", "font": {"color": colours.key}}, **number_axis(colours)}
    label_axes(figure, colours, time, (labels, "query: transcribed word", colours.query))
    return figure


def _edges(trace: Trace, seconds: list[float]) -> list[float]:
    """Return where the frames begin and the last one ends: for Plotly, a cell's one place would be its middle."""
    starts = sorted(trace.key_tokens(_STREAM).frames.values())
    length = starts[1] - starts[0] if len(starts) > 1 else 1.0
    return [*seconds, seconds[-1] + length]


def _seconds(trace: Trace) -> list[float]:
    frames = trace.key_tokens(_STREAM)
    after = after_the_sound(trace.seen, frames)
    return [second for at, second in frames.frames.items() if not after[at]]
