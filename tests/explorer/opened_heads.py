"""Heads for the pipeline, and what it has to say of them: with every term, of a long text, and of mixers."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

import torch
from torch import Tensor

import attention_viz as av
from attention_viz.explorer.pipeline_payload import pack_pipeline
from attention_viz.operation.attention import Attention
from attention_viz.operation.modules import Projection
from attention_viz.steps.head import OpenHead, open_head
from attention_viz.steps.mixing import MixerHead, open_mixer
from attention_viz.steps.pair import open_pair, pair_steps
from attention_viz.steps.steps import STEPS, steps_of
from attention_viz.trace.picking import Picking
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Fidelity, Layer, Provenance, Trace
from tests.shipped import shipped

__all__ = ["LONG", "OF_A_SCORE", "every_term", "long_text", "mixed", "picked", "two_parts", "write_opened"]

LONG = 700
# What becomes of a score before the softmax, in whatever model.
OF_A_SCORE = list(STEPS)[list(STEPS).index("scores") : list(STEPS).index("weights")]
_PAIR = (3, 1)
# A state space, and a delta rule with a negative weight; a query's own token has its skip.
MIXED = {
    "state_space": ("recall-mamba", 5, 2),
    "own_token": ("recall-mamba", 5, 5),
    "delta_rule": ("recall", 11, 5),
}
MIXED_TEXTS = {
    "recall-mamba": "hugo pink , ida gold , karl white , ida black . ida ?",
    "recall": "anna red , ben blue , emma green , ben orange . ben ?",
}


def _numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def _opened(
    call: Attention,
    head: int,
    parts: Mapping[str, Tensor] = MappingProxyType({}),
    *,
    knows: bool = False,
    picking: Picking | None = None,
) -> OpenHead:
    count = call.shape[-1]
    tokens = Tokens.of_ids(range(count))
    matrix = _numbers(call.shape[0] * call.value.shape[-1], 200)
    joined = call.output.transpose(0, 1).flatten(1) @ matrix
    around = call.query * 0.5, call.key * 0.5
    layer = Layer(call, "0", _numbers(count, 200), joined, *around, bias_parts=parts, picking=picking)
    axis, measured = {"decoder": tokens}, Fidelity(0.0, 0.0, 1e-5, "nothing")
    trace = Trace({"decoder": (layer,)}, axis, axis, torch.zeros(count, 2), Provenance("made for a test"), measured)
    return open_head(trace, 0, head, projections={"output": Projection(matrix)} if knows else {})


@cache
def every_term() -> OpenHead:
    """Six query heads on two key heads, soft-capped, biased, causal, with sinks, turned by position, its W_O known."""
    query, key, value, bias, sinks = (_numbers(*shape) for shape in ((6, 5, 8), (2, 5, 8), (2, 5, 7), (6, 5, 5), (6,)))
    call = av.attend(query, key, value, av.masks.causal(5), scale=0.3, softcap=2.5, bias=bias, sinks=sinks)
    return _opened(call, 4, knows=True)


@cache
def two_parts() -> OpenHead:
    """A bias that is the sum of two, as DeBERTa's is."""
    query, key, value = (_numbers(2, 5, width) for width in (8, 8, 7))
    parts = {"content to position": _numbers(2, 5, 5), "position to content": _numbers(1, 5, 5)}
    return _opened(av.attend(query, key, value, scale=1.0, bias=sum(parts.values(), torch.zeros(()))), 1, parts)


@cache
def picked() -> OpenHead:
    """Causal, with two keys at most for each query that an indexer picked by their place: low places score high."""
    earlier = av.masks.causal(5)
    scores = -torch.arange(5.0).expand(1, 5, 5).masked_fill(~earlier, torch.inf)
    chosen = earlier & (torch.arange(5) < 2)
    call = av.attend(_numbers(2, 5, 8), _numbers(2, 5, 8), _numbers(2, 5, 7), chosen)
    return _opened(call, 1, picking=Picking(scores, chosen[None]))


@cache
def long_text() -> OpenHead:
    """So many tokens that only the chosen row is sent."""
    return _opened(av.attend(4 * _numbers(2, LONG, 8), _numbers(2, LONG, 8), _numbers(2, LONG, 8)), 1)


@cache
def mixed(model: str) -> MixerHead:
    """The first head of a model's first layer without a softmax."""
    return open_mixer(shipped(model).trace(MIXED_TEXTS[model]), 0, 0)


def write_opened(folder: Path) -> None:
    """Write all for the browser's own tests, with what they have to find."""
    for name, opened in (
        ("every_term", every_term()),
        ("two_parts", two_parts()),
        ("picked", picked()),
        ("long_row", long_text()),
    ):
        query, key = _PAIR
        found = {step: STEPS[step].function(opened) if step in steps_of(opened) else None for step in OF_A_SCORE}
        told = {
            "pair": _PAIR,
            "chain": {step: None if one is None else float(one[query, key]) for step, one in found.items()},
            "weights": opened.weights[query].tolist(),
            "output": opened.attention.output[query].tolist(),
        }
        (folder / f"{name}.bin").write_bytes(pack_pipeline(opened, query, key))
        (folder / f"{name}.json").write_text(json.dumps(told))
    for name, (model, query, key) in MIXED.items():
        mixer = mixed(model)
        steps = pair_steps(open_pair(mixer, query, key))
        told = {
            "pair": (query, key),
            "steps": {step: found.total for step, found in steps.items()},
            "weights": mixer.weights[query].tolist(),
            "output": mixer.mixer.output[query].tolist(),
        }
        (folder / f"{name}.bin").write_bytes(pack_pipeline(mixer, query, key))
        (folder / f"{name}.json").write_text(json.dumps(told))
