"""Runs torch's attention with another function inside, or within reach of a mode."""

import functools
import inspect
from types import FunctionType
from typing import Any

import torch
from torch import Tensor

from attention_viz.errors import UnsupportedModel


@functools.cache
def signature(func: Any) -> inspect.Signature:
    """Return a function's signature, looked up once."""
    return inspect.signature(func)


def with_inside(func: FunctionType, **names: object) -> FunctionType:
    """Return torch's function with some of its global names replaced; it doesn't hand itself to a mode again."""
    known = {**func.__globals__, "has_torch_function": _never, **names}
    made = FunctionType(func.__code__, known, func.__name__, func.__defaults__, func.__closure__)
    made.__kwdefaults__ = func.__kwdefaults__
    return made


def _never(_: object) -> bool:
    return False


def written_out(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Compute torch's fused attention by operations that a mode hears."""
    if dropout_p:
        raise UnsupportedModel("it drops weights at random; use evaluation mode")
    if enable_gqa:
        key, value = (one.repeat_interleave(query.shape[-3] // one.shape[-3], -3) for one in (key, value))
    logits = query @ key.transpose(-1, -2) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(logits.shape[-2:], dtype=torch.bool, device=logits.device).tril()
    if attn_mask is not None:
        blocked = attn_mask.dtype == torch.bool
        logits = logits.masked_fill(~attn_mask, -torch.inf) if blocked else logits + attn_mask
    return torch.softmax(logits, dim=-1) @ value
