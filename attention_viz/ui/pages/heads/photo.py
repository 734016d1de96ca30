"""The chosen head of an image: the photo, lit where one position attends."""

import html

import streamlit as st

from attention_viz.analysis.places import patch_grid, patches_beside_words
from attention_viz.analysis.words import token_named
from attention_viz.serving.runs import Run
from attention_viz.trace.spelling import weight_text
from attention_viz.ui.address import State
from attention_viz.ui.controls import reading as readings
from attention_viz.ui.pages.heads.numbers import made_once
from attention_viz.ui.parts.selection import pair_of
from attention_viz.views.figures.seen import laid_over, over_patches, png_data


def shows_photo(shown: Run, stream: str) -> bool:
    """Return whether a stream's tokens are patches of an image."""
    seen, tokens = shown.trace.seen, shown.trace.query_tokens(stream)
    return seen.picture is not None and bool(tokens.patches) and tokens == shown.trace.key_tokens(stream)


def show_photo(shown: Run, state: State, stream: str) -> None:
    """Draw the image lit by the row of the chosen pair's query, with a frame around its patch."""
    trace, tokens = shown.trace, shown.trace.query_tokens(stream)
    assert trace.seen.picture is not None
    query = pair_of(shown, state)[0] or 0
    row = trace.attention(state.layer, stream).head(readings.head(state)).rows([query]).weights[0]
    grid = over_patches(row.detach().double().cpu().numpy(), tokens)
    place = tokens.patches.get(query)
    summary = token_named(tokens, query) if patches_beside_words(tokens) else "the class token, a summary slot"
    who = summary if place is None else "the framed patch"
    words = f"Light: what {who} attends to. Fully lit: {weight_text(float(grid.max()))}."
    frame = "" if place is None else _frame(place, *patch_grid(tokens).shape)
    picture, of = trace.seen.picture.numpy(), ("photo", stream, state.layer, readings.head(state), query)
    source = made_once(trace, of, lambda: png_data(laid_over(picture, grid)))
    st.html(
        f'<div class="heads-photo" role="img" aria-label="{html.escape(words)}">'
        f'<img alt="" src="{source}">{frame}</div>'
    )
    st.caption(words)


def _frame(place: tuple[float, float], down: int, across: int) -> str:
    sides = (place[0] / down, place[1] / across, 1 / down, 1 / across)
    style = "".join(f"{name}: {100 * side:.2f}%; " for name, side in zip(_SIDES, sides, strict=True))
    return f'<i style="{style}"></i>'


_SIDES = ("top", "left", "height", "width")
