"""A trace as one safetensors file: tensors in the body, everything else as JSON in its header. Nothing executable."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from os import PathLike, fspath
from pathlib import Path
from typing import Any, cast

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from attention_viz.attention import Attention
from attention_viz.errors import AttentionVizError, TraceError
from attention_viz.tokens import Tokens
from attention_viz.trace import Fidelity, Layer, Provenance, Trace

__all__ = ["read_trace", "write_trace"]

_FORMAT = 1
_KEY = "attention_viz"
_TERMS = ("query", "key", "value", "allowed", "bias", "sinks")
_AROUND = ("embeddings", "joined")


def write_trace(trace: Trace, path: str | PathLike[str]) -> None:
    """Write a trace to exactly that path; masks that layers share are stored once."""
    shelf = _Shelf()
    header = {
        "format": _FORMAT,
        "streams": {
            stream: {
                "queries": asdict(trace.queries[stream]),
                "keys": asdict(trace.keys[stream]),
                "layers": [_pack_layer(layer, shelf) for layer in layers],
            }
            for stream, layers in trace.layers.items()
        },
        "output": shelf.put(trace.output),
        "provenance": asdict(trace.provenance),
        "fidelity": asdict(trace.fidelity),
    }
    save_file(shelf.tensors, fspath(path), metadata={_KEY: json.dumps(header, ensure_ascii=True)})


def read_trace(path: str | PathLike[str]) -> Trace:
    """Read a trace that `write_trace` wrote, with every reference and shape checked.

    Raises:
        TraceError: the file is missing, broken, or not a trace of ours.
    """
    name = Path(path).name
    if not Path(path).is_file():
        raise TraceError(f"no file at {fspath(path)}; a trace is a file that trace.save wrote")
    try:
        with safe_open(fspath(path), framework="pt") as file:
            header = json.loads((file.metadata() or {}).get(_KEY, "null"))
            tensors = {key: file.get_tensor(key) for key in file.keys()} if header else {}  # noqa: SIM118
    except (SafetensorError, ValueError, OSError) as error:
        raise TraceError(f"{name} is not a readable safetensors file: {error}") from None
    if not isinstance(header, dict):
        raise TraceError(f"{name} is a safetensors file, but not a trace: its header has no {_KEY!r} entry")
    if header.get("format") != _FORMAT:
        raise TraceError(f"{name} has trace format {header.get('format')!r}; this version reads format {_FORMAT}")
    try:
        return _unpack(cast("dict[str, Any]", header), tensors)
    except AttentionVizError as error:
        raise TraceError(f"{name} is a broken trace: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise TraceError(f"{name} is a broken trace: its header lacks or garbles {error}") from None


class _Shelf:
    """Tensors to be stored, each once, however often it is used."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self._names: dict[int, str] = {}

    def put(self, tensor: Tensor) -> str:
        """The name a tensor is stored under."""
        if id(tensor) not in self._names:
            name = f"t{len(self.tensors):04d}"
            self._names[id(tensor)] = name
            self.tensors[name] = tensor.detach().cpu().contiguous().clone()
        return self._names[id(tensor)]


def _pack_layer(layer: Layer, shelf: _Shelf) -> dict[str, object]:
    call = layer.attention
    owners = [(call, name) for name in _TERMS] + [(layer, name) for name in _AROUND]
    found = {name: getattr(owner, name) for owner, name in owners}
    return {
        "label": layer.label,
        "scale": call.scale,
        "softcap": call.softcap,
        "tensors": {name: shelf.put(tensor) for name, tensor in found.items() if tensor is not None},
    }


def _unpack(header: dict[str, Any], tensors: Mapping[str, Tensor]) -> Trace:
    streams = header["streams"].items()
    provenance = header["provenance"]
    fidelity = Fidelity(**header["fidelity"])
    if not header["streams"] or not all(entry["layers"] for _, entry in streams):
        raise TraceError("it holds no layer")
    return Trace(
        layers={stream: tuple(_unpack_layer(layer, tensors) for layer in entry["layers"]) for stream, entry in streams},
        queries={stream: _unpack_tokens(entry["queries"]) for stream, entry in streams},
        keys={stream: _unpack_tokens(entry["keys"]) for stream, entry in streams},
        output=tensors[header["output"]],
        provenance=Provenance(**{**provenance, "edits": tuple(provenance["edits"])}),
        measure=_remembered(fidelity),
    )


def _remembered(fidelity: Fidelity) -> Callable[[], Fidelity]:
    return lambda: fidelity


def _unpack_layer(entry: dict[str, Any], tensors: Mapping[str, Tensor]) -> Layer:
    terms = {name: tensors[reference] for name, reference in entry["tensors"].items()}
    if not set(terms) <= {*_TERMS, *_AROUND} or not {"query", "key", "value"} <= set(terms):
        raise TraceError(f"a layer has the tensors {', '.join(sorted(terms))}")
    around = {name: terms.pop(name, None) for name in _AROUND}
    attention = Attention(
        **{"allowed": None, **terms},  # pyright: ignore[reportArgumentType] -- checked by Attention itself
        scale=float(entry["scale"]),
        softcap=None if entry["softcap"] is None else float(entry["softcap"]),
    )
    if len(attention.shape) != 3:
        raise TraceError(f"a layer's weights have the shape {attention.shape}; they need (head, query, key)")
    return Layer(attention, str(entry["label"]), **around)


def _unpack_tokens(entry: Mapping[str, Any]) -> Tokens:
    return Tokens(
        labels=tuple(str(label) for label in entry["labels"]),
        ids=tuple(int(number) for number in entry["ids"]),
        words=tuple(None if word is None else int(word) for word in entry["words"]),
        special=tuple(bool(flag) for flag in entry["special"]),
        padding=tuple(bool(flag) for flag in entry["padding"]),
    )
