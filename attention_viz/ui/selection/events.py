"""What can happen to a selection: each event says what a person did, or what a page found out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from attention_viz.ui.address.state import State
from attention_viz.ui.selection.value import Group

__all__ = ["Clicked", "Event", "FileClosed", "FileOpened", "Filled", "PageOpened", "Picked"]


@dataclass(frozen=True)
class PageOpened:
    """A page is shown: at a first visit, after a reload, Back or Forward, or turned to from another page.

    Attributes:
        groups: what the page keeps in the URL beside what all pages share.
        example: the page's own default, if the URL names no other model.
        again: whether Back or Forward led here.
        asked: parameters of the page's own that another page asked for just now, whatever was chosen here before.
    """

    address: Mapping[str, str]
    groups: tuple[Group[Any], ...] = ()
    example: State | None = None
    again: bool = False
    asked: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Picked:
    """A person set values: with a control, an example, a story.

    Attributes:
        values: by the names of the parameters.
    """

    group: Group[Any]
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Filled:
    """A page set values by itself, which nobody chose.

    Attributes:
        values: by the names of the parameters.
        notices: a sentence for each value that had to give way.
        stays: whether they count as chosen from now on.
        late: whether they belong to the URL that was read, so that nothing follows from them.
    """

    group: Group[Any]
    values: Mapping[str, Any]
    notices: tuple[str, ...] = ()
    stays: bool = False
    late: bool = False


@dataclass(frozen=True)
class Clicked:
    """A person clicked in a picture of one head, or of all.

    Attributes:
        head: the head; None if the picture is of all heads together.
        stream: the kind of attention; None for the one that is shown.
        pair: the positions of query and key; None if the click chose no pair.
    """

    layer: int
    head: int | None
    stream: str | None = None
    pair: tuple[int | None, int | None] | None = None


@dataclass(frozen=True)
class FileOpened:
    """A trace file was opened.

    Attributes:
        texts: the texts that ran, by the names of the boxes.
    """

    number: int
    texts: Mapping[str, str]


@dataclass(frozen=True)
class FileClosed:
    """The open trace file was closed."""


Event = PageOpened | Picked | Filled | Clicked | FileOpened | FileClosed
