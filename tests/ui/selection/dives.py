"""Two groups of parameters that no page has, and the first steps of a session with them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from attention_viz.ui.address.codec import Older, parameter
from attention_viz.ui.address.kinds import AnyText, Names, OneOf, WholeNumber
from attention_viz.ui.selection import Group, PageOpened, Selection, answer, update

__all__ = ["DEPTHS", "DIVE", "VALUES", "WRITTEN", "Dive", "Values", "open_dive"]


def _depths(choice: "Dive", known: Any) -> range:
    return range(known[choice.place])


@dataclass(frozen=True)
class Dive:
    """Parameters that depend on each other and on what is known."""

    place: str = parameter("sea", OneOf(("sea", "lake")), "where")
    depth: int = parameter(
        1, WholeNumber(_depths), "how deep", older=Older("level", lambda address: "place" in address)
    )
    only: int | None = parameter(None, WholeNumber(_depths, nothing="all"), "the only one")
    note: str = parameter("", AnyText(), "a note", brief=True)
    boat: str = parameter("small", OneOf(("small", "large")), "the boat", applies=lambda dive, _: dive.place == "sea")


@dataclass(frozen=True)
class Values:
    """One parameter of each other kind."""

    moment: int = parameter(0, OneOf((0, 400, 425)), "one of several numbers")
    name: str | None = parameter(None, OneOf(("a", "b"), nothing="none"), "a name, or none")
    several: tuple[str, ...] = parameter((), Names(lambda _, known: known), "several names")


DIVE, VALUES = Group(Dive(), "dive-"), Group(Values(), "values-")
# The number of depths of each place.
DEPTHS = {"sea": 9, "lake": 3}
# What the defaults write into the URL.
WRITTEN = {"place": "sea", "depth": "1", "boat": "small"}


def open_dive(address: Mapping[str, str], before: Selection | None = None, *, again: bool = False) -> Selection:
    """Open a page with dives at a URL, in a new session unless one is passed."""
    return answer(update(before or Selection(), PageOpened(address, (DIVE,), again=again)), DIVE, DEPTHS)
