"""The reach of mask rows; keys beyond needn't be computed."""

from collections.abc import Sequence

import torch
from torch import Tensor

from attention_viz.operation.causal_mask import CausalMask

# Rows of a mask that are looked at together.
_ROWS = 256


def is_causal(allowed: Tensor | None, shape: Sequence[int]) -> bool:
    """Return whether the mask is causal, because the fused kernel then halves work."""
    queries, keys = shape
    if isinstance(allowed, CausalMask):
        return allowed.shape[-2:] == (queries, keys)
    if allowed is None or not allowed.numel() or queries != keys or allowed.numel() != queries * keys:
        return False
    matrix, tall = allowed.reshape(queries, keys).view(torch.uint8), min(_ROWS, queries)
    # Some rows at a time: a second mask of a long text would take longer to make than to compare. What rows have to be
    # are always the same rows of one pattern, the further left the later they are; bytes compare faster than booleans.
    pattern = allowed.new_ones(tall, 2 * keys).tril(keys).view(torch.uint8)
    return all(
        not int((rows ^ pattern[: len(rows), keys - at * tall : 2 * keys - at * tall]).max())
        for at, rows in enumerate(matrix.split(tall))
    )


def first_keys(allowed: Tensor | None, shape: tuple[int, ...]) -> Tensor | None:
    """Return each row's count of open first keys, (query,); None for other masks."""
    queries, keys = shape
    if allowed is None or allowed.shape != (queries, keys):
        return None
    if isinstance(allowed, CausalMask):
        return torch.arange(1, keys + 1)
    # Most that are none can be told by three rows.
    for some in ([0, queries // 2, queries - 1], slice(None)):
        rows = allowed[some].view(torch.uint8)
        counts = rows.sum(dim=-1, dtype=torch.int64)
        if not torch.equal(rows.bool(), torch.arange(keys, device=rows.device) < counts[:, None]):
            return None
    return counts.cpu()


def reach(allowed: Tensor | None, rows: slice, keys: int) -> int:
    """Return the rows' open key prefix length, at least 1."""
    if allowed is None or allowed.shape[1] == 1:
        return keys
    if isinstance(allowed, CausalMask):
        return max(1, rows.indices(keys)[1])
    some = (allowed[rows] if len(allowed) > 1 else allowed).view(torch.uint8).amax(dim=0).nonzero()
    return int(some[-1]) + 1 if len(some) else 1
