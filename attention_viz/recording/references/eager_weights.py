"""Compares weights with those of eager attention in a run of the twin."""

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from torch import Tensor, nn

from attention_viz.errors import UnsupportedModel
from attention_viz.operation.attention import Attention
from attention_viz.operation.cutting import first
from attention_viz.recording.call_chunks import CallPart
from attention_viz.recording.differences import Real, weights_difference
from attention_viz.recording.interception.following import FollowedCall
from attention_viz.recording.interception.proof import OwnWeights
from attention_viz.recording.references.joined_outputs import JoinedOutputs, check_same_run
from attention_viz.recording.runner import Pass
from attention_viz.recording.sparse.hearing import sparse_turns
from attention_viz.recording.sparse.reading import weights_of
from attention_viz.recording.sparse.turn import Turn
from attention_viz.recording.twin import Twin

# Called with a call in the record, or its chunk, and the weights of a run of a twin: (head, query, key).
Take = Callable[[CallPart, Tensor], None]

# Bytes of weights that are kept for a later comparison with a more exact run, at most: 64 MiB.
_KEPT = 2**26


@dataclass(eq=False)
class EagerWeights:
    """Compares each module's returned weights with the record's next call.

    Attributes:
        heard: turns of modules that called our function.
        outside: turns of other modules that attend.
        latest: the last weights, which surrounding modules return again.
    """

    modules: Sequence[nn.Module]
    calls: Mapping[int, Attention]
    real: Real
    heard: int = 0
    outside: int = 0
    error: float = 0.0
    latest: Tensor | None = None
    _known: frozenset[nn.Module] = field(init=False)
    _kinds: frozenset[type] = field(init=False)
    _shapes: frozenset[tuple[int, ...]] = field(init=False)

    def __post_init__(self) -> None:
        """Build the sets for lookups once."""
        self._known = frozenset(self.modules)
        self._kinds = frozenset(type(module) for module in self.modules)
        self._shapes = frozenset(call.shape[1:] for call in self.calls.values() if call.shape[-1] > 1)

    @classmethod
    def of(cls, recorded: Pass, real: Real) -> "EagerWeights":
        """Compare with a recorded pass over the same text."""
        calls = dict(zip(recorded.numbers, (call.attention for call in recorded.calls), strict=True))
        return cls(recorded.modules, calls, real)

    def hear(self, module: nn.Module, outputs: object) -> None:
        """Compare a module's result with the next recorded call."""
        if module in self._known:
            self._compare(module, outputs)
        elif type(module) in self._kinds or self._attends(outputs):
            self.outside += 1

    def check_complete(self) -> None:
        """Refuse a run with attention outside ours."""
        if self.heard != len(self.modules) or self.outside:
            raise UnsupportedModel(
                f"{len(self.modules)} attention calls ran with ours, but {self.heard + self.outside} with the model's "
                "own; use a model whose attention all goes through transformers' attention interface"
            )

    def _compare(self, module: nn.Module, outputs: object) -> None:
        position, self.heard = self.heard, self.heard + 1
        if position not in self.calls:
            self.latest = self._like_others(outputs)
            return
        call = self.calls[position]
        self.latest = _weights_in(outputs, call.shape)
        if self.modules[position] is not module or self.latest is None:
            raise _NoWeightsError(
                f"can't verify {type(module).__name__}, which returns no attention weights of shape {call.shape}; use "
                "an eager attention that returns them"
            )
        self.error = max(self.error, weights_difference(call, self.latest[0], self.real.of_call(position)))

    def _attends(self, outputs: object) -> bool:
        """Return whether a result has new weights: nonnegative rows with a sum near 1."""
        found = self._like_others(outputs)
        if found is None or (self.latest is not None and found.data_ptr() == self.latest.data_ptr()):
            return False
        self.latest = found
        return bool((found >= 0).all()) and 0.5 < float(found.sum(dim=-1).abs().amax()) < 1.01

    def _like_others(self, outputs: object) -> Tensor | None:
        """Return a tensor with the shape of recorded weights."""
        candidates = (_weights_in(outputs, (None, *shape)) for shape in self._shapes)
        return next((one for one in candidates if one is not None), None)


def prefix(recorded: Pass, count: int) -> Pass:
    """Cut a pass's calls to the first tokens; its output stays whole."""
    calls = [replace(call, attention=first(call.attention, queries=count, keys=count)) for call in recorded.calls]
    return replace(recorded, calls=tuple(calls))


def is_closed_prefix(call: Attention, count: int) -> bool:
    """Return whether the first tokens attend only to each other."""
    allowed, (queries, keys) = call.allowed, call.shape[-2:]
    if allowed is None or queries != keys or allowed.shape[-1] != keys:
        return False
    rows = allowed if allowed.shape[-2] == 1 else allowed[..., :count, :]
    return not bool(rows[..., count:].any())


def _weights_in(outputs: object, shape: Sequence[int | None]) -> Tensor | None:
    """Return the last tensor of a shape among a module's results; None matches any size."""
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


@dataclass(eq=False)
class WeightsRun:
    """A run for weights; `kept` has them unless they are too many, `error` is None without any."""

    recorded: Pass
    inputs: Mapping[str, Tensor]
    kept: dict[CallPart, Tensor] = field(default_factory=dict[CallPart, Tensor])
    error: float | None = None

    @property
    def bytes(self) -> int:
        """The weights' memory."""
        return sum(weights_bytes(call.attention) for call in self.recorded.calls)

    def run(self, twin: Twin, real: Real) -> Tensor:
        """Run the twin, set `error`, and return the output."""
        keep = self._keep if self.bytes <= _KEPT else None
        output, error = run_for_weights(self.recorded, twin, self.inputs, real, keep)
        self.error = error if self.recorded.calls else None
        return output

    def _keep(self, part: CallPart, weights: Tensor) -> None:
        self.kept[part] = weights.clone()


def weights_bytes(call: Attention) -> int:
    """Return the memory of a call's weights."""
    return math.prod(call.shape) * call.query.element_size()


def run_for_weights(
    recorded: Pass, twin: Twin, inputs: Mapping[str, Tensor], real: Real, take: Take | None = None
) -> tuple[Tensor, float]:
    """Return the output of a run that exposes its weights, and our largest error.

    Modules return weights; those that don't, or that attend in chunks or rows, are followed from their products through
    their softmaxes to the values.
    """
    if not twin.plan.is_own and not recorded.in_parts:
        with contextlib.suppress(_NoWeightsError):
            return _by_eager(recorded, twin, inputs, real, take)
    return _by_softmaxes(recorded, twin, inputs, real, take)


class _NoWeightsError(UnsupportedModel):
    """Raised if a module doesn't return its weights."""


def _by_eager(
    recorded: Pass, twin: Twin, inputs: Mapping[str, Tensor], real: Real, take: Take | None
) -> tuple[Tensor, float]:
    theirs = EagerWeights.of(recorded, real)

    def hear(module: nn.Module, outputs: object) -> None:
        number = theirs.heard
        theirs.hear(module, outputs)
        if take is not None and theirs.heard > number and number in theirs.calls and theirs.latest is not None:
            take(CallPart(number), theirs.latest[0])

    output = twin.run(inputs, "eager", hear)
    theirs.check_complete()
    return output, theirs.error


def _by_softmaxes(
    recorded: Pass, twin: Twin, inputs: Mapping[str, Tensor], real: Real, take: Take | None
) -> tuple[Tensor, float]:
    calls_interface = not twin.plan.sites
    theirs = OwnWeights(recorded, twin.original, real, calls_interface)
    behind = JoinedOutputs(recorded, twin.original, windows=False)

    def hear(heard: FollowedCall) -> None:
        part = theirs.hear(heard)
        behind.hear(part)
        if take is not None and theirs.latest is not None:
            take(part, theirs.latest)

    def read(turn: Turn, count: int) -> None:
        part = theirs.hear_read(turn.module, lambda heads: weights_of(turn, heads, count))
        if take is not None and theirs.latest is not None:
            take(part, theirs.latest)

    with behind.listening(), sparse_turns(twin.model, twin.plan.sparse, read):
        output, softmaxes = twin.run_followed(inputs, hear)
    theirs.check_complete(softmaxes)
    if calls_interface:
        check_same_run(twin, inputs, output)
    return output, max(theirs.error, behind.error)
