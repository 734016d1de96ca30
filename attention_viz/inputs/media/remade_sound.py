"""Make a model's audio tensors again from noise, to measure each position's stretch of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from attention_viz.errors import UnsupportedModel

__all__ = ["SPEECH", "RemadeSound"]

# The names of sounds in a model's forward.
SPEECH = ("input_features", "input_values")


@dataclass(frozen=True, eq=False)
class RemadeSound:
    """Random audio of the length that was read, and its tensors.

    Attributes:
        tensors: those of the audio that was read.
        samples: its length.
        rate: samples per second.
        process: returns the tensors of other audio of this length.
    """

    tensors: Mapping[str, Tensor]
    samples: int
    rate: int
    process: Callable[[NDArray[np.float32]], Mapping[str, Tensor]]

    @property
    def times(self) -> tuple[float, ...]:
        """The times of a video's frames: none."""
        return ()

    @property
    def seconds(self) -> float:
        """Its length in seconds."""
        return self.samples / self.rate

    @property
    def key(self) -> tuple[object, ...]:
        """What decides which position reads which stretch."""
        shapes = ((name, tuple(one.shape)) for name, one in sorted(self.tensors.items()) if not name.endswith("_ids"))
        return (self.samples, self.rate, *shapes)

    def changed(self, inside: NDArray[np.bool_]) -> dict[str, Tensor]:
        """Return the tensors of noise that is another noise at the marked samples."""
        chance = np.random.default_rng(0)
        one, other = chance.normal(0, 0.1, (2, self.samples)).clip(-1, 1).astype(np.float32)
        made = self.process(np.where(inside, other, one))
        names = {name for name in made if name in self.tensors and made[name].is_floating_point()}
        if not names & {*SPEECH} or any(made[name].shape != self.tensors[name].shape for name in names):
            raise UnsupportedModel("the processor makes tensors of other shapes from audio of the same length")
        return {**self.tensors, **{name: made[name] for name in names}}
