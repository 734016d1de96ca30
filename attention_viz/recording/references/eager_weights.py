"""The weights that a model's own eager attention hands back, heard in a run of its twin and compared as they come."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from torch import Tensor, nn

from attention_viz.errors import UnsupportedModel
from attention_viz.operation.attention import Attention
from attention_viz.operation.cutting import first
from attention_viz.recording.differences import Real, weights_difference
from attention_viz.recording.interception.following import FollowedCall
from attention_viz.recording.interception.proof import OwnWeights
from attention_viz.recording.runner import Pass
from attention_viz.recording.twin import Twin


@dataclass(eq=False)
class EagerWeights:
    """Hears modules return, and compares the weights of each with the call that is next in the record.

    Attributes:
        modules: which module made each call with ours.
        calls: those that are compared, by their place among all calls.
        heard: how many turns modules took that had called ours.
        outside: how many turns other modules took that attend all the same.
        error: how far the weights heard so far are from ours at most.
        latest: the weights heard last, which the modules around the attention hand on.
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
        """Note once what every module of the model is looked up in."""
        self._known = frozenset(self.modules)
        self._kinds = frozenset(type(module) for module in self.modules)
        self._shapes = frozenset(call.shape[1:] for call in self.calls.values() if call.shape[-1] > 1)

    @classmethod
    def of(cls, recorded: Pass, real: Real) -> "EagerWeights":
        """To be compared with a recorded pass over the same text."""
        calls = dict(zip(recorded.numbers, (call.attention for call in recorded.calls), strict=True))
        return cls(recorded.modules, calls, real)

    def hear(self, module: nn.Module, outputs: object) -> None:
        """Compare what one module returned with the call that is next in the record, where it made one."""
        if module in self._known:
            self._compare(module, outputs)
        elif type(module) in self._kinds or self._attends(outputs):
            self.outside += 1

    def check_complete(self) -> None:
        """Refuse a run in which not everything that attends did so through ours."""
        if self.heard != len(self.modules) or self.outside:
            raise UnsupportedModel(
                f"{len(self.modules)} attention calls ran with ours and {self.heard + self.outside} with the model's "
                "own; part of the attention runs outside the interface that can be recorded; needed: all of it inside"
            )

    def _compare(self, module: nn.Module, outputs: object) -> None:
        position, self.heard = self.heard, self.heard + 1
        if position not in self.calls:
            self.latest = self._like_others(outputs)
            return
        call = self.calls[position]
        self.latest = _weights_in(outputs, call.shape)
        if self.modules[position] is not module or self.latest is None:
            raise UnsupportedModel(
                f"{type(module).__name__} hands back no attention weights of shape {call.shape} "
                "to compare with, so what it computes can't be proven; needed: an eager attention that hands them back"
            )
        self.error = max(self.error, weights_difference(call, self.latest[0], self.real.of_call(position)))

    def _attends(self, outputs: object) -> bool:
        """Whether something returned looks like weights: a square a head, whose rows share out 1, and not heard yet."""
        found = self._like_others(outputs)
        if found is None or (self.latest is not None and found.data_ptr() == self.latest.data_ptr()):
            return False
        self.latest = found
        return bool((found >= 0).all()) and 0.5 < float(found.sum(dim=-1).abs().amax()) < 1.01

    def _like_others(self, outputs: object) -> Tensor | None:
        """What could be weights, by the lengths of their axes."""
        candidates = (_weights_in(outputs, (None, *shape)) for shape in self._shapes)
        return next((one for one in candidates if one is not None), None)


def prefix(recorded: Pass, count: int) -> Pass:
    """What a recorded pass computed for the first tokens of its text from those alone; its output stays as it is."""
    calls = [replace(call, attention=first(call.attention, queries=count, keys=count)) for call in recorded.calls]
    return replace(recorded, calls=tuple(calls))


def is_closed_prefix(call: Attention, count: int) -> bool:
    """Whether the first tokens of a text look at nothing but each other."""
    allowed, (queries, keys) = call.allowed, call.shape[-2:]
    if allowed is None or queries != keys or allowed.shape[-1] != keys:
        return False
    rows = allowed if allowed.shape[-2] == 1 else allowed[..., :count, :]
    return not bool(rows[..., count:].any())


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


# Called with the number of a call in the record, and the weights of a run of a twin: (head, query, key).
Take = Callable[[int, Tensor], None]

# Bytes of weights that are kept for a later comparison with a more exact run, at most: 64 MiB.
_KEPT = 2**26


@dataclass(eq=False)
class WeightsRun:
    """Which weights were compared: those of a record, on these inputs.

    Attributes:
        recorded: the record, or a part of it.
        kept: the run's weights by the number of their call, unless they are too many.
        error: how far ours are from them at most; None if the record has none.
    """

    recorded: Pass
    inputs: Mapping[str, Tensor]
    kept: dict[int, Tensor] = field(default_factory=dict[int, Tensor])
    error: float | None = None

    @property
    def bytes(self) -> int:
        """How much memory the weights take."""
        return sum(weights_bytes(call.attention) for call in self.recorded.calls)

    def run(self, twin: Twin, real: Real) -> Tensor:
        """Run the twin, note how far ours are from its weights, and return its output."""
        keep = self._keep if self.bytes <= _KEPT else None
        output, error = run_for_weights(self.recorded, twin, self.inputs, real, keep)
        self.error = error if self.recorded.calls else None
        return output

    def _keep(self, number: int, weights: Tensor) -> None:
        self.kept[number] = weights.clone()


def weights_bytes(call: Attention) -> int:
    """Return how much memory a call's weights take."""
    return math.prod(call.shape) * call.query.element_size()


def run_for_weights(
    recorded: Pass, twin: Twin, inputs: Mapping[str, Tensor], real: Real, take: Take | None = None
) -> tuple[Tensor, float]:
    """Return the output of a run that hands out its weights, and how far these are from ours at most."""
    return (_by_softmaxes if twin.plan.sites else _by_eager)(recorded, twin, inputs, real, take)


def _by_eager(
    recorded: Pass, twin: Twin, inputs: Mapping[str, Tensor], real: Real, take: Take | None
) -> tuple[Tensor, float]:
    theirs = EagerWeights.of(recorded, real)

    def hear(module: nn.Module, outputs: object) -> None:
        number = theirs.heard
        theirs.hear(module, outputs)
        if take is not None and theirs.heard > number and number in theirs.calls and theirs.latest is not None:
            take(number, theirs.latest[0])

    output = twin.run(inputs, "eager", hear)
    theirs.check_complete()
    return output, theirs.error


def _by_softmaxes(
    recorded: Pass, twin: Twin, inputs: Mapping[str, Tensor], real: Real, take: Take | None
) -> tuple[Tensor, float]:
    theirs = OwnWeights(recorded, twin.original, real)
    calls = dict(zip(recorded.numbers, recorded.calls, strict=True))

    def hear(heard: FollowedCall) -> None:
        number = theirs.heard
        theirs.hear(heard)
        if take is not None and number in calls:
            take(number, heard.taken.left.reshape(calls[number].attention.shape))

    output, softmaxes = twin.run_followed(inputs, hear)
    theirs.check_complete(softmaxes)
    return output, theirs.error
