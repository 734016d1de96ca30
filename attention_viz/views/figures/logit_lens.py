"""Show each layer's predictions at every position."""

from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from attention_viz.errors import ShapeError
from attention_viz.trace.trace import Trace
from attention_viz.views.style.axes import arrange, label_axes, labelled_axis
from attention_viz.views.style.captions import model_name
from attention_viz.views.style.numbers import add_numbers
from attention_viz.views.style.scale import colour_bar, round_up
from attention_viz.views.style.theme import ThemeName, colour_scale, palette
from attention_viz.views.style.wording import escaped, readable, shortened

if TYPE_CHECKING:
    import pandas

__all__ = ["logit_lens"]

# Up to so many positions a word has room in its cell, of so many letters.
_WRITTEN_UP_TO, _LETTERS, _SIZE = 16, 8, 10
# A layer's row, and what stands around all of them, in pixels.
_ROW, _AROUND, _LEAST = 20, 130, 320
# What is less likely than this isn't written.
_FAINT = 0.0005


def logit_lens(trace: Trace, found: "pandas.DataFrame", *, theme: ThemeName = "light") -> go.Figure:
    """Each layer's likeliest token at every position, the last layer on top, coloured by its probability.

    Where the table tells of one token, its probability stands in the cells in place of a word, and colours are to the
    largest.

    Source: nostalgebraist 2020, "interpreting GPT: the logit lens".

    Args:
        trace: what was recorded.
        found: from `av.logit_lens`, of the same trace; of several tokens a place the likeliest is drawn, and the others
            are told on hover.
        theme: "light" or "dark".

    Raises:
        ShapeError: the table is empty, or of another text.
    """
    colours = palette(theme)
    tokens = trace.query_tokens(trace.streams[0])
    positions, layers = (sorted(set(found[name].tolist())) for name in ("position", "layer"))
    if len(found) == 0 or positions != list(range(len(tokens))) or len(found) % (len(positions) * len(layers)):
        raise ShapeError(f"a table of {len(positions)} positions came; the trace has {len(tokens)} tokens")
    shape = len(layers), len(positions), -1
    ordered = found.sort_values(["layer", "position"], kind="stable")
    shares = ordered["probability"].to_numpy(float).reshape(shape)
    words = ordered["written"].to_numpy(object).reshape(shape)
    asked = words[0, 0, 0] if len(set(found["token"])) == 1 else None
    full = 1.0 if asked is None else round_up(float(shares.max()))
    cells = go.Heatmap(
        z=shares[:, :, 0],
        zmin=0,
        zmax=full,
        colorscale=colour_scale(colours.weights),
        hovertext=_phrase(layers, readable(tokens.written), words, shares),
        hovertemplate="%{hovertext}<extra></extra>",
        xgap=1,
        ygap=1,
        colorbar=colour_bar("probability"),
    )
    figure = go.Figure([cells])
    if len(positions) <= _WRITTEN_UP_TO and asked is not None:
        add_numbers(figure, "{:.3f}".format, least=_FAINT, size=_SIZE)
    elif len(positions) <= _WRITTEN_UP_TO:
        short = [readable([shortened(one, _LETTERS) for one in row]) for row in words[:, :, 0].tolist()]
        add_numbers(figure, short, size=_SIZE)
    whose = model_name(trace.provenance.model)
    what = "What each layer would say" if asked is None else f"“{asked}” after each layer"
    arrange(figure, escaped(f"{what} · {whose}"), colours)
    figure.update_layout(height=max(_LEAST, _ROW * len(layers) + _AROUND))
    names = ["words" if layer < 0 else str(layer) for layer in layers]
    up = labelled_axis(names, "after layer", colours.ink, colours, vertical=True)
    label_axes(
        figure,
        labelled_axis(readable(tokens.written), "position", colours.query, colours, vertical=False),
        {**up, "range": up["range"][::-1]},
    )
    return figure


def _phrase(layers: list[int], names: list[str], words: Any, shares: Any) -> list[list[str]]:
    return [
        [
            f"{'before the first layer' if layer < 0 else f'after layer {layer}'}, at {name}: "
            + ", ".join(f"{word} {share:.3f}" for word, share in zip(readable(likely), many, strict=True))
            for name, likely, many in zip(names, row, rows, strict=True)
        ]
        for layer, row, rows in zip(layers, words.tolist(), shares.tolist(), strict=True)
    ]
