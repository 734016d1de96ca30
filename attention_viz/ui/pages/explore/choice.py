"""What the Explore page keeps in the address."""

from dataclasses import dataclass

import streamlit as st

from attention_viz.ui.address import State
from attention_viz.ui.address.codec import parameter
from attention_viz.ui.address.kinds import Number, Text
from attention_viz.ui.address.session import Choices
from attention_viz.ui.parts.notices import show_notices

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


_CHOICES = Choices(ExploreChoice(), "explore-")
_MORE, _OF = "explore-more", "explore-of"

# All that the page keeps in the address beside what all pages share.
ADDRESS = (_CHOICES,)


def settle(state: State) -> ExploreChoice:
    """What is chosen; where the model goes on by another number of tokens now, what comes after the last of them.

    Args:
        state: what all pages share.
    """
    if not _CHOICES.asking and st.session_state.get(_MORE, state.more) != state.more:
        _CHOICES.set(back=0)
    if not _CHOICES.asking and st.session_state.get(_OF, state.shown) != state.shown:
        _CHOICES.set(blocked="")
    st.session_state[_MORE], st.session_state[_OF] = state.more, state.shown
    choice = _CHOICES.settle(state)
    show_notices(_CHOICES.notices())
    return choice


def step(by: int) -> None:
    """Look at an earlier token, or at a later one; before the page runs again."""
    _CHOICES.set(back=max(0, _CHOICES.current().back + by))


def block(patches: str) -> None:
    """Let nobody look at some patches of the picture, or at none less; before the page runs again."""
    _CHOICES.set(blocked=patches)
