"""What the Explore page keeps in the address."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from attention_viz.trace.shown.kind import InputKind
from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.address.codec import parameter
from attention_viz.ui.address.kinds import AnyText, WholeNumber
from attention_viz.ui.selection import Group

__all__ = ["EXPLORE", "ExploreChoice", "block", "step"]


def _steps(choice: object, state: State) -> range:
    return range(state.more + 1)


def _picture(choice: object, state: State) -> bool:
    return state.facts.reads == InputKind.PICTURE


@dataclass(frozen=True)
class ExploreChoice:
    """The Explore page's own choices in the URL."""

    back: int = parameter(
        0, WholeNumber(_steps), "how many tokens before the last one what comes next is shown", brief=True
    )
    blocked: str = parameter(
        "", AnyText(longest=1_500), "patches of a picture that nobody may look at", applies=_picture, brief=True
    )


def _follow(_choice: ExploreChoice, before: State, after: State) -> Mapping[str, Any]:
    """Go back to the last token when their number changes; block nothing in another picture."""
    return ({"back": 0} if before.more != after.more else {}) | ({"blocked": ""} if before.shown != after.shown else {})


EXPLORE = Group(ExploreChoice(), "explore-", follow=_follow)


def step(by: int) -> None:
    """Move by tokens, before the page reruns."""
    visit.pick(EXPLORE, back=max(0, visit.chosen(EXPLORE).back + by))


def block(patches: str) -> None:
    """Block these patches, or none, before the page reruns."""
    visit.pick(EXPLORE, blocked=patches)
