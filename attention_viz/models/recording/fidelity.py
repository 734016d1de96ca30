"""How far a recorded pass is from the model's own: which runs of it are compared, and how much of them.

The output is compared whole. The weights are, too, where a text is short. On longer ones eager attention, which hands
weights back, costs several plain runs and all of a layer's weights at once. In a decoder nobody looks ahead, so that
eager attention on the first tokens gives their rows of the whole text; elsewhere a sample of rows is worked out by the
family's own eager function beside a run with the model's own implementation.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from attention_viz.errors import UnsupportedModel
from attention_viz.models.recording.differences import Difference, Real, cut, kept_rows
from attention_viz.models.recording.interception.own_weights import OwnWeights
from attention_viz.models.recording.references.eager_rows import BY_ROWS, EagerRows
from attention_viz.models.recording.references.eager_weights import EagerWeights, is_closed_prefix, prefix
from attention_viz.models.recording.references.exact import from_exact
from attention_viz.models.recording.runner import Pass, Runner
from attention_viz.models.recording.twin import Twin
from attention_viz.operation.kernel import BOUNDS
from attention_viz.trace.trace import Fidelity

__all__ = ["REFERENCE", "compare"]

REFERENCE = "the same model with transformers' eager attention"
OWN = "the same model with its own attention, by what leaves its own softmaxes"

# Up to so many tokens all weights are compared.
_WHOLE = 128
# An error beyond this is no rounding in float32, whatever a run in float64 would say.
_STILL_ROUNDING = 1e-3
# Of longer texts, how many rows: of a decoder an eighth of the text, between these two; of others the fewest.
_FEWEST, _MOST = 128, 512
# Where all else fails, weights of a layer that take up to so many bytes are compared all the same: 2 GiB.
_AFFORDABLE = 2**31


@dataclass(frozen=True)
class _Compared:
    """What one way of comparing found; `rows` of each layer, None for all."""

    output_error: float
    weight_error: float
    reference: str
    rows: int | None = None


@dataclass(frozen=True, eq=False)
class _Comparison:
    """What is compared: a recorded pass, and a twin of its model to be run on the same inputs."""

    recorded: Pass
    twin: Twin
    inputs: Mapping[str, Tensor]
    real: Real
    bound: float

    def make(self) -> _Compared:
        """As much as can be compared at about the price of a plain run."""
        for way in self._ways():
            try:
                found = way()
            except _FOREIGN:
                continue
            if found is None:
                continue
            # What a part finds wrong only the whole may overrule: a family may do otherwise with a part of a text.
            wrong = max(found.output_error, found.weight_error) > self.bound
            return self.whole() if wrong and self._largest_layer <= _AFFORDABLE else found
        return self.whole()

    def whole(self) -> _Compared:
        """Everything, by a run with eager attention."""
        if self.twin.plan.sites:
            return self.by_softmaxes()
        eager = EagerWeights.of(self.recorded, self.real)
        plain = self.twin.run(self.inputs, "eager", eager.hear)
        eager.check_complete()
        return _Compared(self._output_error(plain), eager.error, REFERENCE)

    def by_softmaxes(self) -> _Compared:
        """Everything, of a model that computes attention in code of its own: the weights by its own softmaxes."""
        own = OwnWeights(self.recorded, self.twin.original, self.real)
        plain, softmaxes = self.twin.run_followed(self.inputs, own.hear)
        own.check_complete(softmaxes)
        return _Compared(self._output_error(plain), own.error, OWN)

    def by_prefix(self) -> _Compared | None:
        """The output whole, and weights by eager attention on the first tokens, where those look at nothing else."""
        count = min(_MOST, max(_FEWEST, self._length // 8))
        closed = all(is_closed_prefix(call.attention, count) for call in self.recorded.calls)
        if not closed or not self.real.everywhere or not self._goes_by_position:
            return None
        eager = EagerWeights.of(prefix(self.recorded, count), self.real)
        _ = self.twin.run({name: tensor[:, :count] for name, tensor in self.inputs.items()}, "eager", eager.hear)
        eager.check_complete()
        output, ours = Difference(), self.recorded.output
        self.twin.run_in_pieces(self.inputs, len(ours), lambda rows, theirs: output.add(ours[rows], theirs))
        reference = (
            f"the same model with its own attention ({self.twin.implementation}) for the output, and with "
            f"transformers' eager attention on the first {count} tokens, which see none of the others, for the weights"
        )
        return _Compared(output.relative, eager.error, reference, count)

    def by_rows(self) -> _Compared | None:
        """The output whole, and some rows of weights by the family's eager function."""
        own, recorded = self.twin.implementation, self.recorded
        rows = EagerRows.of(recorded, self.twin.original, own, _FEWEST, self.real)
        with rows.listening():
            plain = self.twin.run(self.inputs, BY_ROWS)
        if rows.heard != len(recorded.modules):
            return None
        error = self._output_error(plain)
        if own == "eager":
            return _Compared(error, rows.error, REFERENCE)
        reference = (
            f"the same model with its own attention ({own}) for the output, and with transformers' eager attention on "
            f"{_FEWEST} rows from all over the text for the weights"
        )
        return _Compared(error, rows.error, reference, _FEWEST)

    def _ways(self) -> list[Callable[[], _Compared | None]]:
        if self._length <= _WHOLE or self.twin.plan.sites:
            return []
        if self.twin.implementation == "eager":  # all of it then costs what a plain run costs
            return [self.by_rows, self.by_prefix]
        return [self.by_prefix, self.by_rows] if self.twin.implementation == "sdpa" else [self.by_prefix]

    @property
    def _length(self) -> int:
        return max((side for call in self.recorded.calls for side in call.attention.shape[1:]), default=0)

    @property
    def _largest_layer(self) -> int:
        """Bytes of the weights of the largest layer."""
        calls = (call.attention for call in self.recorded.calls)
        return max((math.prod(call.shape) * call.query.element_size() for call in calls), default=0)

    @property
    def _goes_by_position(self) -> bool:
        """Whether a part of the text can be run by cutting the inputs."""
        return all(tensor.shape == (1, self._length) for tensor in self.inputs.values())

    def _output_error(self, plain: Tensor) -> float:
        ours, found = self.recorded.output, Difference()
        rows = kept_rows(self.real.output, len(ours), plain.device)
        found.add(ours if rows is None else cut(ours[:], rows), cut(plain, rows))
        return found.relative


# What a family's own code may raise when it is given a part of what it expects.
_FOREIGN = (UnsupportedModel, RuntimeError, TypeError, ValueError, LookupError, AttributeError)


def compare(
    recorded: Pass, runner: Runner, inputs: Mapping[str, Tensor], real: Real | None = None, twin: Twin | None = None
) -> Fidelity:
    """Run the model plainly and measure the recorded pass against it.

    Args:
        recorded: the pass with ours.
        runner: runs the model plainly.
        inputs: what was run.
        real: which rows are not padding; all are by default.
        twin: of the runner's model, where there is one already.

    Raises:
        UnsupportedModel: a module didn't hand back weights to compare with.
    """
    started = time.perf_counter()
    bound = max(BOUNDS.get(dtype, 0.0) for dtype in _dtypes(recorded, runner))
    found = _Comparison(recorded, twin or runner.twin(), inputs, real or Real(), bound).make()
    seconds, reference = time.perf_counter() - started, found.reference
    if len(recorded.calls) < len(recorded.modules):
        reference += f"; weights of the {len(recorded.calls)} kept of {len(recorded.modules)} attention calls only"
    fidelity = Fidelity(found.output_error, found.weight_error, bound, reference, seconds, found.rows)
    if fidelity.ok or found.rows is not None or max(found.output_error, found.weight_error) > _STILL_ROUNDING:
        return fidelity
    return _judged_by_exact(fidelity, recorded, runner, inputs, real or Real())


def _judged_by_exact(
    fidelity: Fidelity, recorded: Pass, runner: Runner, inputs: Mapping[str, Tensor], real: Real
) -> Fidelity:
    """The fidelity with what a run in float64 says of both, where float32 is at work and such a run can be made."""
    started, twin = time.perf_counter(), runner.twin()
    if _dtypes(recorded, runner) != {torch.float32}:
        return fidelity
    exact = from_exact(recorded, twin, inputs, real)
    if exact is None:
        return fidelity
    return replace(
        fidelity,
        output_from_exact=exact.output,
        weight_from_exact=exact.weights,
        eager_output_from_exact=exact.eager_output,
        eager_weight_from_exact=exact.eager_weights,
        seconds=fidelity.seconds + time.perf_counter() - started,
    )


def _dtypes(recorded: Pass, runner: Runner) -> set[torch.dtype]:
    """Every precision that was at work: a model may compute in half precision and hand out float32."""
    inside = {call.attention.query.dtype for call in recorded.calls}
    return {recorded.output.dtype, runner.model.dtype, *inside}
