"""The weights of a model's own softmaxes, heard in a run of its twin and compared with the record as they come."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import nn

from attention_viz.errors import UnsupportedModel
from attention_viz.recording.differences import Real, weights_difference
from attention_viz.recording.interception.following import FollowedCall

if TYPE_CHECKING:
    from attention_viz.recording.runner import Pass

__all__ = ["OwnWeights"]


@dataclass(eq=False)
class OwnWeights:
    """Compares what each softmax of the model's own left with the call that is next in the record.

    Attributes:
        original: the model's module by the twin's.
        heard: how many calls of the model's own were heard.
        error: how far the weights heard so far are from ours at most.
    """

    recorded: "Pass"
    original: Mapping[nn.Module, nn.Module]
    real: Real
    heard: int = 0
    error: float = 0.0

    def hear(self, heard: FollowedCall) -> None:
        """Compare one call."""
        number, self.heard = self.heard, self.heard + 1
        modules = self.recorded.modules
        if number >= len(modules) or self.original.get(heard.module) is not modules[number]:
            raise UnsupportedModel(
                f"{type(heard.module).__name__} attends where ours was called by another module or not at all, so what "
                "it computes can't be compared"
            )
        if number not in self.recorded.numbers:
            return
        call = self.recorded.calls[self.recorded.numbers.index(number)].attention
        weights = heard.taken.left
        if weights.numel() != call.query.shape[0] * call.query.shape[1] * call.key.shape[1]:
            raise UnsupportedModel(
                f"{type(heard.module).__name__} has weights of shape {tuple(weights.shape)} where ours are {call.shape}"
            )
        difference = weights_difference(call, weights.reshape(call.shape), self.real.of_call(number))
        self.error = max(self.error, difference)

    def check_complete(self, softmaxes: int) -> None:
        """Refuse a run in which not every softmax behind a product was one of ours."""
        if not self.heard == len(self.recorded.modules) == softmaxes:
            raise UnsupportedModel(
                f"{len(self.recorded.modules)} attention calls ran with ours, and the model's own code has {softmaxes} "
                f"softmaxes behind products, of which {self.heard} take values; what the others do can't be told"
            )
