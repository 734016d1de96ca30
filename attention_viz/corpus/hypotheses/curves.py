"""Precision and recall of weights for a hypothesis' pairs, from counts."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Weights are sorted into bins by the first bits of their float32: each is at most 1/64 wider than its lower edge, and
# all below 2⁻²⁴ are one.
_SHIFT, _LEAST = 17, 2.0**-24
_FIRST = int(numpy.float32(_LEAST).view(numpy.int32)) >> _SHIFT
BINS = (int(numpy.float32(1.0).view(numpy.int32)) >> _SHIFT) - _FIRST + 2


class Scores(NamedTuple):
    """Scores of pairs above a threshold."""

    precision: "NDArray[Any]"
    recall: "NDArray[Any]"


def bins_of(weights: "NDArray[Any]") -> "NDArray[Any]":
    """Return each weight's bin, from 0 for the least."""
    bits = numpy.ascontiguousarray(weights, dtype=numpy.float32).view(numpy.int32) >> _SHIFT
    return numpy.clip(bits - _FIRST + 1, 0, BINS - 1)


def edge_of(bins: "NDArray[Any]") -> "NDArray[Any]":
    """Return the least weight of each bin."""
    bits = ((numpy.asarray(bins, dtype=numpy.int32) + _FIRST - 1) << _SHIFT).astype(numpy.int32)
    return numpy.where(numpy.asarray(bins) > 0, bits.view(numpy.float32), 0.0)


def counts_of(weights: "NDArray[Any]", holds: "NDArray[Any]") -> "NDArray[Any]":
    """Count each bin's pairs, and those the hypothesis holds for: (head, 2, bin)."""
    heads = len(weights)
    places = bins_of(weights) + numpy.arange(heads)[:, None] * BINS
    every = numpy.bincount(places.ravel(), minlength=heads * BINS)
    those = numpy.bincount(places[:, holds].ravel(), minlength=heads * BINS)
    return numpy.stack([every.reshape(heads, BINS), those.reshape(heads, BINS)], axis=1)


def average_precision(counts: "NDArray[Any]") -> "NDArray[Any]":
    """Return the average precision, largest weights first; NaN if the hypothesis holds for no pair.

    A bin's pairs count as tied. Source: Manning, Raghavan and Schütze 2008, "Introduction to Information
    Retrieval", section 8.4.
    """
    falling = counts[..., ::-1].astype(numpy.float64)
    every, those = falling[..., 0, :].cumsum(axis=-1), falling[..., 1, :].cumsum(axis=-1)
    precision = numpy.divide(those, every, out=numpy.zeros_like(those), where=every > 0)
    whole = those[..., -1]
    found = (precision * falling[..., 1, :]).sum(axis=-1)
    return numpy.divide(found, whole, out=numpy.full_like(found, numpy.nan), where=whole > 0)


def best_threshold(counts: "NDArray[Any]") -> "NDArray[Any]":
    """Return the first bin to take for the largest harmonic mean of precision and recall."""
    rising = counts[..., ::-1].astype(numpy.float64).cumsum(axis=-1)[..., ::-1]
    every, those = rising[..., 0, :], rising[..., 1, :]
    both = 2 * those / numpy.maximum(every + those[..., :1], 1)
    # Of equal ones the highest.
    return BINS - 1 - both[..., ::-1].argmax(axis=-1)


def scores_at(counts: "NDArray[Any]", threshold: "NDArray[Any]") -> Scores:
    """Score pairs from a bin upward; NaN if there are none."""
    rising = counts[..., ::-1].astype(numpy.float64).cumsum(axis=-1)[..., ::-1]
    at = numpy.broadcast_to(numpy.asarray(threshold)[..., None, None], (*counts.shape[:-1], 1))
    every, those = numpy.moveaxis(numpy.take_along_axis(rising, at, axis=-1)[..., 0], -1, 0)
    whole = rising[..., 1, 0]
    precision = numpy.divide(those, every, out=numpy.full_like(those, numpy.nan), where=every > 0)
    recall = numpy.divide(those, whole, out=numpy.full_like(those, numpy.nan), where=whole > 0)
    return Scores(precision, recall)
