"""The changes that pages keep in the URL."""

from dataclasses import dataclass

from attention_viz.ui import visit
from attention_viz.ui.address.codec import parameter
from attention_viz.ui.address.kinds import AnyText
from attention_viz.ui.selection import Group


def _changes(_name: str, text: str, _instead: object) -> tuple[str, list[str]]:
    """Return the readable changes, and a sentence for each other."""
    # The kinds of change bring torch along, for which the first paint doesn't wait.
    from attention_viz.edits.changes import read_changes, write_changes

    changes, notices = read_changes(text)
    return write_changes(changes), notices


@dataclass(frozen=True)
class Changes:
    """The changes in a page's URL."""

    edits: str = parameter("", AnyText(reader=_changes), "the changes, in their order", brief=True)


@dataclass(frozen=True)
class ChangesOrNone:
    """`Changes` that also writes none, because a link would bring one."""

    edits: str = parameter("", AnyText(reader=_changes), "the changes, in their order")


# Both are the same choice, as they have one prefix.
CHANGES = Group(Changes(), "changed-")
CHANGES_OR_NONE = Group(ChangesOrNone(), "changed-")


def current_edits() -> str:
    """Return the current changes' URL text."""
    return visit.chosen(CHANGES).edits
