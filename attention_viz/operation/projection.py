"""The matrices W_Q, W_K, W_V and W_O."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from attention_viz.operation.short_repr import ShortRepr

__all__ = ["Projection"]


@dataclass(frozen=True, eq=False, repr=False)
class Projection(ShortRepr):
    """One learned projection of a layer, for all its heads side by side: x · weight + bias.

    Attributes:
        weight: (in, out); the columns of head h of W_Q are h·d_k to (h + 1)·d_k, the rows of head h of W_O are
            h·d_v to (h + 1)·d_v.
        bias: (out,), where there is one.
    """

    weight: Float[Tensor, "_in out"]
    bias: Float[Tensor, " out"] | None = None
