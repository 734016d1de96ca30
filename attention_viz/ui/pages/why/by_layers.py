"""Each layer's prediction as a picture: the logit lens."""

import pandas
import streamlit as st

from attention_viz import views
from attention_viz.serving.runs import Run
from attention_viz.serving.why import layer_by_layer
from attention_viz.ui.address import State
from attention_viz.ui.controls.plot import show_picture
from attention_viz.ui.parts.exports import show_figure_exports
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.themes import theme_name

__all__ = ["show_layers"]

# The head reads every layer at every position: of a longer text that takes too long for a page.
_LONGEST = 128
_LEARNT = (
    "Each layer's stream is read by the last norm and the word head, which were learnt for the last layer: an early "
    "layer may know more than it shows."
)


def show_layers(run: Run, state: State) -> None:
    """Draw each layer's likeliest words, and where the last answer settles."""
    trace = run.trace
    count = len(trace.query_tokens(trace.streams[0]))
    if count > _LONGEST:
        st.caption(f"It is shown for texts of up to {_LONGEST} tokens; this one has {count}.")
        return
    found = layer_by_layer(run, state.request)
    show_picture(
        views.logit_lens(trace, found, theme=theme_name()),
        "why-layers",
        "The likeliest word after each layer, the last one on top, at every position.",
    )
    st.caption(plain(_standing(found, count - 1) if trace.streams == ("decoder",) else _LEARNT))
    show_figure_exports("logit_lens", lambda: views.logit_lens(trace, found), lambda: found, trace)


def _standing(found: pandas.DataFrame, position: int) -> str:
    last = found[found["position"] == position].groupby("layer", sort=True).first()
    words: list[str] = last["written"].tolist()
    standing = next(at for at in range(len(words)) if len(set(words[at:])) == 1)
    layer = int(last.index.tolist()[standing])
    since = f"from layer {layer} on" if layer >= 0 else "from the first on"
    return f"At the last position “{words[-1]}” is the likeliest {since}. {_LEARNT}"
