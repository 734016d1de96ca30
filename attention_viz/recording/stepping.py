"""Runs a decoder token by token with a KV cache, and checks that this equals a whole run.

Most decoders cache just their attention's keys and values, positions included; a test on a few tokens decides.
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from attention_viz.edits.eviction import Evict
from attention_viz.edits.kinds.masks import Allow
from attention_viz.errors import AttentionVizError, UnsupportedModel
from attention_viz.inputs.module_tree import first_tensor
from attention_viz.operation.attention import Attention
from attention_viz.operation.kernel import BOUNDS
from attention_viz.operation.terms import Term, map_terms, same_terms
from attention_viz.recording.differences import Difference, Real
from attention_viz.recording.fidelity import compare
from attention_viz.recording.layout.probed_inputs import probe_ids
from attention_viz.recording.probe import Anatomy
from attention_viz.recording.recorder import Call
from attention_viz.recording.references.eager_weights import EagerWeights, prefix
from attention_viz.recording.references.own_output import builtin, run_itself
from attention_viz.recording.runner import Pass, Runner, alike
from attention_viz.recording.twin import Twin
from attention_viz.trace.memory import LateOutput
from attention_viz.trace.once import once
from attention_viz.trace.provenance import Fidelity

if TYPE_CHECKING:
    from transformers.cache_utils import DynamicCache

# The terms that get longer with every step.
_LONGER = ("query", "key", "value", "allowed")
# Of the tokens that are run both ways, how many are read at once; and what the cache keeps of them.
_READ, _EVICT = 5, Evict(first=2, last=2)
# A step that is another operation is off by a hundredth and more; how exact the right one is, a trace says itself.
_ROOM = 10


class Grown:
    """A decoder's record of a text and each token after it.

    Buffers are allocated at once; results are views that later steps don't change.
    """

    def __init__(self, start: Pass, room: int, *, each_head: bool = False) -> None:
        """Begin with a text's record."""
        self._start, self._each_head = start, each_head
        self.count = len(start.output)
        self._size = self.count + room
        # A long text's output stays as it is, computed when read.
        self._late = start.output if isinstance(start.output, LateOutput) else None
        self._output = self._longer(start.output[:], 0) if self._late is None else start.output[-1:].repeat(room, 1)
        self._terms = [
            {name: self._longer(getattr(call.attention, name), 1) for name in _LONGER[:3]} for call in start.calls
        ]
        for call in start.calls:
            if call.attention.bias is not None or call.attention.shape[1:] != (self.count, self.count):
                raise UnsupportedModel(f"{type(call.module).__name__} has a term that doesn't grow by rows")
        # By what tells apart the masks of layers, in the text and in the step: layers that share one go on sharing it.
        self._masks: dict[object, Tensor] = {}
        self._mask_of: list[Tensor] = []

    def add(self, step: Pass, kept: Sequence[int]) -> None:
        """Add one more token's record."""
        if len(step.calls) != len(self._start.calls):
            raise UnsupportedModel(
                f"a step made {len(step.calls)} attention calls, but the text made {len(self._start.calls)}"
            )
        columns = torch.tensor([*kept, self.count], device=self._output.device)
        for number, (first, call) in enumerate(zip(self._start.calls, step.calls, strict=True)):
            self._check(first, call, len(columns))
            for name, axis_end in (("query", 0), ("key", -1), ("value", -1)):
                self._terms[number][name][:, self.count] = getattr(call.attention, name)[:, axis_end]
        if not self._mask_of:
            self._mask_of = [
                self._mask(first.attention.allowed, call.attention.allowed)
                for first, call in zip(self._start.calls, step.calls, strict=True)
            ]
        for mask, call in zip(self._mask_of, step.calls, strict=True):
            row = call.attention.allowed
            mask[:, self.count, columns] = True if row is None else row[..., 0, :].to(mask.device)
        self._output[self.count - (0 if self._late is None else len(self._late))] = step.output[-1]
        self.count += 1

    @property
    def record(self) -> Pass:
        """Everything so far as one record."""
        calls = tuple(replace(call, attention=self._attention(at)) for at, call in enumerate(self._start.calls))
        return Pass(self._output_so_far, calls, self._start.modules, self._start.numbers)

    @property
    def _output_so_far(self) -> Tensor | LateOutput:
        first, more = self._late, self._output
        if first is None:
            return more[: self.count]
        known = len(first)

        def make(start: int, stop: int) -> Tensor:
            parts = [first[start : min(stop, known)]] if start < known else []
            parts += [more[max(start, known) - known : stop - known]] if stop > known else []
            return torch.cat(parts)

        return LateOutput((self.count, first.shape[1]), first.dtype, make, held=first.held)

    @property
    def allowed(self) -> Tensor:
        """The first layer's mask."""
        return self._mask_of[0][0, : self.count, : self.count]

    def cached(self, kept: Sequence[int] | None = None) -> Mapping[int, tuple[Tensor, Tensor]]:
        """Return keys and values by cache layer, (1, head, key, width) each."""
        found: dict[int, tuple[Tensor, Tensor]] = {}
        for call, terms in zip(self._start.calls, self._terms, strict=True):
            # A long text's record is in memory, whatever device its layer is on.
            first = first_tensor(call.module)
            device = terms["key"].device if first is None else first.device
            pair = [terms[name][None, :, : self.count].to(device) for name in ("key", "value")]
            if kept is not None:
                pair = [one[:, :, list(kept)] for one in pair]
            found[cache_number(call)] = (pair[0], pair[1])
        return found

    def _attention(self, number: int) -> Attention:
        views: dict[str, Tensor] = {name: one[:, : self.count] for name, one in self._terms[number].items()}
        if self._mask_of:
            mask = self._mask_of[number][:, : self.count, : self.count]
            views["allowed"] = mask.expand(len(views["query"]), -1, -1) if self._each_head else mask
        return replace(self._start.calls[number].attention, **cast("Any", views))

    def _mask(self, first: Tensor | None, row: Tensor | None) -> Tensor:
        key = (_memory(first), _memory(row))
        if key not in self._masks:
            start = torch.ones(1, 1, 1, dtype=torch.bool) if first is None else first
            start = start[:1] if self._each_head else start  # an eviction is the same in all of them
            start = start.expand(-1, self.count, self.count)
            mask = start.new_zeros(len(start), self._size, self._size, device=self._output.device)
            mask[:, : self.count, : self.count] = start
            self._masks[key] = mask
        return self._masks[key]

    def _longer(self, tensor: Tensor, axis: int) -> Tensor:
        shape = list(tensor.shape)
        shape[axis] = self._size
        buffer = tensor.new_zeros(shape)
        buffer.narrow(axis, 0, self.count).copy_(tensor)
        return buffer

    def _check(self, first: Call, call: Call, keys: int) -> None:
        same = same_terms(first.attention, call.attention, _equal, *_LONGER)
        heads = first.attention.shape[0]
        if first.module is not call.module or not same or call.attention.shape != (heads, 1, keys):
            raise UnsupportedModel(
                f"{type(call.module).__name__} attends over {call.attention.shape} (head, query, key) in a step with "
                f"{keys} keys, or with other terms than in the text"
            )


def cache_number(call: Call) -> int:
    """Return a call's layer in a KV cache."""
    number = getattr(call.module, "layer_idx", None)
    if not isinstance(number, int):
        raise UnsupportedModel(
            f"{type(call.module).__name__} has no layer_idx, so its layer in the KV cache is unknown"
        )
    return number


def _equal(one: Tensor, other: Tensor) -> bool:
    return torch.equal(one, other.to(one.device))


def _memory(tensor: Tensor | None) -> object:
    return None if tensor is None else (tensor.data_ptr(), tensor.shape, tensor.stride())


@dataclass(frozen=True, eq=False)
class Stepping:
    """Runs one decoder token by token; `limit` is its most tokens, None if unknown."""

    runner: Runner
    anatomy: Anatomy
    limit: int | None

    @once
    def exact(self) -> bool:
        """Whether steps equal a run of the whole text."""
        return self._same(None)

    @once
    def evicts(self) -> bool:
        """Whether steps without evicted keys equal a whole run that blocks them.

        A model that drops keys itself counts positions in its cache, where they'd be wrong.
        """
        return self.exact and not _drops_keys(self.runner.model.config) and self._same(_EVICT)

    def begin(self, start: Pass, room: int, evict: Evict | None) -> "Steps":
        """Continue from a record."""
        return Steps(self.runner, Grown(start, room, each_head=evict is not None), evict)

    def _same(self, evict: Evict | None) -> bool:
        try:
            ids = probe_ids(self.runner.model, self.limit)
            whole = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
            start = self.runner.inputs({name: tensor[:, :_READ] for name, tensor in whole.items()})
            steps = self.begin(self.runner.record(start), ids.shape[1] - _READ, evict)
            for token in ids[0, _READ:].tolist():
                steps.read(token)
            edits = (Allow(steps.grown.allowed),) if evict else ()
            there = self.runner.record(self.runner.inputs(whole), edits, self.anatomy.places)
            return apart(steps.grown.record, there) <= _ROOM * BOUNDS.get(self.runner.model.dtype, 0.0)
        except (AttentionVizError, RuntimeError, TypeError, ValueError, LookupError, AttributeError):
            # What a family's own code may raise when it is handed a cache that isn't its own.
            return False


class Steps:
    """One text that a decoder continues."""

    def __init__(self, runner: Runner, grown: Grown, evict: Evict | None) -> None:
        """Continue from a record."""
        self.grown = grown
        self._runner, self._evict = runner, evict
        self._cache = None if evict else cache_of(grown.cached())

    def read(self, token: int) -> None:
        """Run one more token."""
        count = self.grown.count
        kept = range(count) if self._evict is None else self._evict.kept(count)
        cache = self._cache or cache_of(self.grown.cached(kept))
        self.grown.add(self._runner.record_next(token, count, len(kept), cache), kept)


def apart(one: Pass, other: Pass) -> float:
    """Return outputs' relative difference; infinity if calls' inputs differ."""
    pairs = zip(one.calls, other.calls, strict=True)
    if not all(mine.module is theirs.module and alike(mine.attention, theirs.attention) for mine, theirs in pairs):
        return math.inf
    found = Difference()
    # The rows of a long text's output are made of what the calls gave, which was compared.
    rows = slice(-1, None) if isinstance(one.output, LateOutput) else slice(None)
    found.add(one.output[rows], other.output[rows])
    return found.relative


def cache_of(layers: Mapping[int, tuple[Tensor, Tensor]]) -> "DynamicCache":
    """Return a KV cache of these layers that never drops keys."""
    from transformers.cache_utils import DynamicCache

    cache = DynamicCache()
    for number in sorted(layers):
        cache.update(*layers[number], number)
    return cache


def _drops_keys(config: object) -> bool:
    """Return whether a model drops distant keys itself."""
    text = cast("Any", config).get_text_config()
    kinds = set(getattr(text, "layer_types", None) or ["full_attention"])
    return getattr(text, "sliding_window", None) is not None or kinds != {"full_attention"}


def compare_steps(
    recorded: Pass, runner: Runner, ids: Tensor, typed: int, kept: Callable[[int], Sequence[int]]
) -> Fidelity:
    """Compare the first `typed` tokens with the model's own run, and each later step from the same KV cache."""
    start = replace(prefix(recorded, typed), output=recorded.output[:typed])
    text = {"input_ids": ids[:, :typed], "attention_mask": torch.ones_like(ids[:, :typed])}
    found = compare(start, runner, runner.inputs(text))
    twin, output, weights, left = runner.twin(), Difference(), 0.0, 0.0
    foreign = not all(map(builtin, twin.implementations(recorded.modules)))

    def step(at: int, keys: Sequence[int]) -> tuple[dict[str, Any], "DynamicCache"]:
        """Return a step's inputs and KV cache, which a run extends."""
        cache = cache_of({cache_number(call): _pair(call, keys) for call in recorded.calls})
        return runner.step_inputs(int(ids[0, at]), at, len(keys), cache), cache

    def stepped(itself: Twin, at: int, keys: Sequence[int]) -> tuple[Tensor, "DynamicCache"]:
        """Return a repeatable step's output and the KV cache after it."""
        inputs, cache = step(at, keys)
        return itself.run_as_turned(inputs), cache

    for at in range(typed, ids.shape[1]):
        keys = list(kept(at))
        eager = EagerWeights.of(_step(recorded, at, [*keys, at]), Real())
        inputs, cache = step(at, keys)
        own = twin.run(inputs, "eager", eager.hear)
        if foreign:
            own, cache = run_itself(runner, twin, functools.partial(stepped, at=at, keys=keys))
        elif not twin.is_eager:
            own = twin.run(step(at, keys)[0])
        output.add(recorded.output[at : at + 1], own[-1:])
        eager.check_complete()
        weights = max(weights, eager.error)
        left = max(left, *(_left_apart(call, at, cache) for call in recorded.calls))
    reference = f"{found.reference}, and with a step of it from the same cache for each token after the text"
    return replace(found.at_least(max(output.relative, left), weights), reference=reference)


def _step(recorded: Pass, row: int, keys: Sequence[int]) -> Pass:
    """Return one step's record: a row per call, with that time's keys."""
    return replace(recorded, calls=tuple(replace(call, attention=_row(call, row, keys)) for call in recorded.calls))


def _row(call: Call, row: int, keys: Sequence[int]) -> Attention:
    def pick(term: Term, value: Any) -> Any:
        if not isinstance(value, Tensor) or not term.is_matrix:
            return value
        value = value[:, row : row + 1] if term.has_queries else value[:, keys]
        return value[..., keys] if term.axes.names[1] == "key" else value

    return map_terms(call.attention, pick)


def _pair(call: Call, keys: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return some keys and values, (1, head, key, width) each."""
    return call.attention.key[None, :, list(keys)], call.attention.value[None, :, list(keys)]


def _left_apart(call: Call, row: int, cache: "DynamicCache") -> float:
    """Return the error of a step's cached key and value."""
    layer, found = cast("Any", cache).layers[cache_number(call)], 0.0
    for ours, theirs in zip(_pair(call, [row]), (layer.keys, layer.values), strict=True):
        apart = Difference()
        apart.add(ours, theirs[:, :, -1:])
        found = max(found, apart.relative)
    return found
