"""The changes that pages keep in the URL."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from attention_viz.serving.settings import SETTINGS
from attention_viz.ui import visit
from attention_viz.ui.address.codec import parameter
from attention_viz.ui.address.kinds import ParameterKind, fits_link
from attention_viz.ui.selection import Group

__all__ = ["CHANGES", "CHANGES_OR_NONE", "Changes", "ChangesOrNone", "current_edits"]


class EditsText(ParameterKind):
    """Changes as the URL writes them; unreadable ones are reported."""

    def read(self, name: str, text: str, instead: Any, allowed: Collection[Any] | None) -> tuple[Any, list[str]]:
        """Return the readable changes, and a sentence for each other."""
        # The kinds of change bring torch along, for which the first paint doesn't wait.
        from attention_viz.edits.changes import read_changes, write_changes

        changes, notices = read_changes(text[: SETTINGS.longest_input])
        return write_changes(changes), notices

    def write(self, value: Any) -> str | None:
        """The changes, where a link can carry them."""
        return value if fits_link(value) else None


@dataclass(frozen=True)
class Changes:
    """The changes in a page's URL."""

    edits: str = parameter("", EditsText(), "the changes, in their order", brief=True)


@dataclass(frozen=True)
class ChangesOrNone:
    """`Changes` that also writes none, or a link would bring one."""

    edits: str = parameter("", EditsText(), "the changes, in their order")


# Both are the same choice, as they have one prefix.
CHANGES = Group(Changes(), "changed-")
CHANGES_OR_NONE = Group(ChangesOrNone(), "changed-")


def current_edits() -> str:
    """Return the current changes as the URL writes them."""
    return visit.chosen(CHANGES).edits
