"""A step of one head without a softmax as a matrix: sign by colour, size on a logarithmic scale."""

from typing import Any

import numpy
import plotly.graph_objects as go

from attention_viz.analysis.blocks import Blocks, matrix_blocks
from attention_viz.errors import ShapeError
from attention_viz.steps.mixer_steps import MIXER_STEPS
from attention_viz.steps.mixing import MixerHead
from attention_viz.views.figures.steps import Matrix, axis_labels, draw, family, numbers
from attention_viz.views.style.marks import heatmaps
from attention_viz.views.style.scale import log_places
from attention_viz.views.style.signed import largest_of, log_bar, short
from attention_viz.views.style.theme import ThemeName, palette

_WORDS = {"query": "query", "key": "key", "one": "", "decays": "dimension"}
_LATER = "later: nothing arrives from there"
_LOGARITHMIC = ("read", "weights")


def mixer_step(
    opened: MixerHead, step: str, *, cell: tuple[int, int] | None = None, theme: ThemeName = "light"
) -> go.Figure:
    """Draw one step of one head without a softmax, a name in `MIXER_STEPS`, tokens as rows.

    Readings and weights have their size on a logarithmic scale, four decades from the largest; 0 is paper.

    Raises:
        ShapeError: this head doesn't have the step.
    """
    if step not in MIXER_STEPS or (found := MIXER_STEPS[step].function(opened)) is None:
        raise ShapeError(f"this {opened.mixer.kind} {opened.mixer.per} has no step {step!r}")
    colours, one = palette(theme), MIXER_STEPS[step]
    values = numbers(found)
    ahead = numpy.triu(numpy.ones(values.shape, dtype=bool), 1) & (
        one.axes == ("query", "key") and opened.mixer.is_causal
    )
    blocks = matrix_blocks(numpy.where(ahead, numpy.nan, values), ahead)
    labels = [
        axis_labels(opened.trace, opened.stream, axis, count)
        for axis, count in zip(one.axes, blocks.shape, strict=True)
    ]
    titles = (_WORDS.get(one.axes[0], "dimension"), _WORDS.get(one.axes[1], "dimension"))
    figure = draw(Matrix(blocks, labels[0], labels[1], titles, one.label, family(step, colours)), colours, cell)
    parts: Any = figure.data
    for part in parts:
        if str(part.name).startswith("blocked"):
            part.update(name=_LATER)
    if step in _LOGARITHMIC:
        _by_decades(figure, blocks)
    return figure


def _by_decades(figure: go.Figure, blocks: Blocks) -> None:
    """Colour a drawn matrix by the sign and the logarithm of the size; its texts keep the numbers."""
    cells: Any = figure.data[0]
    largest = largest_of(blocks)
    bar = log_bar(largest, "", signed=True)
    cells.update(z=log_places(blocks.values, largest), zmin=-1, zmax=1)
    cells.colorbar.update(tickvals=bar["tickvals"], ticktext=bar["ticktext"], title_text="")
    for part in heatmaps(figure):
        if part.text is not None:
            numbered = [
                [short(value) if any(map(str.isdigit, text)) else text for text, value in zip(*row, strict=True)]
                for row in zip(part.text, blocks.values.tolist(), strict=True)
            ]
            part.update(text=numbered)
    if cells.text is None:
        cells.update(customdata=blocks.values)
        cells.update(hovertemplate="row %{y}, column %{x}: %{customdata:.6f}<extra></extra>")
