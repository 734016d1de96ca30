"""A mask hatched on the input picture, before and after."""

import functools
import html

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz import views
from attention_viz.serving.runs import Run
from attention_viz.ui.address import State
from attention_viz.ui.controls.plot import add_targets, show_to_click
from attention_viz.ui.pages.masks.choice import MaskChoice
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.selection import pair_of, take_pair
from attention_viz.ui.parts.themes import theme_name
from attention_viz.views.figures.seen import blocked_patches, called

__all__ = ["show_masked_picture"]

# Of one of two pictures that stand above each other beside the matrix, in pixels, and of a patch that answers a click.
_HEIGHT, _TARGET = 272, 16


def show_masked_picture(before: Run, after: Run, state: State, choice: MaskChoice) -> DeltaGenerator:
    """Draw the weights on the picture, blocked patches hatched; return the matrix's place."""
    tokens = before.trace.key_tokens(before.stream(state.stream))
    if before.trace.seen.picture is None or not tokens.placed or len(before.trace.streams) > 1:
        return st.container()
    left, right = st.columns([1, 2.6], gap="small")
    query, key = pair_of(before, state)
    with left.container(key="masked-picture", gap="xsmall"):
        with st.container(key="masked-before", gap="xsmall"):
            _show(before, "Before" if choice.mask != "none" else "As the model is", query, key, state)
        if choice.mask != "none" and after is not before:
            with st.container(key="masked-after", gap="xsmall"):
                _show(after, "With the mask", query, key, state)
        _choose_others(before, key, state)
    return right.container()


def _show(run: Run, name: str, query: int, key: int, state: State) -> None:
    """Draw a run's picture; a pressed patch becomes the query."""
    trace = run.trace
    layer, head = run.place(state.stream, state.layer, state.head)
    shut = int(blocked_patches(trace, layer, head, query).sum())
    tokens = trace.query_tokens()
    cells = {(int(one[0]), int(one[1])): at for at, one in enumerate(tokens.place) if one is not None}
    may = f"may not look at {shut} of the {len(cells)} patches" if shut else "may look at every patch"
    phrase = f"{name}: {called(tokens, query)} {may}"
    # On a phone, where the sentence above the matrix names the patch, a line has room for the number alone.
    short = f"{name}: {shut or 'none'} blocked"
    st.html(
        f'<p class="masked-told">{html.escape(phrase)}</p><p class="masked-told" aria-hidden="true">'
        f"{html.escape(short)}</p>"
    )
    figure = views.overlay(trace, layer, head, query, theme=theme_name())
    figure.update_layout(height=_HEIGHT, title_text="", margin={"t": 4, "b": 4, "l": 4, "r": 4}, annotations=[])
    add_targets(figure, list(cells), size=_TARGET)
    show_to_click(figure, f"masked-{name}", phrase, functools.partial(_take, cells, key))


def _take(cells: dict[tuple[int, int], int], key: int, cell: tuple[int, int]) -> None:
    take_pair(cells[cell], key)


def _choose_others(run: Run, key: int, state: State) -> None:
    """Choose positions that aren't patches, such as the class token."""
    tokens = run.trace.query_tokens()
    with st.container(key="masked-others", horizontal=True, gap="xsmall"):
        for at, place in enumerate(tokens.place):
            if place is None and not tokens.padding[at]:
                st.button(
                    plain(f"From {tokens.written[at]}"), key=f"masked-from-{at}", on_click=take_pair, args=(at, key)
                )
