"""Write a trace as safetensors with a JSON header; nothing is executable."""

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from os import PathLike, fspath
from typing import Any

from torch import Tensor

from attention_viz.errors import ShapeError, TraceError
from attention_viz.operation.attention import Attention
from attention_viz.operation.causal_mask import CausalMask
from attention_viz.operation.terms import terms_of
from attention_viz.operation.token_mixer import TokenMixer
from attention_viz.trace.ahead import Progress, ahead
from attention_viz.trace.export import some_layers
from attention_viz.trace.files.entries import pack_kept
from attention_viz.trace.files.facts import (
    check_facts,
    check_heads,
    check_layer_count,
    check_layer_names,
    check_mixers,
    check_output_rows,
)
from attention_viz.trace.files.format import (
    BLANK,
    CAUSAL,
    CHECKSUM,
    FORMAT_OF_ALL,
    FORMAT_OF_CAUSAL,
    FORMAT_OF_LESS,
    FORMAT_OF_MIXERS,
    FORMAT_OF_PICKED,
    FORMAT_OF_SLOTS,
    FORMAT_OF_SOME,
    HEADER,
    PART,
    PICKING,
    WEIGHTS,
    WHAT,
    sealed,
)
from attention_viz.trace.files.rounding import DTYPES, Rounding, weights_of
from attention_viz.trace.files.stream import StoredTensor, bytes_of_all, header_of
from attention_viz.trace.files.whole_file import write_pieces
from attention_viz.trace.kept import KeptCells, KeptLayers, LayerNumber, numbers_of
from attention_viz.trace.layers import Layer, MixerLayer, labels_of
from attention_viz.trace.provenance import Fidelity, Provenance
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace_data import MixersByStream, TraceData, behind, by_row

_TERMS, _MIXER_TERMS = terms_of(Attention), terms_of(TokenMixer)
# What two cores of 2023 do in a second: bytes that are copied and written, and weights that are computed twice, for the
# run and for the file, and held against each other.
BYTES_A_SECOND, _WEIGHTS = 1.5e8, 1.5e7


def write_trace(
    trace: TraceData,
    path: str | PathLike[str],
    *,
    layers: Sequence[int] | None = None,
    what: str = "all",
    dtype: str | None = None,
    progress: Progress | None = None,
    cells: KeptCells | None = None,
) -> None:
    """Write a trace to exactly that path, shared masks once; see `Trace.save`."""
    if what not in WHAT:
        raise ShapeError(f"unknown part {what!r}; choose {', '.join(map(repr, WHAT))}")
    if dtype is not None and dtype not in DTYPES:
        raise ShapeError(f"unknown dtype {dtype!r}; choose {', '.join(map(repr, DTYPES))} or None")
    kept, mixers = some_layers(trace, layers), _some_mixers(trace, layers)
    rounding = Rounding(what, None if dtype is None else DTYPES[dtype])
    size, running, packing = _size(trace, kept, mixers, rounding)
    report = ahead("Trace.save", size, running + packing, progress, "bytes")
    chosen, fidelity = trace.whole_layers if what == "all" else trace.layers, trace.fidelity
    _check(trace, kept, mixers, trace.provenance, fidelity)
    # After the model ran again, writing the file is at most a fifth of the work.
    ran = running / (running + packing)
    report(ran)
    shelf, packed, done = _Shelf(rounding), dict[str, list[dict[str, object]]](), 0
    count = sum(len(one.numbers) for one in kept.values()) + sum(map(len, mixers.values()))
    for stream, one in kept.items():
        packed[stream] = []
        for number in one.numbers:
            layer = _of(trace, chosen, stream, number)
            packed[stream].append(_pack_layer(layer, shelf, f"layer {number} of the {stream}"))
            done += 1
            report(ran + (1 - ran) * 0.8 * done / count)
    mixing = dict[str, list[dict[str, object]]]()
    for stream, found in mixers.items():
        mixing[stream] = []
        for one in found:
            mixing[stream].append(_pack_mixer(one, shelf, f"layer {one.label} of the {stream}"))
            done += 1
            report(ran + (1 - ran) * 0.8 * done / count)
    header = _header(trace, kept, packed, mixing, shelf)
    if cells is not None:
        header |= {"format": max(FORMAT_OF_CAUSAL, header["format"]), PART: asdict(cells), "rounded": shelf.rounded}
    try:
        begins = header_of(shelf.tensors, {HEADER: json.dumps(header, ensure_ascii=True)})
        begins = sealed(begins, bytes_of_all(shelf.tensors))
        write_pieces(path, itertools.chain([begins], bytes_of_all(shelf.tensors)))
    except (OSError, ValueError) as error:
        raise TraceError(f"can't write the trace to {fspath(path)}: {error}") from None
    report(1.0)


def _some_mixers(trace: TraceData, layers: Sequence[int] | None) -> MixersByStream:
    """Choose the layers without a softmax; all by default."""
    if layers is None:
        return trace.mixers
    found = dict[str, tuple[MixerLayer, ...]]()
    for stream, every in trace.mixers.items():
        numbers = trace.layer_numbers(stream)
        chosen = [(number, layer) for number, layer in zip(numbers, every, strict=True) if number in layers]
        found[stream] = tuple(layer for _, layer in chosen)
        if numbers_of(labels_of(found[stream])) != tuple(number for number, _ in chosen):
            raise TraceError(f"the layers of the {stream} have no numbers of their own; save all layers")
    return {stream: some for stream, some in found.items() if some}


def _check(
    trace: TraceData,
    kept: Mapping[str, KeptLayers],
    mixers: MixersByStream,
    origin: Provenance,
    fidelity: Fidelity,
) -> None:
    """Refuse facts that `read_trace` would."""
    queries, keys = ({stream: axis[stream] for stream in kept or axis} for axis in (trace.queries, trace.keys))
    check_facts(queries, keys, origin, fidelity)
    check_layer_count([*(one.numbers for one in kept.values()), *mixers.values()])
    check_mixers(layer.mixer for found in mixers.values() for layer in found)
    check_heads(
        _of(trace, trace.layers, stream, number).attention.shape[0]
        for stream, one in kept.items()
        for number in one.numbers
    )
    check_output_rows(*trace.output_shape, queries, origin)


def _of(trace: TraceData, layers: Mapping[str, tuple[Layer, ...]], stream: str, number: LayerNumber) -> Layer:
    return layers[stream][trace.kept[stream].index(number)]


def _header(
    trace: TraceData,
    kept: dict[str, KeptLayers],
    packed: dict[str, list[dict[str, object]]],
    mixing: dict[str, list[dict[str, object]]],
    shelf: "_Shelf",
) -> dict[str, Any]:
    rounding, output = shelf.rounding, shelf.put(trace.output, "the output")
    seen: dict[str, Any] = {name: shelf.put(one, f"the {name}") for name, one in trace.seen.tensors.items()}
    if trace.seen.others:
        seen["others"] = [shelf.put(one, "an image") for one in trace.seen.others]
    if trace.seen.times:
        seen["times"] = list(trace.seen.times)
    if trace.seen.rate:
        seen["rate"] = trace.seen.rate
    less = rounding.what == WEIGHTS or rounding.dtype is not None
    whole = all(one.whole for one in kept.values())
    # Without softmax attention, the first mixer has the tokens.
    tokens = {} if kept else {name: _pack_tokens(trace, name) for name in list(mixing)[:1]}
    version = FORMAT_OF_LESS if less else FORMAT_OF_ALL if whole else FORMAT_OF_SOME
    version = FORMAT_OF_MIXERS if mixing else version
    if any(CAUSAL in layer for layers in packed.values() for layer in layers):
        version = FORMAT_OF_CAUSAL
    if any(PICKING in layer for layers in packed.values() for layer in layers):
        version = FORMAT_OF_PICKED
    if any(any(tokens.slots) for axis in (trace.queries, trace.keys) for tokens in axis.values()):
        version = FORMAT_OF_SLOTS
    return {
        CHECKSUM: BLANK,
        "format": version,
        "streams": {
            stream: {
                **_pack_tokens(trace, stream),
                "layers": packed[stream],
                **pack_kept(one, [str(layer["label"]) for layer in packed[stream]]),
            }
            for stream, one in kept.items()
        },
        **({"mixers": {stream: {"layers": found} for stream, found in mixing.items()}} if mixing else {}),
        **({"tokens": tokens} if tokens else {}),
        "output": output,
        **({"seen": seen} if seen else {}),
        "provenance": rounding.described(trace).as_dict(),
        "fidelity": _pack_fidelity(trace.fidelity.before(rounding.change)),
        **({"rounded": shelf.rounded} if version >= FORMAT_OF_LESS else {}),
    }


def _pack_tokens(trace: TraceData, stream: str) -> dict[str, object]:
    return {"queries": _axis(trace.query_tokens(stream)), "keys": _axis(trace.key_tokens(stream))}


def _axis(tokens: Tokens) -> dict[str, Any]:
    entry = asdict(tokens)
    # Most texts have no image beside them, and most models add nothing.
    return {name: one for name, one in entry.items() if name not in ("regions", "slots") or any(one)}


def _pack_fidelity(fidelity: Fidelity) -> dict[str, object]:
    """Pack all measured errors; earlier versions need two, with NaN for not measured."""
    found = {name: value for name, value in asdict(fidelity).items() if value is not None}
    return {"output_error": math.nan, "weight_error": math.nan, **found}


def _size(
    trace: TraceData, kept: dict[str, KeptLayers], mixers: MixersByStream, rounding: Rounding
) -> tuple[float, float, float]:
    """Estimate the file's bytes, and seconds including model runs, by shapes."""
    chosen = [_of(trace, trace.layers, stream, number) for stream, one in kept.items() for number in one.numbers]
    weights = sum(math.prod(layer.attention.shape) for layer in chosen)
    numbers = sum(tensor.numel() for layer in chosen for tensor in layer.tensors)
    surrounded = "whole_layers" not in vars(trace) and behind(trace).complete is not None and rounding.what == "all"
    # The tensors around the calls aren't known yet, and have as many numbers again.
    mixed = [layer for found in mixers.values() for layer in found]
    signed = sum(math.prod(layer.mixer.shape) for layer in mixed)
    numbers = numbers * (2 if surrounded else 1) + sum(tensor.numel() for layer in mixed for tensor in layer.tensors)
    weights += signed
    numbers = weights if rounding.what == WEIGHTS else numbers
    size = (numbers + math.prod(trace.output_shape)) * rounding.item_size(by_row(trace).dtype)
    passes = surrounded + ("fidelity" not in vars(trace))
    compared = weights if rounding.measures else 0
    return size, passes * behind(trace).seconds, size / BYTES_A_SECOND + compared / _WEIGHTS


class _Shelf:
    """Tensors to store, each once.

    Attributes:
        rounded: the original dtypes of rounded tensors, by name.
    """

    def __init__(self, rounding: Rounding) -> None:
        self.rounding = rounding
        self.tensors: dict[str, StoredTensor] = {}
        self.rounded: dict[str, str] = {}
        self._names: dict[int, str] = {}
        self._held: list[Tensor] = []

    def put(self, tensor: Tensor, where: str) -> str:
        """Store a tensor once and return its name."""
        if id(tensor) not in self._names:
            name = f"t{len(self.tensors):04d}"
            self._names[id(tensor)] = name
            stored, kind = tensor.detach(), self.rounding.kind_of(tensor)
            if kind != tensor.dtype:
                self.rounded[name] = str(tensor.dtype).removeprefix("torch.")
                if kind.itemsize < tensor.dtype.itemsize:
                    self.rounding.check(stored, where)
            # It lives as long as its number is known by, and its detached half with it.
            self._held.append(tensor)
            self.tensors[name] = StoredTensor(stored, kind, lambda piece: piece.to(kind))
        return self._names[id(tensor)]


def _pack_layer(layer: Layer, shelf: _Shelf, where: str) -> dict[str, object]:
    call, rounding = layer.attention, shelf.rounding
    check_layer_names(layer.label, layer.bias_parts)
    rounding.measure(call, where)
    if rounding.what == WEIGHTS:
        terms = {WEIGHTS: weights_of(call), "allowed": call.allowed}
        around, parts, numbers = {}, {}, {}
    else:
        terms = {term.name: getattr(call, term.name) for term in _TERMS if not term.is_number}
        numbers = {term.name: getattr(call, term.name) for term in _TERMS if term.is_number}
        around, parts = (layer.around, layer.bias_parts) if rounding.what == "all" else ({}, {})
    # Of a causal mask without cells none are made: a long text's would be larger than all else.
    causal = isinstance(call.allowed, CausalMask) and rounding.what != WEIGHTS
    terms |= {"allowed": None} if causal else {}
    facts = {CAUSAL: True} if causal else {}
    tensors = {name: tensor for name, tensor in {**terms, **around}.items() if tensor is not None}

    def put(named: Mapping[str, Tensor]) -> dict[str, str]:
        return {name: shelf.put(tensor, f"{name} of {where}") for name, tensor in named.items()}

    # Parts have an entry of their own, since older versions refuse tensors with unknown names.
    found = {"label": layer.label, **numbers, **facts, "tensors": put(tensors)}
    picking = layer.picking if rounding.what == "all" else None
    chosen = {} if picking is None else {PICKING: put({"scores": picking.scores, "picked": picking.picked})}
    return {**found, **chosen, **({"bias_parts": put(parts)} if parts else {})}


def _pack_mixer(layer: MixerLayer, shelf: _Shelf, where: str) -> dict[str, object]:
    mixer, rounding = layer.mixer, shelf.rounding
    check_layer_names(layer.label, ())
    rounding.measure(mixer, where)
    facts: dict[str, object] = {"label": layer.label, "kind": mixer.kind, "per": mixer.per}
    if rounding.what == WEIGHTS:
        return {**facts, "tensors": {WEIGHTS: shelf.put(weights_of(mixer), f"the weights of {where}")}}
    terms = {term: value for term in _MIXER_TERMS if (value := getattr(mixer, term.name)) is not None}
    numbers = {term.name: value for term, value in terms.items() if term.is_number}
    named = {term.name: value for term, value in terms.items() if not term.is_number}
    return {**facts, **numbers, "tensors": {name: shelf.put(one, f"{name} of {where}") for name, one in named.items()}}
