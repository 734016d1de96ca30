"""What if the chosen head were changed: the change runs in the model, and beside it stands the same for other heads."""

from typing import TYPE_CHECKING, Any

import streamlit as st

from attention_viz.errors import AttentionVizError
from attention_viz.ui.heads_choice import PREFIX
from attention_viz.ui.markdown import plain
from attention_viz.ui.serving import Drawn, candidates, draw, run_once
from attention_viz.ui.state import State
from attention_viz.ui.themes import theme_name

if TYPE_CHECKING:
    import pandas

    from attention_viz.edits import Edit
    from attention_viz.trace import Trace

__all__ = ["EDITS", "show_what_if"]

# What can be done to a head, by its name in the address.
EDITS = {
    "none": "nothing",
    "zero": "it says nothing (output 0)",
    "mean": "it always says its average",
    "sharp": "it looks more sharply (temperature ½)",
    "even": "it looks more evenly (temperature 2)",
}

_HEIGHT = 330
_CONFIG: dict[str, Any] = {"displaylogo": False, "displayModeBar": False}


def show_what_if(drawn: Drawn, state: State, edit: str) -> None:
    """The picker, and what follows from the change."""
    st.markdown("##### What if this head were changed?")
    if drawn.fit is None or state.own:
        st.caption("A change runs inside a pretrained model: choose one, and close an open trace.")
        return
    st.selectbox(
        "Change", list(EDITS), format_func=EDITS.__getitem__, key=f"{PREFIX}edit", width=320, persist_state="session"
    )
    if edit == "none":
        st.caption("Choose a change: the model runs with it, and what moves is shown beside the other heads' share.")
        return
    stream = drawn.stream(state)
    try:
        after = draw(state, edits=(_edit(edit, state.layer, state.head, drawn, stream),))
        moved = _moved(drawn, state, edit, stream)
    except AttentionVizError as error:
        st.info(plain(str(error)[:1].upper() + str(error)[1:]))
        return
    _show(drawn, after, state, moved, stream)
    _offer_all(drawn, state, edit, moved)


def _edit(name: str, layer: int, head: int, drawn: Drawn, stream: str) -> "Edit":
    from attention_viz.edits import Ablate, Temperature

    where = stream if len(drawn.trace.streams) > 1 else None
    if name in ("sharp", "even"):
        return Temperature(0.5 if name == "sharp" else 2.0, layer, head, where)
    return Ablate(layer, head, "zero" if name == "zero" else "mean", where)


def _wish(state: State, edit: str) -> tuple[object, ...]:
    """What the effects belong to: all but the head that is chosen."""
    return state.model, state.text, state.second, state.target, state.special, state.chat, state.stream, edit


def _moved(drawn: Drawn, state: State, edit: str, stream: str) -> "pandas.Series":
    """How far the output moves for each head of the layer; for all, where that was asked for before."""
    import pandas

    kept = st.session_state.get(f"{PREFIX}effects")
    if kept is not None and kept[0] == _wish(state, edit):
        return kept[1]
    heads = [(state.layer, head) for head in range(drawn.trace.head_count(state.layer, stream))]
    found = {head: _effect(drawn, state, edit, head, stream) for head in heads}
    return pandas.Series(found, dtype="float64")


def _effect(drawn: Drawn, state: State, edit: str, head: tuple[int, int], stream: str) -> float:
    from attention_viz.changes import moved_output

    after = run_once(state, (_edit(edit, *head, drawn, stream),))
    return float(moved_output(drawn.trace, after).mean())


def _show(drawn: Drawn, after: Drawn, state: State, moved: "pandas.Series", stream: str) -> None:
    """The change in a sentence, per token, and beside the same change of the other heads."""
    from attention_viz.views import changed_outputs, head_effects

    theme, here = theme_name(), float(moved.loc[(state.layer, state.head)])
    rank = int((moved > here).sum()) + 1
    words = (
        f"With this change of layer {state.layer}, head {state.head}, the output moves by {here:.2%} of its length, on "
        f"average over the tokens: number {rank} of the {len(moved)} heads tried."
    )
    st.markdown(plain(" ".join([words, _guesses(drawn.trace, after.trace, state)])))
    left, right = st.columns(2)
    chosen = (state.layer, state.head)
    figures = (
        (left, "effects", head_effects(drawn.trace, moved, stream, chosen=chosen, theme=theme), words),
        (right, "outputs", changed_outputs(drawn.trace, after.trace, theme=theme), "How far each token's output moved"),
    )
    for place, key, figure, said in figures:
        figure.update_layout(height=_HEIGHT)
        place.plotly_chart(figure, theme=None, key=f"what-if-{key}", config=_CONFIG, alt=said)


def _guesses(before: "Trace", after: "Trace", state: State) -> str:
    """What the model takes to be likeliest, before and after; nothing for one that predicts nothing."""
    told: list[str] = []
    changed = candidates(state, after, 1)
    for place, likely in candidates(state, before, 1).items():
        old, new = likely.iloc[0], changed[place].iloc[0]
        told.append(
            f"Likeliest was “{old['token']}” ({old['probability']:.3f}) and is now “{new['token']}” "
            f"({new['probability']:.3f})."
        )
    return " ".join(told)


def _offer_all(drawn: Drawn, state: State, edit: str, moved: "pandas.Series") -> None:
    """The same change for every head of the model in turn, when somebody asks; a click elsewhere stops it."""
    import pandas

    stream = drawn.stream(state)
    layers = range(drawn.trace.layer_count(stream))
    heads = [(layer, head) for layer in layers for head in range(drawn.trace.head_count(layer, stream))]
    if len(moved) == len(heads):
        return
    if not st.button(f"Which heads matter here? Try all {len(heads)}"):
        return
    st.button("Stop")
    bar, found = st.progress(0.0), dict[tuple[int, int], float]()
    for done, head in enumerate(heads):
        bar.progress(done / len(heads), f"Layer {head[0]}, head {head[1]}")
        found[head] = _effect(drawn, state, edit, head, stream)
    st.session_state[f"{PREFIX}effects"] = (_wish(state, edit), pandas.Series(found, dtype="float64"))
    st.rerun()
