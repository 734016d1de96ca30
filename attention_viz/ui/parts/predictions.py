"""Words before and after a change, and words that the head promotes or suppresses."""

from collections.abc import Iterable, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.analysis.measured import word_stream
from attention_viz.analysis.words import token_named
from attention_viz.edits.effects import likelier, moved_output
from attention_viz.serving.runs import Run, ask, candidates
from attention_viz.serving.why import effect_written, words_written
from attention_viz.trace.spelling import set_apart, weight_text
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace
from attention_viz.ui.address import State
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.selection import pair_of
from attention_viz.views.style.wording import shortened, with_minus

# The most predictions shown for a text with many masks; Python has the others.
_MOST_PLACES = 3
# A longer text is explained on the Why page only, on request.
_LONGEST = 256
_HELP = (
    "How much this head's output adds to each word's logit, relative to the mean over all words: the largest gains and "
    "losses. This is the direct effect in this text, with norms and patterns held fixed. Weights alone don't show "
    "which heads copy: in SmolLM2, the two have a correlation of 0.15. A token such as ⟨95⟩ is a byte of a character."
)


def predicted(before: Run, after: Run, state: State) -> list[int]:
    """Return the predictions' positions: last token or masks; none without predictions.

    For an encoder–decoder: the step whose output moved most, else the chosen pair's.
    """
    if state.facts.is_encoder_decoder and state.facts.predicts:
        moved = moved_output(before.trace, after.trace)
        of_decoder = before.stream(state.stream) in ("decoder", "cross")
        return [int(moved.argmax()) if moved.any() or not of_decoder else pair_of(before, state)[0]]
    return list(candidates(state.request, before.trace, 1))[:_MOST_PLACES]


def show_likelier(before: Run, after: Run, state: State, places: Sequence[int]) -> None:
    """Draw both runs' likeliest tokens per position."""
    for place in places:
        st.markdown(f"**{plain(title_of(before.trace, place))}**")
        st.markdown(_table(likelier_at(before, after, state, place)))


def title_of(trace: Trace, place: int) -> str:
    """Describe a position's prediction."""
    label = set_apart(_tokens(trace).names[place])
    if trace.attention_streams == ("encoder",):
        return f"Prediction at {label} (position {place})"
    return f"Next token after “{label}” (position {place})"


def likelier_at(before: Run, after: Run, state: State, place: int) -> list[tuple[str, float, float]]:
    """Return the likeliest tokens' probabilities before and after."""
    found = likelier(before.trace, after.trace, place)
    labels = ask(state.request, lambda model: model.labels([number for number, *_ in found]))
    return [(_tokens(before.trace).write(label), old, new) for label, (_, old, new) in zip(labels, found, strict=True)]


def _tokens(trace: Trace) -> Tokens:
    return trace.query_tokens("decoder" if "decoder" in trace.attention_streams else word_stream(trace))


def _table(rows: Sequence[tuple[str, float, float]]) -> str:
    lines = [f"| {plain(shortened(label))} | {weight_text(old)} | {weight_text(new)} |" for label, old, new in rows]
    return "\n".join(["| token | before | after |", "|---|---:|---:|", *lines])


def hold_writes(run: Run, state: State) -> DeltaGenerator | None:
    """Reserve three lines; none for long texts and rows without words."""
    stream = run.stream(state.stream)
    can_write = run.fit is not None and not state.own and state.facts.predicts and not state.shown
    read_alone = stream == "encoder" and state.facts.is_encoder_decoder
    if not can_write or read_alone or len(run.trace.query_tokens(stream)) > _LONGEST:
        return None
    with st.container(key="head-writes"):
        return st.empty()


def show_writes(place: DeltaGenerator | None, run: Run, state: State, position: int) -> None:
    """Fill the slot last, since it opens the run."""
    if place is None:
        return
    stream = run.stream(state.stream)
    head = run.place(stream, state.layer, state.head)
    promoted, suppressed = words_written(run, state.request, stream, head, position)
    if not promoted:
        place.caption("This head has no direct effect on any word; later layers read its output.")
        return
    lines = [f"Promotes: {_listed(promoted)}", f"Suppresses: {_listed(suppressed)}"]
    effect = effect_written(run, state.request, stream, head, position) if stream == "decoder" else None
    if effect is not None:
        on = f"“{set_apart(shortened(effect.word))}” over “{set_apart(shortened(effect.rival))}”"
        after = token_named(run.trace.query_tokens(stream), position)
        number = with_minus(f"{effect.number:+.2f}")
        lines.insert(0, f"After {after}, on {on}: {number}. Largest effects on all words:")
    place.caption("  \n".join(map(plain, lines)), help=_HELP)


def _listed(words: Iterable[str]) -> str:
    """Quote and join words; right-to-left ones keep their order."""
    return ", ".join(f"“{set_apart(word)}”" for word in words)
