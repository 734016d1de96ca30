"""The Why page's parts."""

import functools
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from attention_viz.analysis.slides import PutIn, Wrote
from attention_viz.circuits.asked import Score
from attention_viz.errors import AttentionVizError
from attention_viz.explorer.why_payload import (
    Question,
    largest_heads,
    layer_heads,
    name_of,
    pack_why,
    split_header,
    stream_of,
    streams_beside,
)
from attention_viz.serving.first_layer import Exchanged, exchange, is_first, prepared, split
from attention_viz.serving.runs import Run, candidates
from attention_viz.serving.why import Patched, WrittenNumber, words_written, written
from attention_viz.trace.slots import target_stream
from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.pages.compare.choice import contrast
from attention_viz.ui.pages.why.asking import (
    NamedNumber,
    WordQuestion,
    asked_number,
    chosen_head,
    pair_question,
    pick_side,
    pick_words,
    show_why,
    tell_exchanged,
    tell_prepared,
    tell_writes,
    typed_words,
    word_question,
)
from attention_viz.ui.pages.why.beneath import show_beneath
from attention_viz.ui.pages.why.page import ASKED, WHY_CHOICES, WhyChoice
from attention_viz.ui.pages.why.trying import (
    Silenced,
    ask_other,
    offer_rows,
    pick_ranked,
    put_all,
    silence_all,
    silence_largest,
)
from attention_viz.ui.parts import open_trace
from attention_viz.ui.parts.downloads import show_downloads
from attention_viz.ui.parts.drawing import show_notes
from attention_viz.ui.parts.markdown import as_sentence, plain
from attention_viz.ui.parts.notices import tell
from attention_viz.ui.parts.selection import ran, show_steps, take_head
from attention_viz.ui.presenting.host import present_written
from attention_viz.ui.runner.loading import load_text
from attention_viz.ui.runner.page import Part, Parts, Slots, raise_again
from attention_viz.ui.selection import SHARED, Filled, Selection, resolve, update

load = functools.partial(load_text, then="Computing each part’s contribution …")


@dataclass(frozen=True, eq=False)
class ShownNumber:
    """A shown number, its head, and the strongest writing heads."""

    asked: NamedNumber
    found: WrittenNumber
    packed: bytes
    place: tuple[int, int]
    largest: tuple[tuple[int, int, float], ...]

    @property
    def is_first(self) -> bool:
        """Whether no head came before, so that words and places explain it."""
        return is_first(self.found)


@dataclass(frozen=True, eq=False)
class WhyStudy:
    """A run and its opened number.

    Attributes:
        words: None for a score.
        number: an error if it can't open; None if nothing can.
    """

    run: Run
    slots: Slots
    words: WordQuestion | None = None
    number: ShownNumber | AttentionVizError | None = None


def why_not(run: Run, state: State) -> str:
    """Explain why no number can open; empty if one can."""
    if run.fit is None:
        return "This page needs to run the model, and a trace from a file has none. Close the file to continue."
    if state.own:
        return "Our own module has random weights and was never trained. Choose a trained model."
    if not state.facts.predicts and not run.trace.attention_streams:
        return "This model has no softmax, so no scores, and it predicts no words. Step by step explains its weights."
    return ""


def _asks_word(run: Run, state: State, choice: WhyChoice) -> bool:
    scores = run.stream(state.stream) in run.trace.attention_streams
    return run.fit is not None and state.facts.predicts and (choice.why == "word" or not scores)


def _predicts_here(run: Run, state: State) -> bool:
    """Return whether the text has a next or a masked word."""
    return state.facts.is_encoder_decoder or bool(candidates(replace(state, more=0).request, run.trace, 1))


def settle(selection: Selection, run: Run) -> Selection:
    """Select a head: a next word's strongest writer; for a score, the one that Explore opens on."""
    state = selection.shared
    word = not why_not(run, state) and _asks_word(run, state, selection.of(WHY_CHOICES))
    if word and not selection.part(WHY_CHOICES).chosen & {"why", "token"} and not _predicts_here(run, state):
        selection, word = update(selection, Filled(WHY_CHOICES, {"why": "pair"})), False
    selection = resolve(selection, ran(run, own_head=word))
    choice = selection.of(WHY_CHOICES)
    if word and choice.ranked == "put" and not choice.put_from.strip():
        selection = update(selection, Filled(WHY_CHOICES, {"put_from": contrast(state)}))
    # An encoder's heads reach the output only through the others: show those instead.
    if word and state.facts.is_encoder_decoder and run.stream(selection.shared.stream) == "encoder":
        writing = target_stream(run.trace.attention_streams)
        selection = update(selection, Filled(SHARED, {"stream": writing, "query": None, "key": None}))
    if not word or not selection.head_is_free:
        return selection
    layer, head = _first_writer(run, selection)
    found = {"layer": layer, "head": head}
    stream = _stream_of(run, selection.shared, layer)
    if stream != run.stream(selection.shared.stream):
        found |= {"stream": stream, "query": None, "key": None}
    return update(selection, Filled(SHARED, found))


def _stream_of(run: Run, state: State, layer: int) -> str:
    return stream_of(run.trace, streams_beside(run.trace, run.stream(state.stream)), layer)


def _first_writer(run: Run, selection: Selection) -> tuple[int, int]:
    """Return the head that wrote most; the selected one if none did.

    In an encoder–decoder, the head decides the word, so its strongest writer may have another. Follow them until one
    repeats; the lowest head of the cycle counts, from whichever one starts.
    """
    state, choice = replace(selection.shared, more=0), selection.of(WHY_CHOICES)
    followed, writer = [(state.layer, state.head)], _strongest_writer(run, state, choice)
    while writer is not None and writer not in followed:
        followed.append(writer)
        writer = _strongest_writer(run, replace(state, layer=writer[0], head=writer[1]), choice)
    return followed[-1] if writer is None else min(followed[followed.index(writer) :])


def _strongest_writer(run: Run, state: State, choice: WhyChoice) -> tuple[int, int] | None:
    try:
        asked = word_question(run, state, choice).asked
        if isinstance(asked, AttentionVizError):
            return None
        largest = _largest(run, state, asked, written(run, state.request, asked.of))
    except AttentionVizError:  # `study` shows it
        return None
    return largest[0][:2] if largest else None


def study(run: Run, selection: Selection, slots: Slots) -> WhyStudy:
    """Open the requested number."""
    state, choice = replace(selection.shared, more=0), selection.of(WHY_CHOICES)
    run = run if run.fit is not None else run.alone(state.stream)
    if why_not(run, state):
        return WhyStudy(run, slots)
    words: WordQuestion | None = None
    try:
        if _asks_word(run, state, choice):
            words = word_question(run, state, choice)
            if isinstance(words.asked, AttentionVizError):
                return WhyStudy(run, slots, words, words.asked)
            number = _opened(run, state, words.asked, choice)
        else:
            number = _opened(run, state, pair_question(run, state, choice), choice)
    except AttentionVizError as error:
        return WhyStudy(run, slots, words, error)
    return WhyStudy(run, slots, words, number)


def _opened(run: Run, state: State, asked: NamedNumber, choice: WhyChoice) -> ShownNumber:
    """Open a number; a score's own head doesn't write it."""
    stream = run.stream(state.stream)
    streams = streams_beside(run.trace, stream)
    found = written(run, state.request, asked.of)
    pair = (asked.of.layer, asked.of.query, asked.of.key) if isinstance(asked.of, Score) else None
    question = Question(asked.more, asked.less, found.total, found.remainder, streams, asked.at, asked.side, pair)
    largest = _largest(run, state, asked, found)
    layer, head = run.place(stream, state.layer, state.head)
    place = layer, min(head, layer_heads(run.trace, streams)[layer] - 1)
    if isinstance(asked.of, Score):
        place = _writer(run, asked.of, streams, choice) or (largest[0][:2] if largest else place)
    first: dict[str, Any] | None = None
    if is_first(found) and isinstance(asked.of, Score):
        first = split_header(run.trace, asked.of, split(run, state.request, asked.of), _no_words(run, asked.of))
    packed = pack_why(run.trace, question, found.table, found.fetched, first)
    return ShownNumber(asked, found, packed, place, largest)


def _no_words(run: Run, of: Score) -> str:
    """Return why no other word can be at a score's key; empty if one can."""
    unit = run.trace.key_tokens(run.trace.attention_stream(of.stream)).unit
    return "" if str(unit) == "word" else f"Only words can be exchanged, and this key is a {unit}."


def _largest(run: Run, state: State, asked: NamedNumber, found: WrittenNumber) -> tuple[tuple[int, int, float], ...]:
    streams = streams_beside(run.trace, run.stream(state.stream))
    return tuple(largest_heads(found.table, asked.side, streams=streams))


def _writer(run: Run, of: Score, streams: tuple[str, ...], choice: WhyChoice) -> tuple[int, int] | None:
    """Return the chosen head before the score's own; None if none."""
    layer, head = choice.writer_layer, choice.writer_head
    if layer is None or head is None or layer >= of.layer:
        return None
    return (layer, head) if head < layer_heads(run.trace, streams).get(layer, 0) else None


def view(study: WhyStudy, selection: Selection) -> Parts:
    """Return the number, writers and experiments."""
    state, choice, run = replace(selection.shared, more=0), selection.of(WHY_CHOICES), study.run
    parts = [Part("notes", functools.partial(_show_notes, study, selection.shared, state))]
    exports = functools.partial(show_downloads, run.trace, run.stream(state.stream), state.layer, state.head)
    slides = functools.partial(present_written, run, state, None)
    if reason := why_not(run, state):
        parts.append(Part("board", functools.partial(_say_why_not, reason, run)))
        return Parts(parts, exports=exports, slides=slides, runs=[("", run)])
    parts.append(Part("asked", functools.partial(_show_pickers, study, state)))
    first = isinstance(study.number, ShownNumber) and study.number.is_first
    if not first:
        parts.append(Part("ranked", functools.partial(pick_ranked, study.words is not None and not run.beside)))
        parts += [Part("other", ask_other)] if choice.ranked == "put" else []
    if isinstance(study.number, ShownNumber):
        number, wrote = study.number, _wrote(study, state)
        exports = functools.partial(exports, first=functools.partial(offer_rows, run.trace, number.found))
        slides = functools.partial(present_written, run, state, wrote)
        show = functools.partial(_show_number, study, number, state, choice)
        parts.append(Part("board", show))
    elif study.number is not None:
        parts.append(Part("board", functools.partial(raise_again, study.number)))
    parts.append(Part("beneath", lambda: functools.partial(_show_beneath, study, state)))
    if first:
        parts.append(Part("board", lambda: functools.partial(_explain_first, study, state)))
    if isinstance(study.number, ShownNumber) and study.number.largest:
        # Last, since it takes the longest for a long text.
        parts.append(Part("board", lambda: functools.partial(_silence, study, state, choice)))
    # Only the patching slide waits, for its runs.
    waits = choice.ranked == "put" and isinstance(study.number, ShownNumber) and bool(study.number.largest)
    return Parts(parts, exports=exports, slides=None if waits else slides, runs=[("", run)])


def _show_notes(study: WhyStudy, chosen: State, state: State) -> None:
    if not isinstance(study.number, ShownNumber):
        study.slots.picture.place.empty()
    show_notes(study.run, state)
    _show_cell(study.run, state)
    if chosen.more and chosen.facts.continues_text:
        tell("This page explains only the text that you typed, without the tokens that the model added.")


def _show_cell(run: Run, state: State) -> None:
    """Lead from a pair without a score to its steps."""
    stream = run.stream(state.stream)
    if stream not in run.trace.mixers or state.query is None or state.key is None:
        return
    with st.container(key="why-cell", horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(
            "A layer without a softmax has no scores; this page explains the next word instead.", width="content"
        )
        if st.button("Show the pair step by step", key="why-steps", type="tertiary"):
            show_steps()


def _say_why_not(reason: str, run: Run) -> None:
    st.info(reason)
    if run.fit is None:
        open_trace.offer_closing("why-close")


def _show_pickers(study: WhyStudy, state: State) -> None:
    if study.run.fit is not None and state.facts.predicts and study.run.trace.attention_streams:
        pickers.switch("Which number", ASKED, WHY_CHOICES, "why")
    if study.words is not None:
        pick_words(study.words, study.run, state)
    elif not (isinstance(study.number, ShownNumber) and study.number.is_first):
        pick_side()


def _wrote(study: WhyStudy, state: State) -> Wrote | None:
    """Return the head that wrote most, if any."""
    number = study.number
    if not isinstance(number, ShownNumber) or not number.largest:
        return None
    stream = _stream_of(study.run, state, number.largest[0][0])
    asked, (layer, head, contribution) = number.asked, number.largest[0]
    name = f"the logit difference of {asked.more} over {asked.less}" if asked.less else f"the score of {asked.more}"
    places = asked.places(study.run.trace.key_tokens(stream))
    return Wrote(stream, layer, head, asked.at, contribution, number.found.total, name, places)


def _show_number(study: WhyStudy, number: ShownNumber, state: State, choice: WhyChoice) -> None:
    study.slots.picture.place.empty()
    take, open_number = (functools.partial(one, study.run) for one in (_take_head, _take_number))
    show_why(number.packed, number.place, choice.ranked, take, open_number)
    pair = asked_number().get("pair")
    if pair is not None and _stream_of(study.run, state, pair[0]) in study.run.trace.mixers:
        show_steps()


def _show_beneath(study: WhyStudy, state: State) -> None:
    with study.slots["beneath"]:
        show_beneath(study.run, state)


def _explain_first(study: WhyStudy, state: State) -> None:
    """Send a first layer's score with other words, and the findings that heads did write."""
    number, run = study.number, study.run
    assert isinstance(number, ShownNumber) and isinstance(number.asked.of, Score)
    name, place, of = name_of(number.packed), number.place, number.asked.of
    with study.slots["board"]:
        if not _no_words(run, of):
            try:
                tell_exchanged(name, place, exchange(run, state.request, of, typed_words(name)))
            except AttentionVizError as error:
                tell_exchanged(name, place, Exchanged((), as_sentence(str(error))))
        tell_prepared(name, place, run, prepared(run, state.request))


def _silence(study: WhyStudy, state: State, choice: WhyChoice) -> None:
    number = study.number
    assert isinstance(number, ShownNumber)
    one = Silenced(study.run, state, number.asked.of, name_of(number.packed), number.place)
    found = _silenced(one, study, number)
    if choice.ranked != "put":
        return
    wrote = _wrote(study, state)
    put: PutIn | None = None
    if found is not None and wrote is not None:
        changes = {head: value - found.number for head, value in found.known.items()}
        put = PutIn(wrote.name, found.number, choice.put_from, changes, len(found.runs) == len(found.estimates))
    present_written(study.run, state, wrote, put)


def _silenced(one: Silenced, study: WhyStudy, number: ShownNumber) -> Patched | None:
    if not isinstance(one.of, Score):
        stream = _stream_of(one.run, one.state, one.place[0])
        words = words_written(one.run, one.state.request, stream, one.place, one.of.position)
        with study.slots["board"]:
            tell_writes(one.name, one.place, words)
    with study.slots["board"]:
        try:
            heads = [*((layer, head) for layer, head, _ in number.largest), one.place]
            silence_largest(one, tuple(dict.fromkeys(heads)))
        except AttentionVizError as error:
            st.caption(plain(as_sentence(str(error))))
            return None
    silence_all(one, study.slots)
    return put_all(one, study.slots)


def _take_number(run: Run) -> None:
    asked = asked_number()
    if "side" in asked:
        visit.pick(WHY_CHOICES, side=asked["side"])
    elif "pair" in asked:
        layer, head, query, key = asked["pair"]
        stream = asked["stream"]
        if stream not in run.trace.attention_streams:
            stream = _stream_of(run, visit.shared(), layer)
        take_head(layer, head, stream, (query, key))
        if stream not in run.trace.mixers:
            visit.pick(WHY_CHOICES, why="pair", side="key")


def _take_head(run: Run) -> None:
    """Send the head: a score's stays on this page."""
    head = chosen_head()
    if head is None:
        return
    if _asks_word(run, visit.shared(), visit.chosen(WHY_CHOICES)):
        take_head(*head, _stream_of(run, visit.shared(), head[0]))
    else:
        visit.pick(WHY_CHOICES, writer_layer=head[0], writer_head=head[1])
