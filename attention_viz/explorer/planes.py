"""Weights as interval numbers, and mask patterns."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float, UInt16

from attention_viz.explorer.packet import Packet

# Intervals between 0 and 1: four to a thousandth. Twelve bits would hold 4,096 numbers.
LEVELS = 4000
# How far a weight on the screen may be from the trace: half an interval, and float32's own rounding.
ERROR = 0.5 / LEVELS + 1e-7


class Masks:
    """Blocked patterns, each packed once for all."""

    def __init__(self) -> None:
        """Begin without patterns."""
        self.entries: list[dict[str, Any]] = []

    def add(self, blocked: Bool[np.ndarray, "heads query key"] | None, packet: Packet) -> list[int] | None:
        """Return each head's pattern number, or one for all."""
        return None if blocked is None else [self._add(one, packet) for one in blocked]

    def put(self, entry: dict[str, Any]) -> int:
        """Return the number of a pattern in another encoding."""
        if entry not in self.entries:
            self.entries.append(entry)
        return self.entries.index(entry)

    def _add(self, blocked: Bool[np.ndarray, "query key"], packet: Packet) -> int:
        queries, keys = blocked.shape
        causal = ~np.tri(queries, keys, k=keys - queries, dtype=bool)
        if np.array_equal(blocked, causal):
            return self.put({"kind": "causal", "queries": queries, "keys": keys})
        bits = np.packbits(blocked.T.ravel(), bitorder="little").tobytes()
        return self.put({"kind": "bits", "queries": queries, "keys": keys, "at": packet.add(bits)})


def steps_of(
    weights: Float[np.ndarray, "*any"], blocked: Bool[np.ndarray, "*shared"] | None = None
) -> UInt16[np.ndarray, "*any"]:
    """Return n for ((n - 1) / LEVELS, n / LEVELS], 0 for 0, LEVELS + 1 for 1; 0 if blocked and below `ERROR`."""
    # Most weights of a text count as 0, so that only the others are worked out.
    counted = weights > np.float64(0.5 / LEVELS)
    exact = weights[counted].clip(max=1).astype(np.float64)
    found = np.ceil(exact * LEVELS).astype(np.uint16)
    found[exact == 1] = LEVELS + 1
    steps = np.zeros(weights.shape, np.uint16)
    steps[counted] = found
    return steps if blocked is None else np.where(blocked, np.uint16(0), steps)


def codes_of(weights: Float[np.ndarray, "*any"], codes: int, faintest: float) -> UInt16[np.ndarray, "*any"]:
    """Return log steps, 1 for `faintest` to `codes` for 1; else 0."""
    with np.errstate(divide="ignore"):
        place = 1 - np.log(weights.clip(0, 1)) / np.log(faintest)
    return np.where(weights < faintest, 0, 1 + np.rint((codes - 1) * place.clip(0, 1))).astype(np.uint16)


def split_numbers(steps: UInt16[np.ndarray, "*any"]) -> tuple[bytes, bytes]:
    """Split upper eight bits, and lower four, two per byte (first below)."""
    flat = steps.ravel()
    high, low = (flat >> 4).astype(np.uint8).tobytes(), (flat & 15).astype(np.uint8)
    low = np.append(low, np.zeros(low.size % 2, np.uint8))
    return high, (low[0::2] | low[1::2] << 4).tobytes()
