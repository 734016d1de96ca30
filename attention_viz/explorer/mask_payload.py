"""The painted mask's data: the plain run once, then each masked run's changes.

The first is a packet: the shown head's softmax inputs and values, which the browser recomputes; others, if few, as
65,534ths of a weight. The second fits the channel: numbers, weights in base64. Without a softmax, the packet has the
signed weights themselves, or what arrives in all channels: a blocked cell becomes 0, and the others stay.
"""

import base64
import binascii
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy
import torch
from jaxtyping import Bool, UInt16
from torch import Tensor

from attention_viz.analysis.signed import mixer_of, open_cells
from attention_viz.edits.effects import moved_output, moved_weight
from attention_viz.explorer.axes import packed_layers, places_of
from attention_viz.explorer.packet import Packet
from attention_viz.operation import masks
from attention_viz.trace.spelling import set_apart

if TYPE_CHECKING:
    from attention_viz.trace.tokens import Tokens
    from attention_viz.trace.trace import Trace

# What a weight of 1 is sent as.
STEPS = 65_534
# All heads' cells are sent up to so many; of more, only the head on the screen.
MOST_CELLS = 400_000
# Why a stream takes no mask: it is of two texts, or its queries and keys are other positions.
TWO_TEXTS = "Cross-attention reads two texts; these masks need one."
CROSSING = "Queries and keys of this stream are different positions; these masks need the same on both sides."
# Outputs that differ by less are the same.
_ROUNDING = 1e-5


@dataclass(frozen=True)
class Likelihood:
    """A token's probability before and with a mask."""

    token: str
    before: float
    after: float


@dataclass(frozen=True)
class MaskEffect:
    """A mask's effect on the whole model.

    Attributes:
        heads: moved share by layer and head; None if missing.
        outputs: change by position, relative to the norm.
        cosine: between mean outputs; None if either norm is 0.
    """

    heads: list[list[float | None]]
    outputs: list[float]
    cosine: float | None


def moved_of(before: "Trace", after: "Trace", stream: str) -> MaskEffect:
    """Return a mask's effect; slow, because it reads all heads' weights."""
    if after is before:
        heads: list[list[float | None]] = [
            [0.0] * before.head_count(layer, stream) for layer in before.layer_numbers(stream)
        ]
        return MaskEffect(heads, [0.0] * before.output_shape[0], _cosine(before, after))
    rows = moved_weight(before, after, stream).tolist()
    # A masked mixer computes in another order than the model's own kernel.
    least = _ROUNDING if before.mixers else 0.0
    return MaskEffect(
        [[None if math.isnan(one) else round(one, 6) for one in row] for row in rows],
        [0.0 if one < least else round(one, 6) for one in moved_output(before, after).tolist()],
        _cosine(before, after),
    )


def pack_board(trace: "Trace", stream: str, layer: int, head: int) -> tuple[str, bytes]:
    """Pack an unmasked head; equal traces give equal bytes."""
    packet = Packet()
    allowed = _allowed(trace, stream, layer)[head]
    sinks, mixed = None, {}
    if stream in trace.mixers:
        mixer = mixer_of(trace, stream, layer)
        one = mixer.head(head)
        logits = one.weights.detach().float().cpu().numpy()
        mixed = {"mixed": "arrived" if mixer.per == "channel" else "signed", "kind": mixer.kind}
        layers = [
            {"label": one.label, "number": number, "heads": one.mixer.shape[0]}
            for number, one in zip(trace.layer_numbers(stream), trace.mixers[stream], strict=True)
        ]
    else:
        trace.check_every_layer("the board of masks", stream)
        one = trace.attention(layer, stream).head(head)
        sinks = None if one.sinks is None else float(one.sinks.detach().float().reshape(-1)[0])
        logits = one.masked.detach().float().cpu().numpy()
        layers = packed_layers(trace, stream)
    full = _few(trace, stream)
    header: dict[str, Any] = {
        "queries": _axis(trace.query_tokens(stream)),
        "keys": _axis(trace.key_tokens(stream)),
        "layers": layers,
        "layer": layer,
        "head": head,
        **mixed,
        "sinks": sinks,
        "logits": packet.add_numbers(logits.reshape(-1)),
        "values": packet.add_numbers(one.value.detach().float().cpu().numpy().reshape(-1)),
        "open": packet.add(numpy.packbits(allowed).tobytes()),
        "weights": packet.add_numbers(_steps(trace, stream)) if full else None,
        "opens": _opens(trace, stream, packet) if full else None,
    }
    header["id"] = packet.digest(header)
    return header["id"], packet.pack(header)


def run_of(
    before: "Trace",
    after: "Trace",
    stream: str,
    layer: int,
    head: int,
    likelier: Sequence[Likelihood] = (),
    moved: MaskEffect | None = None,
) -> dict[str, Any]:
    """Return effects as plain values; `moved` saves work."""
    moved = moved_of(before, after, stream) if moved is None else moved
    said = before.query_tokens(before.streams[-1])
    weights = after.attention(layer, stream).head(head).weights.detach().float().cpu().numpy()
    mixes = stream in after.mixers
    return {
        "weights": base64.b64encode(weights.astype("<f4").tobytes()).decode() if mixes else _coded(_levels(weights)),
        "others": _coded(_steps(after, stream)) if _few(after, stream) else None,
        "open": written_bits(_allowed(after, stream, layer)[head]),
        "heads": moved.heads,
        "outputs": moved.outputs,
        "said": list(map(set_apart, said.names)),
        "cosine": moved.cosine,
        "likelier": [[one.token, *(float(f"{number:.6g}") for number in (one.before, one.after))] for one in likelier],
    }


def mask_cells(
    mask: str,
    count: int,
    window: int,
    prefix: int,
    *,
    padding: Sequence[bool] = (),
    drawn: Tensor | None = None,
) -> Tensor | None:
    """Return a named mask's cells, (query, key), True for open; None for "none"."""
    real = masks.padding(torch.tensor(padding or [False] * count).long(), 1).expand(count, count)
    make = {
        "causal": lambda: masks.causal(count),
        "padding": lambda: real.clone(),
        "both": lambda: masks.combine(masks.causal(count), real),
        "window": lambda: masks.sliding_window(count, window),
        "prefix": lambda: masks.prefix(count, prefix),
        "drawn": lambda: drawn,
    }
    return make[mask]() if mask in make else None


def read_bits(text: object, count: int) -> Bool[numpy.ndarray, "query key"] | None:
    """Decode a square matrix as `written_bits` encodes one; None if invalid, since a browser may send anything."""
    try:
        packed = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except (binascii.Error, ValueError):
        return None
    if len(packed) != -(-count * count // 8):
        return None
    bits = numpy.unpackbits(numpy.frombuffer(packed, dtype=numpy.uint8), count=count * count)
    return bits.reshape(count, count).astype(bool)


def written_bits(cells: Bool[numpy.ndarray, "query key"]) -> str:
    """Encode cells as base64, eight per byte, row by row."""
    return base64.b64encode(numpy.packbits(cells).tobytes()).decode()


def _few(trace: "Trace", stream: str) -> bool:
    """Return whether all heads are sent, which signed weights never are."""
    return (
        stream in trace.layers and sum(math.prod(layer.attention.shape) for layer in trace.layers[stream]) <= MOST_CELLS
    )


def _opens(trace: "Trace", stream: str, packet: Packet) -> list[list[tuple[int, int]]]:
    places: list[list[tuple[int, int]]] = []
    for layer in trace.layer_numbers(stream):
        own, allowed = trace.attention(layer, stream).allowed, _allowed(trace, stream, layer)
        apart = own is not None and own.dim() > 2 and own.shape[-3] > 1
        places.append([packet.add(numpy.packbits(one).tobytes()) for one in (allowed if apart else allowed[:1])])
    return places


def _steps(trace: "Trace", stream: str) -> UInt16[numpy.ndarray, " cells"]:
    layers = trace.layer_numbers(stream)
    weights = [trace.attention(layer, stream).weights.detach().float().cpu().numpy().reshape(-1) for layer in layers]
    return _levels(numpy.concatenate(weights))


def _levels(weights: numpy.ndarray) -> UInt16[numpy.ndarray, " cells"]:
    return numpy.rint(weights.reshape(-1).clip(0, 1) * STEPS).astype("<u2")


def _coded(levels: UInt16[numpy.ndarray, " cells"]) -> str:
    return base64.b64encode(levels.tobytes()).decode()


def _allowed(trace: "Trace", stream: str, layer: int) -> Bool[numpy.ndarray, "head query key"]:
    if stream in trace.mixers:
        mixer = mixer_of(trace, stream, layer)
        if mixer.allowed is None or mixer.allowed.ndim < 3:
            return numpy.broadcast_to(open_cells(mixer).numpy(), mixer.shape)
        return numpy.stack([open_cells(mixer.head(head)).numpy() for head in range(mixer.shape[0])])
    attention = trace.attention(layer, stream)
    if attention.allowed is None:
        return numpy.ones(attention.shape, dtype=bool)
    return numpy.broadcast_to(attention.allowed.cpu().numpy(), attention.shape)


def _axis(tokens: "Tokens") -> dict[str, Any]:
    return {
        "tokens": list(map(set_apart, tokens.names)),
        "placed": [tokens.placed_at(at) for at in range(len(tokens))] if tokens.placed else None,
        "special": places_of(tokens.special),
        "padding": places_of(tokens.padding),
    }


def _cosine(before: "Trace", after: "Trace") -> float | None:
    """Return the mean outputs' cosine; None if either norm is 0."""
    real = ~numpy.array(before.query_tokens(before.streams[-1]).padding, dtype=bool)
    old, new = (
        trace.output.detach().double().cpu().numpy()[real].mean(axis=0)  # the sentence's vector, of such models
        for trace in (before, after)
    )
    lengths = float(numpy.linalg.norm(old) * numpy.linalg.norm(new))
    return round(float(old @ new) / lengths, 6) if lengths else None
