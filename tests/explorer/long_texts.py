"""Heads of long texts of every kind, for the tests of what the browser computes them from."""

import json
from pathlib import Path

import torch

import attention_viz as av
from attention_viz.explorer.packet import read_packet
from attention_viz.explorer.payload import pack
from attention_viz.explorer.terms import beginning_of, pack_head
from attention_viz.operation.attention import Attention
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Fidelity, Layer, Provenance, Trace

# More than 512 along a side, so that a block has several cells, and no multiple of anything.
QUERIES = KEYS = 1_103
NAMES = (
    "open",
    "causal",
    "window",
    "capped",
    "sinks",
    "padded",
    "drawn",
    "distance",
    "keys",
    "ahead",
    "cells",
    "shared",
    "wide",
)


def call_of(name: str) -> Attention:
    """One head's call with the terms that its name says, its weights uneven."""
    generator = torch.Generator().manual_seed(NAMES.index(name))
    queries, keys = (300, KEYS) if name == "wide" else (QUERIES, KEYS)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    query, key, value = 3 * random(1, queries, 10), random(1, keys, 10), torch.zeros(1, keys, 0)
    causal = av.masks.causal(queries, keys)
    window = av.masks.combine(causal, av.masks.sliding_window(queries, 40)) if queries == keys else causal
    drawn = torch.rand(queries, keys, generator=generator) < 0.02
    drawn[5], drawn[7] = False, True
    padding = torch.ones(keys, dtype=torch.bool)
    padding[:9] = padding[-31:] = False
    distance = torch.arange(keys)[None] - torch.arange(queries)[:, None]
    terms = {
        "open": {},
        "causal": {"allowed": causal},
        "window": {"allowed": window},
        "capped": {"allowed": causal, "softcap": 2.5, "scale": 0.3},
        "sinks": {"allowed": window, "sinks": torch.tensor([1.5])},
        "padded": {"allowed": (causal & padding)[None]},
        "drawn": {"allowed": drawn},
        "distance": {"bias": (0.1 * distance.abs().float().sqrt() * -1)[None], "allowed": causal},
        "keys": {"bias": random(1, 1, keys).expand(1, queries, keys)},
        # As MPT has ALiBi: a number for each key, and 0 where nobody may look.
        "ahead": {"bias": (0.01 * torch.arange(keys).expand(1, queries, keys)).where(causal, 0), "allowed": causal},
        "cells": {"bias": random(1, queries, keys), "allowed": causal},
        "shared": {"allowed": causal},
        "wide": {"allowed": causal},
    }[name]
    if name == "shared":  # two query heads that share one key head
        return av.attend(3 * random(2, queries, 10), key, value, **terms)
    return av.attend(query, key, value, **terms)


def trace_of_call(call: Attention, layers: int = 1) -> Trace:
    """A trace with this call alone, in each of its layers."""
    axes = {"decoder": Tokens.of_ids(range(call.shape[-2]))}, {"decoder": Tokens.of_ids(range(call.shape[-1]))}
    measured = Fidelity(0.0, 0.0, 1e-5, "nothing")
    every = tuple(Layer(call, str(number)) for number in range(layers))
    return Trace({"decoder": every}, *axes, torch.zeros(1, 2), Provenance("made", "a text"), measured)


def write_long(folder: Path) -> None:
    """Of each kind the last head as it is handed over, and its weights and open cells as they are."""
    (folder / "long_names.json").write_text(json.dumps(NAMES))
    for name in NAMES:
        call = call_of(name)
        head = call.shape[0] - 1
        (folder / f"long_{name}.bin").write_bytes(pack_head(trace_of_call(call), "decoder", 0, head, "this text"))
        one = call.head(head)
        (folder / f"long_{name}.weights").write_bytes(one.weights.double().numpy().tobytes())
        allowed = torch.ones(one.shape, dtype=torch.bool) if one.allowed is None else one.allowed.expand(one.shape)
        (folder / f"long_{name}.open").write_bytes(allowed.contiguous().numpy().tobytes())


def long_trace() -> Trace:
    """Two layers of two heads each, causal."""
    return trace_of_call(call_of("shared"), layers=2)


def write_recording(folder: Path) -> None:
    """A long text with the terms of one of its layers, and a head of the other by itself, and its beginning."""
    trace = long_trace()
    payload = pack(trace, terms=[("decoder", 1)])
    header = read_packet(payload)[0]
    (folder / "long.bin").write_bytes(payload)
    packed = pack_head(trace, "decoder", 0, 1, header["long"]["id"])
    (folder / "long_head.bin").write_bytes(packed)
    (folder / "long_beginning.bin").write_bytes(beginning_of(packed))
    (folder / "long.json").write_text(json.dumps({"weight": float(trace.weights(1, 0)[700, 699])}))
