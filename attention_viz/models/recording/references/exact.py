"""How far a recorded run and the model's own are from the same run in float64: that tells rounding from a mistake."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from attention_viz.models.recording.copied import copied
from attention_viz.models.recording.differences import Difference, Real, cut, kept_rows
from attention_viz.models.recording.interception.following import Heard
from attention_viz.models.recording.interception.own_weights import OwnWeights
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
    """Run the model with its own attention as it is, and a copy of it in float64.

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
    kept, apart = dict[int, Tensor](), Difference()

    def keep(number: int, weights: Tensor) -> None:
        kept[number] = weights.clone()

    def hold(number: int, weights: Tensor) -> None:
        if number in kept:
            rows = kept_rows(real.of_call(number), weights.shape[-2], weights.device)
            apart.add(cut(kept.pop(number).double(), rows), cut(weights, rows))

    run = _by_softmaxes if twin.plan.sites else _by_eager
    plain, _ = run(recorded, twin, inputs, real, keep)
    try:
        output, error = run(recorded, _in_float64(twin), _widened(inputs), real, hold)
    except (RuntimeError, TypeError, ValueError):  # a family's own code may insist on its precision
        return None
    rows = kept_rows(real.output, len(output), output.device)
    far = [Difference(), Difference()]
    for found, one in zip(far, (ours, plain), strict=True):
        found.add(cut(one.double(), rows), cut(output, rows))
    return FromExact(far[0].relative, error, far[1].relative, apart.relative)


# Given the number of a call in the record, and the weights of a run of a twin: (heads, queries, keys).
_Take = Callable[[int, Tensor], None]


def _by_eager(
    recorded: Pass, twin: Twin, inputs: Mapping[str, Tensor], real: Real, take: _Take
) -> tuple[Tensor, float]:
    """The output of a twin with transformers' eager attention, and how far its weights are from ours at most."""
    theirs = EagerWeights.of(recorded, real)

    def hear(module: nn.Module, outputs: object) -> None:
        number = theirs.heard
        theirs.hear(module, outputs)
        if theirs.heard > number and number in theirs.calls and theirs.latest is not None:
            take(number, theirs.latest[0])

    output = twin.run(inputs, "eager", hear)
    theirs.check_complete()
    return output, theirs.error


def _by_softmaxes(
    recorded: Pass, twin: Twin, inputs: Mapping[str, Tensor], real: Real, take: _Take
) -> tuple[Tensor, float]:
    """The same of a twin that computes attention in code of its own, by what leaves its own softmaxes."""
    theirs = OwnWeights(recorded, twin.original, real)
    calls = dict(zip(recorded.numbers, recorded.calls, strict=True))

    def hear(heard: Heard) -> None:
        number = theirs.heard
        theirs.hear(heard)
        if number in calls:
            take(number, heard.taken.left.reshape(calls[number].attention.shape))

    output, softmaxes = twin.run_followed(inputs, hear)
    theirs.check_complete(softmaxes)
    return output, theirs.error


def _in_float64(twin: Twin) -> Twin:
    """A twin with numbers of its own, those of the model widened."""
    model = copied(twin.model, {}).double()
    modules = zip(model.modules(), twin.original.values(), strict=True)
    return replace(twin, model=model, original=dict(modules), own={})


def _widened(inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: one.to(torch.float64) if one.is_floating_point() else one for name, one in inputs.items()}


def _cells(shape: tuple[int, ...]) -> int:
    heads, queries, keys = shape
    return heads * queries * keys
