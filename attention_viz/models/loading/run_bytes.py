"""Count the bytes that tracing a text takes, by a run on torch's "meta" device, where tensors have no numbers."""

import weakref
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from attention_viz.inputs.cost import LONG
from attention_viz.models.loading.held_bytes import Passing
from attention_viz.operation.attention import Attention, fusible
from attention_viz.operation.causal_mask import CausalMask
from attention_viz.operation.shapes import shared_heads
from attention_viz.recording.hooks import hooked
from attention_viz.recording.outputs.readout import ONLY_LAST, body_of
from attention_viz.recording.recorder import BLOCKED_BELOW, Call, Recorder, Split, recording
from attention_viz.recording.runner import Runner
from attention_viz.sources.bounded.counting import Bounds, TooMuch

# A run on long texts takes as many operations as one on short texts.
_STEPS = Bounds().steps
_NOTHING: Mapping[nn.Module, Passing] = {}


@dataclass(frozen=True)
class RunBytes:
    """Bytes at one time.

    Attributes:
        most: the most bytes; a lower bound if not counted.
        counted: whether the whole run was counted.
    """

    most: int
    counted: bool


def run_bytes(
    model: nn.Module,
    tokens: int,
    dtype: torch.dtype,
    passing: Mapping[nn.Module, Passing] = _NOTHING,
    layers: int | None = None,
    calls: int | None = None,
) -> RunBytes:
    """Return the most bytes beside the weights at one time.

    The run isn't counted if the model needs numbers to run, if other code than the attention interface mixes tokens,
    or if its masks may add biases: then recording takes tensors that this run doesn't make.

    Args:
        model: on the meta device.
        passing: what modules take while they run.
        layers: how many layers' calls are kept; None for all.
        calls: the attention calls of a run; None if unknown.
    """
    runner = Runner.of(cast(Any, model.eval()))
    named = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    buffers = {id(one) for one in model.buffers()}
    weights = {
        key: one.to("meta", one.dtype if id(one) in buffers or not one.is_floating_point() else dtype)
        for key, one in named.items()
    }
    living = _Living(weights.values())
    recorder = _SizeRecorder(most=layers if tokens < LONG else 0)
    try:
        with torch.no_grad(), _ours(runner, recorder), _counted(passing, tokens, living), living:
            returned = functional_call(model, weights, (), _inputs(runner, tokens) | runner.settings)
    except Exception:  # what its code looks up in numbers differs
        return RunBytes(living.most, counted=False)
    del returned
    if recorder.biased:  # another split of its masks may take less
        return RunBytes(0, counted=False)
    return RunBytes(living.most, counted=not runner.mixing and recorder.heard == calls)


def _inputs(runner: Runner, tokens: int) -> dict[str, Any]:
    ids = torch.empty(1, tokens, dtype=torch.long, device="meta")
    found: dict[str, Any] = {"input_ids": ids}
    if runner.answers:
        return found | {"decoder_input_ids": ids}
    late = tokens >= LONG and ONLY_LAST.keys() <= runner.named and body_of(runner.model) is not None
    return found | ONLY_LAST if late else found


@contextmanager
def _ours(runner: Runner, recorder: Recorder) -> Generator[None]:
    token = recording.set(recorder)
    try:
        with runner.switch.ours():
            yield
    finally:
        recording.reset(token)


@contextmanager
def _counted(passing: Mapping[nn.Module, Passing], tokens: int, living: "_Living") -> Generator[None]:
    """Count what modules take while they run."""

    def begin(module: nn.Module, *_: object) -> None:
        one = passing[module]
        living.add(first := one.first + tokens * one.per_token)
        living.add(one.then - first)

    def end(module: nn.Module, *_: object) -> None:
        living.add(-passing[module].then)

    with hooked(list(passing), end, begin):
        yield


class _Living(TorchDispatchMode):
    """Counts the bytes of the tensors that exist, while entered."""

    def __init__(self, weights: Iterable[Tensor]) -> None:
        """Leave out a model's weights."""
        super().__init__()
        self.most = self._now = self._steps = 0
        self._seen = dict[int, object]()
        # Of a mask that hides nothing, `all` is true and `any` of its opposite is false.
        self._any = set[int]()
        for weight in weights:
            self._see(weight.untyped_storage())

    def add(self, size: int) -> None:
        """Count bytes that appear, or disappear if negative."""
        self._now += size
        self.most = max(self.most, self._now)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run one operation and count its new tensors."""
        self._steps += 1
        if self._steps > _STEPS:
            raise TooMuch(f"more than {_STEPS:,} steps")
        if func is torch.ops.aten._local_scalar_dense.default and args[0].dtype == torch.bool:
            return id(args[0].untyped_storage()) not in self._any
        made = _made(func, args, kwargs or {})
        if func.overloadpacket is torch.ops.aten.any:
            self._any.add(id(made.untyped_storage()))
        for leaf in tree_leaves(made):
            if isinstance(leaf, Tensor) and id(storage := leaf.untyped_storage()) not in self._seen:
                self._see(storage)
                self.add(storage.nbytes())
                weakref.finalize(storage, self.add, -storage.nbytes())
        return made

    def _see(self, storage: torch.UntypedStorage) -> None:
        place = id(storage)
        self._seen[place] = weakref.ref(storage, lambda _: self._forget(place))

    def _forget(self, place: int) -> None:
        self._seen.pop(place, None)
        self._any.discard(place)


@dataclass(eq=False)
class _SizeRecorder(Recorder):
    """Takes a recorder's part in a run without numbers: keeps the same tensors, and returns outputs of their shape."""

    most: int | None = None
    heard: int = 0
    biased: bool = False
    _heard: list[Call] = field(default_factory=list[Call])
    _masks: dict[object, tuple[Tensor, Split]] = field(default_factory=dict[object, tuple[Tensor, Split]])
    _triangles: dict[int, Tensor] = field(default_factory=dict[int, Tensor])

    def split(self, mask: Tensor | None) -> Split:
        """Split a mask that the interface made into cells; without numbers, another may be a bias."""
        if mask is None:
            return None, None
        if isinstance(mask, CausalMask):
            return mask.as_allowed, None
        if _of(mask) not in self._masks:
            if mask.dtype == torch.bool:
                self.learn(mask, (mask, None))
            elif any(one.untyped_storage() is mask.untyped_storage() for one, _ in self._masks.values()):
                self.learn(mask, (mask > BLOCKED_BELOW, None))
            else:
                self.biased = True
                self.learn(mask, (None, None))
        return self._masks[_of(mask)][1]

    def needed(self, allowed: Tensor) -> Tensor | None:
        """Return the mask."""
        return allowed

    def learn(self, mask: Tensor, split: Split, *, closed: bool = False) -> None:
        """Remember a mask's split."""
        self._masks[_of(mask)] = mask, split
        if closed and split[0] is not None:
            self._triangles[id(split[0])] = split[0]

    def hear(self, call: Call) -> Tensor:
        """Return an output without numbers; keep the call, or only as the last one."""
        self.heard += 1
        self.biased = self.biased or call.attention.bias is not None
        kept = self._heard if self.most is None else self._heard[: self.most]
        self._heard = [*kept, call]
        attention = call.attention
        if attention.query.ndim != 4 or not fusible(attention):
            return attention.output
        return self._fused(attention)

    def _fused(self, attention: Attention) -> Tensor:
        query, key, value, allowed = attention.query, attention.key, attention.value, attention.allowed
        closed = attention.bias is None and (isinstance(allowed, CausalMask) or id(allowed) in self._triangles)
        added = attention.allowed if attention.bias is None else attention.bias
        mask: Tensor | None = None
        if added is not None and not closed:
            key, value = shared_heads(key, query), shared_heads(value, query)
            # The kernel makes numbers of a mask's cells.
            mask = torch.empty(added.shape, dtype=query.dtype, device="meta")
        output = query.new_empty(*query.shape[:-1], value.shape[-1])
        del key, mask
        return output


def _made(func: Any, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Run an operation; experts' products have a rule for shapes in bfloat16 alone."""
    if func is not torch.ops.aten._grouped_mm.default:
        return func(*args, **named)
    one, other, *rest = args
    made = func(one.to(torch.bfloat16), other.to(torch.bfloat16), *rest, **named)
    return made if one.dtype == torch.bfloat16 else made.to(one.dtype)


def _of(mask: Tensor) -> object:
    return id(mask.untyped_storage()), mask.shape, mask.stride(), mask.dtype
