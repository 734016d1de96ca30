"""The stages of all weights of some queries, in a layer without a softmax: what `pair` opens for one key, for each.

A stage's numbers follow from the ones before by one sign and one factor, except where the layer sums over dimensions.
The last stage is the weight.

Source: the rules in `operation.token_mixer`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attention_viz.steps.mixing import MixerHead, logs_of, writes_of
from attention_viz.steps.pair import LETTERS

__all__ = ["Stage", "reached", "stages_of"]


@dataclass(frozen=True, eq=False)
class Stage:
    """One stage on the way to the weights.

    Attributes:
        name: as in `PAIR_STEPS`.
        label: its name on pages.
        values: the numbers after this stage.
        says: how the stage works, in a few words.
        sign: "×", "÷" or "+": applies the factor to the stage before; empty if no single factor does.
        factor: one axis or both may be 1 long.
    """

    name: str
    label: str
    values: Float[Tensor, "query key"]
    says: str
    sign: str = ""
    factor: Float[Tensor, "_query _key"] | None = None


def stages_of(opened: MixerHead, queries: Sequence[int]) -> tuple[Stage, ...]:
    """Return the stages of some queries' weights in float64, in order; keys that can't be reached have any number."""
    return tuple(_stages(opened, list(queries)))


def reached(opened: MixerHead, queries: Sequence[int]) -> Bool[Tensor, "query key"]:
    """Return whether each key can reach each of some queries."""
    call, chosen = opened.mixer, torch.tensor(list(queries))
    found = torch.ones(len(chosen), call.shape[-1], dtype=torch.bool)
    if call.is_causal:
        found = chosen[:, None] >= torch.arange(call.shape[-1])
    return found if call.allowed is None else found & call.allowed.expand(call.shape)[chosen].cpu()


def _stages(opened: MixerHead, queries: list[int]) -> Iterator[Stage]:
    call = opened.exact
    now = torch.ones(len(queries), call.shape[-1], dtype=torch.float64)
    for one in (*_readings(opened, queries), *_memory(opened, queries)):
        now = one.values
        yield one
    letters = LETTERS.get(call.kind, {})
    if call.write is not None:
        factor = writes_of(call)[None]
        now = now * factor
        yield Stage("write", "Written", now, letters.get("write", ""), "×", factor)
    if call.floor is not None:
        sums = now.masked_fill(~reached(opened, queries), 0).sum(dim=-1, keepdim=True).abs()
        factor = torch.maximum(sums, _rows(call.floor, queries)) + call.epsilon
        now = now / factor
        yield Stage("divisor", "Divided", now, "", "÷", factor)
    if call.skip is not None:
        own = torch.tensor(queries)[:, None] == torch.arange(call.shape[-1])
        factor = own * call.skip
        now = now + factor
        yield Stage("skip", "With skip", now, "skip", "+", factor)
    if call.gate is not None:
        factor = _rows(call.gate, queries)
        now = now * factor
        yield Stage("gate", "Gated", now, letters.get("gate", ""), "×", factor)


def _readings(opened: MixerHead, queries: list[int]) -> Iterator[Stage]:
    """Yield the stages before any memory: products of queries and keys, and fixed factors."""
    call = opened.exact
    product = call.query[queries] @ call.key.mT * call.scale
    if opened.has_vectors:
        yield Stage("read", "Read", product, "sum" if call.scale == 1 else f"sum × {call.scale:.3g}")
    if call.exponent is not None:
        angles = product.clamp(-1, 1).acos()
        chance = (1 - angles / torch.pi) ** call.exponent
        yield Stage("collision", "Collision", chance, f"(1 − ∠ ÷ π)^{call.exponent:g}")
    elif call.factor is not None:
        factor = call.factor.expand(call.shape)[queries]
        yield Stage("wave", "Wave", product * factor, "by position", "×" * opened.has_vectors, factor)
    elif call.taps is not None:
        distance = torch.tensor(queries)[:, None] - torch.arange(call.shape[-1])
        taps, count = call.taps[0], call.taps.shape[-1]
        factor = taps[distance.clamp(0, count - 1)] * ((distance >= 0) & (distance < count))
        yield Stage("tap", "Tap", product * factor, "by distance", "×" * opened.has_vectors, factor)


def _memory(opened: MixerHead, queries: list[int]) -> Iterator[Stage]:
    """Walk back from the queries at once, as `walk` does from one: what decays leave, and what erasing leaves."""
    call = opened.exact
    if not call.keeps_state:
        return
    decays, writes, keys = logs_of(call).exp(), writes_of(call), call.key
    own, asked = call.query[queries] * call.scale, torch.tensor(queries)
    left = torch.ones(len(queries), decays.shape[-1], dtype=torch.float64)
    reading = own.clone()
    decayed, kept, factor = (torch.zeros(len(queries), len(keys), dtype=torch.float64) for _ in range(3))
    for at in range(int(asked.max()), -1, -1):
        there = (asked >= at)[:, None]
        decayed[:, at], kept[:, at], factor[:, at] = (own * left) @ keys[at], reading @ keys[at], left[:, 0]
        erased = writes[at] * kept[:, at, None] * keys[at] if call.erases else 0.0
        reading = torch.where(there, (reading - erased) * decays[at], reading)
        left = torch.where(there, left * decays[at], left)
    if call.decay is not None and not opened.has_vectors:
        yield Stage("decay", "Decay", decayed, "left")
    elif call.decay is not None and decays.shape[-1] == 1:
        yield Stage("decayed", "Decayed", decayed, "left", "×", factor)
    elif call.decay is not None:
        yield Stage("decayed", "Decayed", decayed, "per dimension")
    if call.erases:
        yield Stage("erased", "Erased", kept, "erased", "+", kept - decayed)


def _rows(term: Tensor, queries: list[int]) -> Float[Tensor, "_query 1"]:
    return term[queries] if term.shape[0] > 1 else term
