"""Changes run inside the model, and their effects."""

import functools
from collections.abc import Callable
from dataclasses import replace

import pandas
import plotly.graph_objects as go
import streamlit as st

from attention_viz.analysis.signed import has_channels
from attention_viz.edits.change import Change
from attention_viz.edits.changes import EDITS, misfit, read_changes
from attention_viz.edits.effects import moved_output, moved_weight, output_table, weight_table
from attention_viz.errors import AttentionVizError
from attention_viz.serving.runs import Run, run_request
from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.controls.edits import made, show_edit_controls, show_edit_list
from attention_viz.ui.controls.edits_choice import current_edits
from attention_viz.ui.controls.plot import add_targets, show_picture, show_to_click
from attention_viz.ui.controls.sight import in_sight
from attention_viz.ui.pages.heads.choice import HEADS_CHOICES
from attention_viz.ui.pages.heads.numbers import Head, effects_of, heads_of, known_effects, offer_all
from attention_viz.ui.pages.heads.search import take_head
from attention_viz.ui.parts.exports import show_figure_exports
from attention_viz.ui.parts.layout import theme_name
from attention_viz.ui.parts.markdown import as_sentence, plain
from attention_viz.ui.parts.predictions import predicted, show_likelier
from attention_viz.views import changed_heads, changed_outputs, difference, head_effects
from attention_viz.views.figures.grids import is_turned
from attention_viz.views.style.axes import lower

_HEIGHT = 330
_OUTPUTS, _HEADS = "Output change per token", "Weight moved per head"


def show_what_if(run: Run, state: State, exports: list[Callable[[], object]]) -> None:
    """Show the changes and their effects."""
    if run.fit is None:
        st.caption("A trace from a file can't be run again. Close it to try a change.")
        return
    if state.more and state.facts.continues_text:
        st.caption("The change applies to the text that you typed, without the tokens that the model added.")
    try:
        state = replace(state, more=0)
        before = run_request(state.request)
        show_edit_controls(before, state, pattern=visit.chosen(HEADS_CHOICES).pattern)
        show_edit_list(before)
        edits = made(current_edits(), before, state)
        after = run_request(state.request, edits=edits) if edits else None
        if after is not None:
            _tell_changed(before, after, before.stream(state.stream), exports)
        if not in_sight("heads-what-if-sight", _HEIGHT):
            return
        if after is not None:
            _show_changed(before, after, state)
        places = [] if after is None else predicted(before, after, state)
        left, right = st.columns([1, 2.2]) if places else (st.empty(), st.container())
        if after is not None and places:
            with left:
                show_likelier(before, after, state, places)
        with right:
            _show_scale(before, state, exports)
    except AttentionVizError as error:
        st.info(as_sentence(str(error)))


def _tell_changed(before: Run, after: Run, stream: str, exports: list[Callable[[], object]]) -> None:
    moved = float(moved_output(before.trace, after.trace).mean())
    st.markdown(plain(f"With this change, the output moves by {moved:.2%} of its length, on average over the tokens."))
    exports += [
        functools.partial(
            show_figure_exports,
            "what-if-outputs",
            lambda: changed_outputs(before.trace, after.trace),
            lambda: output_table(before.trace, after.trace),
            after.trace,
            title=_OUTPUTS,
        ),
        functools.partial(
            show_figure_exports,
            "what-if-heads",
            lambda: changed_heads(before.drawn, after.drawn, stream),
            lambda: weight_table(before.drawn, after.drawn, stream),
            after.trace,
            stream=stream,
            title=_HEADS,
        ),
    ]


def _show_changed(before: Run, after: Run, state: State) -> None:
    theme, stream = theme_name(), before.stream(state.stream)
    layer, head = before.place(stream, state.layer, state.head)
    outputs, heads, here = st.columns(3)
    with outputs:
        _show(changed_outputs(before.trace, after.trace, theme=theme), "what-if-outputs", _OUTPUTS)
        st.caption("Relative change of each token's output vector: ‖after − before‖ / ‖before‖.")
    with heads:
        pair = before.drawn, after.drawn
        _show(changed_heads(*pair, stream, theme=theme), "what-if-heads", _HEADS)
        size = " of a row’s size" if before.mixes(stream) else ""
        st.caption(f"0: unchanged; 1: all weight{size} moved. Later layers change because their input changed.")
    if has_channels(before.trace, stream, layer):
        here.caption(f"Layer {layer} has a matrix per channel. The figure of all heads shows how much of it moved.")
        return
    row = before.trace.layer_numbers(stream).index(layer)
    share = float(moved_weight(*pair, stream)[row, head])
    if share:
        figure = difference(before.trace, after.trace, layer, head, stream, theme=theme)
        report = f"{share:.1%}" if share >= 0.001 else "less than 0.1%"
        what = "size" if before.mixes(stream) else "weight"
        with here:
            _show(figure, "what-if-here", f"Layer {layer}, head {head}: weights after − before")
        here.caption(f"The chosen head: {report} of its {what} moved. Purple gained weight, grey lost it.")
    else:
        here.caption(
            f"The weights of layer {layer}, head {head} are unchanged: its inputs didn't change, and ablation replaces "
            "a head's output, not its weights."
        )


def _show_scale(before: Run, state: State, exports: list[Callable[[], object]]) -> None:
    stream, chosen = before.stream(state.stream), before.place(state.stream, state.layer, state.head)
    last = _last(before, stream)
    if last is not None and last.layer is not None:
        chosen = (last.layer, chosen[1] if last.head is None else last.head)
    change = last or Change("zero")
    trace = before.drawn
    chosen = (chosen[0], min(chosen[1], trace.head_count(chosen[0], stream) - 1))
    every, layer = heads_of(before, stream), heads_of(before, stream, chosen[0])
    known = known_effects(before, change, stream)
    if last is not None:
        _ = effects_of(before, state, change, stream, layer)
    if last is None:
        st.caption("Nothing is changed yet. Add a change, or ablate each head in turn.")
    if not known:
        _offer_all(before, state, change, stream, every)
        return
    moved = pandas.Series({head: known[head] for head in every if head in known}, dtype="float64")
    words = _rank_words(moved, chosen, change)
    picture, description = st.columns([2, 1], vertical_alignment="center")
    figure = head_effects(trace, moved, stream, chosen=chosen, theme=theme_name())
    layers = sorted({layer for layer, _ in known})
    cells = [(layers.index(layer), head) for layer, head in known]
    heads = max(trace.head_count(layer, stream) for layer in layers)
    add_targets(figure, cells, turned=is_turned(len(layers), heads), size=18)
    lower(figure, _HEIGHT)
    with picture:
        show_to_click(figure, "what-if-effects", words, lambda cell: take_head((layers[cell[0]], cell[1])))
    with description:
        st.markdown(plain(words))
        st.caption("Each number is from a separate run that changes only that head. Click a head to choose it.")
        _offer_all(before, state, change, stream, every)
    exports.append(
        functools.partial(
            show_figure_exports,
            "what-if-effects",
            lambda: head_effects(trace, moved, stream, chosen=chosen),
            lambda: moved.rename_axis(["layer", "head"]).rename("moved").reset_index(),
            before.trace,
            stream=stream,
            title="Effect per head",
        )
    )


def _last(before: Run, stream: str) -> Change | None:
    here = [
        change
        for change in read_changes(current_edits())[0]
        if not misfit(change, before.trace) and (not before.several or (change.stream or stream) == stream)
    ]
    return here[-1] if here else None


def _rank_words(moved: pandas.Series, chosen: Head, change: Change) -> str:
    done = EDITS[change.what].short(change)
    if chosen not in moved.index:
        return f"Tested so far: {len(moved)} heads, each {done}."
    here = float(moved.loc[chosen])
    rank = int((moved > here).sum()) + 1
    layers = sorted(set(moved.index.get_level_values(0)))
    where = f"layer {layers[0]}" if len(layers) == 1 else f"layers {layers[0]} to {layers[-1]}"
    return (
        f"Only layer {chosen[0]}, head {chosen[1]}, {done}: the output moves by {here:.2%}. That is rank {rank} "
        f"of the {len(moved)} heads tested, in {where}."
    )


def _offer_all(before: Run, state: State, change: Change, stream: str, every: list[Head]) -> None:
    known = known_effects(before, change, stream)
    if any(head not in known for head in every):
        st.markdown("**Which heads matter?**")
        offer_all(before, state, change, {stream: every}, "Test all heads", "what-if")


def _show(figure: go.Figure, key: str, description: str) -> None:
    show_picture(lower(figure, _HEIGHT), key, description)
