"""What a model takes to be likeliest: after a decoder's last token, or behind an encoder's mask."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import streamlit as st

from attention_viz.ui.markdown import plain
from attention_viz.ui.serving import Drawn, candidates
from attention_viz.ui.state import State
from attention_viz.ui.themes import theme_name

if TYPE_CHECKING:
    import pandas

    from attention_viz.trace import Trace

__all__ = ["find_candidates", "show_candidates"]

_COUNT = 6
# Of a text with many masks; the others can be had in Python.
_MOST_MASKS = 3


def find_candidates(drawn: Drawn, state: State) -> "Mapping[int, pandas.DataFrame]":
    """The likeliest tokens by position; nothing for a model that predicts nothing, or a trace from a file."""
    return {} if drawn.fit is None else candidates(state, drawn.trace, _COUNT)


def show_candidates(trace: "Trace", found: "Mapping[int, pandas.DataFrame]", state: State) -> None:
    """The panel beside the explorer: bars, one sentence, and the row of the chosen head that they belong to."""
    from attention_viz.views import candidates as picture

    decoder = trace.streams == ("decoder",)
    with st.container(key="candidates", gap="small"):
        for position, likely in list(found.items())[:_MOST_MASKS]:
            mask = trace.query_tokens().labels[position]
            title = "What comes next" if decoder else f"What stands behind {mask}"
            st.markdown(f"**{plain(title)}**")
            st.caption(plain(_sentence(trace, position, likely, decoder=decoder)))
            figure = picture(trace, state.layer, state.head, likely, position, theme=theme_name())
            words = ", ".join(
                f"{token} {share:.3f}" for token, share in zip(likely.token, likely.probability, strict=True)
            )
            st.plotly_chart(
                figure,
                theme=None,
                key=f"candidates-{position}",
                config={"displayModeBar": False},
                alt=f"{title}: {words}",
            )


def _sentence(trace: "Trace", position: int, likely: "pandas.DataFrame", *, decoder: bool) -> str:
    from attention_viz.views.wording import spelled

    best = spelled(likely.token[0])
    if not decoder:
        return f"Likeliest at position {position}, from all heads together: “{best}”."
    last = spelled(trace.query_tokens().labels[position])
    return f"Likeliest after the last row, “{last}”, from all heads together: “{best}”."
