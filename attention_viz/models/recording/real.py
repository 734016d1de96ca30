"""Which rows of a pass are not padding."""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Real"]


@dataclass(frozen=True)
class Real:
    """Which rows are not padding; None where all are real.

    What happens at padding concerns nobody and differs by design: ours gives zeros where a row has nothing to look at.

    Attributes:
        output: of the model's output.
        calls: of each attention call.
    """

    output: Sequence[bool] | None = None
    calls: Sequence[Sequence[bool] | None] = ()

    def of_call(self, number: int) -> Sequence[bool] | None:
        """Of one call; all real where nothing is known."""
        return self.calls[number] if number < len(self.calls) else None

    @property
    def everywhere(self) -> bool:
        """Whether nothing is padding."""
        return self.output is None and all(one is None for one in self.calls)
