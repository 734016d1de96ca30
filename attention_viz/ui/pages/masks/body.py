"""The Masks page's body: who may look at whom, chosen or painted, and what follows from it inside the model."""

from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.analysis.row_weights import looks_back
from attention_viz.errors import AttentionVizError
from attention_viz.explorer.mask_payload import Likelihood, pack_board, run_of
from attention_viz.serving.runs import Drawn, draw, fit
from attention_viz.serving.verifying import verify
from attention_viz.trace.tokens import Tokens
from attention_viz.ui.address import State
from attention_viz.ui.address.cells import LONGEST_DRAWN
from attention_viz.ui.pages.masks.board import show_board
from attention_viz.ui.pages.masks.choice import MaskChoice, added_cells, edits
from attention_viz.ui.pages.masks.consequences import show_tables
from attention_viz.ui.pages.masks.picture import show_masked_picture
from attention_viz.ui.pages.masks.places import HEIGHT, Places
from attention_viz.ui.pages.masks.results import moved
from attention_viz.ui.pages.masks.words import (
    blocked_words,
    mask_words,
    own_mask_words,
    silent_rows_words,
    slide_words,
    unfit_words,
)
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.badge import Badge
from attention_viz.ui.parts.downloads import show_downloads
from attention_viz.ui.parts.drawing import arrive, hold, show_cut, show_notes, show_problem
from attention_viz.ui.parts.likelier import likelier_at, predicted, title_of
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.notices import tell
from attention_viz.ui.presenting.host import present_change

__all__ = ["show_body"]

_FILE = "A trace from a file can't be run again: its masks can be seen, and none can be added. Close it to add one."


def show_body(choice: MaskChoice, chosen: State, places: Places) -> None:
    """Run the sentence with and without the mask, and fill the places.

    Args:
        choice: the mask.
        chosen: what the pickers say.
        places: where each part stands.
    """
    state = replace(chosen, more=0)
    locked = unfit_words(state, choice)
    if locked:
        tell(locked, loud=True, short="Mask left out")
        choice = MaskChoice("none", weights=choice.weights)
    if choice.batched and not choice.batch.strip():
        places.pictures.error(
            "The second sentence is empty. Padding fills up the shorter of two sentences in a batch: type at least one "
            "word into it, or choose another mask."
        )
        return
    run = _unmasked(state, choice, places.pictures)
    if run is None:
        return
    before, shown, beside = run
    with places.notes:
        show_notes(before, shown)
        if beside is not None and (other := fit(state.request, beside)).cut:
            show_cut(other, state, "The other sentence has")
        if chosen.more and chosen.facts.continues_text:
            tell("Only what you typed is masked: the tokens that the model added are left out here.")
        after = _masked(before, shown, beside, choice)
    if after is None:
        # The matrix stays there, so that another mask can be chosen.
        choice, after = MaskChoice("none", weights=choice.weights), before
    badge = _show_bar(places.bar, after, state)
    # What kept the place is taken away as a whole: of a block in its stead, some would remain.
    places.pictures.empty()
    with places.board:
        _show_board(before, after, state, choice, locked or (_FILE if before.fit is None else ""))
    back = looks_back(before.trace, before.stream(state.stream))
    _show_words(before.alone(state.stream), after.alone(state.stream), state, choice, back=back)
    if choice.mask != "none" and after is not before:
        stream = before.stream(state.stream)
        show_tables(before.trace, moved(before.trace, after.trace, stream))
    present_change(before, after, state, slide_words(choice, looks_back=back))
    if after.fit is not None:
        verify(after)
    badge.show(after.trace, from_file=after.fit is None)


def _show_bar(bar: DeltaGenerator, after: Drawn, state: State) -> Badge:
    """The badge, which says for now that it is being worked out, and what can be taken away."""
    with bar:
        show_downloads(after.trace, after.stream(state.stream), state.layer, state.head)
        return Badge()


def _unmasked(state: State, choice: MaskChoice, place: DeltaGenerator) -> tuple[Drawn, State, str | None] | None:
    """The run without the mask, the sentence that is shown of it, and the other one of its batch.

    None where there was a problem, which is told in the place that was kept.
    """
    arrive(state)
    if (open_trace := opening.opened()) is not None:
        return open_trace.alone(state.stream), state, None
    run = replace(state, layer=0, head=0, query=None, key=None), choice.batch if choice.batched else None
    # What is on the screen already stays there: to keep its place would push it down for a moment, at each stroke.
    if st.session_state.get("masks-run") != run:
        hold(state, place, HEIGHT)
    try:
        shown, beside = _row(state, choice)
        drawn = draw(shown.request, beside=beside)
    except AttentionVizError as error:
        show_problem(error, place)
        return None
    st.session_state["masks-run"] = run
    return drawn, shown, beside


def _row(state: State, choice: MaskChoice) -> tuple[State, str | None]:
    """The sentence that is shown, and the other one of its batch."""
    if not choice.batched:
        return state, None
    rows = (state.text, choice.batch)
    if (fit(state.request, rows[0]).count > fit(state.request, rows[1]).count) == (choice.row == "shorter"):
        rows = rows[::-1]
    return replace(state, text=rows[0]), rows[1]


def _masked(before: Drawn, state: State, beside: str | None, choice: MaskChoice) -> Drawn | None:
    """The run with the mask; None where it can't be made, which is told."""
    if before.fit is None:
        tell(_FILE)
        return before
    stream = before.stream(state.stream)
    tokens = before.trace.query_tokens(stream)
    if choice.mask == "drawn" and len(tokens) > LONGEST_DRAWN:
        tell(_too_long(tokens), loud=True, short="Too long to paint")
        return None
    try:
        added = edits(choice, tokens, stream if len(before.trace.streams) > 1 else None)
        return draw(state.request, beside=beside, edits=added) if added else before
    except AttentionVizError as error:
        show_problem(error, st.empty())
        return None


def _too_long(tokens: Tokens) -> str:
    return (
        f"Cells can be painted for texts of up to {LONGEST_DRAWN} tokens, and this one has {len(tokens)}: nothing is "
        "blocked. Shorten it, or choose another mask."
    )


def _show_board(before: Drawn, after: Drawn, state: State, choice: MaskChoice, locked: str) -> None:
    """The matrix, and beside it what the mask did."""
    stream = before.stream(state.stream)
    layer, head = before.place(stream, state.layer, state.head)
    tokens, keys = before.trace.query_tokens(stream), before.trace.key_tokens(stream)
    places = [] if before.fit is None else predicted(before, after, state)[:1]
    likelier = [Likelihood(*one) for place in places for one in likelier_at(before, after, state, place)]
    place = show_masked_picture(before, after, state, choice)
    fits = state.query is not None and state.key is not None and state.query < len(tokens) and state.key < len(keys)
    with place:
        show_board(
            pack_board(before.trace, stream, layer, head),
            added_cells(choice, tokens) if len(tokens) == len(keys) else None,
            choice,
            (layer, head),
            (state.query, state.key) if fits else (None, None),
            run_of(before.trace, after.trace, stream, layer, head, likelier, moved(before.trace, after.trace, stream)),
            locked=locked or (_too_long(tokens) if len(tokens) > LONGEST_DRAWN else ""),
            predicts=title_of(before.trace, places[0]) if places else "",
        )


def _show_words(before: Drawn, after: Drawn, state: State, choice: MaskChoice, *, back: bool) -> None:
    """What the colours can't say, of a model that looks back or to both sides."""
    st.caption(plain(own_mask_words(before.trace, state.layer, state.head)))
    if after.trace is before.trace and choice.mask == "none":
        return
    words = blocked_words(before.trace, after.trace, state.layer, state.head, choice)
    st.caption(plain(f"{mask_words(choice, looks_back=back)} {words}".strip()))
    if silent := silent_rows_words(after.trace, state.layer, state.head):
        st.markdown(plain(silent))
