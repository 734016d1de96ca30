"""Plot spoken words' weights over a sound's time."""

import numpy as np
import plotly.graph_objects as go

from attention_viz.analysis.places import after_the_sound
from attention_viz.analysis.word_times import said_words
from attention_viz.trace.trace import Trace
from attention_viz.views.style.axes import arrange, label_axes, labelled_axis, number_axis
from attention_viz.views.style.captions import caption
from attention_viz.views.style.scale import colour_bar
from attention_viz.views.style.theme import ThemeName, colour_scale, palette
from attention_viz.views.style.wording import escaped, readable

__all__ = ["spoken"]

_STREAM = "cross"


def spoken(trace: Trace, layer: int, head: int, *, theme: ThemeName = "light") -> go.Figure:
    """What a head listens to while each word is said: words down, the time of the sound across.

    A word of several pieces has the mean of their rows. What lies behind the end of the sound is left out, so that rows
    needn't add up to 1.

    Args:
        trace: of a sound that is written down.
        layer: its number in the cross-attention, the model's own.
        head: which head, from 0.
        theme: "light" or "dark".

    Raises:
        TraceError: the trace is of no sound that is written down, or there is no such layer.
        ShapeError: there is no such head.
    """
    colours, words = palette(theme), said_words(trace)
    seconds = _seconds(trace)
    weights = trace.weights(layer, head, _STREAM).detach().double().cpu().numpy()
    rows = np.stack([weights[list(positions)].mean(axis=0)[: len(seconds)] for _, positions in words])
    labels = readable([word for word, _ in words])
    cells = go.Heatmap(
        z=rows,
        x=seconds,
        y=list(range(len(labels))),
        customdata=np.repeat(np.array([[escaped(one)] for one in labels]), len(seconds), axis=1),
        colorscale=colour_scale(colours.weights),
        zmin=0,
        hovertemplate="%{customdata} listens to %{x:.2f} s: %{z:.4f}<extra></extra>",
        colorbar=colour_bar("weight"),
    )
    figure = go.Figure(cells)
    arrange(figure, f"What each word listens to · {escaped(caption(trace, layer, head, _STREAM))}", colours)
    label_axes(
        figure,
        {"title": {"text": "seconds of the sound", "font": {"color": colours.key}}, **number_axis(colours)},
        labelled_axis(labels, "query: the word that is said", colours.query, colours, vertical=True),
    )
    return figure


def _seconds(trace: Trace) -> list[float]:
    frames = trace.key_tokens(_STREAM)
    after = after_the_sound(trace.seen, frames)
    return [second for at, second in frames.frames.items() if not after[at]]
