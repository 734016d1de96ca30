"""Layers without a softmax for the browser: signed weights as they were computed, in float32.

Of a head the browser gets each weight and the length of each value, so that it knows what arrives: |weight| × length.
A layer with a matrix per channel comes as one picture: the length of what arrives in all channels together.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Bool, Float

from attention_viz.errors import TraceError
from attention_viz.explorer.packet import Packet
from attention_viz.explorer.planes import Masks

if TYPE_CHECKING:
    from attention_viz.operation.token_mixer import TokenMixer
    from attention_viz.trace.layers import MixerLayer

__all__ = ["LONGEST_MATRIX", "add_mixer", "mixer_cells", "pictures_of"]

# A matrix of more tokens isn't drawn: the browser would hold four bytes for each cell of each head.
LONGEST_MATRIX = 1024
# Of all matrices of a trace's mixers together; of more none is drawn, so that the others can be.
MOST_CELLS = 24_000_000


def pictures_of(mixer: "TokenMixer") -> int:
    """Return how many matrices a layer is drawn as: one per head, or one for all channels."""
    return mixer.shape[0] if mixer.per == "head" else 1


def mixer_cells(layers: "tuple[MixerLayer, ...]") -> int:
    """Return how many cells the layers' matrices have."""
    return sum(pictures_of(one.mixer) * one.mixer.shape[-2] * one.mixer.shape[-1] for one in layers)


def add_mixer(layer: "MixerLayer", name: str, packet: Packet, masks: Masks, *, drawn: bool) -> dict[str, Any]:
    """Add a layer's matrices unless they are too large; return its header."""
    mixer = layer.mixer
    head = {
        "label": layer.label,
        "kind": mixer.kind,
        "per": mixer.per,
        "heads": pictures_of(mixer),
        "channels": mixer.shape[0] if mixer.per == "channel" else 0,
    }
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


def _unreached(mixer: "TokenMixer") -> Bool[np.ndarray, "heads query key"] | None:
    """Return True where no value can arrive; one slice if heads agree, None if there is no such cell."""
    heads, queries, keys = mixer.shape
    blocked = np.zeros((1, queries, keys), bool)
    if mixer.is_causal:
        blocked |= ~np.tri(queries, keys, dtype=bool)
    if mixer.allowed is not None:
        shut = ~mixer.allowed.detach().cpu().numpy()
        shut = shut[None] if shut.ndim == 2 else shut
        # All channels are one picture: a cell is shut where each of them shuts it.
        shut = shut.all(axis=0, keepdims=True) if mixer.per == "channel" else shut
        blocked = blocked | (np.repeat(shut, heads // len(shut), axis=0) if 1 < len(shut) < heads else shut)
    return blocked if blocked.any() else None


def _float32(tensor: torch.Tensor) -> Float[np.ndarray, "*any"]:
    return tensor.detach().float().cpu().contiguous().numpy().astype("<f4", copy=False)
