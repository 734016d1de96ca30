"""Convex hull of points in a plane."""

import numpy
from jaxtyping import Float
from scipy.spatial import ConvexHull

__all__ = ["beyond", "corners"]

# Points this close to one point or line, relative to how far they reach, count as on it.
_FLAT = 1e-6


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
