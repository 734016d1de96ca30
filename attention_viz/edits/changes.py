"""All kinds of change, found in `attention_viz.edits.kinds`, as URL parameters and as sentences."""

import re
from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from attention_viz.edits import kinds
from attention_viz.edits.change import ASKS, Change, EditKind, Spell, stream_of
from attention_viz.edits.words import stream_words

if TYPE_CHECKING:
    from attention_viz.edits.edit import Edit
    from attention_viz.trace.trace import Trace

__all__ = ["EDITS", "MOST", "describe", "misfit", "read_changes", "to_edits", "write_changes"]


def _found() -> dict[str, EditKind]:
    modules = [import_module(f"{kinds.__name__}.{found.name}") for found in iter_modules(kinds.__path__)]
    every: list[EditKind] = [entry for module in modules for entry in module.KINDS]
    return {entry.name: entry for entry in sorted(every, key=lambda entry: ASKS.index(type(entry.asks)))}


# By the name in the address, in the order in which pages offer them.
EDITS = _found()


# As many as a list on a page can tell.
MOST = 20

_PART = re.compile(r"([a-z]+)(?::([^@]*))?(?:@(.+))?")
_PLACE = re.compile(
    r"(?P<stream>encoder|decoder|cross|picture|sound|mixer(?: [2-9])?)?"
    r"(?:(?(stream)\.)(?P<layer>[0-9]{1,4})(?:\.(?P<head>[0-9]{1,4}))?)?"
)


def write_changes(changes: Sequence[Change]) -> str:
    """Write changes as one URL parameter, "zero@3.1;temp:0.5@3;block:4>5"."""
    return ";".join(_written(change) for change in changes)


def read_changes(text: str) -> tuple[tuple[Change, ...], list[str]]:
    """Read a URL's changes, with a sentence per unreadable part."""
    changes, notices = list[Change](), list[str]()
    for part in (one.strip() for one in text.split(";")):
        change = _read(part) if part else None
        if change is not None and len(changes) < MOST:
            changes.append(change)
        elif change is not None:
            notices.append(f"The URL has more than {MOST} changes; {_short(part)} is left out.")
        elif part:
            notices.append(f"The URL has an unknown change, {_short(part)}, which is left out. Use {_allowed()}.")
    return tuple(changes), notices[:MOST]


def misfit(change: Change, trace: "Trace") -> str:
    """Explain why a change doesn't fit model and text; empty if it does."""
    if change.stream not in trace.streams and (change.stream is not None or len(trace.attention_streams) > 1):
        return f"this model has {', '.join(stream_words(stream) for stream in trace.streams)}"
    stream, kind = stream_of(change, trace), EDITS[change.what]
    if not kind.fits_stream(stream, trace):
        have = "have no softmax" if stream in trace.mixers else "have a softmax"
        return f"“{kind.label}” can't change layers that {have}"
    if stream in trace.mixers:
        return _misfit_of_mixer(change, trace, stream) or _beyond(change, trace, stream) or kind.misfit(change, trace)
    kept = trace.kept[stream]
    if change.layer is not None and change.layer not in kept.every:
        silent = f"layer {change.layer} has no softmax attention: " if change.layer in kept.without else ""
        return f"{silent}this model {kept.there}"
    if not kept.whole:
        return f"changes need every layer of the model, and this trace keeps only some ({kept.listed})"
    if change.head is not None and change.head >= (
        heads := trace.head_count(kept.every[0] if change.layer is None else change.layer, stream)
    ):
        return f"this layer has {_upto('head', heads)}"
    return _beyond(change, trace, stream) or kind.misfit(change, trace)


def _misfit_of_mixer(change: Change, trace: "Trace", stream: str) -> str:
    numbers = trace.layer_numbers(stream)
    if change.layer is not None and change.layer not in numbers:
        return f"the {stream} has layers {', '.join(map(str, numbers))}"
    heads = trace.head_count(numbers[0] if change.layer is None else change.layer, stream)
    return f"this layer has {_upto('head', heads)}" if change.head is not None and change.head >= heads else ""


def _beyond(change: Change, trace: "Trace", stream: str) -> str:
    queries, keys = len(trace.query_tokens(stream)), len(trace.key_tokens(stream))
    if any(query >= queries or key >= keys for query, key in change.cells):
        columns = "" if keys == queries else f", and {_upto('position', keys)} to attend to"
        return f"this text has {_upto('position', queries)}{columns}"
    return ""


def describe(change: Change, trace: "Trace", spell: Spell = str) -> str:
    """Describe a change, with token names if known, as `spell` writes them."""
    return EDITS[change.what].words(change, trace, spell)


def to_edits(change: Change, trace: "Trace") -> "tuple[Edit, ...]":
    """Turn a change into edits, one per head for single-head kinds."""
    return EDITS[change.what].make(change, trace)


def _written(change: Change) -> str:
    detail = EDITS[change.what].asks.write(change)
    place = ".".join(str(part) for part in (change.stream, change.layer, change.head) if part is not None)
    return change.what + (f":{detail}" if detail is not None else "") + (f"@{place}" if place else "")


def _read(part: str) -> Change | None:
    """None if unreadable."""
    found = _PART.fullmatch(part)
    place = None if found is None else _PLACE.fullmatch(found[3] or "")
    if found is None or place is None or found[1] not in EDITS:
        return None
    layer, head = (None if place[name] is None else int(place[name]) for name in ("layer", "head"))
    return EDITS[found[1]].asks.read(Change(found[1], layer, head, place["stream"]), found[2])


def _allowed() -> str:
    *first, last = (entry.example for entry in EDITS.values())
    return (
        f"{', '.join(first)} or {last}, each for all heads or with its place: @3 for a layer, @3.1 for a head, "
        "@cross.3.1 for a head of a stream. Separate changes by “;”"
    )


def _upto(what: str, count: int) -> str:
    return f"only {what} 0" if count == 1 else f"{what}s 0 to {count - 1}"


def _short(part: str) -> str:
    return f"“{part if len(part) <= 40 else part[:39] + '…'}”"
