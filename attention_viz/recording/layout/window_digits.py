"""Reads which of a few known vectors each slot of a window shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attention_viz.errors import UnsupportedModel
from attention_viz.operation.attention import fused, fusible
from attention_viz.recording.recorder import Call, Recorder

# How far what a slot shows may be from a vector's, as a share of the distance between two.
_CLOSE = 1e-3
# Vectors nearer than this share of the largest number don't move a slot.
_STILL = 1e-5
# So many numbers stand for a slot's query, key or value.
_WIDTH = 2
# Slots that add less than this share of a layer's output are made to add more.
_SMALL = 0.1
# How many units of the last place a difference of two outputs may be off.
_UNITS = 8


@dataclass(eq=False)
class SlotRecorder(Recorder):
    """Lets each slot attend to itself alone, and keeps numbers of its query, key and value, (slot, number) each.

    Attributes:
        factors: what calls' outputs are multiplied by, by number.
    """

    factors: Mapping[int, float] = field(default_factory=dict[int, float])
    shown: list[list[Tensor]] = field(default_factory=list[list[Tensor]])

    def hear(self, call: Call) -> Tensor:
        """Return each slot's own value, (row, head, query, d_v)."""
        query, key, value = (getattr(call.attention, name) for name in ("query", "key", "value"))
        factor = self.factors.get(len(self.shown), 1.0)
        self._modules.append(call.module)
        self.shown.append([mixed(one) for one in (query, key, value)])
        if query.shape[-2] != key.shape[-2] or query.ndim != 4:
            attention = call.attention
            return factor * (fused(attention, closed=False) if fusible(attention) else attention.output)
        return factor * value.repeat_interleave(query.shape[1] // value.shape[1], dim=1)


def mixed(terms: Float[Tensor, "row head slot width"]) -> Float[Tensor, "cell number"]:
    """Return a few numbers for each slot, which any of its own change."""
    heads, width = terms.shape[1], terms.shape[3]
    chance = torch.Generator().manual_seed(heads * width)
    mixing = torch.randn(heads, width, _WIDTH, generator=chance)
    terms = terms.detach() if terms.dtype == torch.float64 else terms.detach().float()
    return (terms @ mixing.to(terms)).sum(dim=1).reshape(-1, _WIDTH)


@dataclass(frozen=True, eq=False)
class SlotRun:
    """The numbers of one run's slots, by call, and of the inputs and outputs of modules around windows.

    Attributes:
        silent: the outputs of a run whose slots output zeros.
        precision: the distance from 1 to the next number of the outputs' dtype.
    """

    shown: list[list[Tensor]] = field(default_factory=list[list[Tensor]])
    entered: dict[nn.Module, Tensor] = field(default_factory=dict[nn.Module, Tensor])
    written: dict[nn.Module, Tensor] = field(default_factory=dict[nn.Module, Tensor])
    silent: Mapping[nn.Module, Tensor] = field(default_factory=dict[nn.Module, Tensor])
    precision: dict[nn.Module, float] = field(default_factory=dict[nn.Module, float])

    def beside(self, silent: "SlotRun") -> "SlotRun":
        """Return the run with the outputs of one whose slots output zeros."""
        return replace(self, silent=silent.written)

    def of(self, call: int, home: nn.Module | None) -> list[Tensor]:
        """Return the numbers of a call's terms, of its home's input and output, and of what its slots add to this."""
        if call >= len(self.shown):
            raise UnsupportedModel("it makes fewer attention calls for other numbers")
        if home is None or home not in self.entered or home not in self.written:
            return self.shown[call]
        entered, written = self.entered[home], self.written[home]
        if entered.shape != written.shape:
            return self.shown[call]
        added = [written - self.silent[home]] if self.silent else []
        return [*self.shown[call], entered, written, *added]

    def rounding(self, home: nn.Module | None) -> float:
        """Return how far rounding may move what slots add to their home's output."""
        if home is None or home not in self.written:
            return 0.0
        return _UNITS * self.precision[home] * float(self.written[home].abs().max())


def added_factor(runs: Sequence[SlotRun], home: nn.Module | None) -> float:
    """Return what a call's output has to be multiplied by, so that it shows in its home's."""
    if home is None or any(home not in run.written for run in runs):
        return 1.0
    silent = max(float(run.silent[home].abs().max()) for run in runs)
    added = max(float((run.written[home] - run.silent[home]).abs().max()) for run in runs)
    if added == 0 or added > _SMALL * silent:
        return 1.0
    return min(silent / added, 1 / (_UNITS * runs[0].precision[home]))


def digits_shown(
    vectors: Sequence[Float[Tensor, "slot number"]], shown: Float[Tensor, "slot number"], rounding: float
) -> Tensor | None:
    """Return the vector that each slot shows, −1 for those that none moves; None if a slot shows none.

    Args:
        rounding: how far the numbers themselves may be off.
    """
    if any(one.shape != shown.shape for one in vectors):
        return None
    known = torch.stack([*vectors])
    least = max(_STILL * float(known.abs().max().clamp_min(1e-30)), 4 * rounding)
    between = torch.stack([(one - other).norm(dim=-1) for one, other in combinations(known, 2)]).amin(dim=0)
    still = (known - known[0]).norm(dim=-1).amax(dim=0) <= least
    off, digits = (known - shown).norm(dim=-1).min(dim=0)
    clean = off <= torch.where(still, least, _CLOSE * between + rounding)
    return torch.where(still, -1, digits) if bool(clean.all()) else None
