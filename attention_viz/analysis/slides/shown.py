"""Pictures on slides: query patch, key patch and the row's weights."""

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.analysis.places import patch_grid
from attention_viz.analysis.slides.slide import ShownPicture, Slide
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace

__all__ = ["picture_shown", "with_picture"]


def picture_shown(
    trace: Trace, keys: Tokens, row: Float[Tensor, " key"], query: tuple[int, int] | None, key: int | None
) -> ShownPicture | None:
    """Return a trace's picture for a slide; None without one, or if keys aren't its patches.

    Args:
        row: weights; blocked if not finite.
        query: (row, column) of the patch; None for no patch.
        key: position; None for no single one.
    """
    grid = patch_grid(keys)
    if trace.seen.picture is None or not grid.numel():
        return None
    down, across = grid.shape

    def number(place: tuple[int, int] | None) -> int | None:
        return None if place is None else place[0] * across + place[1]

    def weight(at: int) -> float | None:
        if at < 0:
            return 0.0
        return round(float(row[at]), 4) if torch.isfinite(row[at]) else None

    weights = tuple(weight(at) for at in grid.flatten().tolist())
    looked_at = None if key is None else number(keys.patches.get(key))
    return ShownPicture(trace.seen, down, across, weights, number(query), looked_at)


def with_picture(slide: Slide, trace: Trace, stream: str, row: Float[Tensor, " key"], query: int, key: int) -> Slide:
    """Add the trace's picture, if any, to a slide's bars."""
    shown = picture_shown(trace, trace.key_tokens(stream), row, trace.query_tokens(stream).patches.get(query), key)
    if shown is None or slide.picture is None:
        return slide
    # Where patches are left out is seen in the picture; that some are, is said once.
    bars = slide.picture
    return replace(slide, shown=shown, picture=replace(bars, cuts=(len(bars.tokens),) if bars.cuts else ()))
