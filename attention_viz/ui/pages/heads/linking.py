"""The heads that most link the chosen pair, as buttons and dots."""

import streamlit as st
import torch

from attention_viz.trace.trace import Trace
from attention_viz.ui.address import State
from attention_viz.ui.pages.heads.numbers import made_once
from attention_viz.ui.pages.heads.search import Atlas, take_head
from attention_viz.ui.pages.heads.words import named
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.selection import take_pair

__all__ = ["linking_heads", "show_linking"]

_LISTED = 5

Head = tuple[int, int]


def linking_heads(atlas: Atlas, state: State) -> list[tuple[Head, float]]:
    """Return the chosen pair's heaviest heads, in descending order; empty without a pair."""
    pair = _pair(atlas, state)
    if pair is None:
        return []
    return made_once(atlas.trace, ("linking", atlas.stream, pair), lambda: _linking(atlas.trace, atlas.stream, *pair))


def show_linking(atlas: Atlas, state: State) -> None:
    """Show these heads as buttons, or how to choose a pair."""
    pair = _pair(atlas, state)
    if pair is None:
        return
    queries, keys = atlas.trace.query_tokens(atlas.stream), atlas.trace.key_tokens(atlas.stream)
    words = f"{named(queries, pair[0])} ({pair[0]}) looks at {named(keys, pair[1])} ({pair[1]})"
    with st.container(key="heads-linking", gap="small"):
        st.caption(plain(f"Heads in which {words} most; each has a dot in the atlas:"))
        with st.container(horizontal=True, gap="small"):
            for (layer, head), weight in linking_heads(atlas, state):
                here = (layer, head) == (state.layer, state.head)
                st.button(
                    f"{layer}·{head}  {weight:.2f}",
                    key=f"heads-link-{layer}-{head}",
                    type="primary" if here else "secondary",
                    on_click=take_head,
                    args=((layer, head),),
                    help=f"Layer {layer}, head {head}",
                )
            st.button("No pair", key="heads-link-none", type="tertiary", on_click=take_pair, args=(None, None))


def _pair(atlas: Atlas, state: State) -> tuple[int, int] | None:
    if state.query is None or state.key is None:
        return None
    counts = len(atlas.trace.query_tokens(atlas.stream)), len(atlas.trace.key_tokens(atlas.stream))
    return (state.query, state.key) if state.query < counts[0] and state.key < counts[1] else None


def _linking(trace: Trace, stream: str, query: int, key: int) -> list[tuple[Head, float]]:
    found = list[tuple[Head, float]]()
    for layer in trace.layer_numbers(stream):
        attention = trace.attention(layer, stream)
        for head in range(trace.head_count(layer, stream)):
            weight = float(torch.as_tensor(attention.tile(head, [query], [key])).reshape(-1)[0].nan_to_num(0))
            found.append(((layer, head), weight))
    found.sort(key=lambda one: -one[1])
    return [one for one in found[:_LISTED] if one[1] > 0]
