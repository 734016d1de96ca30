"""Below the number: each layer's prediction, and the head's circuits."""

import streamlit as st

from attention_viz.errors import AttentionVizError
from attention_viz.serving.runs import Run
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import State
from attention_viz.ui.pages.why.by_layers import show_layers
from attention_viz.ui.pages.why.by_weights import show_by_weights
from attention_viz.ui.pages.why.choice import BENEATH, WHY_CHOICES
from attention_viz.ui.parts.markdown import as_sentence, plain

__all__ = ["show_beneath"]


def show_beneath(run: Run, state: State) -> None:
    """Draw the picker and open part; closed ones aren't computed."""
    widgets.show(
        st.segmented_control,
        "Open beneath",
        of=WHY_CHOICES,
        name="open",
        options=list(BENEATH),
        format_func=BENEATH.__getitem__,
        label_visibility="collapsed",
    )
    opened = visit.chosen(WHY_CHOICES).open
    if opened is None:
        return
    waiting = st.empty()
    waiting.caption("Worked out once: some seconds …")
    try:
        _SHOWN[opened](run, state)
    except AttentionVizError as error:
        st.caption(plain(as_sentence(str(error))))
    waiting.empty()


_SHOWN = {"layers": show_layers, "weights": show_by_weights}
