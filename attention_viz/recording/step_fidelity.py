"""How far a run in steps is from the model's own, step by step.

Rounding adds up along a text that is read token by token: transformers' own steps lie about as far from its own run of
the whole text as ours do, which now and then is more than two orders of adding the same numbers within one run. Given
the same keys and values, though, each step has to be the same; and a step leaves the next one's keys and values.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from attention_viz.operation.attention import Attention
from attention_viz.operation.terms import Term, map_terms
from attention_viz.recording.differences import Difference, Real
from attention_viz.recording.fidelity import compare
from attention_viz.recording.grown import cache_number
from attention_viz.recording.recorder import Call
from attention_viz.recording.references.eager_weights import EagerWeights, prefix
from attention_viz.recording.references.itself import run_itself
from attention_viz.recording.references.own_output import builtin
from attention_viz.recording.runner import Pass, Runner
from attention_viz.recording.stepping import cache_of
from attention_viz.recording.twin import Twin
from attention_viz.trace.provenance import Fidelity

if TYPE_CHECKING:
    from transformers.cache_utils import DynamicCache

__all__ = ["compare_steps"]


def compare_steps(
    recorded: Pass, runner: Runner, ids: Tensor, typed: int, kept: Callable[[int], Sequence[int]]
) -> Fidelity:
    """Compare the text with the model's own run of it, and each step with the model's own from the same cache.

    Args:
        typed: how many tokens were read at once; each one after them was a step.
    """
    start = replace(prefix(recorded, typed), output=recorded.output[:typed])
    text = {"input_ids": ids[:, :typed], "attention_mask": torch.ones_like(ids[:, :typed])}
    found = compare(start, runner, runner.inputs(text))
    twin, output, weights, left = runner.twin(), Difference(), 0.0, 0.0
    foreign = not all(map(builtin, twin.implementations(recorded.modules)))

    def step(at: int, keys: Sequence[int]) -> tuple[dict[str, Any], "DynamicCache"]:
        """What the model is given in a step, and the cache in it, which a run adds to."""
        cache = cache_of({cache_number(call): _pair(call, keys) for call in recorded.calls})
        return runner.step_inputs(int(ids[0, at]), at, len(keys), cache), cache

    def stepped(itself: Twin, at: int, keys: Sequence[int]) -> tuple[Tensor, "DynamicCache"]:
        """The output of a step of the model itself, which may be made again, and the cache after it."""
        inputs, cache = step(at, keys)
        return itself.run_as_turned(inputs), cache

    for at in range(typed, ids.shape[1]):
        keys = list(kept(at))
        eager = EagerWeights.of(_step(recorded, at, [*keys, at]), Real())
        inputs, cache = step(at, keys)
        own = twin.run(inputs, "eager", eager.hear)
        if foreign:
            own, cache = run_itself(runner, twin, functools.partial(stepped, at=at, keys=keys))
        elif not twin.is_eager:
            own = twin.run(step(at, keys)[0])
        output.add(recorded.output[at : at + 1], own[-1:])
        eager.check_complete()
        weights = max(weights, eager.error)
        left = max(left, *(_left_apart(call, at, cache) for call in recorded.calls))
    reference = f"{found.reference}, and with a step of it from the same cache for each token after the text"
    return replace(found.at_least(max(output.relative, left), weights), reference=reference)


def _step(recorded: Pass, row: int, keys: Sequence[int]) -> Pass:
    """The record of one step: a row of every call, with the keys that were there."""
    return replace(recorded, calls=tuple(replace(call, attention=_row(call, row, keys)) for call in recorded.calls))


def _row(call: Call, row: int, keys: Sequence[int]) -> Attention:
    def pick(term: Term, value: Any) -> Any:
        if not isinstance(value, Tensor) or not term.is_matrix:
            return value
        value = value[:, row : row + 1] if term.has_queries else value[:, keys]
        return value[..., keys] if term.axes.names[1] == "key" else value

    return map_terms(call.attention, pick)


def _pair(call: Call, keys: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Some keys and values of a call, each (1, head, key, width)."""
    return call.attention.key[None, :, list(keys)], call.attention.value[None, :, list(keys)]


def _left_apart(call: Call, row: int, cache: "DynamicCache") -> float:
    """How far the key and value that a step left in the cache are from those that were recorded."""
    layer, found = cast("Any", cache).layers[cache_number(call)], 0.0
    for ours, theirs in zip(_pair(call, [row]), (layer.keys, layer.values), strict=True):
        apart = Difference()
        apart.add(ours, theirs[:, :, -1:])
        found = max(found, apart.relative)
    return found
