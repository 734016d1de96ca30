"""The Why page's URL choices, controls and slots."""

import bisect
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import streamlit as st

from attention_viz.sources import CATALOGUE
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import State
from attention_viz.ui.address.codec import parameter
from attention_viz.ui.address.kinds import AnyText, OneOf, WholeNumber
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.pickers import ControlRow
from attention_viz.ui.pages.compare.choice import contrast
from attention_viz.ui.parts.drawing import PicturePlace
from attention_viz.ui.runner.page import Page, Slots
from attention_viz.ui.selection import SHARED, Group, Selection

# Numbers to explain, by name in the URL.
ASKED = {"word": "Next word", "pair": "Pair score"}
SIDES = {"key": "the key", "query": "the query"}
RANKED = {"wrote": "Direct attribution", "silenced": "Ablation", "put": "Activation patching"}
# Parts that open below the number on request.
BENEATH = {"layers": "Logit lens", "weights": "Weights only"}
_LARGEST = "the head that wrote most"
# The figure's height on a wide screen.
_HEIGHT = 690


def _is_pair(choice: "WhyChoice", _: object) -> bool:
    return choice.why == "pair"


def _is_word(choice: "WhyChoice", _: object) -> bool:
    return choice.why == "word"


def _is_put(choice: "WhyChoice", _: object) -> bool:
    return choice.ranked == "put"


def _streams(state: State) -> tuple[str | None, ...]:
    """Return the streams of a score's writers: its own, and those without a softmax."""
    return (state.stream, *state.facts.mixers)


def _layers(_: object, state: State) -> Sequence[int]:
    """Return the layers before the score's own, the only ones that can write it."""
    layers = sorted({layer for stream in _streams(state) for layer in state.facts.layer_numbers(stream)})
    return layers[: bisect.bisect_left(layers, state.layer)] or layers[:1]


def _heads(choice: "WhyChoice", state: State) -> range:
    layer = choice.writer_layer or 0
    known = (stream for stream in _streams(state) if layer in state.facts.layer_numbers(stream))
    return range(state.facts.head_count(next(known, state.stream), layer))


@dataclass(frozen=True)
class WhyChoice:
    """The Why page's URL choices."""

    why: str = parameter("word", OneOf(tuple(ASKED)), "the number to explain: the next word's or the chosen pair's")
    token: str = parameter("", AnyText(), "the word to explain; empty for the likeliest", applies=_is_word)
    against: str = parameter("", AnyText(), "the word to compare with; empty for a likely one", applies=_is_word)
    side: str = parameter("key", OneOf(tuple(SIDES)), "the side of a pair score whose rows are shown", applies=_is_pair)
    ranked: str = parameter("wrote", OneOf(tuple(RANKED)), "how heads are coloured and ranked", brief=True)
    put_from: str = parameter("", AnyText(), "the text to patch heads from", applies=_is_put)
    writer_layer: int | None = parameter(
        None,
        WholeNumber(_layers, _LARGEST),
        "the chosen head's layer, for a pair score",
        applies=_is_pair,
    )
    writer_head: int | None = parameter(
        None, WholeNumber(_heads, _LARGEST), "the chosen head, for a pair score", applies=_is_pair
    )
    open: str | None = parameter(
        None, OneOf(tuple(BENEATH), nothing="nothing"), "the part open below the number", brief=True
    )


def _score(state: State) -> tuple[object, ...]:
    texts = (state.model, state.text, state.second, state.target, state.special, state.chat)
    return (*texts, state.stream, state.layer, state.head, state.query, state.key)


def _let_go(choice: WhyChoice, before: State, after: State) -> Mapping[str, str | None]:
    """Drop the chosen head for another score, since it didn't write that one, and a text that the page changed."""
    if _score(before) == _score(after):
        return {}
    left: dict[str, str | None] = {"writer_layer": None, "writer_head": None}
    return left | {"put_from": ""} if choice.put_from == contrast(before) != contrast(after) else left


WHY_CHOICES = Group(WhyChoice(), "why-", follow=_let_go)


@dataclass(frozen=True)
class Story:
    """A number worth opening; `place` is empty for the next word."""

    label: str
    model: str
    why: WhyChoice
    place: tuple[int, int, int, int] | None = None

    @property
    def text(self) -> str:
        """Return the model's example."""
        return CATALOGUE[self.model].examples[0]


_STORIES = (
    Story("Mary, not John", "SmolLM2-135M-Instruct", WhyChoice(why="word", token="Mary", against="John")),
    Story(
        "Swap the giver",
        "SmolLM2-135M-Instruct",
        WhyChoice(
            why="word",
            token="Mary",
            against="John",
            ranked="put",
            put_from="When Mary and John went to the store, Mary gave a drink to",
        ),
    ),
    Story("Induction head", "induction", WhyChoice(why="pair"), (1, 1, 6, 3)),
)


def _offer_stories() -> None:
    # A new key closes the menu once an example is chosen.
    with st.popover("Worked examples", key=widgets.fresh("why-stories")):
        for number, story in enumerate(_STORIES):
            if CATALOGUE[story.model].available:
                st.button(story.label, key=f"why-story-{number}", on_click=_take, args=(story,), type="tertiary")
                st.caption(f"{story.model}: “{story.text}”")


def _take(story: Story) -> None:
    widgets.renew("why-stories")
    choice = story.why
    visit.pick(WHY_CHOICES, why=choice.why, token=choice.token, against=choice.against, side=choice.side)
    visit.pick(WHY_CHOICES, ranked=choice.ranked, put_from=choice.put_from)
    visit.pick(SHARED, model=story.model, text=story.text, chat="off")
    if story.place is not None:
        layer, head, query, key = story.place
        # The example sets the head, not the visitor: another text opens on its own head.
        visit.fill(SHARED, layer=layer, head=head)
        visit.pick(SHARED, query=query, key=key)


def _state(selection: Selection) -> State:
    # Heads are ablated in the typed text, not in generated tokens.
    return replace(selection.shared, more=0)


def _controls(state: State, _row: ControlRow) -> None:
    # A model that predicts no words has only scores.
    visit.settle(WHY_CHOICES, state, default=None if state.facts.predicts else WhyChoice("pair"))


def _layout(_state: State, _row: ControlRow) -> Slots:
    with st.container(key="why-asked", horizontal=True, vertical_alignment="center", gap="small"):
        asked = st.container(horizontal=True, vertical_alignment="center", gap="small", width="content")
        ranked = st.container(key="why-order", width="content")
        _offer_stories()
        running = st.empty()
    with st.container(key="why-put-from", horizontal=True, vertical_alignment="center", gap="small"):
        other, progress = st.empty(), st.empty()
    notes = st.container()
    with st.container(key="stage", height=_HEIGHT, border=False):
        picture, board = st.empty(), st.container()
    named = {"asked": asked, "ranked": ranked, "running": running, "other": other, "told": progress, "notes": notes}
    named |= {"board": board, "beneath": st.container(key="why-beneath")}
    return Slots(PicturePlace(picture, stays=False), _HEIGHT, named, apart=True)


PAGE = Page(
    "Why",
    "why",
    row=functools.partial(
        pickers.choose,
        "Why",
        leave_out=("more",),
        mixers=True,
        folded="Sentence, model, layer and head, and number",
    ),
    layout=_layout,
    groups=(WHY_CHOICES,),
    state=_state,
    controls=_controls,
    address_follows_run=True,
)
