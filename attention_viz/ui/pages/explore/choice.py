"""What the Explore page keeps in the address."""

from dataclasses import dataclass

from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.address.codec import parameter
from attention_viz.ui.address.kinds import Number, Text
from attention_viz.ui.parts.notices import show_notices
from attention_viz.ui.selection import Group

__all__ = ["ADDRESS", "ExploreChoice", "block", "settle", "step"]


def _steps(choice: object, state: State) -> range:
    return range(state.more + 1)


def _picture(choice: object, state: State) -> bool:
    return state.facts.reads == "picture"


@dataclass(frozen=True)
class ExploreChoice:
    """What the Explore page keeps in the address beside what all pages share."""

    back: int = parameter(0, Number(_steps), "how many tokens before the last one what comes next is shown", brief=True)
    blocked: str = parameter(
        "", Text(longest=1_500), "patches of a picture that nobody may look at", applies=_picture, brief=True
    )


_CHOICES = Group(ExploreChoice(), "explore-")


@dataclass
class _Last:
    """How many tokens the model went on by, and what was read, when the page ran last."""

    more: int | None = None
    shown: str | None = None


# All that the page keeps in the address beside what all pages share.
ADDRESS = (_CHOICES,)


def settle(state: State) -> ExploreChoice:
    """What is chosen; where the model goes on by another number of tokens now, what comes after the last of them.

    Args:
        state: what all pages share.
    """
    last = visit.memory(_Last)
    if not visit.is_unread(_CHOICES) and last.more not in (None, state.more):
        visit.fill(_CHOICES, back=0)
    if not visit.is_unread(_CHOICES) and last.shown not in (None, state.shown):
        visit.fill(_CHOICES, blocked="")
    last.more, last.shown = state.more, state.shown
    choice = visit.settle(_CHOICES, state)
    show_notices(visit.notices(_CHOICES))
    return choice


def step(by: int) -> None:
    """Look at an earlier token, or at a later one; before the page runs again."""
    visit.pick(_CHOICES, back=max(0, visit.chosen(_CHOICES).back + by))


def block(patches: str) -> None:
    """Let nobody look at some patches of the picture, or at none less; before the page runs again."""
    visit.pick(_CHOICES, blocked=patches)
