"""A run of a model's twin that hands out attention weights, compared with the record as they come."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from torch import Tensor, nn

from attention_viz.operation.attention import Attention
from attention_viz.recording.differences import Real
from attention_viz.recording.interception.following import FollowedCall
from attention_viz.recording.interception.own_weights import OwnWeights
from attention_viz.recording.references.eager_weights import EagerWeights
from attention_viz.recording.runner import Pass
from attention_viz.recording.twin import Twin

__all__ = ["Take", "WeightsRun", "run_for_weights", "weights_bytes"]

# Called with the number of a call in the record, and the weights of a run of a twin: (head, query, key).
Take = Callable[[int, Tensor], None]

# Bytes of weights that are kept for a later comparison with a more exact run, at most: 64 MiB.
_KEPT = 2**26


@dataclass(eq=False)
class WeightsRun:
    """Which weights were compared: those of a record, on these inputs.

    Attributes:
        recorded: the record, or a part of it.
        kept: the run's weights by the number of their call, unless they are too many.
        error: how far ours are from them at most; None if the record has none.
    """

    recorded: Pass
    inputs: Mapping[str, Tensor]
    kept: dict[int, Tensor] = field(default_factory=dict[int, Tensor])
    error: float | None = None

    @property
    def bytes(self) -> int:
        """How much memory the weights take."""
        return sum(weights_bytes(call.attention) for call in self.recorded.calls)

    def run(self, twin: Twin, real: Real) -> Tensor:
        """Run the twin, note how far ours are from its weights, and return its output."""
        keep = self._keep if self.bytes <= _KEPT else None
        output, error = run_for_weights(self.recorded, twin, self.inputs, real, keep)
        self.error = error if self.recorded.calls else None
        return output

    def _keep(self, number: int, weights: Tensor) -> None:
        self.kept[number] = weights.clone()


def weights_bytes(call: Attention) -> int:
    """Return how much memory a call's weights take."""
    return math.prod(call.shape) * call.query.element_size()


def run_for_weights(
    recorded: Pass, twin: Twin, inputs: Mapping[str, Tensor], real: Real, take: Take | None = None
) -> tuple[Tensor, float]:
    """Return the output of a run that hands out its weights, and how far these are from ours at most."""
    return (_by_softmaxes if twin.plan.sites else _by_eager)(recorded, twin, inputs, real, take)


def _by_eager(
    recorded: Pass, twin: Twin, inputs: Mapping[str, Tensor], real: Real, take: Take | None
) -> tuple[Tensor, float]:
    theirs = EagerWeights.of(recorded, real)

    def hear(module: nn.Module, outputs: object) -> None:
        number = theirs.heard
        theirs.hear(module, outputs)
        if take is not None and theirs.heard > number and number in theirs.calls and theirs.latest is not None:
            take(number, theirs.latest[0])

    output = twin.run(inputs, "eager", hear)
    theirs.check_complete()
    return output, theirs.error


def _by_softmaxes(
    recorded: Pass, twin: Twin, inputs: Mapping[str, Tensor], real: Real, take: Take | None
) -> tuple[Tensor, float]:
    theirs = OwnWeights(recorded, twin.original, real)
    calls = dict(zip(recorded.numbers, recorded.calls, strict=True))

    def hear(heard: FollowedCall) -> None:
        number = theirs.heard
        theirs.hear(heard)
        if take is not None and number in calls:
            take(number, heard.taken.left.reshape(calls[number].attention.shape))

    output, softmaxes = twin.run_followed(inputs, hear)
    theirs.check_complete(softmaxes)
    return output, theirs.error
