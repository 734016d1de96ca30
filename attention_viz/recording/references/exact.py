"""How far a recorded run and the model's own are from a more exact run: that tells rounding from a fault.

More exact than float32 is float64, and than half precision float32.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from attention_viz.recording.copied import copied
from attention_viz.recording.differences import Difference, Real, cut, kept_rows
from attention_viz.recording.references.own_output import OwnOutput
from attention_viz.recording.references.weights_run import WeightsRun, run_for_weights
from attention_viz.recording.twin import Twin

__all__ = ["FromExact", "from_exact"]

# Bytes of weights that are kept meanwhile, and of an output, at most.
_AFFORDABLE = 2**30


class FromExact(NamedTuple):
    """Largest differences from a more exact run, relative to its largest number; None if they weren't measured."""

    output: float
    weights: float | None
    own_output: float
    own_weights: float | None


def from_exact(own: OwnOutput, weights: WeightsRun, dtype: torch.dtype, real: Real) -> FromExact | None:
    """Run a copy of the model in a more exact precision, with its own attention and with eager.

    Returns:
        How far ours and the model's own are from the copy; None if that takes too much memory, or the model can't be
        run in that precision.
    """
    ours, twin = own.recorded.output, own.twin
    if len(ours) * ours.shape[-1] * dtype.itemsize > _AFFORDABLE or _size(twin, dtype) > _room(twin):
        return None
    try:
        exact = _in_precision(twin, dtype)
        output = exact.run(_widened(own.inputs, dtype))
        found = _of_weights(weights, twin, exact, dtype, real)
    except (RuntimeError, TypeError, ValueError):  # a family's own code may insist on its precision
        return None
    far = own.from_exact(output)
    return FromExact(far[0], found[0], far[1], found[1])


def _of_weights(
    weights: WeightsRun, twin: Twin, exact: Twin, dtype: torch.dtype, real: Real
) -> tuple[float | None, float | None]:
    """How far our weights and those they were compared with are from a more exact run's."""
    if not weights.recorded.calls or weights.bytes > _AFFORDABLE:
        return None, None
    theirs = dict(weights.kept)
    apart = 0.0

    def keep(number: int, weights: Tensor) -> None:
        theirs[number] = weights.clone()

    def hold(number: int, weights: Tensor) -> None:
        nonlocal apart
        rows = kept_rows(real.of_call(number), weights.shape[-2], weights.device)
        found = Difference()
        found.add(cut(theirs.pop(number).to(dtype), rows), cut(weights, rows))
        apart = max(apart, found.relative)

    if not theirs:
        _ = run_for_weights(weights.recorded, twin, weights.inputs, real, keep)
    _, ours = run_for_weights(weights.recorded, exact, _widened(weights.inputs, dtype), real, hold)
    return ours, apart


def _in_precision(twin: Twin, dtype: torch.dtype) -> Twin:
    """A twin with numbers of its own, those of the model widened."""
    memo: dict[int, Any] = {}
    model = copied(twin.model, memo)
    model = model.double() if dtype == torch.float64 else model.float()
    modules = zip(model.modules(), twin.original.values(), strict=True)
    own = {id(memo[number]): name for number, name in twin.own.items() if number in memo}
    return replace(twin, model=model, original=dict(modules), own=own)


def _widened(inputs: Mapping[str, Tensor], dtype: torch.dtype) -> dict[str, Tensor]:
    return {name: one.to(dtype) if one.is_floating_point() else one for name, one in inputs.items()}


def _size(twin: Twin, dtype: torch.dtype) -> int:
    """How many bytes the model takes in a precision."""
    return sum(one.numel() for one in twin.model.parameters()) * dtype.itemsize


def _room(twin: Twin) -> float:
    """How many bytes of memory there are for it, as far as the system says; on another device torch itself refuses."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            (found,) = (line.split()[1] for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError):
        return float("inf")
    return int(found) * 1024 / 2 if twin.model.device.type == "cpu" else float("inf")
