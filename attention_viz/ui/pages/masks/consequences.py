"""A mask's effect on each token's output and head's weights, as tables."""

import pandas
import streamlit as st

from attention_viz.explorer.mask_payload import MaskEffect
from attention_viz.trace.trace import Trace

__all__ = ["show_tables"]


def show_tables(before: Trace, moved: MaskEffect) -> None:
    """Show the effect's numbers and meaning behind an opening line."""
    with st.expander("The same as tables"):
        st.caption(
            "Output moved: $\\lVert \\text{after} - \\text{before} \\rVert / \\lVert \\text{before} \\rVert$, the "
            "length of the change over the length before, of what the model hands out for each token. Weight moved: "
            "what a token's cells lost, $\\sum_j \\max(A^{\\text{before}}_{ij} - A^{\\text{after}}_{ij}, 0)$, on "
            "average over the tokens: 0 is unchanged, 1 is everything elsewhere. Later layers change even where "
            "nothing is blocked, since what they read has changed."
        )
        labels = before.query_tokens(before.streams[-1]).written
        outputs = pandas.DataFrame({"token": labels, "output moved": moved.outputs})
        left, right = st.columns([1, 2])
        left.dataframe(outputs, key="outputs-table")
        columns = [f"head {number}" for number in range(len(moved.heads[0]))]
        index = [f"layer {number}" for number in range(len(moved.heads))]
        # A head that a layer doesn't have stays empty.
        right.dataframe(pandas.DataFrame(moved.heads, columns=columns, index=index, dtype=float), key="heads-table")
