"""A model's pass without our attention, which ours is measured against."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import torch
from torch import Tensor, nn

from attention_viz.errors import UnsupportedModel
from attention_viz.models.recording.recorder import Call
from attention_viz.models.recording.runner import Pass, Runner
from attention_viz.operation.attention import Attention
from attention_viz.trace.trace import Fidelity

__all__ = ["BOUNDS", "REFERENCE", "Real", "compare"]

REFERENCE = "the same model with transformers' eager attention"

# How far two correct computations may lie apart, relative to the largest number: the order of a sum alone moves the
# last bits. In half precision one rounding is already 5e-4 (float16) or 4e-3 (bfloat16), and layers add up.
BOUNDS = {torch.float64: 1e-5, torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 5e-2}

# How far a row of weights may be from 1 and still be meant to sum to it, in half precision too.
_ROUNDING = 5e-3

# Weights of a whole layer are made at once up to 16 MiB of them.
_AT_ONCE = 2**22


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


def compare(recorded: Pass, runner: Runner, inputs: Mapping[str, Tensor], real: Real | None = None) -> Fidelity:
    """Run the model plainly and measure the recorded pass against it.

    Args:
        recorded: the pass with ours.
        runner: runs the model plainly.
        inputs: what was run.
        real: which rows are not padding; all are by default.

    Raises:
        UnsupportedModel: a module didn't hand back weights to compare with.
    """
    started = time.perf_counter()
    calls, output, real = recorded.calls, recorded.output, real or Real()
    listener = _Listener(calls, real)
    plain = runner.plain(inputs, listener.hear)
    if listener.heard != len(calls) or listener.outside:
        raise UnsupportedModel(
            f"{len(calls)} attention calls ran with ours and {listener.heard + listener.outside} with the model's own; "
            "part of the attention runs outside the interface that can be recorded; needed: all of it inside"
        )
    keep = _kept(real.output, len(output), output.device)
    return Fidelity(
        output_error=_relative(output[keep], plain[keep]),
        weight_error=max(listener.errors, default=0.0),
        bound=max(BOUNDS.get(dtype, 0.0) for dtype in _dtypes(recorded, runner)),
        reference=REFERENCE,
        seconds=time.perf_counter() - started,
    )


def _dtypes(recorded: Pass, runner: Runner) -> set[torch.dtype]:
    """Every precision that was at work: a model may compute in half precision and hand out float32."""
    inside = {call.attention.query.dtype for call in recorded.calls}
    return {recorded.output.dtype, runner.model.dtype, *inside}


@dataclass(eq=False)
class _Listener:
    """Hears the weights that the model's own attention hands back, and compares each as it comes.

    Attributes:
        calls: what was recorded with ours.
        real: which rows are not padding.
        heard: how many turns modules took that had called ours.
        outside: how many turns other modules took that attend all the same.
        errors: of each turn, how far its weights are from ours.
        latest: the weights heard last, which the modules around the attention hand on.
    """

    calls: Sequence[Call]
    real: Real
    heard: int = 0
    outside: int = 0
    errors: list[float] = field(default_factory=list[float])
    latest: Tensor | None = None

    def hear(self, module: nn.Module, outputs: object) -> None:
        """Compare what one module returned with the call that is next in the record, where it made one."""
        if any(call.module is module for call in self.calls):
            self._compare(module, outputs)
        elif any(type(call.module) is type(module) for call in self.calls) or self._attends(outputs):
            self.outside += 1

    def _compare(self, module: nn.Module, outputs: object) -> None:
        position, self.heard = self.heard, self.heard + 1
        if position >= len(self.calls):
            return
        call = self.calls[position]
        self.latest = _weights_in(outputs, call.attention.shape)
        if call.module is not module or self.latest is None:
            raise UnsupportedModel(
                f"{type(module).__name__} hands back no attention weights of shape {call.attention.shape} "
                "to compare with, so what it computes can't be proven; needed: an eager attention that hands them back"
            )
        self.errors.append(_weights_error(call.attention, self.latest[0], self.real.of_call(position)))

    def _attends(self, outputs: object) -> bool:
        """Whether something returned looks like weights: a square a head, whose rows share out 1, and not heard yet."""
        shapes = {call.attention.shape[1:] for call in self.calls}
        candidates = (_weights_in(outputs, (None, *shape)) for shape in shapes if shape[-1] > 1)
        found = next((one for one in candidates if one is not None), None)
        if found is None or (self.latest is not None and found.data_ptr() == self.latest.data_ptr()):
            return False
        self.latest = found
        return bool((found >= 0).all()) and 0.5 < _largest(found.sum(dim=-1)) < 1.01


def _weights_in(outputs: object, shape: Sequence[int | None]) -> Tensor | None:
    """The weights among the things an attention module returns: the last tensor of their shape, None for any size."""
    if not isinstance(outputs, tuple):
        return None
    fitting = [
        item
        for item in cast("tuple[object, ...]", outputs)
        if isinstance(item, Tensor)
        and item.ndim == 4
        and all(wanted in (None, size) for wanted, size in zip((1, *shape), item.shape, strict=True))
    ]
    return fitting[-1] if fitting else None


def _weights_error(attention: Attention, theirs: Tensor, real: Sequence[bool] | None) -> float:
    """The largest difference in a layer, relative to its largest weight.

    Some models let the sink take its share of the output instead of the weights, softmax(·) V × (1 − share), which is
    the same, and hand back the weights from before: rows that sum to 1, to be compared with ours before the share.
    That the share is right shows in the output.
    """
    rows = _kept(real, attention.shape[-2], theirs.device)
    size = _largest(theirs[:, rows])
    error = _ratio(max(_largest(ours[rows] - plain[rows]) for ours, plain in _matrices(attention, theirs)), size)
    if attention.sinks is None or bool(((theirs[:, rows].sum(dim=-1) - 1).abs() > _ROUNDING).any()):
        return error
    pairs = _matrices(replace(attention, sinks=None), theirs)
    return min(error, _ratio(max(_largest(ours[rows] - plain[rows]) for ours, plain in pairs), size))


def _kept(real: Sequence[bool] | None, count: int, device: torch.device) -> slice | Tensor:
    """The rows to compare: the real ones, where that many are known of."""
    return slice(None) if real is None or len(real) != count else torch.tensor(real, device=device)


def _matrices(attention: Attention, theirs: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Our weights and theirs, (query, key); worked out one head at a time where a whole layer is big."""
    if theirs.numel() <= _AT_ONCE:
        yield from zip(attention.weights, theirs, strict=True)
    else:
        yield from ((attention.head(number).weights, plain) for number, plain in enumerate(theirs))


def _relative(ours: Tensor, theirs: Tensor) -> float:
    """The largest difference relative to the largest number of the reference.

    Some heads say "never" with the lowest number there is, beside which any difference would vanish: those have to be
    the same in both, and count no further.
    """
    if ours.shape != theirs.shape:
        return math.inf
    never = theirs.abs() > torch.finfo(theirs.dtype).max / 2
    if not torch.equal(ours[never], theirs[never]):
        return math.inf
    ours, theirs = ours[~never], theirs[~never]
    return _ratio(_largest(ours - theirs), _largest(theirs))


def _largest(numbers: Tensor) -> float:
    """The largest size among some numbers; infinite where one is not a number, which no comparison may hide."""
    largest = numbers.abs().amax().item() if numbers.numel() else 0.0
    return math.inf if math.isnan(largest) else largest


def _ratio(difference: float, size: float) -> float:
    return difference / size if 0 < size < math.inf else math.inf if difference else 0.0
