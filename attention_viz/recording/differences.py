"""Compares tensors in pieces, since copies may not fit into memory."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attention_viz.operation.attention import Attention
from attention_viz.operation.terms import on_device
from attention_viz.trace.memory import LateOutput, set_aside

# How many numbers are compared at a time: 4 MiB in float32, which stay in the processor's caches.
NUMBERS_AT_A_TIME = 2**20

# After how many such pieces a long trace's numbers, which lie in a file, needn't stay in memory: 256 MiB.
_SET_ASIDE = 64

# How far a row of weights may be from 1 and still be meant to sum to it, in half precision too.
_ROUNDING = 5e-3


@dataclass(frozen=True)
class Real:
    """Rows that aren't padding; None for all.

    Padding differs by design: our rows that attend to nothing are zero.
    """

    output: Sequence[bool] | None = None
    calls: Sequence[Sequence[bool] | None] = ()

    def of_call(self, number: int) -> Sequence[bool] | None:
        """Return a call's real rows; None for all."""
        return self.calls[number] if number < len(self.calls) else None

    @property
    def everywhere(self) -> bool:
        """Whether every position is real."""
        return self.output is None and all(one is None for one in self.calls)


@dataclass
class Difference:
    """Two tensors' largest difference, and the second's largest number."""

    apart: float = 0.0
    size: float = 0.0
    _pieces_seen: int = 0

    def add(self, ours: Tensor | LateOutput, theirs: Tensor) -> None:
        """Add rows of both tensors.

        The dtype's lowest number, which some heads block with, would hide any difference: such cells must be equal. NaN
        counts as infinitely far.
        """
        if tuple(ours.shape) != tuple(theirs.shape):
            self.apart = math.inf
            return
        for some in _pieces(theirs):
            # A long text's record is in memory, whatever device the model is on.
            self._add(ours[some].to(theirs.device), theirs[some])
            self._pieces_seen += 1
            if self._pieces_seen % _SET_ASIDE == 0 and isinstance(ours, Tensor):
                set_aside(ours)

    @property
    def relative(self) -> float:
        """The difference relative to the largest number."""
        if 0 < self.size < math.inf:
            return self.apart / self.size
        return math.inf if self.apart else 0.0

    def _add(self, ours: Tensor, theirs: Tensor) -> None:
        size = _largest(theirs)
        if size > torch.finfo(theirs.dtype).max / 2:
            never = theirs.abs() > torch.finfo(theirs.dtype).max / 2
            if not torch.equal(ours[never], theirs[never]):
                self.apart = math.inf
            ours, theirs = ours[~never], theirs[~never]
            size = _largest(theirs)
        self.size = max(self.size, size)
        self.apart = max(self.apart, _largest(ours - theirs))


def _pieces(tensor: Tensor) -> list[slice]:
    """Return slices of the first axis for `NUMBERS_AT_A_TIME` each."""
    rows = len(tensor) if tensor.ndim else 0
    step = max(1, NUMBERS_AT_A_TIME // max(1, tensor[:1].numel()))
    return [slice(start, start + step) for start in range(0, rows, step)]


def _largest(numbers: Tensor) -> float:
    """Return the largest absolute number; infinity for NaN, which comparisons would hide."""
    if not numbers.numel():
        return 0.0
    low, high = torch.stack(torch.aminmax(numbers.detach())).tolist()
    return math.inf if math.isnan(low) or math.isnan(high) else max(-low, high)


def kept_rows(real: Sequence[bool] | None, count: int, device: torch.device) -> Bool[Tensor, " row"] | None:
    """Return the real rows' mask; None for all, or if their number is another."""
    return None if real is None or len(real) != count else torch.tensor(real, device=device)


def cut(tensor: Tensor, rows: Bool[Tensor, " row"] | None) -> Tensor:
    """Return the chosen rows of (…, row, column), uncopied for None."""
    return tensor if rows is None else tensor[..., rows, :]


def weights_difference(
    attention: Attention, theirs: Float[Tensor, "head query key"], real: Sequence[bool] | None = None
) -> float:
    """Return a layer's largest weight difference, relative to its largest weight.

    Some models apply the sink to the output, softmax(·) V × (1 − share), and return weights without it (rows sum to 1).
    Those are compared with ours without the sink; the output verifies the share.
    """
    if attention.query.device != theirs.device:
        attention = on_device(attention, theirs.device)
    error = _of_heads(attention, theirs, real)
    if attention.sinks is None or not _sum_to_one(cut(theirs, kept_rows(real, theirs.shape[-2], theirs.device))):
        return error
    return min(error, _of_heads(replace(attention, sinks=None), theirs, real))


def _of_heads(attention: Attention, theirs: Tensor, real: Sequence[bool] | None) -> float:
    rows, found = kept_rows(real, attention.shape[-2], theirs.device), Difference()
    if theirs.numel() <= NUMBERS_AT_A_TIME:
        found.add(cut(attention.weights, rows), cut(theirs, rows))
        return found.relative
    for number, plain in enumerate(theirs):
        found.add(cut(attention.head(number).weights, rows), cut(plain, rows))
    return found.relative


def _sum_to_one(weights: Tensor) -> bool:
    return bool(((weights.sum(dim=-1) - 1).abs() <= _ROUNDING).all())
