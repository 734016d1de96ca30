"""Layers' predictions, and the head's circuits and inputs."""

import functools

import pandas
import streamlit as st

from attention_viz import views
from attention_viz.errors import AttentionVizError
from attention_viz.serving.runs import Run
from attention_viz.serving.why import ByWeights, by_weights, layer_by_layer
from attention_viz.trace.trace import Trace
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import State
from attention_viz.ui.controls.plot import show_picture
from attention_viz.ui.controls.sight import in_sight
from attention_viz.ui.pages.why.page import BENEATH, WHY_CHOICES
from attention_viz.ui.parts.exports import csv_bytes, file_button, model_part, show_figure_exports
from attention_viz.ui.parts.layout import theme_name
from attention_viz.ui.parts.markdown import as_sentence, plain
from attention_viz.views.style.wording import with_minus

# The unembedding runs for every layer and position, which takes too long for longer texts.
_LONGEST = 128
_LEARNT = (
    "The logit lens applies the final norm and the unembedding to the residual stream after each layer. Both were "
    "trained for the last layer, so an early layer may know more than it shows."
)
# Earlier heads shown per input.
_MOST_SHOWN = 5
# The height of the place of what isn't in sight yet, in pixels.
_HEIGHT = 400
# A head's inputs, by column of `av.compositions`.
_READ = {"q": "query", "k": "key", "v": "value"}
_CIRCUITS = {
    "ov": (
        "OV circuit, W_V·W_O",
        "Eigenvalue fraction between embedding and unembedding. 1: each attended word raises its own logit, which is "
        "copying; −1: it lowers its own logit; about 0: neither.",
    ),
    "qk": (
        "QK circuit, W_Q·W_K",
        "Eigenvalue fraction between words and words, at equal positions. 1: each word matches itself best; −1: itself "
        "least; about 0: neither.",
    ),
}
# Measured by `av.circuits` and `av.copying`; see docs/why.md.
_NO_COPYING = (
    "Weights alone don't find the heads that copy. In SmolLM2 the OV number and copying in texts have a correlation of "
    "only 0.15 over all 270 heads. MLPs between embedding and unembedding change a word."
)


def _show_layers(run: Run, state: State) -> None:
    trace = run.trace
    count = len(trace.query_tokens(trace.streams[0]))
    if count > _LONGEST:
        st.caption(f"The logit lens takes texts of up to {_LONGEST} tokens; this one has {count}.")
        return
    found = layer_by_layer(run, state.request)
    show_picture(
        views.logit_lens(trace, found, theme=theme_name()),
        "why-layers",
        "The likeliest word after each layer, the last one on top, at every position.",
    )
    st.caption(plain(_standing(found, count - 1) if trace.attention_streams == ("decoder",) else _LEARNT))
    show_figure_exports("logit_lens", lambda: views.logit_lens(trace, found), lambda: found, trace)


def _standing(found: pandas.DataFrame, position: int) -> str:
    last = found[found["position"] == position].groupby("layer", sort=True).first()
    words: list[str] = last["written"].tolist()
    standing = next(at for at in range(len(words)) if len(set(words[at:])) == 1)
    layer = int(last.index.tolist()[standing])
    since = f"from layer {layer} on" if layer >= 0 else "from the start"
    return f"At the last position “{words[-1]}” is the likeliest {since}. {_LEARNT}"


def _show_by_weights(run: Run, state: State) -> None:
    stream = run.stream(state.stream)
    place = run.place(stream, state.layer, state.head)
    found = by_weights(state.request, stream, place)
    st.markdown(f"**Layer {plain(run.trace.label(place[0], stream))}, head {place[1]}: weights only**")
    _tell_circuits(found, place)
    _tell_readings(found, place, run.trace, stream)
    _offer(found, run.trace, place)


def _tell_circuits(found: ByWeights, place: tuple[int, int]) -> None:
    if isinstance(found.circuits, str):
        st.caption(plain(as_sentence(found.circuits)))
        return
    missing: dict[str, str] = found.circuits.attrs["missing"]
    columns = st.columns(len(_CIRCUITS))
    for column, (name, (label, means)) in zip(columns, _CIRCUITS.items(), strict=True):
        if name in missing:
            column.caption(f"{label}: {plain(as_sentence(missing[name]))}")
            continue
        every: list[float] = found.circuits[name].tolist()
        mine = every[found.circuits.index.tolist().index(place)]
        more, others = sum(one > mine for one in every), len(every) - 1
        rank = f"{more} of {others} other heads have more" if others else "this is the only head"
        column.metric(label, with_minus(f"{mine:.2f}"), help=means)
        column.caption(f"From −1 to 1; {rank}.")
    if "ov" not in missing:
        st.caption(_NO_COPYING)


def _tell_readings(found: ByWeights, place: tuple[int, int], trace: Trace, stream: str) -> None:
    if isinstance(found.into, str):
        st.caption(plain(as_sentence(found.into)))
        return
    if not len(found.into):
        st.caption("No head comes before this layer, so this head reads no other head's output.")
        return
    missing: dict[str, str] = found.into.attrs["missing"]
    lines = list[str]()
    for column, (name, read) in zip(st.columns(len(_READ)), _READ.items(), strict=True):
        if name in missing:
            column.caption(f"Its {read}: {plain(as_sentence(missing[name]))}")
            continue
        column.caption(f"Heads that write most to its {read}")
        best = found.into.nlargest(_MOST_SHOWN, name)
        rows = {
            "layer": [trace.label(layer, stream) for layer in best["from_layer"]],
            "head": best["from_head"].tolist(),
            "composition": best[name].round(3).tolist(),
        }
        column.dataframe(pandas.DataFrame(rows), hide_index=True, key=f"why-weights-{name}")
        lines.append(f"{found.into[name].median():.3f} for the {read}")
    if lines:
        st.caption(
            "Composition: ‖W_A·W_B‖ / (‖W_A‖·‖W_B‖), from 0 to 1. The earlier head writes by W_A; this head reads by "
            f"W_B. Random matrices give about 1/√d_model, here {found.into.attrs['random']:.3f}. Half of all "
            f"{len(found.into)} earlier heads are below {', '.join(lines)}: look at heads well above that."
        )


def _offer(found: ByWeights, trace: Trace, place: tuple[int, int]) -> None:
    name, origin = model_part(trace), trace.provenance.model
    tables = {
        "Circuits (CSV)": ("circuits", found.circuits, "Every head's OV and QK circuits (av.circuits)"),
        "Compositions (CSV)": (
            f"compositions_{place[0]}.{place[1]}",
            found.into,
            "This head's composition with each earlier head (av.compositions)",
        ),
    }
    with st.container(horizontal=True, gap="small"):
        for label, (which, table, says) in tables.items():
            if isinstance(table, str) or table.empty:
                continue
            make, key = functools.partial(_csv, table, origin), f"why-{which.partition('_')[0]}"
            file_button(label, f"attention_{name}_{which}", "csv", make, key, holds=says)


def _csv(table: pandas.DataFrame, model: str) -> bytes:
    rows = table.reset_index() if table.index.names[0] else table
    return csv_bytes(rows.assign(model=model))


def show_beneath(run: Run, state: State) -> None:
    """Draw the picker and open part, once it is in sight; closed ones aren't computed."""
    widgets.show(
        st.segmented_control, "Also show", of=WHY_CHOICES, name="open", options=BENEATH, label_visibility="collapsed"
    )
    opened = visit.chosen(WHY_CHOICES).open
    if opened is None or not in_sight(f"why-{opened}", _HEIGHT):
        return
    waiting = st.empty()
    waiting.caption("Computing once; this takes some seconds …")
    try:
        _SHOWN[opened](run, state)
    except AttentionVizError as error:
        st.caption(plain(as_sentence(str(error))))
    waiting.empty()


_SHOWN = {"layers": _show_layers, "weights": _show_by_weights}
