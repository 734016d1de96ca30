"""Measure the cost of ablating every head in turn, against a loop with hooks."""

import time
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor

import attention_viz as av
from benchmarks.measuring import Spread, on_one_thread, ratios, take_turns
from benchmarks.report import Benchmark, Result, Table

__all__ = ["BENCHMARK", "by_hand"]

_MODEL = "SmolLM2-135M-Instruct"
_TEXT = "When Mary and John went to the store, John gave a drink to"
_TOKEN = " Mary"
# Seconds for all heads.
_MARK = 12.0
# So many heads, spread over all layers, are taken out by hand; all would take minutes.
_SAMPLE = 18
# How far a logit by hand may be from ours.
_SAME = 1e-3

Place = tuple[int, int]


def run(quick: bool) -> Result:
    """Measure it on one thread: several spin while they wait for each other, which counts as work."""
    with on_one_thread():
        return _measured(quick)


def _measured(quick: bool) -> Result:
    model = av.load(_MODEL)
    assert isinstance(model, av.AttentionModel)
    before, asked = model.trace(_TEXT), av.Logit(_TOKEN)
    every = [(layer, head) for layer in range(before.layer_count()) for head in range(before.head_count(layer))]
    heads = every[:6] if quick else every
    sample = heads[:: max(1, len(heads) // _SAMPLE)]
    table = av.effects(model, before, asked, heads=heads)
    found = by_hand(model, before, sample)
    apart = max(abs(found[place] - float(table["number"][place])) for place in sample)
    if apart > _SAME:
        raise AssertionError(f"a logit of the loop is {apart:.2g} away from av.effects; both must agree")
    ways: dict[str, Callable[[], object]] = {
        "together": lambda: av.effects(model, before, asked, heads=heads),
        "by hand": lambda: by_hand(model, before, sample),
    }
    figures = take_turns(ways, lambda: (time.process_time(),), rounds=1 if quick else 3)
    spent = {name: [max(1e-9, one[0]) for one in readings] for name, readings in figures.items()}
    alone = [one * len(heads) / len(sample) for one in spent["by hand"]]
    ratio, ours = ratios(alone, spent["together"]), Spread.of(spent["together"])
    rows = [
        ["a loop with hooks", Spread.of(alone).write("{:.1f} s"), "1"],
        ["av.effects", ours.write("{:.1f} s"), ratio.write("{:.1f}")],
    ]
    reached = "reached" if ours.median <= _MARK else "missed"
    remarks = [
        f"The target for all heads, at most {_MARK:.0f} s, is {reached}: {ours.median:.1f} s.",
        f"The logits of both ways are at most {apart:.0e} apart.",
    ]
    return Result([Table((f"{len(heads)} heads", "seconds", "times as fast"), rows)], remarks)


def by_hand(model: av.AttentionModel, before: av.Trace, heads: list[Place]) -> dict[Place, float]:
    """Return the logit with each head ablated to its mean over the positions: one plain run with a hook per head."""
    plain, width = cast("Any", model.hf_model), before.attention(0).value.shape[-1]
    ids = torch.tensor([before.query_tokens().ids])
    tokenizer = cast("Any", model.tokenizer)
    (token,) = tokenizer.encode(_TOKEN, add_special_tokens=False)
    found: dict[Place, float] = {}
    for layer, head in heads:
        own = slice(head * width, (head + 1) * width)

        def silence(_module: object, given: tuple[Tensor], own: slice = own) -> tuple[Tensor]:
            changed = given[0].clone()
            changed[..., own] = changed[..., own].mean(dim=1, keepdim=True)
            return (changed,)

        hook = plain.model.layers[layer].self_attn.o_proj.register_forward_pre_hook(silence)
        try:
            with torch.no_grad():
                found[layer, head] = float(plain(input_ids=ids, use_cache=False).logits[0, -1, token])
        finally:
            hook.remove()
    return found


BENCHMARK = Benchmark(
    title="What heads are worth to a logit",
    method=(
        f"Each head of {_MODEL} is ablated in turn in a text of 14 tokens, to its mean over the positions, and the "
        "change in one word's logit is measured. `av.effects` does that in batches. It is measured against the usual "
        "loop: one plain run of transformers' model per head, with a hook before the projection that joins the heads. "
        f"The loop ablates only {_SAMPLE} of the heads, spread over the layers, and its time is multiplied up. Both "
        "ways must give the same logits. We count processor time on one thread and take the ways in turns. Each "
        "figure is the median of three rounds, with the smallest and the largest in brackets; ratios are taken within "
        "a round."
    ),
    run=run,
)
