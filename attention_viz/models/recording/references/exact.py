"""How far a recorded run and the model's own are from the same run in float64: that tells rounding from a mistake."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from attention_viz.models.recording.differences import Difference, Real, cut, kept_rows
from attention_viz.models.recording.references.eager_weights import EagerWeights
from attention_viz.models.recording.runner import Pass
from attention_viz.models.recording.twin import Twin

__all__ = ["FromExact", "from_exact"]

# Bytes of weights that are kept meanwhile, at most.
_AFFORDABLE = 2**30


class FromExact(NamedTuple):
    """Largest differences from a run in float64, relative to its largest number."""

    output: float
    weights: float
    eager_output: float
    eager_weights: float


def from_exact(recorded: Pass, twin: Twin, inputs: Mapping[str, Tensor], real: Real) -> FromExact | None:
    """Run the model with its eager attention as it is, and a copy of it in float64.

    Args:
        recorded: the pass with ours.
        twin: of the model.
        inputs: what was run.
        real: which rows are not padding.

    Returns:
        How far both are from the copy; None where the weights take too much memory, or the model can't be run in
        float64.
    """
    cells = sum(call.attention.query.element_size() * _cells(call.attention.shape) for call in recorded.calls)
    ours = recorded.output
    if cells > _AFFORDABLE or not isinstance(ours, Tensor):
        return None
    theirs, kept = EagerWeights.of(recorded, real), dict[int, Tensor]()

    def keep(module: nn.Module, outputs: object) -> None:
        before = theirs.heard
        theirs.hear(module, outputs)
        if theirs.heard > before and before in theirs.calls and theirs.latest is not None:
            kept[before] = theirs.latest[0].clone()

    plain = twin.run(inputs, "eager", keep)
    exact, apart = EagerWeights.of(recorded, real), Difference()

    def hold(module: nn.Module, outputs: object) -> None:
        before = exact.heard
        exact.hear(module, outputs)
        if exact.heard > before and before in kept and exact.latest is not None:
            rows = kept_rows(real.of_call(before), kept[before].shape[-2], plain.device)
            apart.add(cut(kept.pop(before).double(), rows), cut(exact.latest[0], rows))

    try:
        output = _in_float64(twin).run(_widened(inputs), "eager", hold)
    except (RuntimeError, TypeError, ValueError):  # a family's own code may insist on its precision
        return None
    exact.check_complete()
    rows = kept_rows(real.output, len(output), output.device)
    far = [Difference(), Difference()]
    for found, one in zip(far, (ours, plain), strict=True):
        found.add(cut(one.double(), rows), cut(output, rows))
    return FromExact(far[0].relative, exact.error, far[1].relative, apart.relative)


def _in_float64(twin: Twin) -> Twin:
    """A twin with numbers of its own, those of the model widened."""
    model = copy.deepcopy(twin.model).double()
    modules = zip(model.modules(), twin.original.values(), strict=True)
    return replace(twin, model=model, original=dict(modules), own={})


def _widened(inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: one.to(torch.float64) if one.is_floating_point() else one for name, one in inputs.items()}


def _cells(shape: tuple[int, ...]) -> int:
    heads, queries, keys = shape
    return heads * queries * keys
