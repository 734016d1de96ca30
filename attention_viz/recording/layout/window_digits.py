"""Records a few numbers of each slot of a window, and what slots add to their layer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from torch import Tensor, nn

from attention_viz.errors import UnsupportedModel
from attention_viz.recording.layout.digits import mixed
from attention_viz.recording.recorder import Call, Recorder, own_values

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
        attention, factor = call.attention, self.factors.get(len(self.shown), 1.0)
        self._modules.append(call.module)
        self.shown.append([mixed(one) for one in (attention.query, attention.key, attention.value)])
        return factor * own_values(attention)


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
