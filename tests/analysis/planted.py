"""Traces whose weights a test put in by hand."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

import attention_viz as av
from attention_viz.trace.given.from_weights import attention_of
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Fidelity, Layer, Provenance, Trace

__all__ = ["planted", "tokens_of", "trace_of"]


def tokens_of(labels: Sequence[str], **more: Any) -> Tokens:
    """Tokens with one id for each label; those in square brackets are special."""
    known = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    special = tuple(label.startswith("[") for label in labels)
    return Tokens(tuple(labels), tuple(known[label] for label in labels), special=special, **more)


def trace_of(
    weights: torch.Tensor, tokens: Tokens, stream: str = "encoder", *, output: torch.Tensor | None = None
) -> Trace:
    """A trace with these weights, (layer, head, query, key); a decoder's without those that look ahead."""
    count = len(tokens)
    allowed = av.masks.causal(count) if stream == "decoder" else torch.ones(count, count, dtype=torch.bool)
    weights = weights * allowed
    weights = weights / weights.sum(dim=-1, keepdim=True)
    layers = tuple(Layer(attention_of(one, allowed), str(number)) for number, one in enumerate(weights))
    output = torch.zeros(count, 1) if output is None else output
    fidelity = Fidelity(0.0, 0.0, 1e-5, "nothing")
    return Trace({stream: layers}, {stream: tokens}, {stream: tokens}, output, Provenance("made"), fidelity)


def planted(
    tokens: Tokens,
    cells: Mapping[tuple[int, int, int, int], float],
    stream: str = "encoder",
    *,
    output: torch.Tensor | None = None,
) -> Trace:
    """Two layers of three heads that look everywhere alike, but for weights put in at (layer, head, query, key)."""
    count = len(tokens)
    seen = torch.ones(count, count, dtype=torch.float64)
    seen = seen.tril() if stream == "decoder" else seen
    weights = (seen / seen.sum(dim=-1, keepdim=True)).expand(2, 3, count, count).clone()
    for (layer, head, query, key), weight in cells.items():
        row = weights[layer, head, query]
        row[key] = 0
        row *= (1 - weight) / row.sum()
        row[key] = weight
    return trace_of(weights, tokens, stream, output=output)
