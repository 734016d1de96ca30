"""Which number is opened, chosen on the page: a next word, against another; or the score of the chosen pair."""

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.analysis.words import quoted
from attention_viz.errors import UnsupportedModel, UnusableText
from attention_viz.models.circuits.asked import Logit, Score
from attention_viz.serving import permissions as allowed
from attention_viz.serving.runs import Drawn, ask, candidates
from attention_viz.serving.why import named_token, words_of_text
from attention_viz.trace.spelling import CONTINUES, SPACE
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace
from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.pages.why.choice import SIDES, WHY_CHOICES, WhyChoice
from attention_viz.ui.parts.selection import pair_of, take_pair
from attention_viz.views.style.wording import shortened

__all__ = ["Asked", "ask_pair", "ask_word"]

# So many likely words are offered.
_OFFERED = 8
# A word of the text is what a likely one is told against, where the model takes it to be at least so likely.
_LEAST = 0.001
# The key of the picker of a word of what an encoder–decoder says.
_ROW = "why-said"


@dataclass(frozen=True)
class Asked:
    """A number, and how it is told.

    Attributes:
        of: the number.
        more: what a positive contribution speaks for.
        less: what a negative one speaks for.
        at: the position at which heads write.
        side: of a score, whose rows are shown; else "output".
    """

    of: Score | Logit
    more: str
    less: str
    at: int
    side: str = "output"


def ask_word(drawn: Drawn, state: State, choice: WhyChoice) -> Asked:
    """The pickers of a next word and of the one that it is told against; any other word can be typed.

    Args:
        drawn: the run.
        state: what the pickers say.
        choice: what is chosen.

    Raises:
        UnusableText: what was typed is no token of the model, or several.
        UnsupportedModel: nothing is predicted in this text.
    """
    trace, request = drawn.trace, state.request
    if state.facts.is_encoder_decoder:
        at = _pick_row(drawn, state)
        likely = ask(request, lambda model: model.candidates(trace, at, _OFFERED))
    else:
        found = candidates(request, trace, _OFFERED)
        if not found:
            raise UnsupportedModel(
                f"{allowed.display_name(state.model)} predicts the word behind a mask, and this text has no mask"
            )
        at, likely = next(iter(found.items()))
    tokens = trace.query_tokens(trace.streams[-1])
    names = [_plain(tokens.write(label)) or label for label in likely.token]
    offered = list(dict.fromkeys(names))
    # A line break is shown by a sign, and half a letter by its bytes: no text is their name.
    signs = dict(zip(reversed(names), reversed(likely["id"].tolist()), strict=True))
    for name in ("token", "against"):
        # What was typed is an option, too.
        typed = getattr(choice, name)
        if typed and typed not in offered:
            offered.append(typed)
    first = choice.token or offered[0]
    second = choice.against if choice.against != first else ""
    try:
        token = _token_of(drawn, state, at, first, signs)
        second = second or _other(state, trace, at, token) or next(name for name in offered if name != first)
        against = _token_of(drawn, state, at, second, signs, like=token)
    finally:
        # What was typed stays in its box, also where it is no token.
        second = second or next(name for name in offered if name != first)
        _pick("Why", "token", offered, first)
        _pick("and not", "against", offered, second)
    more, less = f"“{shortened(first)}”", f"“{shortened(second)}”"
    return Asked(Logit(token, at, against), more, less, at)


def _token_of(drawn: Drawn, state: State, at: int, word: str, signs: Mapping[str, int], like: int | None = None) -> int:
    """The token of a word, or the one that was offered by that sign."""
    try:
        return named_token(state.request, drawn.trace, at, word, like=like)
    except UnusableText:
        if word not in signs:
            raise
        return signs[word]


def _pick_row(drawn: Drawn, state: State) -> int:
    """Which word of what an encoder–decoder says is asked about: that of the pair that is chosen on all pages.

    The encoder's heads write nothing into what is said, but by way of the others: those are shown instead.
    """
    if drawn.stream(state.stream) == "encoder":
        pickers.choose_next(stream="cross", query=None, key=None)
        st.rerun()
    stream = drawn.stream(state.stream)
    said = drawn.trace.query_tokens("cross")
    row, _ = pair_of(drawn, state)
    weights = drawn.trace.weights(*drawn.place(stream, state.layer, state.head), stream)

    def take() -> None:
        chosen = int(st.session_state[_ROW])
        take_pair(chosen, int(weights[chosen].argmax()))

    st.session_state[_ROW] = row
    with _line(_ROW):
        st.selectbox(
            "Said here",
            range(len(said)),
            format_func=lambda one: f"{one} · {_plain(said.written[one]) or said.written[one]}",
            key=_ROW,
            on_change=take,
            width=126,
            label_visibility="collapsed",
        )
    return row


def _other(state: State, trace: Trace, at: int, token: int) -> str:
    """A likely word of the text, which the likeliest is told against; empty where there is none."""
    others = [one for one, _ in words_of_text(trace, at, _LEAST) if one != token]
    labels = ask(state.request, lambda model: model.labels(others[:1]))
    return _plain(trace.query_tokens(trace.streams[-1]).write(labels[0])) if labels else ""


def ask_pair(drawn: Drawn, state: State, choice: WhyChoice) -> Asked:
    """The score of the pair that is chosen on all pages, and whose rows are shown.

    Args:
        drawn: the run.
        state: what the pickers say.
        choice: what is chosen.
    """
    stream = drawn.stream(state.stream)
    layer, head = drawn.place(stream, state.layer, state.head)
    query, key = pair_of(drawn, state)
    st.segmented_control(
        "Written into",
        list(SIDES),
        format_func=SIDES.__getitem__,
        key=WHY_CHOICES.key("side"),
        required=True,
        label_visibility="collapsed",
        persist_state="session",
    )
    sides = (drawn.trace.query_tokens(stream), query), (drawn.trace.key_tokens(stream), key)
    named = stream if len(drawn.trace.streams) > 1 else None
    of = Score(layer, head, query, key, named)
    at = query if choice.side == "query" else key
    words = " → ".join(_in_quotes(tokens, position) for tokens, position in sides)
    return Asked(of, words, "", at, choice.side)


def _line(name: str) -> DeltaGenerator:
    """A word and its picker, which stay side by side."""
    key = f"why-pick-{name}-line"
    return st.container(key=key, horizontal=True, vertical_alignment="center", gap="small", width="content")


def _in_quotes(tokens: Tokens, position: int) -> str:
    """A token in a sentence; a patch or a frame is told by its place, which has no quotes."""
    written = tokens.written[position]
    return tokens.placed_at(position) or quoted(shortened(_plain(written) or written))


def _plain(written: str) -> str:
    """A token without the marks for a space before it or a word that it continues."""
    return written.strip(f"{SPACE}{CONTINUES} ")


def _pick(label: str, name: str, options: list[str], shown: str) -> None:
    """A picker whose words are those of the moment: none of them is held where it was taken by itself."""
    key = f"why-pick-{name}"
    if st.session_state.get(key) != shown:
        st.session_state[key] = shown

    def take() -> None:
        WHY_CHOICES.set(**{name: st.session_state[key] or ""})

    with _line(name):
        st.markdown(label, width="content")
        st.selectbox(
            label,
            options if shown in options else [shown, *options],
            key=key,
            accept_new_options=True,
            on_change=take,
            width=170,
            label_visibility="collapsed",
        )
