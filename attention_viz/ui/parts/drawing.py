"""Run a page's sentence, with progress and problems."""

import html
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.edits.words import is_eviction, listed
from attention_viz.errors import AttentionVizError, TextTooLong, UnusableText
from attention_viz.serving import permissions as allowed
from attention_viz.serving.door import FORWARDS, keep_turn, new_turn
from attention_viz.serving.run import Request
from attention_viz.serving.runs import Run, candidates, has_run, is_full, is_loaded, load_model, run_request
from attention_viz.serving.settings import SETTINGS
from attention_viz.serving.uploads import title_of
from attention_viz.sources import CATALOGUE
from attention_viz.trace.spelling import without_accents
from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.controls.reading import is_raw
from attention_viz.ui.controls.wording import show_added
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.markdown import as_sentence, plain
from attention_viz.ui.parts.notices import tell
from attention_viz.ui.parts.unread import show_unread

if TYPE_CHECKING:
    from attention_viz.protocol.fitting import Fit
    from attention_viz.trace.trace import Trace

_NAMED = 3
# From this many words, a usual language model takes a minute on a server with few processors.
_LONG = 1_500


def without_words(trace: "Trace") -> str:
    """Name a hybrid's layers without softmax attention; "" if none."""
    several = len(trace.attention_streams) > 1
    return " ".join(
        f"{kept.note.capitalize()}{f' in the {stream}' * several}; "
        f"{'it mixes' if len(kept.without) == 1 else 'they mix'} tokens {_other_way(trace, kept.without)}."
        for stream, kept in trace.kept.items()
        if kept.without
    )


def _other_way(trace: "Trace", without: Sequence[int]) -> str:
    shown = {number for stream in trace.mixers for number in trace.layer_numbers(stream)}
    return (
        "in another way: choose the mixer on Explore" if shown.issuperset(without) else "in another way, not shown here"
    )


def _stopped_words(run: Run, state: State) -> str:
    """Explain why generation stopped early; "" if it didn't."""
    trace, tokens = run.trace, run.trace.query_tokens(run.words)
    asked, made = state.more, trace.provenance.generated
    edits = [edit for edit in trace.provenance.edits if not is_eviction(edit)]
    if not state.facts.continues_text or made >= asked or edits:
        return ""
    begun = f"The model stopped after {made} of {asked} tokens: "
    if is_full(state.request, trace):
        return f"{begun}it reads at most {len(tokens)}."
    if state.request.sampling is not None:
        return f"{begun}the next one that it sampled ends the text."
    (likely,) = candidates(state.request, trace, 1).values()
    return f"{begun}its next token, “{tokens.write(likely.token[0])}”, ends the text."


def accent_words(trace: "Trace") -> str:
    """List words read without accents; "" if none."""
    typed = dict.fromkeys(re.findall(r"\w+", unicodedata.normalize("NFC", trace.provenance.text or "")))
    bare = {word: without_accents(word.casefold()) for word in typed if not word.isascii()}
    accented = {word: left for word, left in bare.items() if left != word.casefold()}
    if not accented:  # as in most texts, whose tokens needn't be merged for this
        return ""
    tokens = trace.key_tokens(trace.streams[0])
    read = {tokens.text_of(pieces).casefold() for pieces in tokens.pieces}
    lost = [f"“{word}” as “{left}”" for word, left in accented.items() if word.casefold() not in read and left in read]
    if not lost:
        return ""
    others = len(lost) - _NAMED
    more = [f"{others} more word{'s' * (others > 1)} likewise"] if others > 0 else []
    return f"{trace.provenance.model} strips accents: it reads {listed([*lost[:_NAMED], *more])}."


def long_words(trace: "Trace") -> str:
    """Compare a text's length with the model's training texts; "" if shorter or unknown."""
    entry, count = CATALOGUE.get(trace.provenance.model), len(trace.key_tokens(trace.streams[0]))
    if entry is None or not 0 < entry.trained_on < count:
        return ""
    return (
        f"{trace.provenance.model} was trained on up to {entry.trained_on:,} tokens, by its model card, and this text "
        f"has {count:,}. Beyond that, positions may mislead."
    )


@dataclass
class _LastRequest:
    request: Request | None = None
    number: int = 0


def draw_in_place(
    state: State,
    place: DeltaGenerator,
    height: int,
    *,
    whole: bool = False,
    keep: bool = False,
    stays: bool = False,
    longest: int = SETTINGS.longest_study,
) -> Run | None:
    """Run the sentence with its slot filled, at this height in pixels; None after a problem."""
    arrive(state)
    if (open_trace := opening.opened()) is not None:
        if not stays:
            place.empty()
        return open_trace if whole else open_trace.alone(state.stream)
    keep = stays or (keep and has_run(state.request, longest))
    if not keep:
        hold(state, place, height)
    try:
        run = _run(state, place, height, longest, keep=keep)
    except AttentionVizError as error:
        show_problem(error, place, state)
        return None
    # A container is replaced element by element, and the new content may have fewer.
    if not stays:
        place.empty()
    return run


@dataclass(frozen=True)
class PicturePlace:
    """A picture's slot; its content stays until replaced, if that takes no work.

    An `st.empty` is emptied before a busy server fills it, and its components are built anew.
    """

    place: DeltaGenerator
    stays: bool

    @classmethod
    def of(cls, stays: bool) -> "PicturePlace":
        """Reserve a slot here."""
        return cls(st.container() if stays else st.empty(), stays)

    def picture(self) -> DeltaGenerator:
        """Return the container to write the picture into, once."""
        return self.place if self.stays else self.place.container()

    def to_fill(self) -> DeltaGenerator | None:
        """Return the slot to fill; None if its content stays."""
        return None if self.stays else self.place


def place_picture(state: State, longest: int = SETTINGS.longest_study) -> PicturePlace:
    """Reserve a picture's slot at once."""
    return PicturePlace.of(is_raw(state) and is_at_hand(state, longest))


def is_at_hand(state: State, longest: int = SETTINGS.longest_study) -> bool:
    """Return whether the run needs no work."""
    return opening.opened() is not None or has_run(state.request, longest)


def arrive(state: State) -> None:
    """Take a turn, kept for repeated requests, to serve visitors in order."""
    turn = visit.memory(_LastRequest)
    if turn.request != state.request:
        turn.request, turn.number = state.request, new_turn()
    keep_turn(turn.number)


def _run(state: State, place: DeltaGenerator, height: int, longest: int, *, keep: bool) -> Run:
    if keep:
        return run_request(state.request, longest=longest)
    if not is_loaded(state.model):
        load_model(state.model, still_wanted=lambda: hold(state, place, height))
        hold(state, place, height)
    # Writing to the page also ends the run of a visitor who left.
    with FORWARDS.telling(lambda ahead: hold(state, place, height, _turn_words(ahead))):
        return run_request(state.request, longest=longest)


def load_in_place(model: str, place: DeltaGenerator) -> None:
    """Load a model while its slot says so."""
    words = _loading_words(model)
    place.caption(words)
    # Writing to the page ends the run of a visitor who left.
    load_model(model, still_wanted=lambda: place.caption(words))


def hold(state: State | None, place: DeltaGenerator, height: int, doing: str = "") -> None:
    """Fill a computation's slot, at this height in pixels, and name a slow one."""
    with place.container():
        if state is not None and not is_loaded(state.model):
            st.caption(_loading_words(state.model))
        else:
            st.html(f'<p class="waiting" role="status">{html.escape(doing or _working_words(state))}</p>')
        st.skeleton(height=height)


def _working_words(state: State | None) -> str:
    ahead = FORWARDS.ahead
    if not ahead and state is None:
        return "Working …"
    if not ahead and state is not None and state.shown:
        return f"{allowed.display_name(state.model)} reads {title_of(state.shown)} …"
    if not ahead and state is not None:
        count = len(f"{state.text} {state.second}".split())
        long = " A long text takes a minute or more, then appears by itself." if count >= _LONG else ""
        return f"{allowed.display_name(state.model)} reads {count:,} {'word' if count == 1 else 'words'} …{long}"
    return _turn_words(ahead)


def _turn_words(ahead: int) -> str:
    return f"Others were first: {ahead} {'run is' if ahead == 1 else 'runs are'} before yours. It starts by itself …"


def _loading_words(model: str) -> str:
    size = f" ({CATALOGUE[model].size / 1e6:.0f} MB)" if model in CATALOGUE else ""
    return plain(f"Loading {allowed.display_name(model)}{size} for all visitors: a few seconds …")


def show_problem(
    error: AttentionVizError, place: DeltaGenerator, state: State | None = None, *, instead: str = ""
) -> None:
    """Show an error of ours in its part's slot."""
    message = str(error)
    if isinstance(error, TextTooLong) and state is not None and state.target.strip():
        # A sentence that is too long is cut, a target isn't.
        message = (
            f"the target has {error.count:,} tokens, but the model can generate at most {error.limit:,}. Shorten it, "
            "or leave it empty for the model's own output. Your text stays in the box."
        )
    # An empty text isn't an error.
    show = place.info if type(error) is UnusableText else place.error
    show(f"{as_sentence(message)} {instead}".strip())


def show_notes(run: Run, state: State, *, rows: bool = True) -> None:
    """Show replacements and cuts; nothing typed is lost."""
    show_added(run.trace)
    if rows and run.stream(state.stream) == "cross":
        tell(
            "Each row is labelled with the word it predicts. Its query comes from the word before.",
            short="Predicted rows",
        )
    if without := without_words(run.trace):
        tell(without, short="Layers without softmax")
    if run.fit is None:
        opening.show_origin(run)
        return
    if run.fit.cut:
        show_cut(run.fit, state, "This text has")
    if run.second is not None and run.second.cut:
        show_cut(run.second, state, "With the second sentence, this text has")
    show_unread(run, state)
    for words, short in (
        (long_words(run.trace), "Longer than trained on"),
        (accent_words(run.trace), "Accents dropped"),
        (_stopped_words(run, state), "Stopped early"),
    ):
        if words:
            tell(words, short=short)


def show_cut(fit: "Fit", state: State, has: str) -> None:
    """Show that a text, named by `has`, was cut."""
    start = " ".join(fit.cut.split())[:80]
    tell(
        f"{has} {fit.count:,} tokens, and {allowed.display_name(state.model)} reads at most {fit.limit:,} here. The "
        f"figure ends before: “{start} …”. Your whole text stays in the box.",
        loud=True,
        short="Text cut",
    )
