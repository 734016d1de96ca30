"""What the Why page keeps in the address."""

from dataclasses import dataclass

from attention_viz.ui.address.codec import parameter
from attention_viz.ui.address.kinds import OneOf, Text
from attention_viz.ui.address.session import Choices

__all__ = ["ADDRESS", "ASKED", "SIDES", "WHY_CHOICES", "WhyChoice"]

# What can be asked, by its name in the address.
ASKED = {"word": "Next word", "pair": "Score of a pair"}
SIDES = {"key": "the key", "query": "the query"}


def _is_pair(choice: "WhyChoice", _: object) -> bool:
    return choice.why == "pair"


def _is_word(choice: "WhyChoice", _: object) -> bool:
    return choice.why == "word"


@dataclass(frozen=True)
class WhyChoice:
    """What the Why page keeps in the address beside what all pages share."""

    why: str = parameter("word", OneOf(tuple(ASKED)), "which number is opened: of the next word, or of the chosen pair")
    token: str = parameter("", Text(), "the word that is asked about; empty for the likeliest", applies=_is_word)
    against: str = parameter("", Text(), "the word that it is told against; empty for a likely one", applies=_is_word)
    side: str = parameter("key", OneOf(tuple(SIDES)), "of a pair's score, whose rows are shown", applies=_is_pair)


WHY_CHOICES = Choices(WhyChoice(), "why-")

# All that the page keeps in the address beside what all pages share.
ADDRESS = (WHY_CHOICES,)
