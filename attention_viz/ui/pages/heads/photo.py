"""The chosen head of an image: the photo, lit where one position attends."""

import streamlit as st

from attention_viz.analysis.places import patches_beside_words
from attention_viz.analysis.words import token_named
from attention_viz.explorer.chart_payload import LitPhoto
from attention_viz.serving.runs import Run
from attention_viz.trace.spelling import weight_text
from attention_viz.ui.address import State
from attention_viz.ui.controls import reading as readings
from attention_viz.ui.controls.chart import show_lit
from attention_viz.ui.parts.selection import pair_of
from attention_viz.views.figures.seen import over_patches


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
    patch = None if place is None else int(place[0] * grid.shape[1] + place[1])
    show_lit(LitPhoto(trace.seen.picture.numpy(), grid, patch, words), "heads-photo")
    st.caption(words)
