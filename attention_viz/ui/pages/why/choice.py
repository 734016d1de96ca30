"""What the Why page keeps in the address."""

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from attention_viz.ui.address import State
from attention_viz.ui.address.codec import parameter
from attention_viz.ui.address.kinds import AnyText, OneOf, WholeNumber
from attention_viz.ui.selection import Group

__all__ = ["ASKED", "BENEATH", "RANKED", "SIDES", "WHY_CHOICES", "WhyChoice"]

# What can be asked, by its name in the address.
ASKED = {"word": "Next word", "pair": "Score of a pair"}
SIDES = {"key": "the key", "query": "the query"}
RANKED = {"wrote": "What each wrote", "silenced": "When silenced", "put": "From another text"}
# What opens beneath the number, where somebody asks for it.
BENEATH = {"layers": "Layer by layer", "weights": "By weights alone"}
_LARGEST = "that which wrote most"


def _is_pair(choice: "WhyChoice", _: object) -> bool:
    return choice.why == "pair"


def _is_word(choice: "WhyChoice", _: object) -> bool:
    return choice.why == "word"


def _is_put(choice: "WhyChoice", _: object) -> bool:
    return choice.ranked == "put"


def _layers(_: object, state: State) -> Sequence[int]:
    """Return the layers before the score's own, which alone can have written it."""
    before = state.layers[: bisect.bisect_left(state.layers, state.layer)]
    return before or state.layers[:1]


def _heads(choice: "WhyChoice", state: State) -> range:
    return range(state.facts.head_count(state.stream, choice.writer_layer or 0))


@dataclass(frozen=True)
class WhyChoice:
    """The Why page's own choices in the URL."""

    why: str = parameter("word", OneOf(tuple(ASKED)), "which number is opened: of the next word, or of the chosen pair")
    token: str = parameter("", AnyText(), "the word that is asked about; empty for the likeliest", applies=_is_word)
    against: str = parameter(
        "", AnyText(), "the word that it is told against; empty for a likely one", applies=_is_word
    )
    side: str = parameter("key", OneOf(tuple(SIDES)), "of a pair's score, whose rows are shown", applies=_is_pair)
    ranked: str = parameter("wrote", OneOf(tuple(RANKED)), "what heads are coloured and ordered by", brief=True)
    put_from: str = parameter("", AnyText(), "the text whose heads are put into this one", applies=_is_put)
    writer_layer: int | None = parameter(
        None,
        WholeNumber(_layers, _LARGEST),
        "of a pair's score, the layer of the head that is told of",
        applies=_is_pair,
    )
    writer_head: int | None = parameter(
        None, WholeNumber(_heads, _LARGEST), "of a pair's score, the head that is told of", applies=_is_pair
    )
    open: str | None = parameter(
        None, OneOf(tuple(BENEATH), nothing="nothing"), "what is open beneath the number", brief=True
    )


def _score(state: State) -> tuple[object, ...]:
    texts = (state.model, state.text, state.second, state.target, state.special, state.chat)
    return (*texts, state.stream, state.layer, state.head, state.query, state.key)


def _let_go(_choice: WhyChoice, before: State, after: State) -> Mapping[str, None]:
    """Return what follows from another score: the head that was chosen of the one before is none of its writers."""
    return {} if _score(before) == _score(after) else {"writer_layer": None, "writer_head": None}


WHY_CHOICES = Group(WhyChoice(), "why-", follow=_let_go)
