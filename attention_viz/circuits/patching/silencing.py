"""Measure a score without each of some heads, many runs per batch."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from attention_viz.circuits.asked import Score
from attention_viz.circuits.opened import run_behind
from attention_viz.circuits.patching.bench import Bench
from attention_viz.errors import UnsupportedModel
from attention_viz.operation.attention import Attention
from attention_viz.operation.numerics import REORDERED
from attention_viz.operation.shapes import shared_heads
from attention_viz.recording.recorder import Call
from attention_viz.trace.kept import LayerNumber
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    from attention_viz.models.model import AttentionModel


def silenced_scores(
    model: "AttentionModel", trace: Trace, of: Score, heads: Sequence[tuple[int, int]], stream: str
) -> list[float] | None:
    """Return a score without each head, ablated to 0, in one batch; `of.relative` is ignored.

    None if the unablated row differs from the single run.
    """
    bench = Bench.of(run_behind(model, trace))
    if bench.chunked:
        return None
    call = bench.run.anatomy.call
    at = call(of.stream or trace.attention_streams[0], LayerNumber(of.layer))
    sites = [call(stream, LayerNumber(layer)) for layer, _ in heads]
    found: list[Tensor] = []

    def hear(number: int, heard: Call) -> None:
        if number == at:
            found.append(score_in(heard.attention, of))

    def change(site: int, output: Tensor) -> Tensor:
        # The first row stays as it is.
        for row, (place, (_, head)) in enumerate(zip(sites, heads, strict=True), start=1):
            if place == site:
                output[row, head] = 0
        return output

    first = min(at, *sites) if bench.layers else 0
    try:
        _ = bench.outputs(bench.run.inputs, 1 + len(heads), change, only=0, first=first, hear=hear)
    except UnsupportedModel:
        return None
    ((whole, *others),) = (one.tolist() for one in found)
    alone = float(score_in(trace.attention(of.layer, of.stream), of))
    largest = max(abs(alone), *map(abs, others))
    return others if abs(whole - alone) <= REORDERED * largest else None


def score_in(attention: Attention, of: Score) -> Tensor:
    """Return rows' scores, float64: query · key × scale."""
    keys = shared_heads(attention.key, attention.query)
    # All heads may share a single key.
    key = keys[..., of.head if keys.shape[-3] > 1 else 0, of.key, :].double()
    return (attention.query[..., of.head, of.query, :].double() * key).sum(dim=-1) * torch.as_tensor(attention.scale)
