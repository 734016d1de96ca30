"""A selection's events: people's actions and pages' findings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from attention_viz.ui.address.state import State
from attention_viz.ui.selection.value import Group

__all__ = ["Clicked", "Event", "FileClosed", "FileOpened", "Filled", "PageOpened", "Picked"]


@dataclass(frozen=True)
class PageOpened:
    """A page is shown, by visit, reload, Back, Forward or another page.

    Attributes:
        example: its default, if the URL names no other model.
        again: whether by Back or Forward.
        asked: another page's request; overrides earlier choices.
    """

    address: Mapping[str, str]
    groups: tuple[Group[Any], ...] = ()
    example: State | None = None
    again: bool = False
    asked: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Picked:
    """A person's new values, from a control, example or story."""

    group: Group[Any]
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Filled:
    """A page's own values, which nobody chose.

    Attributes:
        notices: on values that gave way.
        stays: whether they count as chosen.
        late: whether they belong to the URL read, so that nothing follows.
    """

    group: Group[Any]
    values: Mapping[str, Any]
    notices: tuple[str, ...] = ()
    stays: bool = False
    late: bool = False


@dataclass(frozen=True)
class Clicked:
    """A click in a picture.

    Attributes:
        head: None for all together.
        stream: None for the shown one.
        pair: query and key positions, or None.
    """

    layer: int
    head: int | None
    stream: str | None = None
    pair: tuple[int | None, int | None] | None = None


@dataclass(frozen=True)
class FileOpened:
    """A trace file opened, with texts by box name."""

    number: int
    texts: Mapping[str, str]


@dataclass(frozen=True)
class FileClosed:
    """The open trace file was closed."""


Event = PageOpened | Picked | Filled | Clicked | FileOpened | FileClosed
