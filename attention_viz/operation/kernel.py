"""Torch's attention as a reference, and its tolerance."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

# How far two correct computations may lie apart, relative to the largest number: the order of a sum alone moves the
# last bits. In half precision one rounding is already 5e-4 (float16) or 4e-3 (bfloat16), and layers add up.
BOUNDS = {torch.float64: 1e-5, torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 5e-2}


def kernel_weights(
    query: Float[Tensor, "query d_k"],
    key: Float[Tensor, "key d_k"],
    mask: Bool[Tensor, "query key"] | Float[Tensor, "query key"] | None,
    scale: float | None,
) -> Float[Tensor, "query key"]:
    """Return one head's weights from torch's attention: with one-hot values they are its output."""
    places = torch.eye(len(key), dtype=query.dtype, device=query.device)
    one, other, value = (tensor[None, None] for tensor in (query, key, places))
    return functional.scaled_dot_product_attention(one, other, value, mask, scale=scale)[0, 0]
