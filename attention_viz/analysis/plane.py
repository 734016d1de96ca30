"""A head's queries and keys in their plane of largest variance."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from attention_viz.trace.from_weights import check_computed
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas

__all__ = ["Plane", "plane_of", "queries_and_keys_plane"]


@dataclass(frozen=True, eq=False)
class Plane:
    """One head's queries and keys in two dimensions.

    Attributes:
        share: these two directions' share of the variance, 0 to 1; 1 if nothing varies.
    """

    queries: Float[Tensor, "query 2"]
    keys: Float[Tensor, "key 2"]
    share: float

    def table(self, trace: Trace, stream: str) -> "pandas.DataFrame":
        """Return a row a point: side ("query" or "key"), position, token, first, second, written."""
        import pandas

        sides = {"query": (trace.query_tokens(stream), self.queries), "key": (trace.key_tokens(stream), self.keys)}
        rows = [
            (side, position, label, float(one[0]), float(one[1]), written)
            for side, (tokens, points) in sides.items()
            for position, (label, written, one) in enumerate(zip(tokens.labels, tokens.written, points, strict=True))
        ]
        return pandas.DataFrame(rows, columns=["side", "position", "token", "first", "second", "written"])


def queries_and_keys_plane(trace: Trace, layer: int, head: int, stream: str | None = None) -> Plane:
    """Project a head's scored queries and keys on their first two principal components.

    First queries are scaled, keys inversely, to equal spread, and keys moved to the queries' centre: neither changes
    the softmax of q·k. Padding is left out of means.

    Source: Yeh et al. 2023, "AttentionViz: A Global View of Transformer Attention", section 4.1.
    """
    stream = trace.stream(stream)
    one = trace.attention(layer, stream).head(head)
    check_computed(one, "the plane of a head's queries and keys")
    sides = [side.detach().double().cpu().reshape(-1, side.shape[-1]) for side in (one.query, one.key)]
    real = [~torch.tensor(tokens.padding) for tokens in (trace.query_tokens(stream), trace.key_tokens(stream))]
    return plane_of(sides[0], sides[1], real[0], real[1])


def plane_of(
    queries: Float64[Tensor, "query d_k"],
    keys: Float64[Tensor, "key d_k"],
    real_queries: Bool[Tensor, " query"],
    real_keys: Bool[Tensor, " key"],
) -> Plane:
    """Project one head's scored queries and keys; several texts in a row."""
    sides, real = (queries, keys), (real_queries, real_keys)
    centred = [side - side[mask].mean(dim=0) for side, mask in zip(sides, real, strict=True)]
    long = [float(side[mask].norm(dim=-1).mean()) for side, mask in zip(centred, real, strict=True)]
    factor = (long[1] / long[0]) ** 0.5 if min(long) > 0 else 1.0
    scaled = [centred[0] * factor, centred[1] / factor]
    together = torch.cat([side[mask] for side, mask in zip(scaled, real, strict=True)])
    _, values, directions = torch.linalg.svd(together, full_matrices=False)
    # A direction and its opposite are alike: the one whose largest part is positive.
    directions = directions * directions.gather(1, directions.abs().argmax(dim=1, keepdim=True)).sign()
    first = torch.zeros(together.shape[1], 2, dtype=together.dtype)
    first[:, : min(2, len(directions))] = directions[:2].T
    squares = values.square()
    total = float(squares.sum())
    share = float(squares[:2].sum()) / total if total > 0 else 1.0
    return Plane(scaled[0] @ first, scaled[1] @ first, share)
