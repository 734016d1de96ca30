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
from attention_viz.ui.pages.why.page import BENEATH, WHY_CHOICES
from attention_viz.ui.parts.exports import csv_bytes, file_button, model_part, show_figure_exports
from attention_viz.ui.parts.layout import theme_name
from attention_viz.ui.parts.markdown import as_sentence, plain
from attention_viz.views.style.wording import with_minus

# The head reads every layer at every position: of a longer text that takes too long for a page.
_LONGEST = 128
_LEARNT = (
    "Each layer's stream is read by the last norm and the word head, which were learnt for the last layer: an early "
    "layer may know more than it shows."
)


def _show_layers(run: Run, state: State) -> None:
    trace = run.trace
    count = len(trace.query_tokens(trace.attention_streams[0]))
    if count > _LONGEST:
        st.caption(f"It is shown for texts of up to {_LONGEST} tokens; this one has {count}.")
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
    since = f"from layer {layer} on" if layer >= 0 else "from the first on"
    return f"At the last position “{words[-1]}” is the likeliest {since}. {_LEARNT}"


# So many earlier heads are shown of each.
_MOST_SHOWN = 5
# What a head reads, by the column of `av.compositions`.
_READ = {"q": "query", "k": "key", "v": "value"}
_CIRCUITS = {
    "ov": (
        "What it writes, W_V·W_O",
        "The eigenvalue fraction between embedding and word head. 1: each word that it looks at speaks for itself, "
        "which is copying; −1: it speaks against itself; about 0: neither.",
    ),
    "qk": (
        "Where it looks, W_Q·W_K",
        "The eigenvalue fraction between words and words, at equal positions. 1: each word fits itself best; "
        "−1: itself least; about 0: neither.",
    ),
}
# Measured by `av.circuits` and `av.copying`; docs/why.md has more of it.
_NO_COPYING = (
    "Weights alone don't find the heads that copy: in SmolLM2 the correlation of W_V·W_O's number with copying in "
    "texts is 0.15 over all 270 heads. MLPs between embedding and word head make something else of a word."
)


def _show_by_weights(run: Run, state: State) -> None:
    stream = run.stream(state.stream)
    place = run.place(stream, state.layer, state.head)
    found = by_weights(state.request, stream, place)
    st.markdown(f"**Layer {plain(run.trace.label(place[0], stream))}, head {place[1]}, by its weights alone**")
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
        rank = f"{more} of {others} other heads have more" if others else "there is no other head"
        column.metric(label, with_minus(f"{mine:.2f}"), help=means)
        column.caption(f"From −1 to 1; {rank}.")
    if "ov" not in missing:
        st.caption(_NO_COPYING)


def _tell_readings(found: ByWeights, place: tuple[int, int], trace: Trace, stream: str) -> None:
    if isinstance(found.into, str):
        st.caption(plain(as_sentence(found.into)))
        return
    if not len(found.into):
        st.caption("No head comes before this layer, so this one reads no other's output.")
        return
    missing: dict[str, str] = found.into.attrs["missing"]
    lines = list[str]()
    for column, (name, read) in zip(st.columns(len(_READ)), _READ.items(), strict=True):
        if name in missing:
            column.caption(f"Its {read}: {plain(as_sentence(missing[name]))}")
            continue
        column.caption(f"Heads that write into its {read} most")
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
            "Composition: ‖W_A·W_B‖ / (‖W_A‖·‖W_B‖), from 0 to 1, of what the earlier head writes, W_A, and what this "
            f"one reads it by, W_B. Random matrices give about 1/√d_model, here {found.into.attrs['random']:.3f}; half "
            f"of all {len(found.into)} earlier heads are below {', '.join(lines)}. What stands out of that is what to "
            "look at."
        )


def _offer(found: ByWeights, trace: Trace, place: tuple[int, int]) -> None:
    name, origin = model_part(trace), trace.provenance.model
    tables = {
        "Circuits (CSV)": ("circuits", found.circuits, "What the weights tell of every head, as av.circuits has it"),
        "What it reads (CSV)": (
            f"compositions_{place[0]}.{place[1]}",
            found.into,
            "How much of what each earlier head writes this one reads, as av.compositions has it",
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
    """Draw the picker and open part; closed ones aren't computed."""
    widgets.show(
        st.segmented_control, "Open beneath", of=WHY_CHOICES, name="open", options=BENEATH, label_visibility="collapsed"
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


_SHOWN = {"layers": _show_layers, "weights": _show_by_weights}
