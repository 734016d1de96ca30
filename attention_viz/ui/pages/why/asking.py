"""The opened number's pickers and component."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.analysis.words import token_named
from attention_viz.circuits.asked import Logit, Score
from attention_viz.circuits.next_word import rival_of
from attention_viz.errors import AttentionVizError, UnsupportedModel, UnusableText
from attention_viz.explorer import why_source
from attention_viz.explorer.why_payload import name_of
from attention_viz.serving import permissions as allowed
from attention_viz.serving.first_layer import Exchanged, PreparedPair
from attention_viz.serving.runs import Run, ask, candidates
from attention_viz.serving.why import Words, named_token
from attention_viz.trace.slots import target_stream
from attention_viz.trace.spelling import CONTINUES, SPACE, set_apart
from attention_viz.trace.tokens import Tokens
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.pages.why.page import SIDES, WHY_CHOICES, WhyChoice
from attention_viz.ui.parts.explorer import show_channel
from attention_viz.ui.parts.selection import pair_of, take_pair
from attention_viz.views.style.wording import shortened

# Likely words offered.
_OFFERED = 8
# A typed word's letters, and how many such words are kept.
_LONGEST_WORD, _MOST_WORDS = 40, 6
# The widget's key of an encoder–decoder's generated word.
_ROW = "why-said"
_KEY = "why-board"

_board = widgets.component("why", *why_source())


@dataclass(frozen=True)
class NamedNumber:
    """A number and its description.

    Attributes:
        more: favoured by positive contributions.
        less: favoured by negative ones.
        at: the heads' writing position.
        side: a score's shown rows; else "output".
    """

    of: Score | Logit
    more: str
    less: str
    at: int
    side: str = "output"

    def places(self, tokens: Tokens) -> tuple[int, ...]:
        """Return a pair's positions, or those of a next-word question's words in the text, each at its last one."""
        if isinstance(self.of, Score):
            return self.of.query, self.of.key
        last = {one: at for at, one in enumerate(tokens.ids or ())}
        return tuple(last[word] for word in (self.of.token, self.of.against) if word in last)


@dataclass(frozen=True)
class WordQuestion:
    """A next-word question, and an encoder–decoder's output position."""

    offered: Sequence[str]
    first: str
    second: str
    row: int | None
    asked: NamedNumber | AttentionVizError


def word_question(run: Run, state: State, choice: WhyChoice) -> WordQuestion:
    """Return the chosen next-word question; any word may be typed."""
    trace, request, row = run.trace, state.request, None
    if state.facts.is_encoder_decoder:
        at = row = pair_of(run, state)[0]
        likely = ask(request, lambda model: model.candidates(trace, at, _OFFERED))
    else:
        found = candidates(request, trace, _OFFERED)
        if not found:
            raise UnsupportedModel(
                f"{allowed.display_name(state.model)} predicts only masked words; add a mask to the text"
            )
        at, likely = next(iter(found.items()))
    tokens = trace.query_tokens(trace.streams[-1])
    names = [plain_word(tokens.write(label)) or label for label in likely.token]
    # Typed words are options, too.
    offered = list(dict.fromkeys([*names, *filter(None, (choice.token, choice.against))]))
    # Line breaks and partial characters are named by signs, which no text tokenizes to.
    signs = dict(zip(reversed(names), reversed(likely["id"].tolist()), strict=True))
    first = choice.token or offered[0]
    second = choice.against if choice.against != first else ""
    another = next(name for name in offered if name != first)
    try:
        token = _token_of(run, state, at, first, signs)
        if second:
            against = _token_of(run, state, at, second, signs, like=token)
        else:
            # The rival of Explore's findings, so that both pages have one number.
            against = rival_of(trace, at, token, lambda ids: _names(state, tokens, ids))
            (second,) = _names(state, tokens, [against])
    except AttentionVizError as error:
        return WordQuestion(offered, first, second or another, row, error)
    number = NamedNumber(Logit(token, at, against), _quoted(first), _quoted(second), at)
    return WordQuestion(offered, first, second, row, number)


def _quoted(word: str) -> str:
    return f"“{set_apart(shortened(word))}”"


def pick_words(question: WordQuestion, run: Run, state: State) -> None:
    """Draw the next word's and comparison word's pickers."""
    if question.row is not None:
        _pick_row(run, state, question.row)
    _pick("Why", "token", question.offered, question.first)
    _pick("and not", "against", question.offered, question.second)


def _token_of(run: Run, state: State, at: int, word: str, signs: Mapping[str, int], like: int | None = None) -> int:
    try:
        return named_token(state.request, run.trace, at, word, like=like)
    except UnusableText:
        if word not in signs:
            raise
        return signs[word]


def _pick_row(run: Run, state: State, row: int) -> None:
    stream = run.stream(state.stream)
    said = run.trace.query_tokens(target_stream(run.trace.attention_streams))
    weights = run.trace.weights(*run.place(stream, state.layer, state.head), stream)

    def take() -> None:
        chosen = widgets.content(_ROW)
        # An earlier text's label isn't a position in this one.
        if type(chosen) is int and chosen < len(said):
            take_pair(chosen, int(weights[chosen].argmax()))

    widgets.preset(_ROW, row)
    with _line(_ROW):
        st.selectbox(
            "Generated word",
            range(len(said)),
            format_func=lambda one: f"{one} · {said.names[one]}",
            key=_ROW,
            on_change=take,
            width=126,
            label_visibility="collapsed",
        )


def _names(state: State, tokens: Tokens, ids: Sequence[int]) -> list[str]:
    labels = ask(state.request, lambda model: model.labels(list(ids)))
    return [plain_word(tokens.write(label)) or label for label in labels]


def pair_question(run: Run, state: State, choice: WhyChoice) -> NamedNumber:
    """Return the chosen pair's score, and the side shown."""
    stream = run.stream(state.stream)
    layer, head = run.place(stream, state.layer, state.head)
    query, key = pair_of(run, state)
    sides = (run.trace.query_tokens(stream), query), (run.trace.key_tokens(stream), key)
    named = stream if len(run.trace.attention_streams) > 1 else None
    of = Score(layer, head, query, key, named)
    at = query if choice.side == "query" else key
    words = " → ".join(_in_quotes(tokens, position) for tokens, position in sides)
    return NamedNumber(of, words, "", at, choice.side)


def pick_side() -> None:
    """Draw the picker of a score's side."""
    pickers.switch("Written to", SIDES, WHY_CHOICES, "side")


def _line(name: str) -> DeltaGenerator:
    key = f"why-pick-{name}-line"
    return st.container(key=key, horizontal=True, vertical_alignment="center", gap="small", width="content")


def _in_quotes(tokens: Tokens, position: int) -> str:
    """Quote a token; a special one is unquoted, and a patch or frame named by position."""
    return tokens.names[position] if tokens.special[position] else token_named(tokens, position)


def plain_word(written: str) -> str:
    """Return a written token without its marks."""
    return written.strip(f"{SPACE}{CONTINUES} ")


def _pick(label: str, name: str, options: Sequence[str], shown: str) -> None:
    """Draw a picker of current words; keep none that was chosen by default."""
    key = f"why-pick-{name}"
    widgets.preset(key, shown)

    def take() -> None:
        visit.pick(WHY_CHOICES, **{name: widgets.content(key) or ""})

    with _line(name):
        st.markdown(label, width="content")
        st.selectbox(
            label,
            options if shown in options else [shown, *options],
            key=key,
            accept_new_options=True,
            on_change=take,
            width=160,
            label_visibility="collapsed",
        )


def chosen_head() -> tuple[int, int] | None:
    """Return the chosen head; None for none, or invalid browser data."""
    return widgets.sent_pair(_KEY, "choice")


def asked_number() -> dict[str, Any]:
    """Return the number just opened: `pair` (layer, head, query, key) or `side`; ignore invalid browser data.

    `stream` is a pair's, unchecked; None if the layer says which one it is.
    """
    asked = widgets.sent(_KEY, "open")
    if not isinstance(asked, Mapping):
        return {}
    pair = asked.get("pair")
    if isinstance(pair, list) and len(pair) == 4 and all(type(one) is int and 0 <= one < 1_000_000 for one in pair):
        return {"pair": tuple(pair), "stream": asked.get("stream")}
    return {"side": asked["side"]} if asked.get("side") in SIDES else {}


@dataclass
class _TypedWords:
    """The words that the visitor put at a pair's key, and the number's name."""

    of: str = ""
    words: tuple[str, ...] = ()


def _take_word(name: str) -> None:
    word, typed = widgets.sent(_KEY, "word"), visit.memory(_TypedWords)
    if isinstance(word, str) and word.strip():
        before = typed.words if typed.of == name else ()
        typed.of, typed.words = name, tuple(dict.fromkeys((word.strip()[:_LONGEST_WORD], *before)))[:_MOST_WORDS]


def typed_words(name: str) -> tuple[str, ...]:
    """Return the words typed for a number, the last one first."""
    typed = visit.memory(_TypedWords)
    return typed.words if typed.of == name else ()


def show_why(
    packed: bytes, place: tuple[int, int], by: str, on_choice: Callable[[], None], on_open: Callable[[], None]
) -> None:
    """Show a number's writers, packed by `pack_why`, and receive choices."""
    typed = functools.partial(_take_word, name_of(packed))
    heard = {"on_choice_change": on_choice, "on_open_change": on_open, "on_word_change": typed}
    _board(key=_KEY, data=packed, height="content", **heard)
    show_channel(_KEY, layer=place[0], head=place[1], seen=widgets.serial(_KEY), by=by)


def tell_silenced(name: str, place: tuple[int, int], after: Mapping[tuple[int, int], float], which: str) -> None:
    """Send the number without each of some heads."""
    silenced = [[layer, head, number] for (layer, head), number in after.items()]
    message = {"about": "silenced", "of": name, "silenced": silenced}
    show_channel(_KEY, f"silenced-{which}", layer=place[0], head=place[1], seen=widgets.serial(_KEY), **message)


def tell_put(name: str, place: tuple[int, int], other: str, after: Mapping[tuple[int, int], float], which: str) -> None:
    """Send the number with each head patched."""
    put = [[layer, head, number] for (layer, head), number in after.items()]
    message = {"about": "put", "of": name, "other": other, "put": put}
    show_channel(_KEY, f"put-{which}", layer=place[0], head=place[1], seen=widgets.serial(_KEY), **message)


def tell_writes(name: str, place: tuple[int, int], words: Words) -> None:
    """Send a head's favoured and disfavoured words."""
    message = {"about": "writes", "of": name, "writes": [list(one) for one in words]}
    show_channel(_KEY, "writes", layer=place[0], head=place[1], seen=widgets.serial(_KEY), **message)


def tell_exchanged(name: str, place: tuple[int, int], found: Exchanged) -> None:
    """Send the score with other words at its key."""
    words = [[plain_word(word), score, weight] for word, score, weight in found.words]
    message = {"about": "exchanged", "of": name, "words": words, "refused": found.refused}
    show_channel(_KEY, "exchanged", layer=place[0], head=place[1], seen=widgets.serial(_KEY), **message)


def tell_prepared(name: str, place: tuple[int, int], run: Run, pairs: Sequence[PreparedPair]) -> None:
    """Send the findings that heads helped to write."""
    found: list[dict[str, object]] = []
    for pair in pairs:
        sides = (run.trace.query_tokens(pair.stream), pair.query), (run.trace.key_tokens(pair.stream), pair.key)
        words = " → ".join(_in_quotes(tokens, position) for tokens, position in sides)
        found.append(
            {
                "words": words,
                "pair": [pair.layer, pair.head, pair.query, pair.key],
                "stream": pair.stream,
                "wrote": pair.wrote,
                "score": pair.score,
            }
        )
    message = {"about": "prepared", "of": name, "prepared": found}
    show_channel(_KEY, "prepared", layer=place[0], head=place[1], seen=widgets.serial(_KEY), **message)
