"""The selection, and its events."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic

from attention_viz.ui.address.codec import ChoiceT, Parameter, parameters, write
from attention_viz.ui.address.state import State


@dataclass(frozen=True, eq=False)
class Group(Generic[ChoiceT]):
    """URL parameters of one page, or of all.

    Attributes:
        name: the name in `Selection.parts`, if the prefix is empty.
        follow: returns consequences of changed shared values, from the group's own before, and the shared ones before
            and after.
    """

    default: ChoiceT
    prefix: str = ""
    name: str = ""
    follow: Callable[[ChoiceT, State, State], Mapping[str, Any]] | None = None

    @property
    def id(self) -> str:
        """Return the name in `Selection.parts`."""
        return self.name or self.prefix

    def key(self, name: str) -> str:
        """Return the key of a parameter's widget."""
        return self.prefix + name

    def parameters(self) -> Mapping[str, Parameter]:
        """Return the parameters by name."""
        return _by_name(type(self.default))


@functools.cache
def _by_name(kind: type[Any]) -> Mapping[str, Parameter]:
    return {one.name: one for one in parameters(kind)}


SHARED = Group(State(), name="shared")
# The positions of the chosen pair, among the shared parameters.
PAIR = ("query", "key")


@dataclass(frozen=True)
class GroupValues:
    """One group's values.

    Attributes:
        chosen: names chosen by a person or a link; the others may give way.
        pending: URL texts whose options aren't known yet, by name.
        unread: names not read from the URL yet.
        again: whether the URL was read after Back or Forward.
        notices: a sentence for each impossible part of the URL, until a choice.
        touched: whether a person chose something since the URL was read.
    """

    value: Any
    chosen: frozenset[str] = frozenset()
    pending: Mapping[str, str] = field(default_factory=dict[str, str])
    unread: frozenset[str] = frozenset()
    again: bool = False
    known: object = None
    notices: tuple[str, ...] = ()
    touched: bool = False
    group: Group[Any] | None = None

    def written(self) -> dict[str, str]:
        """Return the URL parameters, with those still pending."""
        return write(self.value, self.known) | dict(self.pending)


@dataclass(frozen=True)
class Selection:
    """Everything a person chose, on all pages.

    Attributes:
        parts: each group's values, by its `id`; without an entry, the defaults.
        file: the open trace file's number; 0 for none.
        under: the selection before that file was opened.
        found_for: the `text` that a page has found its best head for; None for none.
    """

    parts: Mapping[str, GroupValues] = field(default_factory=dict[str, GroupValues])
    file: int = 0
    under: "Selection | None" = None
    found_for: object = None

    def part(self, group: Group[Any]) -> GroupValues:
        """Return a group's part."""
        return self.parts.get(group.id) or GroupValues(group.default)

    def of(self, group: Group[ChoiceT]) -> ChoiceT:
        """Return a group's values."""
        value = self.part(group).value
        kind = type(group.default)
        # Two groups with one prefix hold the same values, and differ in what they write.
        return (
            value if type(value) is kind else kind(**{one.name: getattr(value, one.name) for one in parameters(kind)})
        )

    @property
    def shared(self) -> State:
        """The shared values."""
        return self.of(SHARED)

    @property
    def chosen(self) -> frozenset[str]:
        """Return the shared values that a person or a link chose."""
        return self.part(SHARED).chosen

    @property
    def text(self) -> tuple[object, ...]:
        """Return the input and its options: another text may open on another head."""
        one = self.shared
        text = one.text if one.facts.reads.has_text else ""
        return (one.model, text, one.shown, one.second, one.target, one.more, one.special, one.chat, self.file)

    @property
    def head_is_free(self) -> bool:
        """Return whether neither a person nor a link chose the head."""
        return self.chosen.isdisjoint(("layer", "head"))

    def written(self, group: Group[Any]) -> dict[str, str]:
        """Return a group's URL parameters, with those still pending."""
        return replace(self.part(group), value=self.of(group)).written()

    def having(self, group: Group[Any], part: GroupValues) -> "Selection":
        """Return this selection with another part of a group."""
        return replace(self, parts={**self.parts, group.id: replace(part, group=group)})


@dataclass(frozen=True)
class PageOpened:
    """A page opened: at a first visit, after a reload, Back or Forward, or from another page.

    Attributes:
        again: whether Back or Forward led here.
        asked: parameters that another page just set, whatever was chosen here before.
    """

    address: Mapping[str, str]
    groups: tuple[Group[Any], ...] = ()
    example: State | None = None
    again: bool = False
    asked: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Picked:
    """Values that a person set."""

    group: Group[Any]
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Filled:
    """Values that a page set, not a person.

    Attributes:
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
    """A click in a figure of one head, or of all.

    Attributes:
        head: None if the picture merges all heads.
        stream: None for the shown one.
        pair: query and key positions; None if the click chose none.
    """

    layer: int
    head: int | None
    stream: str | None = None
    pair: tuple[int | None, int | None] | None = None


@dataclass(frozen=True)
class FileOpened:
    """An opened trace file, with its texts by box name."""

    number: int
    texts: Mapping[str, str]


@dataclass(frozen=True)
class FileClosed:
    """A closed trace file."""


Event = PageOpened | Picked | Filled | Clicked | FileOpened | FileClosed
