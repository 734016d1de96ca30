"""What becomes of the output without the head on the screen, told below the headline."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.analysis.words import quoted, token_named
from attention_viz.edits.effects import moved_output
from attention_viz.edits.kinds.ablation import Ablate
from attention_viz.errors import AttentionVizError
from attention_viz.serving.run import Request
from attention_viz.serving.runs import Run, run_request
from attention_viz.serving.settings import SETTINGS
from attention_viz.trace.spelling import SPACE, weight_text
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace
from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.parts.explorer import asked_page, show_channel
from attention_viz.ui.parts.markdown import as_sentence
from attention_viz.ui.parts.predictions import likelier_at, predicted, title_of
from attention_viz.ui.parts.selection import pair_of
from attention_viz.views.style.wording import share_text, shortened

# Parts of a sentence, each with its role.
Parts = list[tuple[str, str]]
# The request, the stream, and the layer and head.
_Place = tuple[Request, str, tuple[int, int]]


@dataclass
class _Asked:
    """The head that the visitor last asked about."""

    place: _Place | None = None


def answer_later(run: Run, state: State) -> Callable[[], None] | None:
    """Return what answers "Does it matter?", if the visitor asked it about the head on the screen."""
    stream = run.stream(state.stream)
    place = state.request, stream, run.place(stream, state.layer, state.head)
    asked = visit.memory(_Asked)
    if asked_page() == "matters":
        asked.place = place
    if asked.place != place or stream in run.trace.mixers:
        return None
    return functools.partial(_answer, st.empty(), run, state, place)


def _answer(slot: DeltaGenerator, run: Run, state: State, place: _Place) -> None:
    _, stream, (layer, head) = place
    try:
        parts = _without_head(run, state, stream, layer, head)
    except AttentionVizError as error:
        parts = [(as_sentence(str(error)), "")]
    outcome = {"stream": stream, "layer": layer, "head": head, "parts": parts}
    with slot:
        show_channel("explorer", "matters", about="matters", layer=layer, head=head, outcome=outcome)


def _without_head(run: Run, state: State, stream: str, layer: int, head: int) -> Parts:
    if run.fit is None:
        return [("A trace from a file can't be run again, so no head can be ablated.", "")]
    state = replace(state, more=0)
    before = run_request(state.request, longest=SETTINGS.longest_text)
    edit = Ablate(layer, head, stream=stream if run.several else None)
    after = run_request(state.request, edits=(edit,), longest=SETTINGS.longest_text)
    begins = (f"Without {layer}·{head}: ", "")
    if stream == "cross" and state.facts.is_encoder_decoder and state.facts.predicts:
        place = pair_of(before, state)[0]
        rows = likelier_at(before, after, state, place)
        return [begins, *about_word(before.trace.query_tokens(stream), place, rows[0][0]), *likelier_words(rows)]
    if not (places := predicted(before, after, state)):
        return [begins, *moved_words(before.trace, after.trace)]
    where = "" if state.facts.continues_text else f"{title_of(before.trace, places[0])}: "
    return [begins, (where, ""), *likelier_words(likelier_at(before, after, state, places[0]))]


def about_word(tokens: Tokens, place: int, likeliest: str) -> Parts:
    """Name the chosen word, unless it is the model's likeliest token."""
    if tokens.written[place] == likeliest:
        return []
    return [("in place of ", ""), (token_named(tokens, place), "query"), (", ", "")]


def likelier_words(rows: Sequence[tuple[str, float, float]]) -> Parts:
    """Tell the likeliest token's probability before and after, and the likeliest one now."""
    (was, old, new), now = rows[0], max(rows, key=lambda row: row[2])
    numbers = [weight_text(old), weight_text(new)]
    change = f" stays at {numbers[0]}" if numbers[0] == numbers[1] else f" {numbers[0]} → {numbers[1]}"
    parts = [(_quoted(was), "next"), (change, "")]
    return (
        parts if now[0] == was else [*parts, ("; now ", ""), (_quoted(now[0]), "next"), (f" {weight_text(now[2])}", "")]
    )


def moved_words(before: Trace, after: Trace) -> Parts:
    """Tell how far the output moves, and which token's moves most."""
    moved, tokens = moved_output(before, after), before.query_tokens(before.streams[0])
    mean = [("the output moves by ", ""), (share_text(float(moved.mean())), "")]
    counted = list(tokens.counted)
    if len(counted) < 2 or len(moved) != len(tokens):
        return mean
    most = max(counted, key=lambda at: float(moved[at]))
    named, share = token_named(tokens, most), share_text(float(moved[most]))
    return [*mean, (", most at ", ""), (named, "query"), (f": {share}", "")]


def _quoted(label: str) -> str:
    return quoted(shortened(label.strip(f"{SPACE} ") or label))
