"""The Masks page's parts."""

import functools
import threading
from collections.abc import Hashable
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary, ref

import pandas
import streamlit as st

from attention_viz.analysis.measured import looks_back
from attention_viz.errors import AttentionVizError
from attention_viz.explorer.limits import LONGEST_DRAWN
from attention_viz.explorer.mask_payload import (
    CROSSING,
    TWO_TEXTS,
    Likelihood,
    MaskEffect,
    moved_of,
    pack_board,
    run_of,
)
from attention_viz.serving.runs import Run, fit, run_request
from attention_viz.trace.kind import CROSSING_STREAMS
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace
from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.pages.masks.board import show_board, show_masked_picture
from attention_viz.ui.pages.masks.page import MaskChoice, added_cells, edits, mask_of, takes_no_mask
from attention_viz.ui.pages.masks.words import (
    blocked_words,
    mask_words,
    other_layers_words,
    own_mask_words,
    silent_rows_words,
    slide_words,
    unfit_words,
)
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.downloads import show_downloads
from attention_viz.ui.parts.drawing import arrive, hold, show_cut, show_notes, show_problem
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.notices import tell
from attention_viz.ui.parts.predictions import likelier_at, predicted, title_of
from attention_viz.ui.parts.selection import pair_of, ran
from attention_viz.ui.presenting.host import present_change
from attention_viz.ui.runner.loading import study_as_it_is
from attention_viz.ui.runner.page import Part, Parts, Slots
from attention_viz.ui.selection import SHARED, Filled, Selection, resolve, update

# By the masked run: the compared run, the stream and the effect.
_kept: "WeakKeyDictionary[Trace, tuple[ref[Trace], str, MaskEffect]]" = WeakKeyDictionary()
_keeping = threading.Lock()
_FILE = "A trace from a file can't be rerun, so you see its masks but can't add one. Close it to add a mask."
_EMPTY = (
    "The second sentence is empty. Padding fills the shorter of two sentences in a batch. Type at least one word, or "
    "choose another mask."
)
study = study_as_it_is


def moved(before: "Trace", after: "Trace", stream: str) -> MaskEffect:
    """Cache `moved_of` by runs and stream: it is slow at 400 tokens."""
    with _keeping:
        kept = _kept.get(after)
    if kept is not None and kept[0]() is before and kept[1] == stream:
        return kept[2]
    found = moved_of(before, after, stream)
    with _keeping:
        _kept[after] = ref(before), stream, found
    return found


@dataclass
class _OnScreen:
    """The shown content: reserving its slot would shift it at each stroke."""

    run: Hashable = None


@dataclass(frozen=True, eq=False)
class MasksStudy:
    """A run with and without a mask.

    Attributes:
        after: the unmasked run if nothing was added.
        choice: none if it can't apply.
        shown: of a batch, the chosen row.
        locked: the reason; empty if paintable.
    """

    before: Run
    after: Run
    choice: MaskChoice
    shown: State
    beside: str | None
    locked: str


def load(state: State, slots: Slots) -> MasksStudy | None:
    """Run the sentence with and without the mask."""
    choice, place = mask_of(visit.here().selection), slots.picture.place
    if unfit := unfit_words(state, choice):
        tell(unfit, loud=True, short="Mask left out")
        choice = MaskChoice("none", weights=choice.weights)
    if choice.batched and not choice.batch.strip():
        place.error(_EMPTY)
        return None
    arrive(state)
    if (file := opening.opened()) is not None:
        alone = file.alone(state.stream)
        place.empty()
        return MasksStudy(alone, alone, choice, state, None, _FILE)
    run = replace(state, layer=0, head=0, query=None, key=None), choice.batch if choice.batched else None
    on_screen = visit.memory(_OnScreen)
    if on_screen.run != run:
        hold(state, place, slots.height)
    try:
        shown, beside = _row(state, choice)
        before = run_request(shown.request, beside=beside)
    except AttentionVizError as error:
        show_problem(error, place)
        return None
    on_screen.run = run
    with slots["notes"]:
        after = _masked(before, shown, beside, choice)
    if after is None:
        # The matrix stays there, so that another mask can be chosen.
        choice, after = MaskChoice("none", weights=choice.weights), before
    # Empty the placeholder as a whole: of a replaced block, some elements would remain.
    place.empty()
    return MasksStudy(before, after, choice, shown, beside, _locked(state))


def _locked(state: State) -> str:
    """Return the reason if nothing can be drawn."""
    if not takes_no_mask(state):
        return ""
    return TWO_TEXTS if state.facts.is_encoder_decoder else CROSSING


def settle(selection: Selection, study: MasksStudy) -> Selection:
    """Select the unmasked run's best finding unless a head was chosen; beside cross-attention in the same stream."""
    facts, stream = ran(study.before), selection.shared.stream
    if "cross" in facts.counts and stream != "cross":
        facts = replace(facts, best=lambda: next((one for one in study.before.findings if one.stream == stream), None))
    selection = resolve(selection, facts)
    return _most_moved(selection, study) if study.choice.batched and selection.head_is_free else selection


def _most_moved(selection: Selection, study: MasksStudy) -> Selection:
    """Select the head that padding's mask moves most: findings are of words, which may give padding nothing."""
    stream = study.before.stream(selection.shared.stream)
    heads = moved(study.before.drawn, study.after.drawn, stream).heads
    numbers = study.before.drawn.layer_numbers(stream)
    places = [(layer, head) for layer, row in zip(numbers, heads, strict=True) for head in range(len(row))]
    sizes = [one or 0.0 for row in heads for one in row]
    if not any(sizes):
        return selection
    layer, head = places[sizes.index(max(sizes))]
    return update(selection, Filled(SHARED, {"layer": layer, "head": head, "query": None, "key": None}))


def view(study: MasksStudy, selection: Selection) -> Parts:
    """Return the page's parts."""
    state = replace(selection.shared, second=study.shown.second, more=0)
    stream = study.before.stream(state.stream)
    back = looks_back(study.before.trace, stream)
    parts = [
        Part("notes", functools.partial(_show_notes, study, selection.shared)),
        Part("board", functools.partial(_show_board, study, state)),
        Part("below", functools.partial(_show_words, study, state, back=back)),
    ]
    if study.choice.mask != "none" and study.after is not study.before:
        parts.append(Part("below", functools.partial(_show_tables, study, stream)))
    return Parts(
        parts,
        exports=functools.partial(
            show_downloads, study.after.trace, study.after.stream(state.stream), state.layer, state.head
        ),
        # Slides speak of softmax weights.
        slides=None
        if study.before.mixes(stream)
        else functools.partial(
            present_change, study.before, study.after, state, slide_words(study.choice, looks_back=back)
        ),
        runs=[("", study.after)],
    )


def _show_notes(study: MasksStudy, chosen: State) -> None:
    show_notes(study.before, study.shown)
    if study.beside is not None and (other := fit(study.shown.request, study.beside)).cut:
        show_cut(other, study.shown, "The other sentence has")
    if chosen.more and chosen.facts.continues_text:
        tell("Only your text is masked; tokens that the model generated are left out here.")
    if study.before.fit is None:
        tell(_FILE)


def _show_tables(study: MasksStudy, stream: str) -> None:
    before = study.before.drawn
    effect = moved(before, study.after.drawn, stream)
    of_what = "share of size" if stream in before.mixers else "weight"
    with st.expander("Show tables"):
        st.caption(
            "Output moved: $\\lVert \\text{after} - \\text{before} \\rVert / \\lVert \\text{before} \\rVert$, the "
            f"relative change of each token's output vector. Weight moved: the {of_what} that a token's cells lost, "
            "$\\sum_j \\max(A^{\\text{before}}_{ij} - A^{\\text{after}}_{ij}, 0)$, averaged over the tokens; 0 is "
            "unchanged, 1 is everything elsewhere. Later layers change even without blocked cells, because their input "
            "changed."
        )
        labels = before.query_tokens(before.streams[-1]).names
        outputs = pandas.DataFrame({"token": labels, "output moved": effect.outputs})
        left, right = st.columns([1, 2])
        left.dataframe(outputs, key="outputs-table")
        columns = [f"head {number}" for number in range(len(effect.heads[0]))]
        index = [f"layer {number}" for number in range(len(effect.heads))]
        # A head that a layer doesn't have stays empty.
        right.dataframe(pandas.DataFrame(effect.heads, columns=columns, index=index, dtype=float), key="heads-table")


def _row(state: State, choice: MaskChoice) -> tuple[State, str | None]:
    if not choice.batched:
        return state, None
    rows = (state.text, choice.batch)
    if (fit(state.request, rows[0]).count > fit(state.request, rows[1]).count) == (choice.row == "shorter"):
        rows = rows[::-1]
    return replace(state, text=rows[0]), rows[1]


def _masked(before: Run, state: State, beside: str | None, choice: MaskChoice) -> Run | None:
    """Return the run with the mask; None after a problem, shown on the page."""
    stream = before.stream(state.stream)
    tokens = before.trace.query_tokens(stream)
    if choice.mask == "drawn" and len(tokens) > LONGEST_DRAWN:
        tell(_too_long(tokens), loud=True, short="Too long to paint")
        return None
    try:
        if before.mixes(stream) and any(one.mixer.per == "channel" for one in before.trace.mixers[stream]):
            choice = replace(choice, in_head=None)
        added = edits(choice, tokens, stream if before.several else None)
        return run_request(state.request, beside=beside, edits=added) if added else before
    except AttentionVizError as error:
        show_problem(error, st.empty())
        return None


def _too_long(tokens: Tokens) -> str:
    return (
        f"You can paint cells for up to {LONGEST_DRAWN} tokens. This text has {len(tokens)}, so nothing is blocked. "
        "Shorten it, or choose another mask."
    )


def _show_board(study: MasksStudy, state: State) -> None:
    before, after, choice, locked = study.before, study.after, study.choice, study.locked
    stream = before.stream(state.stream)
    # Of layers with a matrix per channel, all channels together.
    pair = before.drawn, after.drawn
    layer, head = Run(pair[0]).place(stream, state.layer, state.head)
    tokens, keys = before.trace.query_tokens(stream), before.trace.key_tokens(stream)
    places = [] if before.fit is None else predicted(before, after, state)[:1]
    likelier = [Likelihood(*one) for place in places for one in likelier_at(before, after, state, place)]
    place = show_masked_picture(before, after, state, choice)
    fits = state.query is not None and state.key is not None and state.query < len(tokens) and state.key < len(keys)
    elsewhere = next((one for one in before.trace.attention_streams if one not in CROSSING_STREAMS), "")
    with place:
        show_board(
            pack_board(pair[0], stream, layer, head),
            added_cells(choice, tokens) if len(tokens) == len(keys) else None,
            choice,
            (layer, head),
            (state.query, state.key) if fits else (None, None),
            pair_of(before, state),
            run_of(*pair, stream, layer, head, likelier, moved(*pair, stream)),
            locked=locked or (_too_long(tokens) if len(tokens) > LONGEST_DRAWN else ""),
            predicts=title_of(before.trace, places[0]) if places else "",
            elsewhere=elsewhere if locked in (TWO_TEXTS, CROSSING) else "",
        )


def _show_words(study: MasksStudy, state: State, *, back: bool) -> None:
    choice, before, after = study.choice, study.before.alone(state.stream), study.after.alone(state.stream)
    stream, traces = before.stream(state.stream), (before.drawn, after.drawn)
    layer, head = Run(traces[0]).place(stream, state.layer, state.head)
    st.caption(plain(own_mask_words(before.trace, layer, head, stream)))
    if others := other_layers_words(before.trace, stream):
        st.caption(plain(others))
    if after.trace is before.trace and choice.mask == "none":
        return
    words = blocked_words(*traces, layer, head, choice, stream)
    st.caption(plain(f"{mask_words(choice, looks_back=back)} {words}".strip()))
    if silent := silent_rows_words(traces[1], layer, head, stream):
        st.markdown(plain(silent))
