"""What a bias is, told from its numbers alone: a slope by position, a table by distance, or neither."""

import torch
from torch import Tensor

from attention_viz.operation.attention import Attention

__all__ = ["ALIBI", "RELATIVE", "bias_kind"]

ALIBI, RELATIVE = "ALiBi", "relative positions"

# With fewer tokens a table by distance and a slope can't be told apart.
_LEAST = 8
# How far a number may be from what it is predicted to be, as a share of the largest.
_SAME = 1e-4


def bias_kind(call: Attention) -> str:
    """Name the bias of a call.

    Source: ALiBi, a slope for each head, of Press et al. 2022, "Train Short, Test Long", section 3; a learned number
    for each distance, of Raffel et al. 2020 ("T5"), section 2.1.

    Args:
        call: (head, query, key); its blocked cells say nothing.

    Returns:
        "ALiBi" where each head's numbers grow evenly with the key's position; "relative positions" where they depend
        on the distance of query and key alone; nothing where there is no bias, where it is neither, or where the text
        is too short to tell.
    """
    queries, keys = call.shape[-2:]
    if call.bias is None or queries != keys or keys < _LEAST:
        return ""
    bias = call.bias.detach().double().expand(call.shape)
    live = torch.ones(call.shape, dtype=torch.bool) if call.allowed is None else call.allowed.expand(call.shape).cpu()
    bias, most = bias.cpu(), float(bias[live.to(bias.device)].abs().max()) * _SAME
    if _is_slope(bias, live, most):
        return ALIBI
    return RELATIVE if _is_by_distance(bias, live, most) else ""


def _is_slope(bias: Tensor, live: Tensor, most: float) -> bool:
    """Whether in every row the number grows by one same step from each live key to the next, up to a constant a row.

    What all keys of a row have in common changes no weight, so a slope by distance and one by the key's place are one.
    """
    steps, pairs = bias.diff(dim=-1), live[..., 1:] & live[..., :-1]
    if not bool(pairs.flatten(1).any(dim=-1).all()):
        return False
    counts = pairs.sum(dim=(-2, -1), keepdim=True)
    mean = steps.masked_fill(~pairs, 0).sum(dim=(-2, -1), keepdim=True) / counts
    return bool(((steps - mean).abs()[pairs] <= most).all())


def _is_by_distance(bias: Tensor, live: Tensor, most: float) -> bool:
    """Whether all live cells of each distance have one number, in each head."""
    count = bias.shape[-1]
    for distance in range(1 - count, count):
        numbers, there = bias.diagonal(distance, -2, -1), live.diagonal(distance, -2, -1)
        high = numbers.masked_fill(~there, -torch.inf).amax(dim=-1)
        low = numbers.masked_fill(~there, torch.inf).amin(dim=-1)
        if bool((high - low > 2 * most).any()):
            return False
    return True
