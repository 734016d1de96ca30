"""Queries and keys in a plane, and the hull of points in one."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy
import torch
from jaxtyping import Bool, Float, Float64
from scipy.spatial import ConvexHull
from torch import Tensor

from attention_viz.trace.given.from_weights import check_computed, softmax_stream
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas

# Points this close to one point or line, relative to how far they reach, count as on it.
_FLAT = 1e-6


@dataclass(frozen=True, eq=False)
class Plane:
    """One head's queries and keys in two dimensions, which have this share of the variance."""

    queries: Float[Tensor, "query 2"]
    keys: Float[Tensor, "key 2"]
    share: float

    def table(self, trace: Trace, stream: str) -> "pandas.DataFrame":
        """Return one row per point: side ("query" or "key"), position, token, first, second, written."""
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
    stream = softmax_stream(trace, stream, "the plane of a head's queries and keys")
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


def corners(points: Float[numpy.ndarray, "point 2"]) -> Float[numpy.ndarray, "corner 2"]:
    """Return the hull's corners in order; two for a line, one for a point."""
    centred = points - points.mean(axis=0)
    reach, directions = numpy.linalg.svd(centred, full_matrices=False)[1:]
    if reach[0] <= _FLAT * max(1.0, float(numpy.abs(points).max())):
        return points[:1]
    if len(reach) < 2 or reach[1] <= _FLAT * reach[0]:
        along = centred @ directions[0]
        return points[[int(along.argmin()), int(along.argmax())]]
    return points[ConvexHull(points).vertices]


def beyond(points: Float[numpy.ndarray, "point 2"], at: Float[numpy.ndarray, "2"]) -> float:
    """Return a point's distance outside the hull; negative inside."""
    around = corners(points)
    if len(around) == 1:
        return float(numpy.linalg.norm(at - around[0]))
    starts, along = around, numpy.roll(around, -1, axis=0) - around
    length = numpy.linalg.norm(along, axis=1, keepdims=True)
    if len(around) == 2:
        share = numpy.clip(((at - starts[0]) @ along[0]) / length[0, 0] ** 2, 0, 1)
        return float(numpy.linalg.norm(at - starts[0] - share * along[0]))
    # Corners go around to the left, so to the right of an edge is outside.
    outwards = numpy.stack([along[:, 1], -along[:, 0]], axis=1) / length
    return float(((at - starts) * outwards).sum(axis=1).max())
