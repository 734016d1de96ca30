"""A text's options."""

import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.edits.words import listed
from attention_viz.serving.settings import SETTINGS
from attention_viz.trace.kind import InputKind, stream_kind
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import MOST_MORE, State
from attention_viz.ui.address.kinds import fits_link
from attention_viz.ui.controls.thing import KEPT, is_own
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.notices import tell
from attention_viz.ui.selection import SHARED, Filled

if TYPE_CHECKING:
    from attention_viz.trace.tokens import Tokens
    from attention_viz.trace.trace import Trace

# The attention types' labels.
_STREAMS = {
    "encoder": "encoder",
    "decoder": "decoder",
    "cross": "cross",
    "mixer": "no softmax",
    "pooling": "pooling",
    "slots": "among slots",
    "readout": "readout",
}
# Options that a page may leave out, by URL parameter.
WORDING = ("second", "more", "special", "chat")

# How tokenizers write the tokens that stand for no text, such as "[MASK]", "<|endoftext|>" and "</s>".
_RESERVED = re.compile(r"\[[A-Z]+\]|</?[a-z|_]+>")
_NOTHING = "Nothing was added around the text"


def stream_label(stream: str) -> str:
    """Return an attention type's label, such as "pooling 2"."""
    kind = stream_kind(stream)
    return _STREAMS.get(kind, kind) + stream.removeprefix(kind)


def text_box(label: str, name: str, placeholder: str | None = None, *, labelled: bool = True) -> None:
    """Draw the box; typing closes an open trace."""
    widgets.show(
        st.text_area,
        label,
        of=SHARED,
        name=name,
        height=68,
        max_chars=SETTINGS.longest_input,
        placeholder=placeholder,
        label_visibility="visible" if labelled else "collapsed",
    )
    if name == "text":
        # Visible while the box differs from the drawn text. Leaving the box to click it runs the text.
        st.button("Run", key="run", type="primary")


def streams(state: State, *, mixers: bool = False) -> tuple[str, ...]:
    """Return a loaded model's streams, else none; on request with its layers without a softmax."""
    run = opening.opened()
    if run is None:
        return (*dict.fromkeys((*state.facts.heads, *(state.facts.mixers if mixers else ()))),)
    return run.trace.streams if mixers else run.trace.attention_streams


def asks_target(state: State) -> bool:
    """Return whether the model takes a target; False for open traces."""
    return opening.opened() is None and state.facts.is_encoder_decoder


def settle_stream(state: State, only: str | None, *, mixers: bool = False) -> None:
    """Choose an existing stream before layers and heads are counted."""
    found = streams(state, mixers=mixers)
    if only is not None and state.stream != only:
        visit.send(Filled(SHARED, {"stream": only}, stays=True))
    elif only is None and state.stream is not None and len(found) == 1 and state.stream not in found:
        visit.fill(SHARED, stream=None)
    elif only is None and len(streams(state)) > 1 and state.stream not in found:
        # People bring audio to see its transcript, and images to ask about them.
        wanted = {InputKind.SOUND: "cross", InputKind.BESIDE: "decoder"}.get(state.facts.reads)
        visit.fill(SHARED, stream=wanted if wanted in found else found[0])


def pick_stream(state: State, *, mixers: bool = False) -> None:
    """Draw the stream's picker, if there are several."""
    found = streams(state, mixers=mixers)
    if len(found) > 1:
        shown = stream_label(state.stream or found[0])
        widgets.show(
            st.selectbox,
            "Stream",
            of=SHARED,
            name="stream",
            options={stream: stream_label(stream) for stream in found},
            width=widgets.fitting(shown),
            # Until a finding or a person chooses, the page shows the first.
            placeholder=stream_label(found[0]),
            label_visibility="collapsed",
        )


@dataclass
class _Added:
    slot: DeltaGenerator = field(default_factory=st.empty)


def show_wording(state: State, leave_out: Collection[str] = ()) -> None:
    """Draw the model's text options, without unsupported ones."""
    can = state.facts
    if can.reads_pairs and "second" not in leave_out:
        text_box("Second sentence", "second", "Read together with the first")
    if asks_target(state):
        text_box("Target", "target", "Empty: the model's own output")
    if can.continues_text and "more" not in leave_out:
        _going_on(state)
    if can.has_chat_template and "chat" not in leave_out:
        _switch("chat", "Chat template")
    in_chat = can.has_chat_template and state.chat == "on"
    # An encoder–decoder's special tokens belong to its target.
    if can.adds_special_tokens and "special" not in leave_out and not in_chat and not can.is_encoder_decoder:
        _switch("special", "Special tokens")
    # Filled once it has run: `show_added` knows then.
    visit.memory(_Added).slot = st.empty()


def show_whole_words() -> None:
    """Draw the switch that merges subword tokens into words."""
    _switch("words", "Whole words")


def show_added(trace: "Trace") -> None:
    """List a text's additions, and those missing in links."""
    if trace.seen.tensors:
        _show_notes(trace)
        return
    words = ". ".join(one for one in (_added_words(trace), _own_words(trace)) if one)
    if words:
        visit.memory(_Added).slot.caption(plain(f"{words}."))
    for line in read_otherwise(trace):
        tell(line, short="Invisible characters" if line.startswith("The text has") else "Special token in text")
    for line in trace.provenance.notes:
        tell(line)
    if not all(fits_link(getattr(visit.shared(), name)) for name in ("text", "second", "target")):
        tell("A link leaves this text out: it is too long.", short="Text too long for a link")


def _show_notes(trace: "Trace") -> None:
    from attention_viz.trace.seen import NO_TIMES

    own = KEPT if is_own(visit.shared()) and opening.opened() is None else ""
    for line in (*trace.provenance.notes, own):
        if line:
            tell(line, loud=line.endswith(NO_TIMES))


def _added_words(trace: "Trace") -> str:
    """List the added tokens; "" if none are possible."""
    origin, tokens = trace.provenance, trace.query_tokens(trace.streams[0])
    end = len(tokens) - _own(trace)
    around = _around(tokens, end)
    if not around:
        return "" if origin.special_tokens and not origin.chat else _NOTHING
    if origin.chat:
        return f"The chat template added {listed(around)}"
    return f"{listed(around)} {'was' if len(around) == 1 else 'were'} added{_place(tokens, end)}"


def read_otherwise(trace: "Trace") -> list[str]:
    """List the text's replaced or ignored parts in sentences."""
    origin, tokens = trace.provenance, trace.query_tokens(trace.streams[0])
    typed = f"{origin.text or ''}{origin.second_text or ''}"
    names = [name for name in dict.fromkeys(tokens.labels) if _RESERVED.fullmatch(name)]
    # A note that names a token with its position already says that the text has it.
    named = [name for name in names if any(line.startswith(f"“{name}” is there twice") for line in origin.notes)]
    alone = [name for name in names if name in typed and name not in named]
    lines = [f"“{name}” in the text is read as one token of the model’s own." for name in alone]
    # An unknown-word token may stand for it, and byte tokens keep everything.
    unsure = "byte-level" in tokens.spelling or any("unk" in name.lower() or "<0x" in name for name in tokens.labels)
    kept = "".join(tokens.texts)
    lost = sum(unicodedata.category(one) in ("Cc", "Cf") and one not in "\t\n\r" and one not in kept for one in typed)
    if lost and not unsure:
        signs = f"{lost} invisible character{'s' * (lost != 1)}"
        lines.append(f"The text has {signs}, and the tokenizer drops {'it' if lost == 1 else 'them'}.")
    return lines


def _own_words(trace: "Trace") -> str:
    """Count the generated tokens, and say how they were chosen if they aren't the likeliest; "" for none."""
    own, ways = _own(trace), trace.provenance.decoding
    if not own:
        return ""
    last = "the last token" if own == 1 else f"the last {own} tokens"
    if all(one.method == "greedy" for one in ways):
        return f"The model generated {last}"
    if len(ways) > 1:
        return f"{last[0].upper()}{last[1:]} weren't typed: {trace.provenance.generated_in_words}"
    way = next(iter(ways))
    return f"Something else generated {last}" if way.method == "given" else f"The model generated {last}: {way}"


def _own(trace: "Trace") -> int:
    return trace.provenance.generated if trace.attention_streams == ("decoder",) else 0


def _around(tokens: "Tokens", end: int) -> list[str]:
    kinds = zip(tokens.written[:end], tokens.special[:end], tokens.padding[:end], strict=True)
    return list(dict.fromkeys(label for label, special, padding in kinds if special and not padding))


def _place(tokens: "Tokens", end: int) -> str:
    """Describe where the added tokens are: around both texts, or around, before or after the text."""
    if 1 in tokens.sentence:
        return " around both"
    real = [at for at in range(end) if not tokens.special[at]]
    before, after = any(tokens.special[: real[0]]), any(tokens.special[real[-1] + 1 : end])
    return " around the text" if before and after else " before the text" if before else " after the text"


def _going_on(state: State) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall", key="going-on"):
        widgets.show(st.number_input, "Generate … tokens", 0, MOST_MORE, of=SHARED, name="more", width=138)
        st.button("One more token", on_click=_one_more, disabled=state.more >= MOST_MORE)


def _one_more() -> None:
    visit.pick(SHARED, more=min(visit.shared().more + 1, MOST_MORE))


def _switch(name: str, label: str) -> None:
    widgets.show_switch(label, SHARED, name, f"{name}-switch")
