"""The selection after an event, a URL or a run."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, assert_never

from attention_viz.trace.kind import MEDIA, InputKind
from attention_viz.ui.address.codec import Parameter, modernised, read
from attention_viz.ui.address.state import opened_on, own_example, own_sample
from attention_viz.ui.selection.events import (
    PAIR,
    SHARED,
    Clicked,
    Event,
    FileClosed,
    FileOpened,
    Filled,
    Group,
    GroupValues,
    PageOpened,
    Picked,
    Selection,
)

# With another text, model or image, the old positions mean nothing.
_RUNS = frozenset(("model", "text", *MEDIA, "second", "target", "more", "special", "chat"))
# Options that rerun a text close an open file.
_CLOSES = _RUNS | {"evict", "sample"}
# Values that a file replaces: its texts fill the boxes while it is open, and its first head is shown.
_TEXTS = ("text", "second", "target")
_HEAD = ("layer", "head", "stream")


def answer(
    selection: Selection,
    group: Group[Any],
    known: object = None,
    *,
    default: Any = None,
    only: Collection[str] | None = None,
) -> Selection:
    """Answer the URL's pending texts, and limit all values to their options.

    Args:
        known: the options' dependency, such as a `State` or a trace.
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


def update(selection: Selection, event: Event) -> Selection:
    """Return the selection after an event."""
    after = _applied(selection, event)
    match event:
        case PageOpened(groups=groups):
            # The URL says what its own page shows.
            return _followed(selection, after, but={group.id for group in groups}) if selection.parts else after
        case Filled(late=True) | FileClosed():
            return after
        case _:
            return _followed(selection, after, by_hand=isinstance(event, Picked | Clicked))


def _followed(
    before: Selection, selection: Selection, *, by_hand: bool = False, but: Collection[str] = ()
) -> Selection:
    """Apply each page's consequences of changed shared values."""
    if selection.shared == before.shared:
        return selection
    for name, part in selection.parts.items():
        group = part.group
        # A link's value stays until it is answered, unless a person chose another meanwhile.
        if group is None or group.follow is None or name in but or (part.unread and not by_hand):
            continue
        values = group.follow(selection.of(group), before.shared, selection.shared)
        if values:
            pending = {name: text for name, text in part.pending.items() if name not in values}
            part = replace(part, value=replace(part.value, **values), pending=pending)
            selection = selection.having(group, part)
    return selection


def _applied(selection: Selection, event: Event) -> Selection:
    match event:
        case PageOpened():
            return _opened(selection, event)
        case Picked(group=group, values=values):
            return _picked(selection, group, values)
        case Filled(group=group):
            part = selection.part(group)
            chosen = part.chosen | event.values.keys() if event.stays else part.chosen - event.values.keys()
            value = replace(selection.of(group), **event.values)
            touched = part.touched and not event.notices
            notices = (*part.notices, *event.notices)
            part = replace(part, value=value, chosen=chosen, notices=notices, touched=touched)
            return selection.having(group, part)
        case Clicked():
            return _clicked(selection, event)
        case FileOpened(number=number, texts=texts):
            values = {"layer": 0, "head": 0, "stream": None, "query": None, "key": None, **texts}
            found = update(selection, Filled(SHARED, values))
            return replace(found, file=number, under=selection.under or selection)
        case FileClosed():
            return _restored(selection)
        case _:
            assert_never(event)


def _opened(selection: Selection, event: PageOpened) -> Selection:
    address = modernised([type(one.default) for one in event.groups], event.address)
    first = SHARED.id not in selection.parts
    if event.again or first:
        selection = _closed(selection)
    for group in (*event.groups, SHARED):
        if event.again or group.id not in selection.parts:
            names = group.parameters().keys()
            pending = {name: text for name, text in address.items() if name in names}
            part = GroupValues(
                selection.of(group), frozenset(pending), pending, frozenset(names), again=group.id in selection.parts
            )
            selection = selection.having(group, part)
    for group in event.groups:
        selection = _asked(selection, group, event.asked)
    if not (event.again or first):
        return selection
    model = address.get("model", (event.example or SHARED.default).model)
    default = replace(SHARED.default, text=own_example(model), **own_sample(model), **opened_on(model))
    if event.example is None or model != event.example.model:
        return answer(selection, SHARED, default=default)
    selection = answer(selection, SHARED, default=event.example)
    return update(selection, Filled(SHARED, {"stream": event.example.stream}, stays=True))


def _asked(selection: Selection, group: Group[Any], asked: Mapping[str, str]) -> Selection:
    """Keep another page's parameters pending."""
    part = selection.part(group)
    asked = {name: text for name, text in asked.items() if name in group.parameters()}
    if not asked:
        return selection
    names = part.unread | asked.keys()
    return selection.having(group, replace(part, pending={**part.pending, **asked}, unread=names, notices=()))


def _picked(selection: Selection, group: Group[Any], values: Mapping[str, Any]) -> Selection:
    if group.id == SHARED.id and _CLOSES & values.keys():
        # A text that is typed is to be run: even the text of the file itself.
        selection = _closed(selection)
    before = selection.of(group)
    found = {name: value for name, value in values.items() if getattr(before, name) != value}
    if group.id == SHARED.id:
        found = _implied(selection, found)
    part = selection.part(group)
    # A person's choice replaces the URL's.
    pending = {name: text for name, text in part.pending.items() if name not in values}
    part = replace(part, pending=pending, unread=part.unread - values.keys())
    chosen = (part.chosen | values.keys()) - (found.keys() - values.keys())
    if group.id == SHARED.id and not {"layer", "head"} & found.keys():
        # An unchosen head stays free if the same value is picked again.
        chosen -= {"layer", "head"} - part.chosen
    if not found:
        return selection.having(group, replace(part, chosen=chosen))
    part = replace(part, value=replace(before, **found), chosen=chosen, notices=(), touched=True)
    return selection.having(group, part)


def _implied(selection: Selection, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the set values, with their consequences."""
    before, found = selection.shared, dict(values)
    if (model := found.get("model")) is not None:
        if "text" not in found and before.text == own_example(before.model):
            found["text"] = own_example(model)
        found = own_sample(model, before) | found
        if selection.head_is_free and not {"layer", "head"} & found.keys():
            found |= opened_on(model)
    if _RUNS & found.keys() and not found.keys() & set(PAIR):
        found |= dict.fromkeys(PAIR)
    return found


def _clicked(selection: Selection, event: Clicked) -> Selection:
    before = selection.shared
    values: dict[str, Any] = {"layer": event.layer}
    if event.head is not None:
        values["head"] = event.head
    if event.stream is not None:
        values["stream"] = event.stream
    if event.pair is not None:
        values |= dict(zip(PAIR, event.pair, strict=True))
    # A pair in an unchosen head leaves that head free: another text opens on its own finding.
    moved = {name: value for name, value in values.items() if name in PAIR or getattr(before, name) != value}
    return _picked(selection, SHARED, moved)


def _restored(selection: Selection) -> Selection:
    """Return the selection before a file was opened, with later page choices."""
    under = selection.under
    if under is None:
        return selection
    opened = update(under, FileOpened(1, {name: getattr(selection.shared, name) for name in _TEXTS}))
    closed = _closed(selection, (*_TEXTS, *_HEAD, *PAIR))
    followed = _followed(selection, closed)
    for group_id, part in closed.parts.items():
        # Restore the values from before the file was opened, unless others were chosen since.
        is_as_opened = group_id in under.parts and part.value == opened.parts[group_id].value
        if part.group is not None and part.group.follow is not None and is_as_opened:
            followed = followed.having(part.group, replace(part, value=under.parts[group_id].value))
    return replace(followed, found_for=under.found_for)


def _closed(selection: Selection, back: Collection[str] = (*_TEXTS, *_HEAD)) -> Selection:
    """Drop the open file and its pair; restore these names' earlier values."""
    under = selection.under
    if under is None:
        return selection
    part, values = selection.part(SHARED), dict.fromkeys(PAIR) | {name: getattr(under.shared, name) for name in back}
    chosen = (part.chosen - values.keys()) | under.chosen.intersection(back)
    part = replace(part, value=replace(selection.shared, **values), chosen=chosen)
    return replace(selection.having(SHARED, part), file=0, under=None)


class HeadFinding(Protocol):
    """The best finding's head."""

    @property
    def layer(self) -> int:
        """Return the layer's number."""
        ...

    @property
    def head(self) -> int:
        """Return the head's number in its layer."""
        ...

    @property
    def stream(self) -> str:
        """Return the kind of attention."""
        ...


@dataclass(frozen=True)
class Ran:
    """A run's facts for a selection.

    Attributes:
        counts: the numbers of queries and keys, by stream.
        best: finds the best finding; None if there is none.
    """

    counts: Mapping[str, tuple[int, int]]
    best: Callable[[], HeadFinding | None]


def resolve(selection: Selection, ran: Ran) -> Selection:
    """Drop a pair that the text lacks, and replace an unchosen head by the best finding's; idempotent."""
    return replace(_resolved(selection, ran), found_for=selection.text)


def _resolved(selection: Selection, ran: Ran) -> Selection:
    shared = selection.shared
    stream = shared.stream if shared.stream in ran.counts else None
    stream = stream or next(iter(ran.counts))
    pair = zip((shared.query, shared.key), ran.counts[stream], strict=True)
    if any(at is not None and at >= count for at, count in pair):
        selection = update(selection, Filled(SHARED, dict.fromkeys(PAIR)))
        shared = selection.shared
    has_pair = shared.query is not None or shared.key is not None
    if not selection.head_is_free or has_pair or (best := ran.best()) is None:
        return selection
    values: dict[str, Any] = {"layer": best.layer, "head": best.head}
    if len(ran.counts) > 1 and best.stream != stream:
        # People bring audio to see its transcript, so an encoder's finding doesn't replace the cross-attention.
        said = shared.facts.reads == InputKind.SOUND and stream == "cross"
        if "stream" in selection.chosen or said:
            return selection
        values["stream"] = best.stream
    if all(getattr(shared, name) == value for name, value in values.items()):
        return selection
    return update(selection, Filled(SHARED, values))
