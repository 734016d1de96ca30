"""The beginning that two texts share, run once if no token looks ahead."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from attention_viz.operation.attention import Attention
from attention_viz.operation.terms import map_terms
from attention_viz.recording.gradients import ModelRun
from attention_viz.recording.interception.plan import NO_PLAN
from attention_viz.trace.tokens import Tokens

__all__ = ["continued", "ending", "shared_beginning"]


def shared_beginning(run: ModelRun, other: Tokens, spots: Sequence[tuple[int, int]], most: int) -> int:
    """Count shared first tokens; 0 if no run can begin after them.

    That takes known keys and values, nothing looking ahead, and settable positions.
    """
    mine, pairs = run.tokens.numbers, set(spots)
    same = next((at for at in range(most) if (at, at) not in pairs or mine[at] != other.numbers[at]), most)
    known = len(run.layers) == len(run.anatomy.places) and run.runner.switch.plan is NO_PLAN
    by_position = "position_ids" in run.runner.named and all(_by_token(one, len(mine)) for one in run.inputs.values())
    whole = all(bool(run.inputs[name].all()) for name in ("attention_mask",) if name in run.inputs)
    closed = known and all(_is_closed(layer.attention, same) for layer in run.layers)
    return same if by_position and whole and closed else 0


def ending(inputs: Mapping[str, Tensor], start: int) -> dict[str, Tensor]:
    """Return a text's inputs from a position on, with their positions."""
    found = {name: given[:, start:] for name, given in inputs.items()}
    some = next(iter(inputs.values()))
    return found | {"position_ids": torch.arange(start, some.shape[1], device=some.device)[None]}


def continued(call: Attention, whole: Attention, start: int) -> Attention:
    """Return an end's call, with the beginning's keys from a whole run."""
    rows = map_terms(
        whole.rows(slice(start, None)), lambda term, value: value[None] if term.is_matrix and value.ndim == 3 else value
    )

    def joined(before: Tensor, after: Tensor) -> Tensor:
        return torch.cat([before[..., :start, :].to(after).expand(*after.shape[:2], -1, -1), after], dim=-2)

    key, value = joined(whole.key, call.key), joined(whole.value, call.value)
    return replace(call, key=key, value=value, allowed=rows.allowed, bias=rows.bias)


def _by_token(given: Tensor, count: int) -> bool:
    return tuple(given.shape) == (1, count) and not given.is_floating_point()


def _is_closed(call: Attention, start: int) -> bool:
    queries, keys = call.shape[-2:]
    if call.allowed is None or queries != keys:
        return False
    allowed = call.allowed.expand(*call.allowed.shape[:-2], queries, keys)
    return not bool(allowed[..., :start, start:].any())
