"""A pass over several rows at once, each a run of its own whose calls may be changed."""

from dataclasses import dataclass

from torch import Tensor

from attention_viz.errors import UnsupportedModel
from attention_viz.operation.attention import Attention, fused, fusible
from attention_viz.recording.recorder import Call, Recorder

__all__ = ["Batch", "whole_output"]


@dataclass(eq=False)
class Batch(Recorder):
    """Hears the calls of a batch, and may change what each of them hands back; keeps nothing of what it heard.

    Attributes:
        rows: how many runs there are in the batch.
        first: which call of the model is the first that is heard, where the layers before it don't run.
    """

    rows: int = 1
    first: int = 0
    _heard: int = 0

    @property
    def heard(self) -> int:
        """How many calls were heard so far."""
        return self._heard

    def hear(self, call: Call) -> Tensor:
        """What one call computes in every row: (row, head, query, d_v)."""
        query = call.attention.query
        again = self._last is not None and self._last.again(call)
        if again or query.ndim != 4 or len(query) != self.rows or self.first + self._heard >= len(self.places):
            raise UnsupportedModel(f"{type(call.module).__name__} doesn't run a batch as it runs its rows")
        self._last = call
        self._heard += 1
        number = self.first + self._heard - 1
        return self.changed(number, call, self.computed(number, call))

    def computed(self, number: int, call: Call) -> Tensor:
        """What a call computes in every row: (row, head, query, d_v)."""
        del number
        return whole_output(call.attention)

    def changed(self, number: int, call: Call, output: Tensor) -> Tensor:
        """What a call hands back; its output as it is, unless a batch of another kind says otherwise.

        Args:
            output: what it computed, (row, head, query, d_v); may be written into.
        """
        del number, call
        return output


def whole_output(attention: Attention) -> Tensor:
    """What a call of a batch computes in every row, without any changes: (row, head, query, d_v)."""
    return fused(attention, closed=False) if fusible(attention) else attention.output
