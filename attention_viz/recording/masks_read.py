"""What a model's mask means: which keys each query may look at, and what is added to their scores."""

import torch
from torch import Tensor, nn

__all__ = ["BLOCKED_BELOW", "Split", "chosen_keys", "split_mask", "unrecorded_mask"]

# Masks arrive as numbers to add. Below this a number means "blocked": BERT's first code added −10,000 (9,984 in
# bfloat16), everyone since adds the lowest number there is. A bias so low leaves a weight of exactly 0 anyway.
BLOCKED_BELOW = -9e3

Split = tuple[Tensor | None, Tensor | None]


def split_mask(mask: Tensor) -> Split:
    """A model's mask, boolean or to be added, as (allowed, bias); None where nothing is blocked or nothing added."""
    if mask.dtype == torch.bool:
        return (None if bool(mask.all()) else mask), None
    allowed = mask > BLOCKED_BELOW
    bias = None if torch.equal(allowed, mask == 0) else mask.masked_fill(~allowed, 0)
    return (None if bool(allowed.all()) else allowed), bias


def unrecorded_mask(module: nn.Module, query: Tensor, key: Tensor, mask: Tensor | None, closed: object) -> Split:
    """The mask in a pass of somebody else, who uses the model while another thread has turned it to our attention.

    That pass may have begun under torch's fused kernel, where having no mask may stand for not looking ahead.
    """
    if mask is not None:
        return split_mask(mask)
    closed = getattr(module, "is_causal", True) if closed is None else closed
    queries, keys = query.shape[-2], key.shape[-2]
    if closed and queries > 1:
        return torch.ones(queries, keys, dtype=torch.bool, device=query.device).tril(), None
    return None, None


def chosen_keys(indices: Tensor, keys: int) -> Tensor:
    """The keys that each query chose, (batch, query, top-k), as a mask (batch, 1, query, key); −1 chooses none.

    Models that choose make this mask themselves only for implementations they know by name. Source: DeepSeek-AI 2025,
    "DeepSeek-V3.2", section 2.1.
    """
    counts = torch.zeros(*indices.shape[:-1], keys, dtype=torch.int32, device=indices.device)
    counts.scatter_add_(-1, indices.long().clamp_min(0), (indices >= 0).int())
    return (counts > 0)[:, None]
