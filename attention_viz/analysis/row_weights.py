"""Some rows' weights in every head, in memory-sized parts."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attention_viz.analysis.metrics import METRICS
from attention_viz.analysis.rows import QueryRows
from attention_viz.operation.attention import Attention
from attention_viz.operation.reach import is_causal
from attention_viz.trace.once import once
from attention_viz.trace.trace import Trace

__all__ = ["RowWeights", "looks_back", "row_weights"]

# Weights of several layers that are put together, and those of one layer that are made at a time: 4 and 32 MiB.
_TOGETHER, _AT_ONCE = 2**20, 2**23


@dataclass(frozen=True, eq=False)
class RowWeights:
    """Some rows' weights in several heads.

    Attributes:
        heads: (layer, head).
        weights: 0 for NaN.
        open: each row's number of open keys.
        known: measured metrics, (head, row).
    """

    heads: Sequence[tuple[int, int]]
    weights: Float[Tensor, "head row key"]
    open: Int[Tensor, "head row"]
    known: Mapping[str, Float[Tensor, "head row"]] = field(default_factory=dict[str, Tensor])

    def metric(self, name: str, rows: QueryRows) -> Float[Tensor, "head row"]:
        """Return each row's metric; NaN if undefined."""
        return self.known[name] if name in self.known else METRICS[name].function(self.weights, rows)

    @once
    def _columns(self) -> tuple[Float[Tensor, "head key"], Float[Tensor, "head key"]]:
        # No weight is below 0, and of numbers the sum is found several times faster than of truth values.
        others = self.weights.sign().sum(dim=1) - 1
        return self.weights.sum(dim=1), others.clamp_min(1)

    def above_at(self, rows: Int[Tensor, " pair"], keys: Int[Tensor, " pair"]) -> Float[Tensor, "head pair"]:
        """As `above`, for (row, key) pairs only."""
        own, (whole, others) = self.weights[:, rows, keys], self._columns
        return own - (whole[:, keys] - own) / others[:, keys]

    @once
    def above(self) -> Float[Tensor, "head row key"]:
        """Return each weight's excess over the key's mean in other open rows."""
        whole, others = self._columns
        elsewhere = (whole[:, None] - self.weights).div_(others[:, None])
        return torch.sub(self.weights, elsewhere, out=elsewhere)


def row_weights(trace: Trace, stream: str, rows: Sequence[int]) -> Iterator[RowWeights]:
    """Yield rows' weights in layer order: small layers together, large ones by head."""
    waiting, cells = list[RowWeights](), 0
    for part in _parts(trace, stream, rows):
        if cells and cells + part.weights.numel() > _TOGETHER:
            yield _joined(waiting)
            waiting, cells = [], 0
        waiting.append(part)
        cells += part.weights.numel()
    yield _joined(waiting)


def looks_back(trace: Trace, stream: str) -> bool:
    """Whether no query of a stream looks ahead."""
    first = trace.attention(trace.layer_numbers(stream)[0], stream)
    return stream == "decoder" or (stream != "cross" and is_causal(first.allowed, first.shape[-2:]))


def _joined(parts: Sequence[RowWeights]) -> RowWeights:
    heads = [head for part in parts for head in part.heads]
    return RowWeights(heads, torch.cat([part.weights for part in parts]), torch.cat([part.open for part in parts]))


def _parts(trace: Trace, stream: str, rows: Sequence[int]) -> Iterator[RowWeights]:
    for layer in trace.layer_numbers(stream):
        call = trace.attention(layer, stream)
        some = call if len(rows) == call.shape[-2] else call.rows(rows)
        heads = [(layer, head) for head in range(call.shape[0])]
        if math.prod(some.shape) <= _AT_ONCE:
            yield RowWeights(heads, _numbers(some), _open_keys(some))
        else:
            ones = ((head, some.head(head[1])) for head in heads)
            yield from (RowWeights([head], _numbers(one)[None], _open_keys(one)[None]) for head, one in ones)


def _numbers(call: Attention) -> Float[Tensor, "*head row key"]:
    return call.weights.detach().float().cpu().nan_to_num(0)


def _open_keys(call: Attention) -> Int[Tensor, "*head row"]:
    if call.allowed is None:
        return torch.full(call.shape[:-1], call.shape[-1])
    return call.allowed.expand(call.shape).sum(dim=-1).cpu()
