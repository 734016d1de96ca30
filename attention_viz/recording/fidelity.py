"""Measures how far a recorded pass is from the model's own runs.

The whole output is compared with the model's own run; no other run overrules it. Weights are compared with eager
attention: all in a short text. In a longer one that takes too much time and memory, so a causal model runs its first
tokens alone, and others compute sampled rows by the family's eager function.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from attention_viz.errors import UnsupportedModel
from attention_viz.operation.kernel import BOUNDS
from attention_viz.recording.differences import Real
from attention_viz.recording.mixers.wkv import OwnChannels, kernels_compared, of_channels
from attention_viz.recording.references.eager_rows import BY_ROWS, EagerRows
from attention_viz.recording.references.eager_weights import WeightsRun, is_closed_prefix, prefix, weights_bytes
from attention_viz.recording.references.exact import from_exact
from attention_viz.recording.references.own_output import OwnOutput
from attention_viz.recording.runner import Pass, Runner
from attention_viz.recording.twin import Twin
from attention_viz.sources.huggingface import ALL_ATTENTION_FUNCTIONS
from attention_viz.trace.trace import Fidelity

# Up to so many tokens all weights are compared.
MOST_WHOLE = 128
# An error beyond this is no rounding in float32, whatever a run in float64 would say.
_STILL_ROUNDING = 1e-3
# Of longer texts, how many rows: of a decoder an eighth of the text, between these two; of others the fewest.
FEWEST_ROWS, _MOST = 128, 512
# Where all else fails, weights of a layer that take up to so many bytes are compared all the same: 2 GiB. A model that
# is eager by itself computes those of up to 256 MiB at once.
_AFFORDABLE, BYTES_AT_ONCE = 2**31, 2**28
# What a family's own code may raise when it is given a part of what it expects.
_FOREIGN = (UnsupportedModel, RuntimeError, TypeError, ValueError, LookupError, AttributeError)


@dataclass(frozen=True)
class _Compared:
    """One comparison's result; `rows` per layer, None for all."""

    output_error: float
    weight_error: float | None
    reference: str
    weights: WeightsRun
    rows: int | None = None
    eager_from_own: float | None = None


@dataclass(frozen=True, eq=False)
class _TwinCheck:
    """A recorded pass, and its model's twin."""

    recorded: Pass
    twin: Twin
    inputs: Mapping[str, Tensor]
    real: Real
    bound: float
    own: OwnOutput

    def make(self) -> _Compared:
        """Compare as much as one or two plain runs' time allows."""
        if not self.recorded.modules:
            return self._compared(None, self.own.words, None)
        if all(map(of_channels, self.recorded.modules)):
            return self.by_kernel()
        if not self.twin.is_eager:
            self.own.measure()
        for way in self._ways():
            try:
                found = way()
            except _FOREIGN:
                continue
            if found is None:
                continue
            # Weights that a part finds wrong only the whole may overrule: a family may do otherwise with a part.
            wrong = found.weight_error is not None and found.weight_error > self.bound
            return self.whole() if wrong and self._largest_layer <= _AFFORDABLE else found
        return self.whole()

    def whole(self) -> _Compared:
        """Compare all weights, by eager attention or the model's own softmaxes."""
        weights = WeightsRun(self.recorded, self.inputs)
        output = weights.run(self.twin, self.real)
        if self.twin.is_eager:
            self.own.take(output)
        softmaxes, words = "by the outputs of its own softmaxes", "with transformers' eager attention for the weights"
        if self.twin.plan.is_own:
            reference = f"{self.own.words}, {softmaxes}"
        else:
            reference = self.own.words if self.twin.is_eager else f"{self.own.words} for the output, and {words}"
        off = None if self.twin.is_eager or self.own.cannot else self.own.off(output)
        return self._compared(weights.error, reference, weights, eager_from_own=off)

    def by_kernel(self) -> _Compared:
        """Compare the first tokens' weights with those of RWKV-4's own kernel."""
        calls = dict(zip(self.recorded.numbers, self.recorded.calls, strict=True))
        kept = [calls[number].attention if number in calls else None for number in range(len(self.recorded.modules))]
        own = OwnChannels(kept, MOST_WHOLE)
        with kernels_compared(own):
            self.own.take(self.twin.run(self.inputs))
        if own.heard != len(kept):
            raise UnsupportedModel(f"its kernel ran {own.heard} times, but {len(kept)} times when recorded")
        count = None if self._length <= MOST_WHOLE else MOST_WHOLE
        some = "" if count is None else f", on the first {count} tokens,"
        return self._compared(own.error, f"{self.own.words}, and its own kernel{some} for the weights", None, count)

    def by_prefix(self) -> _Compared | None:
        """Compare the first tokens' weights; None if those attend to others."""
        count = min(_MOST, max(FEWEST_ROWS, self._length // 8))
        closed = all(is_closed_prefix(call.attention, count) for call in self.recorded.calls)
        if not closed or not self.real.everywhere or not self._goes_by_position:
            return None
        weights = WeightsRun(
            prefix(self.recorded, count), {name: tensor[:, :count] for name, tensor in self.inputs.items()}
        )
        _ = weights.run(self.twin, self.real)
        reference = (
            f"{self.own.words} for the output, and with transformers' eager attention on the first {count} tokens, "
            "which see none of the others, for the weights"
        )
        return self._compared(weights.error, reference, weights, count)

    def by_rows(self) -> _Compared | None:
        """Compare some rows by the family's eager function; all for an eager model."""
        if self.twin.is_eager and "eager" in ALL_ATTENTION_FUNCTIONS:  # somebody registered another
            return None
        count = None if self.twin.is_eager else FEWEST_ROWS
        rows = EagerRows.of(self.recorded, self.twin.original, count, self.real)
        with rows.listening():
            plain = self.twin.run(self.inputs, BY_ROWS)
        if not rows.complete:
            return None
        if self.twin.is_eager:
            self.own.take(plain)
        words = "for the output, and with transformers' eager attention on"
        reference = f"{self.own.words} {words} {count} rows from all over the text for the weights"
        error = max(rows.error, rows.behind.error)
        return self._compared(error, self.own.words if count is None else reference, None, count)

    def _compared(
        self,
        error: float | None,
        reference: str,
        weights: WeightsRun | None,
        rows: int | None = None,
        eager_from_own: float | None = None,
    ) -> _Compared:
        weights = weights or WeightsRun(self.recorded, self.inputs)
        return _Compared(self.own.measure(), error, reference, weights, rows, eager_from_own)

    def _ways(self) -> list[Callable[[], _Compared | None]]:
        if self._length <= MOST_WHOLE or self.twin.plan.is_own:
            return []
        if not self.twin.is_eager:
            return [self.by_prefix, self.by_rows]
        # All of it then costs what a plain run costs.
        return [] if self._largest_layer <= BYTES_AT_ONCE else [self.by_rows, self.by_prefix]

    @property
    def _length(self) -> int:
        return max((side for call in self.recorded.calls for side in call.attention.shape[1:]), default=0)

    @property
    def _largest_layer(self) -> int:
        return max((weights_bytes(call.attention) for call in self.recorded.calls), default=0)

    @property
    def _goes_by_position(self) -> bool:
        return all(tensor.shape == (1, self._length) for tensor in self.inputs.values())


def compare(
    recorded: Pass,
    runner: Runner,
    inputs: Mapping[str, Tensor],
    real: Real | None = None,
    twin: Twin | None = None,
    own: Tensor | None = None,
) -> Fidelity:
    """Run the model plainly and measure the recorded pass against it."""
    started, real, twin = time.perf_counter(), real or Real(), twin or runner.twin()
    kinds = _dtypes(recorded, runner)
    bound = max(BOUNDS.get(dtype, 0.0) for dtype in kinds)
    beside = OwnOutput(recorded, runner, twin, inputs, real, own)
    found = _TwinCheck(recorded, twin, inputs, real, bound, beside).make()
    reference = found.reference
    if len(recorded.calls) < len(recorded.modules):
        reference += f"; weights of the {len(recorded.calls)} kept of {len(recorded.modules)} attention calls only"
    fidelity = Fidelity(found.output_error, found.weight_error, bound, reference, rows=found.rows)
    if recorded.mixers:
        words = "and each layer without a softmax with the output of its own kernel"
        fidelity = replace(fidelity, reference=f"{reference}, {words}").at_least(0.0, _mixers_error(recorded))
    if not fidelity.ok:
        fidelity = replace(fidelity, eager_from_own=found.eager_from_own)
    if not fidelity.ok and not any(map(of_channels, recorded.modules)) and beside.is_copied(bound):
        fidelity = _judged_by_exact(fidelity, beside, found.weights, kinds, real)
    return replace(fidelity, seconds=time.perf_counter() - started)


def _mixers_error(recorded: Pass) -> float:
    """Return the largest error of a layer without a softmax; a NaN counts as a miss."""
    errors = [call.error for call in recorded.mixers]
    return math.inf if any(map(math.isnan, errors)) else max(errors)


def _judged_by_exact(
    fidelity: Fidelity, own: OwnOutput, weights: WeightsRun, kinds: set[torch.dtype], real: Real
) -> Fidelity:
    """Add a more exact run's errors, if rounding could explain the difference."""
    far = fidelity.largest_error
    single = kinds == {torch.float32}
    if far is None or not math.isfinite(far) or (single and far > _STILL_ROUNDING) or torch.float64 in kinds:
        return fidelity
    exact = from_exact(own, weights, torch.float64 if single else torch.float32, real)
    if exact is None:
        return fidelity
    return replace(
        fidelity,
        output_from_exact=exact.output,
        weight_from_exact=exact.weights,
        eager_output_from_exact=exact.own_output,
        eager_weight_from_exact=exact.own_weights,
    )


def _dtypes(recorded: Pass, runner: Runner) -> set[torch.dtype]:
    """Return every precision: a model may compute in half and output float32."""
    inside = {call.attention.query.dtype for call in recorded.calls}
    return {recorded.output.dtype, runner.model.dtype, *inside}
