"""The Why page's body: a number of the run, what wrote it, and what becomes of it without its largest heads."""

import functools
from dataclasses import dataclass

import streamlit as st

from attention_viz.analysis.slides import PutIn, Wrote
from attention_viz.errors import AttentionVizError
from attention_viz.explorer.why_payload import Question, largest_heads, name_of, pack_why
from attention_viz.models.circuits.asked import Score
from attention_viz.serving.patches import Patched
from attention_viz.serving.runs import Drawn
from attention_viz.serving.verifying import verify
from attention_viz.serving.why import Written, words_written, written
from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.pages.why.asking import Asked, ask_pair, ask_word
from attention_viz.ui.pages.why.beneath import show_beneath
from attention_viz.ui.pages.why.board import asked_number, chosen_head, show_why, tell_writes
from attention_viz.ui.pages.why.choice import ASKED, WHY_CHOICES
from attention_viz.ui.pages.why.patching import ask_other, put_all
from attention_viz.ui.pages.why.places import Places
from attention_viz.ui.pages.why.silencing import Silenced, pick_ranked, silence_all, silence_largest
from attention_viz.ui.pages.why.taking import offer_rows
from attention_viz.ui.parts import open_trace
from attention_viz.ui.parts.badge import Badge
from attention_viz.ui.parts.downloads import show_downloads
from attention_viz.ui.parts.drawing import draw_in_place, show_notes, show_problem
from attention_viz.ui.parts.markdown import as_sentence, plain
from attention_viz.ui.parts.notices import tell
from attention_viz.ui.parts.selection import settle_selection, take_head
from attention_viz.ui.presenting.host import present_written
from attention_viz.ui.selection import SHARED

__all__ = ["show_body"]


@dataclass(frozen=True)
class _Opened:
    """A number that is on the screen.

    Attributes:
        found: what wrote it.
        wrote: the head that wrote most of it.
        silenced: what its heads are silenced by.
        largest: the heads that are silenced unasked: those that wrote most, and the one that is told of.
    """

    found: Written
    wrote: Wrote | None = None
    silenced: Silenced | None = None
    largest: tuple[tuple[int, int], ...] = ()


def show_body(chosen: State, state: State, places: Places, height: int) -> None:
    """Run the sentence, open the number that is asked for, and fill the places.

    Args:
        chosen: what the pickers say.
        state: the same, without what a decoder would go on by.
        places: a place for each part of the page.
        height: of the picture, in pixels.
    """
    settle = functools.partial(settle_selection, state=state, own_head=True)
    drawn = draw_in_place(state, places.picture, height, keep=True, settle=settle)
    opened: _Opened | None = None
    if drawn is not None:
        with places.notes:
            show_notes(drawn, state)
            if chosen.more and chosen.facts.continues_text:
                tell("Only what you typed is asked about: the tokens that the model added are left out here.")
        try:
            if untold := _untold(drawn, state):
                _tell_untold(untold, drawn, places)
            else:
                opened = _show(drawn, state, places, _ask(drawn, state, places))
        except AttentionVizError as error:
            show_problem(error, places.picture)
    pickers.keep(chosen, WHY_CHOICES)
    if drawn is None:
        return
    with places.bar:
        rows = (lambda: None) if opened is None else functools.partial(offer_rows, drawn.trace, opened.found)
        show_downloads(drawn.trace, drawn.stream(state.stream), state.layer, state.head, first=rows)
        badge = Badge()
    if drawn.fit is not None:
        verify(drawn)
    badge.show(drawn.trace, from_file=drawn.fit is None)
    puts = visit.chosen(WHY_CHOICES).ranked == "put"
    # The slide of heads of another text waits for their runs; the others wait for nothing.
    if not puts:
        _present(drawn, state, opened)
    if not _untold(drawn, state):
        show_beneath(drawn, state, places.beneath)
    # Last, since of a long text it takes the longest.
    found = None if opened is None else _silence(opened, places)
    if puts:
        _present(drawn, state, opened, found)


def _silence(opened: _Opened, places: Places) -> Patched | None:
    """What becomes of the number without heads, and with another text's; None where none is put."""
    silenced = opened.silenced
    if silenced is None:
        return None
    _tell_words(silenced, places)
    with places.board:
        try:
            silence_largest(silenced, opened.largest)
        except AttentionVizError as error:
            st.caption(plain(as_sentence(str(error))))
            return None
    silence_all(silenced, places)
    return put_all(silenced, places)


def _present(drawn: Drawn, state: State, opened: _Opened | None, found: Patched | None = None) -> None:
    """Hand over the slides: of the head that wrote most, and of the head of another text that changes most."""
    wrote = None if opened is None else opened.wrote
    put: PutIn | None = None
    if found is not None and wrote is not None:
        changes = {head: number - found.number for head, number in found.known.items()}
        whole = len(found.runs) == len(found.estimates)
        put = PutIn(wrote.name, found.number, visit.chosen(WHY_CHOICES).put_from, changes, whole)
    present_written(drawn, state, wrote, put)


def _tell_words(of: Silenced, places: Places) -> None:
    """Tell which next words the head that is told of writes for; of a score that isn't what is asked."""
    if isinstance(of.of, Score):
        return
    stream = of.drawn.stream(of.state.stream)
    words = words_written(of.drawn, of.state.request, stream, of.place, of.of.position)
    with places.board:
        tell_writes(of.name, of.place, words)


def _tell_untold(untold: str, drawn: Drawn, places: Places) -> None:
    """Say why nothing can be opened, and where a file is in the way, how to be rid of it."""
    with places.picture.container():
        st.info(untold)
        if drawn.fit is None:
            open_trace.offer_closing("why-close")


def _untold(drawn: Drawn, state: State) -> str:
    """Why nothing can be opened; empty where something can."""
    if drawn.fit is None:
        return "A trace from a file can't be run again, and who wrote a number is asked of a model: close it."
    if state.own:
        return (
            "Our own module has random weights: nobody trained them to say anything. Choose a model that was trained."
        )
    return ""


def _ask(drawn: Drawn, state: State, places: Places) -> Asked:
    words = drawn.fit is not None and state.facts.predicts
    with places.asked:
        if words:
            pickers.switch("Which number", ASKED, WHY_CHOICES, "why")
    with places.ranked:
        pick_ranked()
    ask_other(places)
    with places.asked:
        choice = visit.chosen(WHY_CHOICES)
        if words and choice.why == "word":
            return ask_word(drawn, state, choice)
        return ask_pair(drawn, state, choice)


def _show(drawn: Drawn, state: State, places: Places, asked: Asked) -> _Opened:
    stream = drawn.stream(state.stream)
    found = written(drawn, state.request, asked.of)
    question = Question(asked.more, asked.less, found.total, found.remainder, stream, asked.at, asked.side)
    place = _place(drawn, state, found, asked)
    named = stream if len(drawn.trace.streams) > 1 else None
    packed = pack_why(drawn.trace, question, found.table, found.fetched)
    places.picture.empty()
    with places.board:
        show_why(packed, place, visit.chosen(WHY_CHOICES).ranked, _take_head, _take_number)
        listed = largest_heads(found.table, asked.side, stream=named)
        if not listed:
            return _Opened(found)
        layer, head, contribution = listed[0]
        name = f"{asked.more} over {asked.less}" if asked.less else f"The score of {asked.more}"
        wrote = Wrote(stream, layer, head, asked.at, contribution, found.total, name)
        silenced = Silenced(drawn, state, asked.of, name_of(packed), place)
    largest = dict.fromkeys([*((layer, head) for layer, head, _ in listed), place])
    return _Opened(found, wrote, silenced, tuple(largest))


def _place(drawn: Drawn, state: State, found: Written, asked: Asked) -> tuple[int, int]:
    """The head that is told of. A next word's is that of all pages, and opens on the one that wrote most.

    A score's own head doesn't write it, so there it is one that was pressed, or the one that wrote most.
    """
    stream = drawn.stream(state.stream)
    named = stream if len(drawn.trace.streams) > 1 else None
    place = drawn.place(stream, state.layer, state.head)
    largest = next(((layer, head) for layer, head, _ in largest_heads(found.table, asked.side, 1, named)), place)
    if isinstance(asked.of, Score):
        return _writer(drawn, asked.of, stream) or largest
    if visit.here().selection.head_is_free and largest != place:
        visit.fill(SHARED, layer=largest[0], head=largest[1])
        # The pickers are drawn already: they show it in the next run.
        visit.run_again()
    return place


def _writer(drawn: Drawn, of: Score, stream: str) -> tuple[int, int] | None:
    """Return the head that was chosen of those before the score's own; None if there is none."""
    choice = visit.chosen(WHY_CHOICES)
    layer, head = choice.writer_layer, choice.writer_head
    if layer is None or head is None:
        return None
    if layer not in drawn.trace.layer_numbers(stream) or layer >= of.layer:
        return None
    return (layer, head) if head < drawn.trace.head_count(layer, stream) else None


def _take_number() -> None:
    """The number that was asked for in the story: the score of a pair, or the other side of it."""
    asked = asked_number()
    if "side" in asked:
        visit.pick(WHY_CHOICES, side=asked["side"])
    elif "pair" in asked:
        layer, head, query, key = asked["pair"]
        take_head(layer, head, pair=(query, key))
        visit.pick(WHY_CHOICES, why="pair", side="key")


def _take_head() -> None:
    """The head that was chosen is the one of all pages; of a score it is told of here alone."""
    head = chosen_head()
    if head is None:
        return
    if visit.chosen(WHY_CHOICES).why == "word":
        take_head(*head)
    else:
        visit.pick(WHY_CHOICES, writer_layer=head[0], writer_head=head[1])
