"""Read and check a trace from a safetensors file; nothing is executed."""

import json
import re
import warnings
from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeVar, cast

from safetensors import SafetensorError, safe_open
from torch import Tensor

from attention_viz.errors import AttentionVizError, AttentionVizWarning, TraceError
from attention_viz.operation.attention import Attention
from attention_viz.operation.causal_mask import CausalMask, causal_mask
from attention_viz.operation.shapes import FLOATING
from attention_viz.operation.terms import Term, terms_of
from attention_viz.operation.token_mixer import KINDS, TokenMixer
from attention_viz.trace.files.entries import as_kind, unpack_fidelity, unpack_kept, unpack_provenance, unpack_tokens
from attention_viz.trace.files.facts import (
    MOST_HEADS,
    check_facts,
    check_heads,
    check_layer_count,
    check_layer_names,
    check_mixers,
    check_output_rows,
)
from attention_viz.trace.files.format import (
    CAUSAL,
    CHECKSUM,
    FORMAT_OF_LESS,
    FORMATS,
    HEADER,
    PART,
    PICKING,
    WEIGHTS,
    intact,
)
from attention_viz.trace.given.from_weights import attention_of, mixer_of_weights
from attention_viz.trace.kept import KeptCells
from attention_viz.trace.kind import MEDIA
from attention_viz.trace.layers import AROUND, Layer, MixerLayer, labels_of
from attention_viz.trace.picking import Picking
from attention_viz.trace.seen import Seen
from attention_viz.trace.trace_data import TraceData

_Read = TypeVar("_Read", bound=TraceData)

# Bytes: larger tensors stay mapped from the file.
_SMALL = 1_000_000
_TERMS, _MIXER_TERMS = terms_of(Attention), terms_of(TokenMixer)
_MIXERS = re.compile(r"mixer( [1-9][0-9]?)?")
_KINDS = {str(kind).removeprefix("torch."): kind for kind in FLOATING}


def read_trace(kind: type[_Read], path: str | PathLike[str]) -> tuple[_Read, KeptCells | None]:
    """Read a `write_trace` file, checking every reference and shape; return its heads and rows, too, None for all."""
    name = Path(path).name
    header, tensors = _open(path)
    if header.get("format") not in FORMATS:
        *most, last = FORMATS
        phrase = f"{', '.join(map(str, most))} and {last}"
        raise TraceError(f"{name} has trace format {header.get('format')!r}; this version reads formats {phrase}")
    try:
        found = _unpack(kind, header, _widened(header, tensors))
        cells = _unpack_cells(header, found)
    except AttentionVizError as error:
        raise TraceError(f"{name} is a broken trace: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise TraceError(f"{name} is a broken trace: its header lacks or garbles {error}") from None
    if phrase := found.provenance.stored_in_words:
        warnings.warn(f"{name}: {phrase}", AttentionVizWarning, stacklevel=3)
    return found, cells


def _unpack_cells(header: Mapping[str, Any], trace: TraceData) -> KeptCells | None:
    if PART not in header:
        return None
    entry, ((stream, layers),) = header[PART], trace.layers.items()
    heads = None if entry["heads"] is None else [as_kind(int, one) for one in as_kind(list, entry["heads"])]
    queries = None if entry["queries"] is None else as_kind(int, entry["queries"])
    cells = KeptCells.of(heads, queries, [MOST_HEADS])
    shapes = {layer.attention.shape for layer in layers}
    rows = len(trace.keys[stream]) if queries is None else queries
    there = all(shape[1] == rows and (heads is None or shape[0] == len(heads)) for shape in shapes)
    if cells is None or not there or (cells.heads is not None and list(cells.heads) != heads):
        raise TraceError(f"it keeps impossible heads and rows, {str(entry)[:80]}")
    return cells


def _widened(header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Return tensors rounded for the file in the run's dtype."""
    if header["format"] < FORMAT_OF_LESS:
        return tensors
    kinds = {as_kind(str, name): _KINDS[as_kind(str, kind)] for name, kind in header["rounded"].items()}
    wrong = [name for name in kinds if tensors[name].dtype not in FLOATING]
    if wrong:
        raise TraceError(f"{wrong[0]} is rounded, but isn't floating-point")
    return {name: tensor.to(kinds[name]) if name in kinds else tensor for name, tensor in tensors.items()}


def is_trace(path: str | PathLike[str]) -> bool:
    """Recognize a trace file by its header, without reading tensors."""
    try:
        with safe_open(fspath(path), framework="pt") as file:
            return HEADER in (file.metadata() or {})
    except (SafetensorError, ValueError, OSError):
        return False


def _open(path: str | PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    name = Path(path).name
    try:
        if not Path(path).is_file():
            why = f"no file at {fspath(path)}; pass a file that trace.save wrote"
            raise TraceError(why) from FileNotFoundError(fspath(path))
        with safe_open(fspath(path), framework="pt") as file:
            metadata = file.metadata() or {}
            header = json.loads(metadata.get(HEADER, "null"))
            if isinstance(header, dict) and header and not _as_written(path, header):
                raise TraceError(f"{name} is damaged: its checksum is wrong. Save or copy it again")
            names = file.keys() if header else ()
            tensors = {key: _aligned(file.get_tensor(key)) for key in names}
    except SafetensorError:
        what = "broken or of another kind" if Path(path).stat().st_size else "empty"
        raise TraceError(f"{name} isn't a readable safetensors file: it is {what}") from None
    except (ValueError, OSError, RecursionError) as error:
        if isinstance(error, TraceError):
            raise
        raise TraceError(f"{name} isn't a readable safetensors file: {error}") from None
    if not isinstance(header, dict) and "query_tokens" in metadata:
        raise TraceError(
            f"{name} has the numbers of one head, from “Tensors (safetensors)”; open a whole trace, from “Trace "
            "(safetensors)” or trace.save"
        )
    if not isinstance(header, dict):
        raise TraceError(f"{name} is a safetensors file, but not a trace: its header has no {HEADER!r} entry")
    return cast("dict[str, Any]", header), tensors


def _as_written(path: str | PathLike[str], header: Mapping[str, Any]) -> bool:
    """Check the checksum; older headers have none and begin with the format."""
    return intact(path, header[CHECKSUM]) if CHECKSUM in header else next(iter(header)) == "format"


def _aligned(tensor: Tensor) -> Tensor:
    """Align a small tensor as torch does, so that results match to the last digit."""
    return tensor if tensor.nbytes > _SMALL else tensor.clone()


def _unpack(kind: type[_Read], header: dict[str, Any], tensors: Mapping[str, Tensor]) -> _Read:
    streams, output = header["streams"].items(), tensors[header["output"]]
    mixing = _mixers_in(header)
    origin, fidelity = unpack_provenance(header["provenance"]), unpack_fidelity(header["fidelity"])
    # A trace without softmax attention has its tokens by themselves.
    read = [*streams, *as_kind(dict, header.get("tokens", {})).items()]
    queries = {stream: unpack_tokens(entry["queries"], origin) for stream, entry in read}
    keys = {stream: unpack_tokens(entry["keys"], origin) for stream, entry in read}
    # Facts first: what comes next goes through all of them.
    check_facts(queries, keys, origin, fidelity)
    everything = [*(entry for _, entry in streams), *mixing.values()]
    check_layer_count(as_kind(list, entry["layers"]) for entry in everything)
    _check_weights_apart(layer for entry in everything for layer in entry["layers"])
    layers = {stream: tuple(_unpack_layer(layer, tensors) for layer in entry["layers"]) for stream, entry in streams}
    check_heads(layer.attention.shape[0] for found in layers.values() for layer in found)
    mixers = {name: tuple(_unpack_mixer(one, tensors) for one in entry["layers"]) for name, entry in mixing.items()}
    check_mixers(layer.mixer for found in mixers.values() for layer in found)
    found = kind(
        layers=layers,
        queries=queries,
        keys=keys,
        output=output,
        provenance=origin,
        fidelity=fidelity,
        kept={stream: unpack_kept(entry, labels_of(layers[stream])) for stream, entry in streams},
        seen=_unpack_seen(header.get("seen", {}), tensors),
        mixers=mixers,
    )
    check_output_rows(*found.output_shape, queries, origin)
    return found


def _mixers_in(header: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the entries of layers without a softmax; older files have none."""
    found = as_kind(dict, header.get("mixers", {}))
    for name, entry in found.items():
        if not _MIXERS.fullmatch(name) or not as_kind(list, entry["layers"]):
            raise TraceError(f"a stream without a softmax is named mixer, mixer 2 … and has layers; got {name!r:.40}")
    return found


def _check_weights_apart(entries: Iterable[Mapping[str, Any]]) -> None:
    """Refuse weights that several layers share: each would be processed again."""
    named = [entry["tensors"][WEIGHTS] for entry in entries if WEIGHTS in entry["tensors"]]
    if len(named) != len(set(named)):
        raise TraceError(f"{len(named)} layers need as many weight tensors; got {len(set(named))}")


def _unpack_seen(entry: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Seen:
    found = {name: None if entry.get(name) is None else tensors[entry[name]] for name in MEDIA}
    others = tuple(tensors[as_kind(str, name)] for name in as_kind(list, entry.get("others", [])))
    times = tuple(float(as_kind(float, one)) for one in as_kind(list, entry.get("times", [])))
    return Seen(**found, rate=as_kind(int, entry.get("rate", 0)), others=others, times=times)


def _unpack_layer(entry: dict[str, Any], tensors: Mapping[str, Tensor]) -> Layer:
    found: dict[str, Any] = {name: tensors[reference] for name, reference in entry["tensors"].items()}
    label = as_kind(str, entry["label"])
    check_layer_names(label, entry.get("bias_parts", {}))
    if WEIGHTS in found:
        return _layer_of_weights(found, label)
    parts = {as_kind(str, name): tensors[reference] for name, reference in entry.get("bias_parts", {}).items()}
    known = {term.name for term in _TERMS if not term.is_number}
    needed = {term.name for term in _TERMS if not term.is_number and term.axes.needed}
    if not needed <= set(found) <= {*known, *AROUND}:
        raise TraceError(f"a layer has the wrong tensors, {', '.join(sorted(found))}")
    if entry.get(CAUSAL, False) is not False:
        found["allowed"] = _causal(entry, found)
    around = {name: found.pop(name, None) for name in AROUND}
    numbers = {term.name: _as_number(term, entry) for term in _TERMS if term.is_number}
    terms: dict[str, Any] = {"allowed": None, **found, **numbers}
    return Layer(Attention(**terms), label, **around, bias_parts=parts, picking=_picking(entry, tensors))


def _picking(entry: dict[str, Any], tensors: Mapping[str, Tensor]) -> Picking | None:
    """Return the keys that a layer's indexer picked, if the file has them."""
    if PICKING not in entry:
        return None
    found = as_kind(dict, entry[PICKING])
    return Picking(*(tensors[as_kind(str, found[name])] for name in ("scores", "picked")))


def _causal(entry: Mapping[str, Any], found: Mapping[str, Tensor]) -> CausalMask:
    """Return the mask of a layer that has it without cells."""
    query, key = found["query"], found["key"]
    if entry[CAUSAL] is not True or "allowed" in found or query.shape[-2:-1] != key.shape[-2:-1] or query.ndim != 3:
        raise TraceError(f"a causal mask needs as many queries as keys; got {tuple(query.shape)}, {tuple(key.shape)}")
    return causal_mask(query.shape[-2])


def _unpack_mixer(entry: dict[str, Any], tensors: Mapping[str, Tensor]) -> MixerLayer:
    found: dict[str, Any] = {name: tensors[reference] for name, reference in entry["tensors"].items()}
    label, kind, per = (as_kind(str, entry[name]) for name in ("label", "kind", "per"))
    check_layer_names(label, ())
    if kind not in KINDS or per not in ("head", "channel"):
        raise TraceError(f"layer {label} mixes by {kind!r:.40} per {per!r:.40}, which this version doesn't know")
    facts: dict[str, Any] = {"kind": kind, "per": per}
    if WEIGHTS in found:
        weights = found.pop(WEIGHTS)
        if found or weights.dtype not in FLOATING or weights.ndim != 3 or not bool(weights.isfinite().all()):
            raise TraceError(f"layer {label} needs weights (head, query, key) alone, finite floating-point numbers")
        return MixerLayer(mixer_of_weights(weights, **facts), label)
    known = {term.name for term in _MIXER_TERMS if not term.is_number}
    needed = {term.name for term in _MIXER_TERMS if not term.is_number and term.axes.needed}
    if not needed <= set(found) <= known:
        raise TraceError(f"a layer has the wrong tensors, {', '.join(sorted(found))}")
    numbers = {term.name: _as_number(term, entry) for term in _MIXER_TERMS if term.is_number}
    terms: dict[str, Any] = {**facts, **found, **numbers}
    return MixerLayer(TokenMixer(**terms), label)


def _layer_of_weights(found: dict[str, Any], label: str) -> Layer:
    if not set(found) <= {WEIGHTS, "allowed"}:
        raise TraceError(f"a layer has the wrong tensors, {', '.join(sorted(found))}")
    weights = found[WEIGHTS]
    if weights.dtype not in FLOATING or weights.ndim != 3 or not bool((weights >= 0).all()):
        raise TraceError(f"layer {label} needs weights (head, query, key), floating-point numbers from 0")
    return Layer(attention_of(weights, found.get("allowed")), label)


def _as_number(term: Term, entry: Mapping[str, Any]) -> float | None:
    """Read a layer's number; None in older files."""
    value = entry[term.name] if term.axes.needed else entry.get(term.name)
    return None if value is None and not term.axes.needed else float(as_kind(float, value))
