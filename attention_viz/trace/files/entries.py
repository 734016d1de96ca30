"""Pack and read header entries: tokens, provenance, fidelity and kept layers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar, cast

from attention_viz.errors import TraceError
from attention_viz.trace.chat.segments import MOST_SEGMENTS, Segment
from attention_viz.trace.decoding import Decoding
from attention_viz.trace.files.facts import MOST_LAYERS
from attention_viz.trace.files.format import WEIGHTS
from attention_viz.trace.files.rounding import DTYPES
from attention_viz.trace.kept import KeptLayers, LayerIndex, LayerNumber, numbers_of
from attention_viz.trace.kind import MEDIA, InputKind
from attention_viz.trace.provenance import Fidelity, Provenance
from attention_viz.trace.spelling import decode
from attention_viz.trace.tokens import Region, Tokens

# Distances of a fidelity that are measured if a bound is missed; files of earlier versions hold zeros in their place.
_FROM_EXACT = [one.name for one in fields(Fidelity) if "from" in one.name]
_Kind = TypeVar("_Kind")


def unpack_provenance(entry: Mapping[str, Any]) -> Provenance:
    """Read a run's provenance."""
    return Provenance(
        model=as_kind(str, entry["model"]),
        text=_as_text_or_none(entry["text"]),
        second_text=_as_text_or_none(entry["second_text"]),
        target=_as_text_or_none(entry.get("target")),
        **{kind: _as_text_or_none(entry.get(kind)) for kind in (*MEDIA, InputKind.VIDEO)},
        notes=tuple(as_kind(str, one) for one in as_kind(list, entry.get("told", []))),
        generated=as_kind(int, entry.get("generated", 0)),
        decoding=tuple(_as_decoding(as_kind(dict, one)) for one in as_kind(list, entry.get("decoding", []))),
        special_tokens=as_kind(bool, entry.get("special_tokens", True)),
        chat=as_kind(bool, entry.get("chat", False)),
        revision=_as_text_or_none(entry["revision"]),
        sha256=_as_text_or_none(entry["sha256"]),
        dtype=as_kind(str, entry["dtype"]),
        versions={as_kind(str, package): as_kind(str, version) for package, version in entry["versions"].items()},
        edits=tuple(as_kind(str, edit) for edit in as_kind(list, entry["edits"])),
        reading=as_kind(str, entry.get("reading", "raw")),
        route=as_kind(str, entry.get("route", "interface")),
        output=as_kind(str, entry.get("output", "")),
        stored=_as_stored(entry.get("stored", "")),
        stored_weight_error=_as_error(entry.get("stored_weight_error", 0.0)),
        stored_output_error=_as_error(entry.get("stored_output_error", 0.0)),
        added=tuple(as_kind(str, name) for name in as_kind(list, entry.get("added", []))),
        messages=tuple(map(_as_message, as_kind(list, entry.get("messages", [])))),
        segments=unpack_segments(entry.get("segments", [])),
        answer=None if entry.get("answer") is None else _as_answer(entry["answer"]),
    )


def unpack_segments(value: object) -> tuple[Segment, ...]:
    """Read segments, (role, start, end) each."""
    found = as_kind(list, value)
    if len(found) > MOST_SEGMENTS:
        raise TraceError(f"it has {len(found):,} segments; a file holds at most {MOST_SEGMENTS:,}")
    parts = [as_kind(list, one) for one in found]
    if wrong := next((one for one in parts if len(one) != 3), None):
        raise TraceError(f"a segment is a role, a start and an end; got {wrong!r:.40}")
    return tuple(Segment(as_kind(str, role), _number(start), _number(end)) for role, start, end in parts)


def _as_message(value: object) -> tuple[str, str]:
    role, content = as_kind(list, value)
    return as_kind(str, role), as_kind(str, content)


def _as_answer(value: object) -> tuple[str, int]:
    role, start = as_kind(list, value)
    return as_kind(str, role), _number(start)


def _as_decoding(entry: Mapping[str, Any]) -> Decoding:
    """Read how some generated tokens were chosen; it refuses impossible values itself."""
    method, seed = as_kind(str, entry["method"]), entry["seed"]
    return Decoding(
        cast("Any", method),
        as_kind(float, entry["temperature"]),
        as_kind(float, entry["top_p"]),
        None if seed is None else as_kind(int, seed),
        as_kind(int, entry["tokens"]),
    )


def _as_stored(value: object) -> str:
    """Read the kept part; refuse values that no version writes."""
    stored = as_kind(str, value)
    if wrong := [part for part in stored.split(", ") if stored and part not in ("terms", WEIGHTS, *DTYPES)]:
        raise TraceError(
            f"it keeps an unknown part, {wrong[0]!r}; a file keeps terms or {WEIGHTS}, in {' or '.join(DTYPES)}"
        )
    return stored


def _as_error(value: object) -> float:
    error = float(as_kind(float, value))
    if not 0 <= error < math.inf:
        raise TraceError(f"its difference from the run must be a number from 0; got {error}")
    return error


def unpack_fidelity(entry: Mapping[str, Any]) -> Fidelity:
    """Read the run's fidelity."""
    exact = {name: float(as_kind(float, entry[name])) for name in _FROM_EXACT if name in entry}
    names = ("output_error", "weight_error", "bound", "seconds")
    numbers = {name: float(as_kind(float, entry[name])) for name in names} | (exact if any(exact.values()) else {})
    rows = entry.get("rows")  # files from before there were samples don't say
    # An error that is no number wasn't measured; but there is no bound that isn't one.
    if any(number < 0 or (math.isnan(number) and name not in names[:2]) for name, number in numbers.items()):
        raise TraceError(f"its distances from the model's own run must be numbers from 0; got {numbers}")
    return Fidelity(
        reference=as_kind(str, entry["reference"]), rows=None if rows is None else as_kind(int, rows), **numbers
    )


def unpack_tokens(entry: Mapping[str, Any], origin: Provenance) -> Tokens:
    """Read the tokens along an axis."""
    tokens = Tokens(
        labels=tuple(as_kind(str, label) for label in as_kind(list, entry["labels"])),
        ids=None if entry["ids"] is None else tuple(as_kind(int, number) for number in as_kind(list, entry["ids"])),
        words=tuple(None if word is None else as_kind(int, word) for word in as_kind(list, entry["words"])),
        special=tuple(as_kind(bool, flag) for flag in as_kind(list, entry["special"])),
        padding=tuple(as_kind(bool, flag) for flag in as_kind(list, entry["padding"])),
        # Files from before there were two sentences don't say.
        sentence=tuple(None if one is None else as_kind(int, one) for one in as_kind(list, entry.get("sentence", []))),
        spelling=tuple(as_kind(str, how) for how in as_kind(list, entry.get("spelling", []))),
        place=tuple(_as_place(one) for one in as_kind(list, entry.get("place", []))),
        regions=tuple(_as_region(one) for one in as_kind(list, entry.get("regions", []))),
        slots=tuple(_as_text_or_none(one) for one in as_kind(list, entry.get("slots", []))),
    )
    # Nor do files from before there were spellings; but where the pieces' bytes are the text, there is no doubt.
    if "spelling" not in entry and any(_is_of_bytes(tokens, text) for text in (origin.text, origin.target)):
        return replace(tokens, spelling=tuple("text" if special else "byte-level" for special in tokens.special))
    return tokens


def _is_of_bytes(tokens: Tokens, text: str | None) -> bool:
    """Check if the pieces, read as byte-level BPE, hold the text with its spaces."""
    pieces = "".join(tokens.labels[position] for position in tokens.counted)
    read = decode(pieces, "byte-level")
    return text is not None and bool(text.strip()) and text.strip() in read and read != pieces


def as_kind(kind: type[_Kind], value: object) -> _Kind:
    """Check a value's type; an integer may stand for a float."""
    if type(value) is kind or (kind is float and type(value) is int):
        return cast("_Kind", value)
    raise TypeError(f"{value!r:.40}, which should be {kind.__name__}")


def _as_place(value: object) -> tuple[float, ...] | None:
    if value is None:
        return None
    numbers = tuple(float(as_kind(float, one)) for one in as_kind(list, value))
    if not numbers or not all(math.isfinite(one) for one in numbers):
        raise TypeError(f"{value!r:.40}, which should be a place")
    return numbers


def _as_region(value: object) -> Region | None:
    if value is None:
        return None
    entry = as_kind(dict, value)
    edges = (float(as_kind(float, entry[name])) for name in ("top", "left", "bottom", "right"))
    start, end = (None if (one := entry.get(name)) is None else float(as_kind(float, one)) for name in ("start", "end"))
    thumbnail = as_kind(bool, entry["thumbnail"])
    return Region(as_kind(int, entry["picture"]), *edges, thumbnail=thumbnail, start=start, end=end)


def _as_text_or_none(value: object) -> str | None:
    return None if value is None else as_kind(str, value)


def pack_kept(kept: KeptLayers, labels: Sequence[str]) -> dict[str, Any]:
    """Return the entry; empty if the layers' labels suffice.

    "numbers" are indices among the attention layers, as in version 1.0.0; "every" and "without" are model numbers.
    """
    if kept == KeptLayers.by_labels(labels):
        return {}
    entry: dict[str, Any] = {"numbers": [kept.every.index(number) for number in kept.numbers], "of": kept.of}
    if not kept.counts or kept.without:
        entry |= {"every": kept.every, "without": kept.without}
    return {"kept": entry}


def unpack_kept(entry: Mapping[str, Any], labels: Sequence[str]) -> KeptLayers:
    """Read a stream's kept layers; without an entry, all."""
    if "kept" not in entry:
        return KeptLayers.by_labels(labels)
    kept = entry["kept"]
    places, of = tuple(map(LayerIndex, _numbers(kept["numbers"]))), _number(kept["of"])
    if of > MOST_LAYERS:
        raise TraceError(f"its model has {of:,} layers; a file holds at most {MOST_LAYERS:,}")
    if (
        not places
        or len(places) != len(labels)
        or list(places) != sorted(set(places))
        or not 0 <= places[0] <= places[-1] < of
    ):
        raise TraceError(f"its {len(labels)} layers have impossible places, {list(places)} among {of}")
    if "every" in kept:
        every = tuple(map(LayerNumber, _numbers(kept["every"])))
        if not places[-1] < len(every) <= of:
            raise TraceError(f"its layers have impossible places, {list(places)} among {len(every)} numbers of {of}")
        numbers = tuple(every[place] for place in places)
        without = tuple(map(LayerNumber, _numbers(kept.get("without", []))))
        return KeptLayers(numbers, every, without, of - len(every))
    numbers = numbers_of(labels)
    if numbers in (places, tuple(range(len(labels)))):
        # Without a gap a layer's number is its index.
        return replace(KeptLayers.first(of), numbers=tuple(map(LayerNumber, places)))
    # A hybrid's file of version 1.0.0: the numbers of the layers that it leaves out are in no label.
    return KeptLayers(numbers, numbers, unknown=of - len(numbers))


def _numbers(value: object) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r:.40}, which should be a list")
    if len(cast("list[object]", value)) > MOST_LAYERS:
        raise TraceError(f"it names {len(cast('list[object]', value)):,} layers; a file names at most {MOST_LAYERS:,}")
    return tuple(_number(one) for one in cast("list[object]", value))


def _number(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r:.40}, which should be int")
    return value
