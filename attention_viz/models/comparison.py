"""The same pass without our attention: what ours is measured against."""

import contextlib
import math
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from threading import get_ident
from typing import cast

import torch
from torch import Tensor, nn

from attention_viz.attention import Attention
from attention_viz.errors import UnsupportedModel
from attention_viz.models.recorder import Call
from attention_viz.trace import Fidelity

__all__ = ["BOUNDS", "REFERENCE", "compare"]

REFERENCE = "the same model with transformers' eager attention"

# How far two correct computations may lie apart, relative to the largest number: the order of a sum alone moves the
# last bits. In half precision one rounding is already 5e-4 (float16) or 4e-3 (bfloat16), and layers add up.
BOUNDS = {torch.float64: 1e-5, torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 5e-2}


def compare(
    calls: Sequence[Call], output: Tensor, plain_run: Callable[[], Tensor], real: Sequence[bool] | None = None
) -> Fidelity:
    """Run the model plainly and measure the recorded pass against it.

    Args:
        calls: what was recorded with ours.
        output: the model's output with ours, without its batch axis.
        plain_run: runs the same input through the model under eager attention and hands back its output.
        real: which positions are not padding; all by default. What happens at padding concerns nobody and differs by
            design: ours gives zeros where a row has nothing to look at.

    Raises:
        UnsupportedModel: a module didn't hand back weights to compare with.
    """
    started = time.perf_counter()
    listener = _Listener(calls, None if real is None else torch.tensor(real))
    with listener.listening():
        plain = plain_run()
    if listener.heard != len(calls):
        raise UnsupportedModel(
            f"{len(calls)} attention calls ran with ours and {listener.heard} with the model's own; "
            "part of the attention runs outside the interface that can be recorded"
        )
    keep = slice(None) if real is None or output.shape[0] != len(real) else torch.tensor(real, device=output.device)
    return Fidelity(
        output_error=_relative(output[keep], plain[keep]),
        weight_error=max(listener.errors, default=0.0),
        bound=BOUNDS[output.dtype],
        reference=REFERENCE,
        seconds=time.perf_counter() - started,
    )


@dataclass(eq=False)
class _Listener:
    """Hears the weights that the model's own attention hands back, and compares each as it comes."""

    calls: Sequence[Call]
    real: Tensor | None
    heard: int = 0
    errors: list[float] = field(default_factory=list[float])
    thread: int = field(default_factory=get_ident)

    @contextlib.contextmanager
    def listening(self) -> Generator[None]:
        """Hooks on the recorded modules, for this thread's pass only, gone afterwards."""
        modules = {id(call.module): call.module for call in self.calls}.values()
        handles = [module.register_forward_hook(self._hear) for module in modules]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _hear(self, module: nn.Module, _inputs: object, outputs: object) -> None:
        if get_ident() != self.thread:
            return
        position, self.heard = self.heard, self.heard + 1
        if position >= len(self.calls):
            return
        call = self.calls[position]
        weights = _weights_in(outputs, call.attention)
        if call.module is not module or weights is None:
            raise UnsupportedModel(
                f"{type(module).__name__} hands back no attention weights of shape {call.attention.shape} "
                "to compare with, so what it computes can't be proven"
            )
        self.errors.append(_weights_error(call.attention, weights, self.real))


def _weights_in(outputs: object, attention: Attention) -> Tensor | None:
    """The weights among the things an attention module returns: the last tensor of their shape."""
    if not isinstance(outputs, tuple):
        return None
    fitting = [
        item
        for item in cast("tuple[object, ...]", outputs)
        if isinstance(item, Tensor) and tuple(item.shape) == (1, *attention.shape)
    ]
    return fitting[-1][0] if fitting else None


def _weights_error(attention: Attention, theirs: Tensor, real: Tensor | None) -> float:
    """The largest difference in a layer, relative to its largest weight.

    Head by head, so that one matrix is in memory at a time.
    """
    differences, sizes = [0.0], [0.0]
    for head in range(attention.shape[0]):
        ours, plain = attention.head(head).weights, theirs[head]
        if real is not None and len(real) == ours.shape[0]:
            ours, plain = ours[real.to(ours.device)], plain[real.to(ours.device)]
        differences.append(_largest(ours.double() - plain.double()))
        sizes.append(_largest(plain.double()))
    return _ratio(max(differences), max(sizes))


def _relative(ours: Tensor, theirs: Tensor) -> float:
    """The largest difference relative to the largest number of the reference."""
    if ours.shape != theirs.shape:
        return math.inf
    return _ratio(_largest(ours.double() - theirs.double()), _largest(theirs.double()))


def _largest(numbers: Tensor) -> float:
    """The largest size among some numbers; infinite where one is not a number, which no comparison may hide."""
    largest = numbers.abs().amax().item() if numbers.numel() else 0.0
    return math.inf if math.isnan(largest) else largest


def _ratio(difference: float, size: float) -> float:
    return difference / size if 0 < size < math.inf else math.inf if difference else 0.0
