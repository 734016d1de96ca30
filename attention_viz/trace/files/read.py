"""A trace out of a safetensors file, with every reference, shape and kind of number checked; nothing is executed."""

import json
import math
import warnings
from collections.abc import Mapping
from dataclasses import fields, replace
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from safetensors import SafetensorError, safe_open
from torch import Tensor

from attention_viz.errors import AttentionVizError, AttentionVizWarning, TraceError
from attention_viz.operation.attention import Attention
from attention_viz.operation.shapes import FLOATING
from attention_viz.operation.terms import Term, terms_of
from attention_viz.trace.files.checksum import CHECKSUM, intact
from attention_viz.trace.files.format import FORMAT_OF_LESS, FORMATS, HEADER, WEIGHTS
from attention_viz.trace.files.kept_entry import unpack_kept
from attention_viz.trace.files.rounding import DTYPES
from attention_viz.trace.from_weights import attention_of
from attention_viz.trace.layers import AROUND, Layer, labels_of
from attention_viz.trace.provenance import Fidelity, Provenance
from attention_viz.trace.shown.seen import Seen
from attention_viz.trace.spelling import decode
from attention_viz.trace.tokens import Tokens

if TYPE_CHECKING:
    from attention_viz.trace.trace import Trace

__all__ = ["is_trace", "read_trace"]

# Bytes: what is larger stays where the file lies in memory.
_SMALL = 1_000_000
_TERMS = terms_of(Attention)
# Distances of a fidelity that are measured if a bound is missed; files of earlier versions hold zeros in their place.
_FROM_EXACT = [one.name for one in fields(Fidelity) if "from" in one.name]
_KINDS = {str(kind).removeprefix("torch."): kind for kind in FLOATING}


def read_trace(kind: type["Trace"], path: str | PathLike[str]) -> "Trace":
    """Read a trace that `write_trace` wrote, with every reference and shape checked.

    Args:
        kind: what to make of it.
        path: the file.

    Raises:
        TraceError: the file is missing, broken, or not a trace of ours.
    """
    name = Path(path).name
    header, tensors = _open(path)
    if header.get("format") not in FORMATS:
        *most, last = FORMATS
        told = f"{', '.join(map(str, most))} and {last}"
        raise TraceError(f"{name} has trace format {header.get('format')!r}; this version reads formats {told}")
    try:
        found = _unpack(kind, header, _widened(header, tensors))
    except AttentionVizError as error:
        raise TraceError(f"{name} is a broken trace: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise TraceError(f"{name} is a broken trace: its header lacks or garbles {error}") from None
    if told := found.provenance.stored_in_words:
        warnings.warn(f"{name}: {told}", AttentionVizWarning, stacklevel=3)
    return found


def _widened(header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """The tensors with those that were rounded for the file in the kind of number that the run had."""
    if header["format"] != FORMAT_OF_LESS:
        return tensors
    kinds = {_as(str, name): _KINDS[_as(str, kind)] for name, kind in header["rounded"].items()}
    wrong = [name for name in kinds if tensors[name].dtype not in FLOATING]
    if wrong:
        raise TraceError(f"{wrong[0]} is rounded, and not of floating numbers")
    return {name: tensor.to(kinds[name]) if name in kinds else tensor for name, tensor in tensors.items()}


def is_trace(path: str | PathLike[str]) -> bool:
    """Whether a file is a trace by its header, whatever its name ends in; no tensor is read for that."""
    try:
        with safe_open(fspath(path), framework="pt") as file:
            return HEADER in (file.metadata() or {})
    except (SafetensorError, ValueError, OSError):
        return False


def _open(path: str | PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """What the file holds: our own part of the header, and the tensors by name."""
    name = Path(path).name
    try:
        if not Path(path).is_file():
            raise TraceError(f"no file at {fspath(path)}; a trace is a file that trace.save wrote")
        with safe_open(fspath(path), framework="pt") as file:
            metadata = file.metadata() or {}
            header = json.loads(metadata.get(HEADER, "null"))
            if isinstance(header, dict) and header and not _as_written(path, header):
                raise TraceError(f"{name} is damaged: its bytes aren't those that were written; save or copy it anew")
            names = file.keys() if header else ()
            tensors = {key: _aligned(file.get_tensor(key)) for key in names}
    except SafetensorError:
        what = "broken or of another kind" if Path(path).stat().st_size else "empty"
        raise TraceError(f"{name} is not a readable safetensors file: it is {what}") from None
    except (ValueError, OSError, RecursionError) as error:
        if isinstance(error, TraceError):
            raise
        raise TraceError(f"{name} is not a readable safetensors file: {error}") from None
    if not isinstance(header, dict) and "query_tokens" in metadata:
        raise TraceError(
            f"{name} holds the numbers of one head, as “Tensors (safetensors)” writes them; what can be opened is a "
            "whole trace, as “Trace (safetensors)” or trace.save writes it"
        )
    if not isinstance(header, dict):
        raise TraceError(f"{name} is a safetensors file, but not a trace: its header has no {HEADER!r} entry")
    return cast("dict[str, Any]", header), tensors


def _as_written(path: str | PathLike[str], header: Mapping[str, Any]) -> bool:
    """Whether a file's checksum is right; from before there were any, headers have none and begin with the format."""
    return intact(path, header[CHECKSUM]) if CHECKSUM in header else next(iter(header)) == "format"


def _aligned(tensor: Tensor) -> Tensor:
    """A small tensor where torch's own would lie: what is computed of it is then the same to the last digit."""
    return tensor if tensor.nbytes > _SMALL else tensor.clone()


def _unpack(kind: type["Trace"], header: dict[str, Any], tensors: Mapping[str, Tensor]) -> "Trace":
    streams = header["streams"].items()
    origin = _unpack_provenance(header["provenance"])
    layers = {stream: tuple(_unpack_layer(layer, tensors) for layer in entry["layers"]) for stream, entry in streams}
    return kind(
        layers=layers,
        queries={stream: _unpack_tokens(entry["queries"], origin) for stream, entry in streams},
        keys={stream: _unpack_tokens(entry["keys"], origin) for stream, entry in streams},
        output=tensors[header["output"]],
        provenance=origin,
        fidelity=_unpack_fidelity(header["fidelity"]),
        kept={stream: unpack_kept(entry, labels_of(layers[stream])) for stream, entry in streams},
        seen=_unpack_seen(header.get("seen", {}), tensors),
    )


def _unpack_seen(entry: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Seen:
    """The picture or the sound; files of texts, and those from before there were others, have none."""
    found = {name: None if entry.get(name) is None else tensors[entry[name]] for name in ("picture", "sound")}
    return Seen(**found, rate=_as(int, entry.get("rate", 0)))


def _unpack_provenance(entry: Mapping[str, Any]) -> Provenance:
    if not 0 <= (generated := _as(int, entry.get("generated", 0))) < 2**31:
        raise TraceError(f"the model is said to have generated {generated} tokens")
    return Provenance(
        model=_as(str, entry["model"]),
        text=_as_text_or_none(entry["text"]),
        second_text=_as_text_or_none(entry["second_text"]),
        target=_as_text_or_none(entry.get("target")),
        picture=_as_text_or_none(entry.get("picture")),
        sound=_as_text_or_none(entry.get("sound")),
        told=tuple(_as(str, one) for one in _as(list, entry.get("told", []))),
        generated=generated,
        special_tokens=_as(bool, entry.get("special_tokens", True)),
        chat=_as(bool, entry.get("chat", False)),
        revision=_as_text_or_none(entry["revision"]),
        sha256=_as_text_or_none(entry["sha256"]),
        dtype=_as(str, entry["dtype"]),
        versions={_as(str, package): _as(str, version) for package, version in entry["versions"].items()},
        edits=tuple(_as(str, edit) for edit in _as(list, entry["edits"])),
        reading=_as(str, entry.get("reading", "raw")),
        route=_as(str, entry.get("route", "interface")),
        output=_as(str, entry.get("output", "")),
        stored=_as_stored(entry.get("stored", "")),
        stored_weight_error=_as_error(entry.get("stored_weight_error", 0.0)),
        stored_output_error=_as_error(entry.get("stored_output_error", 0.0)),
        added=tuple(_as(str, name) for name in _as(list, entry.get("added", []))),
    )


def _as_stored(value: object) -> str:
    """What a file says that it kept of a run, which is told to whoever loads it: only what can have been written."""
    stored = _as(str, value)
    if wrong := [part for part in stored.split(", ") if stored and part not in ("terms", WEIGHTS, *DTYPES)]:
        raise TraceError(f"of the run it keeps {wrong[0]!r}; a file keeps terms or {WEIGHTS}, in {' or '.join(DTYPES)}")
    return stored


def _as_error(value: object) -> float:
    """The largest difference that a file's numbers have from a run's."""
    error = float(_as(float, value))
    if not 0 <= error < math.inf:
        raise TraceError(f"its numbers are said to be {error} from the run's; a difference is a number from 0 on")
    return error


def _unpack_fidelity(entry: Mapping[str, Any]) -> Fidelity:
    exact = {name: float(_as(float, entry[name])) for name in _FROM_EXACT if name in entry}
    names = ("output_error", "weight_error", "bound", "seconds")
    numbers = {name: float(_as(float, entry[name])) for name in names} | (exact if any(exact.values()) else {})
    rows = entry.get("rows")  # files from before there were samples don't say
    # An error that is no number wasn't measured; but there is no bound that isn't one.
    if any(number < 0 or (math.isnan(number) and name not in names[:2]) for name, number in numbers.items()):
        raise TraceError(f"its distances from the model's own run are said to be {numbers}; they are numbers from 0 on")
    return Fidelity(reference=_as(str, entry["reference"]), rows=None if rows is None else _as(int, rows), **numbers)


def _unpack_layer(entry: dict[str, Any], tensors: Mapping[str, Tensor]) -> Layer:
    found: dict[str, Any] = {name: tensors[reference] for name, reference in entry["tensors"].items()}
    if WEIGHTS in found:
        return _layer_of_weights(found, _as(str, entry["label"]))
    parts = {_as(str, name): tensors[reference] for name, reference in entry.get("bias_parts", {}).items()}
    known = {term.name for term in _TERMS if not term.is_number}
    needed = {term.name for term in _TERMS if not term.is_number and term.axes.needed}
    if not needed <= set(found) <= {*known, *AROUND}:
        raise TraceError(f"a layer has the tensors {', '.join(sorted(found))}")
    around = {name: found.pop(name, None) for name in AROUND}
    numbers = {term.name: _as_number(term, entry) for term in _TERMS if term.is_number}
    terms: dict[str, Any] = {"allowed": None, **found, **numbers}
    return Layer(Attention(**terms), _as(str, entry["label"]), **around, bias_parts=parts)


def _layer_of_weights(found: dict[str, Any], label: str) -> Layer:
    """A layer of a file that holds its weights and neither queries, keys nor values."""
    if not set(found) <= {WEIGHTS, "allowed"}:
        raise TraceError(f"a layer has the tensors {', '.join(sorted(found))}")
    weights = found[WEIGHTS]
    if weights.dtype not in FLOATING or weights.ndim != 3 or not bool((weights >= 0).all()):
        raise TraceError(f"layer {label} has weights that are none: (head, query, key) of numbers from 0 are needed")
    return Layer(attention_of(weights, found.get("allowed")), label)


def _as_number(term: Term, entry: Mapping[str, Any]) -> float | None:
    """A layer's number; files from before there was such a term don't say, and have none."""
    value = entry[term.name] if term.axes.needed else entry.get(term.name)
    return None if value is None and not term.axes.needed else float(_as(float, value))


def _unpack_tokens(entry: Mapping[str, Any], origin: Provenance) -> Tokens:
    tokens = Tokens(
        labels=tuple(_as(str, label) for label in _as(list, entry["labels"])),
        ids=None if entry["ids"] is None else tuple(_as_id(number) for number in _as(list, entry["ids"])),
        words=tuple(None if word is None else _as(int, word) for word in _as(list, entry["words"])),
        special=tuple(_as(bool, flag) for flag in _as(list, entry["special"])),
        padding=tuple(_as(bool, flag) for flag in _as(list, entry["padding"])),
        # Files from before there were two sentences don't say.
        sentence=tuple(None if one is None else _as(int, one) for one in _as(list, entry.get("sentence", []))),
        spelling=tuple(_as(str, how) for how in _as(list, entry.get("spelling", []))),
        place=tuple(_as_place(one) for one in _as(list, entry.get("place", []))),
    )
    # Nor do files from before there were spellings; but where the pieces' bytes are the text, there is no doubt.
    if "spelling" not in entry and any(_is_of_bytes(tokens, text) for text in (origin.text, origin.target)):
        return replace(tokens, spelling=tuple("text" if special else "byte-level" for special in tokens.special))
    return tokens


def _is_of_bytes(tokens: Tokens, text: str | None) -> bool:
    """Whether the pieces, read as byte-level BPE writes them, have the text in them, spaces included."""
    pieces = "".join(tokens.labels[position] for position in tokens.counted)
    read = decode(pieces, "byte-level")
    return text is not None and bool(text.strip()) and text.strip() in read and read != pieces


_Kind = TypeVar("_Kind")


def _as(kind: type[_Kind], value: object) -> _Kind:
    """The value itself where it is of that kind; a whole number may stand for a number, nothing else for another."""
    if type(value) is kind or (kind is float and type(value) is int):
        return cast("_Kind", value)
    raise TypeError(f"{value!r:.40}, where {kind.__name__} belongs")


def _as_id(value: object) -> int:
    """A token's number, which a tensor of ids has to be able to hold."""
    number = _as(int, value)
    if not -(2**63) <= number < 2**63:
        raise TypeError(f"{number!r:.40}, where a token's id of 64 bits belongs")
    return number


def _as_place(value: object) -> tuple[float, ...] | None:
    """Where a position stands in what was read."""
    if value is None:
        return None
    numbers = tuple(float(_as(float, one)) for one in _as(list, value))
    if not numbers or not all(math.isfinite(one) for one in numbers):
        raise TypeError(f"{value!r:.40}, where a place belongs")
    return numbers


def _as_text_or_none(value: object) -> str | None:
    return None if value is None else _as(str, value)
