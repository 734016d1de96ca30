"""`answer`: the parts of a URL whose options had to be known first."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from attention_viz.ui.address.codec import Parameter, read
from attention_viz.ui.selection.value import Group, GroupValues, Selection

__all__ = ["answer"]


def answer(
    selection: Selection,
    group: Group[Any],
    known: object = None,
    *,
    default: Any = None,
    only: Collection[str] | None = None,
) -> Selection:
    """Return the selection with the pending texts of the URL answered, and all values within their options.

    Args:
        known: what the options depend on, such as a `State` or a trace.
        default: the values where the URL says nothing; by default the group's own.
        only: the names that can be answered; by default all.
    """
    part, names = selection.part(group), group.parameters().keys() if only is None else {*only}
    value, now, notices = selection.of(group), part.unread.intersection(names), list(part.notices)
    pending = {name: text for name, text in part.pending.items() if name not in now}
    if now:
        asked = {name: text for name, text in part.pending.items() if name in now}
        value, found = _answered(part, group, value, default or group.default, known, asked, now)
        notices += found
    value, _ = read(value, {}, known, only=names)
    part = replace(part, value=value, known=known, pending=pending, unread=part.unread - now, notices=tuple(notices))
    return selection.having(group, replace(part, touched=False) if now else part)


def _answered(
    part: GroupValues,
    group: Group[Any],
    value: Any,
    default: Any,
    known: object,
    asked: Mapping[str, str],
    now: Collection[str],
) -> tuple[Any, list[str]]:
    start = replace(value, **{name: getattr(default, name) for name in now})
    found, notices = read(start, asked, known, only=now)
    if part.again:
        # A URL leaves out the default, what no link can carry, and what nothing depends on.
        unchanged = [one for name, one in group.parameters().items() if name in now and name not in asked]
        unchanged = [
            one for one in unchanged if not one.applies(found, known) or _too_long(one, getattr(value, one.name))
        ]
        found = replace(found, **{one.name: getattr(value, one.name) for one in unchanged})
    return found, notices


def _too_long(one: Parameter, value: Any) -> bool:
    return value is not None and one.kind.write(value) is None
