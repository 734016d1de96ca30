"""Check that a model's numbers decompose into contributions, and how much their sum misses the numbers."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

import attention_viz as av
from attention_viz.errors import AttentionVizError
from attention_viz.models.model import AttentionModel

__all__ = ["CLOSED", "Closure", "closure"]

# The rows miss an opened number by at most this share of the largest of them.
CLOSED = 1e-5
# Rows of these kinds were written by no word, head or MLP.
_UNKNOWN = ("constant", "other")


@dataclass(frozen=True)
class Closure:
    """The result of decomposing a model's numbers.

    Attributes:
        missed: the rows' distance from their number, as a share of the largest row; the worst of all numbers.
        unknown: the share of the rows' size in "constant" and "other"; the largest of all numbers.
        refused: which number could not be decomposed and why; empty if all could.
    """

    missed: float = 0.0
    unknown: float = 0.0
    refused: str = ""

    def __str__(self) -> str:
        """Describe the result."""
        if not self.opened:
            return self.refused or f"no: the rows miss a number by {self.missed:.0e}"
        return f"{self.missed:.0e}" + (f", other {self.unknown:.0%}" if self.unknown >= 0.005 else "")

    @property
    def opened(self) -> bool:
        """Whether all numbers were decomposed, and the rows sum to them."""
        return not self.refused and self.missed <= CLOSED


def closure(model: AttentionModel, trace: av.Trace) -> Closure:
    """Decompose an output and a score of each kind of attention."""
    found: list[av.Decomposition] = []
    for of in _numbers(model, trace):
        try:
            found.append(av.decompose(model, trace, of))
        except AttentionVizError as error:
            return Closure(refused=f"no: {error}")
    return Closure(max(_missed(one) for one in found), max(_unknown(one) for one in found))


def _numbers(model: AttentionModel, trace: av.Trace) -> Iterator[av.Logit | av.Direction | av.Score]:
    if model.predicts:
        yield av.Logit(int(trace.output[-1].argmax()))
    else:
        yield av.Direction(torch.randn(trace.output.shape[1], generator=torch.Generator().manual_seed(1)))
    for stream in trace.attention_streams:
        layer = trace.layer_numbers(stream)[-1]
        heads, queries, keys = trace.attention(layer, stream).shape
        yield av.Score(layer, heads - 1, queries - 1, keys // 2, stream)


def _missed(found: av.Decomposition) -> float:
    return abs(found.remainder) / max(map(abs, found.table["contribution"].tolist()))


def _unknown(found: av.Decomposition) -> float:
    sizes = list(map(abs, found.table["contribution"].tolist()))
    unknown = [size for size, kind in zip(sizes, found.table["kind"].tolist(), strict=True) if kind in _UNKNOWN]
    return sum(unknown) / sum(sizes)
