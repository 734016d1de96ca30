"""Read attention weights from transformers' outputs, and join the steps of a generation to whole rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from torch import Tensor

from attention_viz.errors import ShapeError, TraceError
from attention_viz.operation.attention import Attention
from attention_viz.operation.shapes import is_whole
from attention_viz.trace.decoding import Decoding
from attention_viz.trace.given.from_tensors import (
    Labels,
    Made,
    Stack,
    call_of_weights,
    causal_by_weights,
    compared_with_weights,
    floating,
    origin_of,
    output_of,
    row_of_batch,
    tokens_of,
    trace_of_stacks,
    version_of,
)
from attention_viz.trace.given.from_weights import weights_alone
from attention_viz.trace.kept import KeptLayers
from attention_viz.trace.kind import STREAM_KINDS, STREAMS
from attention_viz.trace.tokens import Tokens, first_tokens

# The fields with weights, and their streams; the weights themselves show whether a lone stack is causal.
_FIELDS = {
    "attentions": None,
    "encoder_attentions": "encoder",
    "decoder_attentions": "decoder",
    "cross_attentions": "cross",
}
_EAGER = 'load the model with attn_implementation="eager", and pass output_attentions=True'
# Outputs whose attentions aren't over a text's tokens, by how their class's name begins.
_NO_TOKENS = {
    "Longformer": "are by distance from each token",
    "LED": "are by distance from each token",
    "Perceiver": "are over latents",
    "Swin": "are over a window's patches",
    "DonutSwin": "are over a window's patches",
    "MaskFormerSwin": "are over a window's patches",
}
_GLOBAL = ("global_attentions", "encoder_global_attentions")
# Fields that may be the model's output, the best first.
_RESULTS = ("logits", "last_hidden_state")


@dataclass(frozen=True)
class Handed:
    """What transformers handed over: each stream's calls, the weights as they came, and the model's output, if there.

    Attributes:
        generated: how many tokens at the end came from a generation.
        fields: the names of the fields with weights.
    """

    stacks: dict[str, Stack]
    originals: Sequence[Tensor]
    result: tuple[str, Tensor] | None
    generated: int
    fields: tuple[str, ...]


def read_outputs(
    outputs: Any, named: tuple[Labels, Labels, str | None], batch: int | None, layers: Sequence[int] | None
) -> Handed:
    """Read each stream's weights from an output of a model or of `generate`."""
    tokens, target, stream = named
    found = _with_weights(outputs, stream)
    rows = {name: _rows(part, name, outputs, batch) for name, part in found.items()}
    stepwise = any(_is_steps(part) for name, part in found.items() if name != "cross_attentions")
    # A beam may end before the others do.
    steps = len(_beams(outputs, batch)) - 1 if stepwise else 0
    ids = _generated_ids(outputs, batch) if steps else None
    encoded = len(found) > 1 or "encoder_attentions" in found
    stacks: dict[str, Stack] = {}
    for name, layer_rows in rows.items():
        calls, kind = _calls(layer_rows, name, stream if name == "attentions" else _FIELDS[name], steps)
        queries, keys = layer_rows[0].shape[-2:]
        own = target if encoded and kind != "encoder" else tokens
        asking = _tokens(own, queries, f"tokens of the {kind}", ids if kind != "encoder" else None)
        asked = _tokens(tokens, keys, "tokens of the encoder", None) if kind == "cross" else asking
        numbered = None if layers is None else _numbered(layers, len(calls))
        stacks[kind] = Stack(tuple(calls), asking, asked, numbered)
    last = next(stacks[kind] for kind in reversed(stacks) if kind != "cross")
    result = None if steps else _result(outputs, len(last.queries), batch)
    return Handed(stacks, [one for some in rows.values() for one in some], result, steps, tuple(found))


def trace_of_outputs(kind: type[Made], handed: Handed, outputs: Any, name: str | None) -> Made:
    """Make a trace whose provenance and fidelity say that transformers computed the weights."""
    last = next(handed.stacks[stream] for stream in reversed(handed.stacks) if stream != "cross").calls[-1]
    source = type(outputs).__name__
    origin = origin_of(name or source, last, ())
    notes = [f"The weights are {' and '.join(handed.fields)} of a {source}, computed before; no model ran here."]
    if handed.generated:
        notes.append("Each generated token's row is from its own step of the generation.")
        origin = replace(origin, generated=handed.generated, decoding=(Decoding("given", tokens=handed.generated),))
    origin = replace(origin, notes=tuple(notes), versions={**origin.versions, **version_of(outputs)})
    if handed.result is not None:
        origin = replace(origin, output=handed.result[0])
    output = output_of(last) if handed.result is None else handed.result[1]
    calls = [call for stack in handed.stacks.values() for call in stack.calls]
    return trace_of_stacks(
        kind,
        handed.stacks,
        output,
        origin,
        lambda: compared_with_weights(calls, handed.originals, weights_alone(handed.originals)),
    )


def _field(outputs: Any, name: str) -> Any:
    """Return a field of an output, or of a dict with its fields; None if it is missing."""
    if isinstance(outputs, Mapping):
        return cast("Mapping[str, Any]", outputs).get(name)
    return getattr(outputs, name, None)


def _with_weights(outputs: Any, stream: str | None) -> dict[str, Sequence[Any]]:
    """Return the fields that have weights; refuse an output without any, or with None in place of a layer's."""
    if isinstance(outputs, Tensor | list) or type(outputs) is tuple:
        raise ShapeError(
            f"outputs must be a model's or generate's output with named fields; got {type(outputs).__name__}. Pass "
            "return_dict=True (return_dict_in_generate=True), or the weights alone to Trace.from_weights"
        )
    _check_tokens(outputs)
    for name in _FIELDS:
        _check_field(_field(outputs, name), name)
    found = {name: part for name in _FIELDS if (part := _field(outputs, name)) is not None and len(part)}
    if not set(found) - {"cross_attentions"}:
        there = [name for name in _FIELDS if _field(outputs, name) is not None]
        got = f"{there[0]} is empty" if there else "no attentions in it"
        raise TraceError(f"this {type(outputs).__name__} has no attention weights ({got}); {_EAGER}")
    for name, part in found.items():
        layers = [one for step in part for one in step] if _is_steps(part) else part
        if none := [place for place, one in enumerate(layers) if one is None]:
            raise TraceError(
                f"{name} has None in place of the weights of {len(none)} of {len(layers)} layers, since fused "
                f"attention such as sdpa makes none; {_EAGER}"
            )
    if stream is not None and (stream not in STREAMS or "attentions" not in found):
        raise TraceError(f"stream must be one of {', '.join(STREAM_KINDS)}, and needs attentions; got {stream!r}")
    return found


def _check_tokens(outputs: Any) -> None:
    """Refuse outputs whose attentions aren't over tokens, by their class or fields."""
    name = type(outputs).__name__
    why = next((why for start, why in _NO_TOKENS.items() if name.startswith(start)), None)
    if any(hasattr(outputs, one) or (isinstance(outputs, Mapping) and one in outputs) for one in _GLOBAL):
        why = _NO_TOKENS["Longformer"]
    if why is not None:
        instead = "" if "Swin" in name else "; use av.wrap(model).trace(…)"
        raise TraceError(f"the attentions of a {name} {why}, not over tokens{instead}")


def _check_field(part: Any, name: str) -> None:
    """Refuse a field that isn't one entry per layer, or per step of a generation."""
    if part is None:
        return
    if not isinstance(part, list | tuple | Tensor) or (isinstance(part, Tensor) and part.ndim != 5):
        got = f"a tensor {tuple(part.shape)}" if isinstance(part, Tensor) else f"{part!r:.40}"
        raise ShapeError(f"{name} must be a tuple with one tensor per layer; got {got}")
    entries = cast("Sequence[Any]", part)
    if _is_steps(entries):
        wrong = next((place for place, one in enumerate(entries) if not isinstance(one, list | tuple) or not one), None)
        if wrong is not None:
            raise ShapeError(f"step {wrong} of {name} must have one tensor per layer; got {entries[wrong]!r:.40}")


def _is_steps(part: Sequence[Any]) -> bool:
    """Return whether a field has a tuple of layers for each step of a generation."""
    return len(part) > 0 and isinstance(part[0], list | tuple)


def _rows(part: Sequence[Any], name: str, outputs: Any, batch: int | None) -> list[Tensor]:
    """Return each layer's weights (head, query, key) of one row of the batch."""
    if _is_steps(part):
        return _joined(part, name, outputs, batch)
    sequences = _field(outputs, "sequences")
    if sequences is not None:
        # An encoder ran once for each text, a generation's decoder once for each of its sequences.
        decoded = next(one for one in (_field(outputs, "decoder_attentions"), part) if one)
        several = len(decoded[0][0]) if _is_steps(decoded) else len(decoded[0])
        batch = _beams(outputs, batch)[0] * len(part[0]) // several
    layers = [row_of_batch(_four(one, f"{name}[{place}]"), batch, name) for place, one in enumerate(part)]
    return [one.detach().clone() for one in layers]


def _four(weights: Any, where: str) -> Tensor:
    """Refuse anything but (batch, head, query, key)."""
    tensor = floating(weights, where)
    if tensor.ndim != 4:
        raise ShapeError(f"{where} must have the shape (batch, head, query, key); got {tuple(tensor.shape)}")
    return tensor


def _beams(outputs: Any, batch: int | None) -> list[int]:
    """Return a generated sequence's row at each step: a beam search moves it from row to row."""
    sequences, paths = _field(outputs, "sequences"), _field(outputs, "beam_indices")
    every = [_field(outputs, name) for name in _FIELDS]
    steps: Sequence[Any] = next((part for part in every if part is not None and _is_steps(part)), ())
    first = [_four(step[0], "a step's weights") for step in steps]
    choices = sequences if isinstance(sequences, Tensor) else first[0] if first else None
    if choices is not None:
        row_of_batch(choices, batch, "sequences")
    row = batch or 0
    if choices is None or not first:
        return [row]
    counts = {len(one) for one in first}
    if isinstance(paths, Tensor):
        path = [int(one) for one in paths[row].tolist() if one >= 0][: len(steps)] if row < len(paths) else []
        if not path or max(path) >= min(counts):
            raise ShapeError(f"beam_indices of sequence {row} must name rows from 0 to {min(counts) - 1}; got {path}")
        return path
    if counts != {len(choices)}:
        raise TraceError(
            f"the steps have {min(counts)} rows for {len(choices)} sequences, as of a beam search, whose rows move; "
            "pass beam_indices too"
        )
    if _field(outputs, "sequences_scores") is not None or "Beam" in type(outputs).__name__:
        raise TraceError("the rows of a beam search move from step to step; pass beam_indices too")
    return [row] * len(steps)


def _joined(steps: Sequence[Sequence[Any]], name: str, outputs: Any, batch: int | None) -> list[Tensor]:
    """Join a generation's steps: the prompt's rows, then the last row of each further step."""
    beams = _beams(outputs, batch)
    layers = len(steps[0])
    if any(len(step) != layers for step in steps):
        raise ShapeError(f"each step of {name} needs as many layers; got {sorted({len(step) for step in steps})}")
    joined: list[Tensor] = []
    for layer in range(layers):
        pieces = [
            _four(step[layer], f"{name}[{place}][{layer}]")[row]
            for place, (step, row) in enumerate(zip(steps, beams, strict=False))
        ]
        joined.append(_join(pieces, f"layer {layer} of {name}", crossing=name == "cross_attentions"))
    return joined


def _join(pieces: Sequence[Tensor], where: str, crossing: bool) -> Tensor:
    """Join one layer's steps, (head, query, key) each, to (head, position, key)."""
    heads, prompt, width = pieces[0].shape
    count = prompt + len(pieces) - 1
    whole = pieces[0].new_zeros(heads, count, width if crossing else count)
    for place, piece in enumerate(pieces):
        seen = prompt + place
        if piece.shape[0] != heads or (place and piece.shape[1] not in (1, seen)):
            raise ShapeError(f"step {place} of {where} has the shape {tuple(piece.shape)}; expected ({heads}, 1, key)")
        rows = piece if place == 0 else piece[:, -1:]
        if crossing:
            if piece.shape[2] != width:
                raise ShapeError(f"step {place} of {where} has {piece.shape[2]} keys; the first one has {width}")
            whole[:, seen - rows.shape[1] : seen] = rows
            continue
        keys = min(seen, rows.shape[2])
        if bool(rows[..., keys:].any()):
            raise ShapeError(
                f"step {place} of {where} attends to {rows.shape[2]} tokens, but only {seen} have rows; generate from "
                "the whole prompt, without an earlier cache or prefill in chunks"
            )
        # A cache of the last tokens alone has their keys; one of a fixed size has empty ones at its end.
        whole[:, seen - rows.shape[1] : seen, seen - keys : seen] = rows[..., :keys]
    return whole.detach()


def _calls(rows: Sequence[Tensor], name: str, stream: str | None, steps: int) -> tuple[list[Attention], str]:
    """Make each layer's call, and name the stream."""
    shapes = {tuple(one.shape[-2:]) for one in rows}
    if len(shapes) > 1:
        phrase = ", ".join(f"{queries} × {keys}" for queries, keys in sorted(shapes))
        raise ShapeError(f"all layers of {name} need the same tokens; got (query, key) = {phrase}")
    ((queries, keys),) = shapes
    if name != "cross_attentions" and queries != keys:
        raise ShapeError(
            f"{name} is {queries} × {keys}, but a text attends to itself; pass the output of one pass over the whole "
            "text, without past_key_values, or that of generate"
        )
    closed = None if name in ("cross_attentions", "encoder_attentions") else causal_by_weights(rows)
    kind = stream or ("decoder" if closed is not None or steps else "encoder")
    mask = closed if kind == "decoder" else None
    return [call_of_weights(one, mask, f"{name}[{place}]") for place, one in enumerate(rows)], kind


def _generated_ids(outputs: Any, batch: int | None) -> list[int] | None:
    """Return a generation's ids; None if it has none."""
    sequences = _field(outputs, "sequences")
    return sequences[batch or 0].tolist() if isinstance(sequences, Tensor) else None


def _tokens(labels: Labels, count: int, which: str, ids: Sequence[int] | None) -> Tokens:
    """Return a stream's tokens. A generation's last token was never read, so it has no row and may be passed."""
    if labels is None and ids is not None and len(ids) >= count:
        return Tokens.of_ids(ids[:count])
    if labels is not None and ids is not None and len(labels) == count + 1:
        labels = first_tokens(labels, count) if isinstance(labels, Tokens) else labels[:count]
    return tokens_of(labels, count, which)


def _numbered(layers: Any, count: int) -> KeptLayers:
    """Number the layers by the model's own numbers."""
    if not isinstance(layers, Sequence) or not all(map(is_whole, layers)):
        raise ShapeError(f"layers must be whole numbers, one per layer with weights; got {layers!r:.40}")
    if len(layers) != count:
        raise ShapeError(f"layers needs {count} numbers, one per layer with weights; got {len(layers)}")
    return KeptLayers.all_of(layers)


def _result(outputs: Any, rows: int, batch: int | None) -> tuple[str, Tensor] | None:
    """Return the model's own output and its name, if there is one with a row per token."""
    for name in _RESULTS:
        found = _field(outputs, name)
        if isinstance(found, Tensor) and found.ndim == 3 and found.shape[1] == rows and found.is_floating_point():
            return name, row_of_batch(found, batch, name).detach().clone()
    return None
