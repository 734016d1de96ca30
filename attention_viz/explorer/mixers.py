"""Layers without a softmax for the browser: signed weights as they were computed, in float32.

The browser gets each weight of a head and the length of each value; |weight| × length is how much arrives.
A layer with a matrix per channel comes as one picture: the length of what arrives in all channels together.
"""

import hashlib
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray

from attention_viz.analysis.signed import has_channels, mixer_of
from attention_viz.errors import TraceError
from attention_viz.explorer.packet import Packet
from attention_viz.explorer.planes import Masks

if TYPE_CHECKING:
    from attention_viz.operation.token_mixer import TokenMixer
    from attention_viz.trace.layers import MixerLayer
    from attention_viz.trace.trace import Trace

__all__ = [
    "LONGEST_HEAD",
    "LONGEST_MATRIX",
    "add_mixer",
    "channels_id",
    "comes_alone",
    "is_fetched",
    "longest_matrix",
    "mixer_cells",
    "pack_channel",
    "pictures_of",
]

# A matrix of more tokens isn't drawn: the browser would hold four bytes for each cell of each head.
LONGEST_MATRIX = 1024
# Of all matrices of a trace's mixers together; of more none is drawn, so that the others can be.
MOST_CELLS = 24_000_000
# The same if a host can hand over heads one by one: with more, heads come as small pictures, and alone when they are
# chosen, up to so many tokens.
MOST_CELLS_AT_ONCE, LONGEST_HEAD = 6_000_000, 2048
# The cells along a side of such a picture; its codes are steps of the logarithm of a size, with the weight's sign.
SIDE, _CODES, _BLOCKED = 64, 127, -128


def pictures_of(mixer: "TokenMixer") -> int:
    """Return how many matrices a layer is drawn as: one per head, or one for all channels."""
    return mixer.shape[0] if mixer.per == "head" else 1


def mixer_cells(layers: "tuple[MixerLayer, ...]") -> int:
    """Return how many cells the layers' matrices have."""
    return sum(pictures_of(one.mixer) * one.mixer.shape[-2] * one.mixer.shape[-1] for one in layers)


def longest_matrix(mixers: "Mapping[str, tuple[MixerLayer, ...]]") -> int:
    """Return up to how many tokens the layers' matrices are drawn."""
    matrices = sum(pictures_of(layer.mixer) for layers in mixers.values() for layer in layers)
    return min(LONGEST_MATRIX, math.isqrt(MOST_CELLS // max(1, matrices)))


def comes_alone(mixers: "Mapping[str, tuple[MixerLayer, ...]]", stream: str) -> bool:
    """Return whether a host sends a stream's heads one by one, since all together are too large."""
    matrices = sum(pictures_of(layer.mixer) for layers in mixers.values() for layer in layers)
    tokens = mixers[stream][0].mixer.shape[-2]
    at_once = tokens <= LONGEST_MATRIX and matrices * tokens * tokens <= MOST_CELLS_AT_ONCE
    return not at_once and tokens <= LONGEST_HEAD


def is_fetched(trace: "Trace", stream: str, layer: int) -> bool:
    """Return whether the browser fetches a layer's heads or channels one at a time."""
    return has_channels(trace, stream, layer) or comes_alone(trace.mixers, stream)


def add_mixer(
    layer: "MixerLayer", name: str, packet: Packet, masks: Masks, *, drawn: bool, alone: bool = False
) -> dict[str, Any]:
    """Add a layer's matrices, unless they are too large or heads come alone; return its header."""
    mixer = layer.mixer
    head = {
        "label": layer.label,
        "kind": mixer.kind,
        "per": mixer.per,
        "heads": pictures_of(mixer),
        "convolved": layer.convolved,
        "channels": mixer.shape[0] if mixer.per == "channel" else 0,
    }
    if alone and mixer.per == "head":
        return {**head, "blocked": masks.add(_unreached(mixer), packet), "cells": None, **_pictures(mixer, packet)}
    if not drawn:
        return {**head, "blocked": None, "cells": None}
    cells = _float32(mixer.weights if mixer.per == "head" else mixer.layer_contributions[None])
    if not np.isfinite(cells).all():
        raise TraceError(f"can't draw {name}: some of its weights aren't finite numbers")
    entry: dict[str, Any] = {
        **head,
        "blocked": masks.add(_unreached(mixer), packet),
        "cells": packet.add(cells.tobytes()),
    }
    if mixer.per == "head":
        lengths = torch.linalg.vector_norm(mixer.value.float(), dim=-1)
        shared = lengths.repeat_interleave(mixer.shape[0] // lengths.shape[0], dim=0)
        entry["lengths"] = packet.add(_float32(shared).tobytes())
    if mixer.skip is not None and mixer.per == "head":
        skip = mixer.skip.expand(mixer.shape[0])[:, None].expand(*mixer.shape[:2])
        entry["skip"] = packet.add(_float32(skip if mixer.gate is None else skip * mixer.gate[..., 0]).tobytes())
    return entry


def _pictures(mixer: "TokenMixer", packet: Packet) -> dict[str, Any]:
    """Add pictures of some rows of each head: of each cell the weight of the largest size, and what arrives at most."""
    queries, keys = mixer.shape[-2:]
    rows = (np.arange(0.5, SIDE) * queries / SIDE).astype(int) if queries > SIDE else np.arange(queries)
    some = mixer.rows(rows.tolist())
    weights, arriving = _float32(some.weights), _float32(some.contributions)
    if not np.isfinite(weights).all():
        raise TraceError(f"can't draw a layer of {mixer.kind}: some of its weights aren't finite numbers")
    starts = np.arange(0, keys, -(-keys // SIDE))
    unreached = _unreached(some, places=rows)
    shut = None if unreached is None else np.logical_and.reduceat(unreached, starts, axis=2)
    largest, least = np.maximum.reduceat(weights, starts, axis=2), np.minimum.reduceat(weights, starts, axis=2)
    signed = np.where(-least > largest, least, largest)
    found: dict[str, Any] = {"side": [len(rows), len(starts)]}
    for which, cells in (("signs", signed), ("arrivals", np.maximum.reduceat(arriving, starts, axis=2))):
        most = np.abs(cells).max(axis=(1, 2))
        codes = _codes(cells, most)
        if shut is not None:
            codes[np.broadcast_to(shut, codes.shape)] = _BLOCKED
        found[which] = {"at": packet.add(codes.tobytes()), "most": [float(one) for one in most]}
    return {"small": found}


def _codes(cells: Float[np.ndarray, "head row column"], most: Float[np.ndarray, " head"]) -> NDArray[np.int8]:
    from attention_viz.views.style.scale import log_places

    return np.rint(_CODES * log_places(cells, most[:, None, None])).astype(np.int8)


def pack_channel(trace: "Trace", stream: str, layer: int, channel: int, of: str | None = None) -> bytes | None:
    """Pack one head's or channel's signed matrix, with the length of each value; None if its layer isn't drawn."""
    mixer, packet = mixer_of(trace, stream, layer), Packet()
    longest = LONGEST_HEAD if mixer.per == "head" else longest_matrix(trace.mixers)
    if len(trace.query_tokens(stream)) > longest:
        return None
    one = mixer.head(channel)
    lengths = torch.linalg.vector_norm(one.value.float(), dim=-1)
    gate = torch.ones(len(lengths)) if one.gate is None else one.gate[:, 0]
    skip = None if one.skip is None else one.skip * gate
    header = {
        "of": channels_id(trace) if of is None else of,
        "channel": {"stream": stream, "layer": layer, "head": channel},
        "cells": packet.add(_float32(one.weights).tobytes()),
        "lengths": packet.add(_float32(lengths).tobytes()),
        **({} if skip is None else {"skip": packet.add(_float32(skip).tobytes())}),
    }
    return packet.pack(header)


def channels_id(trace: "Trace") -> str:
    """Return a name of the trace's mixers: of others a channel isn't taken."""
    found = hashlib.blake2b(digest_size=8)
    for layers in trace.mixers.values():
        for layer in layers:
            found.update(_float32(layer.mixer.value).tobytes())
    return found.hexdigest()


def _unreached(
    mixer: "TokenMixer", places: NDArray[np.int64] | None = None
) -> Bool[np.ndarray, "heads query key"] | None:
    """Return True if a value can't arrive; one slice if heads agree, None if all can; `places` are the rows'."""
    heads, queries, keys = mixer.shape
    blocked: NDArray[np.bool_] = np.zeros((1, queries, keys), np.bool_)
    if mixer.is_causal:
        rows = np.arange(queries) if places is None else places
        blocked = (np.arange(keys) > rows[:, None])[None]
    if mixer.allowed is not None:
        shut: NDArray[np.bool_] = ~mixer.allowed.detach().cpu().numpy()
        shut = shut[None] if shut.ndim == 2 else shut
        # All channels are one picture: a cell is shut where each of them shuts it.
        shut = np.logical_and.reduce(shut, axis=0)[None] if mixer.per == "channel" else shut
        blocked = blocked | (np.repeat(shut, heads // len(shut), axis=0) if 1 < len(shut) < heads else shut)
    return blocked if blocked.any() else None


def _float32(tensor: torch.Tensor) -> Float[np.ndarray, "*any"]:
    return tensor.detach().float().cpu().contiguous().numpy().astype("<f4", copy=False)
