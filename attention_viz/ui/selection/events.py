"""A selection's events: people's actions and pages' findings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from attention_viz.ui.address.state import State
from attention_viz.ui.selection.value import Group

__all__ = ["Clicked", "Event", "FileClosed", "FileOpened", "Filled", "PageOpened", "Picked"]


@dataclass(frozen=True)
class PageOpened:
    """A page is shown, by visit, reload, Back, Forward or from another page.

    Attributes:
        groups: its parameters beside the shared ones.
        example: its default, if the URL names no other model.
        again: whether Back or Forward led here.
        asked: parameters just requested by another page; they override earlier choices.
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
        notices: a sentence for each value that gave way.
        stays: whether they count as chosen from now on.
        late: whether they belong to the URL read, so that nothing follows.
    """

    group: Group[Any]
    values: Mapping[str, Any]
    notices: tuple[str, ...] = ()
    stays: bool = False
    late: bool = False


@dataclass(frozen=True)
class Clicked:
    """A click in a picture of one head, or of all.

    Attributes:
        head: None for all heads together.
        stream: None for the shown one.
        pair: query and key positions; None if none was chosen.
    """

    layer: int
    head: int | None
    stream: str | None = None
    pair: tuple[int | None, int | None] | None = None


@dataclass(frozen=True)
class FileOpened:
    """A trace file was opened.

    Attributes:
        texts: its texts, by box name.
    """

    number: int
    texts: Mapping[str, str]


@dataclass(frozen=True)
class FileClosed:
    """The open trace file was closed."""


Event = PageOpened | Picked | Filled | Clicked | FileOpened | FileClosed
