"""What a mask did, as tables: how far each token's output moved, and how much weight in each head."""

import pandas
import streamlit as st

from attention_viz.edits.effects import moved_output, moved_weight
from attention_viz.trace.trace import Trace

__all__ = ["show_tables"]


def show_tables(before: Trace, after: Trace, stream: str) -> None:
    """The numbers beside the matrix, and what they mean, behind a line that opens.

    Args:
        before: the run without the mask.
        after: the run with it.
        stream: the attention that is shown.
    """
    with st.expander("The same as tables"):
        st.caption(
            "Output moved: $\\lVert \\text{after} - \\text{before} \\rVert / \\lVert \\text{before} \\rVert$, the "
            "length of the change over the length before, of what the model hands out for each token. Weight moved: "
            "what a token's cells lost, $\\sum_j \\max(A^{\\text{before}}_{ij} - A^{\\text{after}}_{ij}, 0)$, on "
            "average over the tokens: 0 is unchanged, 1 is everything elsewhere. Later layers change even where "
            "nothing is blocked, since what they read has changed."
        )
        labels = before.query_tokens(before.streams[-1]).written
        outputs = {"token": labels, "output moved": [round(float(one), 6) for one in moved_output(before, after)]}
        heads = moved_weight(before, after, stream).numpy().round(6)
        left, right = st.columns([1, 2])
        left.dataframe(pandas.DataFrame(outputs), key="outputs-table")
        columns = [f"head {number}" for number in range(heads.shape[1])]
        index = [f"layer {number}" for number in range(heads.shape[0])]
        right.dataframe(pandas.DataFrame(heads, columns=columns, index=index), key="heads-table")
