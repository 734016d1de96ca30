"""The selection: an immutable value with all choices, group by group."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic

from attention_viz.ui.address.codec import ChoiceT, Parameter, parameters, write
from attention_viz.ui.address.state import State

__all__ = ["PAIR", "SHARED", "Group", "GroupValues", "Selection"]


@dataclass(frozen=True, eq=False)
class Group(Generic[ChoiceT]):
    """A page's URL parameters, or all pages'.

    Attributes:
        prefix: of widget keys.
        name: in `Selection.parts`, if the prefix is empty.
        follow: from its values before, and shared ones before and after.
    """

    default: ChoiceT
    prefix: str = ""
    name: str = ""
    follow: Callable[[ChoiceT, State, State], Mapping[str, Any]] | None = None

    @property
    def id(self) -> str:
        """The name in `Selection.parts`."""
        return self.name or self.prefix

    def key(self, name: str) -> str:
        """Return the key of a parameter's widget."""
        return self.prefix + name

    def parameters(self) -> Mapping[str, Parameter]:
        """Return the parameters by their names."""
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
        chosen: by a person or link; others may give way.
        pending: URL texts with unknown options, by name.
        unread: names not yet read from the URL.
        again: whether read after Back or Forward.
        known: the options' last source.
        notices: on impossible URL parts, until a choice.
        touched: whether a person chose since reading.
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
        """Return the URL parameters of the values, including pending ones."""
        return write(self.value, self.known) | dict(self.pending)


@dataclass(frozen=True)
class Selection:
    """All choices on all pages.

    Attributes:
        parts: by group `id`; missing ones are defaults.
        file: the open file's number; 0 for none.
        under: the selection before it opened.
        found_for: the `text` whose best head was found, or None.
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
        """The values that all pages share."""
        return self.of(SHARED)

    @property
    def chosen(self) -> frozenset[str]:
        """Return the shared values' names chosen by person or link."""
        return self.part(SHARED).chosen

    @property
    def text(self) -> tuple[object, ...]:
        """Return the input and its options; another may open another head."""
        one = self.shared
        return (one.model, one.shown or one.text, one.second, one.target, one.more, one.special, one.chat, self.file)

    @property
    def head_is_free(self) -> bool:
        """Return whether neither hand nor link chose the head."""
        return self.chosen.isdisjoint(("layer", "head"))

    def written(self, group: Group[Any]) -> dict[str, str]:
        """Return a group's URL parameters, including pending ones."""
        return replace(self.part(group), value=self.of(group)).written()

    def having(self, group: Group[Any], part: GroupValues) -> "Selection":
        """Return the selection with a group's values replaced."""
        return replace(self, parts={**self.parts, group.id: replace(part, group=group)})
