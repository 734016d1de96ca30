"""Follow the residual stream through one layer: its input, each addition, and its output.

Modules are found by their numbers, never by name: each addition is compared bit by bit with a later module's input or
with the layer's output. It reads pre-norm, post-norm and parallel layers, and refuses any other.

Sources: Vaswani et al. 2017, section 3.1 (post-norm); Xiong et al. 2020, "On Layer Normalization in the Transformer
Architecture" (pre-norm); Wang & Komatsuzaki 2021, "GPT-J-6B" (parallel).
"""

import contextlib
import itertools
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attention_viz.circuits.opened import run_of
from attention_viz.errors import UnsupportedModel
from attention_viz.operation.attention import without_autocast
from attention_viz.operation.numerics import REPEATED, close
from attention_viz.recording.gradients import ModelRun
from attention_viz.recording.hooks import hooked
from attention_viz.recording.mixers.listening import heard_mixers
from attention_viz.recording.mixers.record import MixerRecorder
from attention_viz.recording.outputs.returned import output_of
from attention_viz.recording.recorder import Recorder, RunEnded
from attention_viz.recording.towers import mixer_labels
from attention_viz.recording.weights.unchanged import changed
from attention_viz.recording.wiring import entering, rows
from attention_viz.trace.kept import LayerNumber
from attention_viz.trace.trace import Trace

# What a run's remembered layers may take together, in bytes; the last one always stays.
_ROOM = 16_000_000
# So many additions to the stream are looked for in one layer.
_MOST_PARTS = 4
_EXPERTS = ("expert", "moe", "router", "mixture")


@dataclass(frozen=True, eq=False)
class StreamPart:
    """One addition to the residual stream.

    Attributes:
        kind: "attention" or "mixer" for the trace's own call, else "other attention", "MLP" or "mixture of experts".
        added: (position, d_model).
        total: the stream after the addition.
        left: in a post-norm layer the total after its norm, else the total.
    """

    kind: str
    added: Float[Tensor, "position d_model"]
    total: Float[Tensor, "position d_model"]
    left: Float[Tensor, "position d_model"]


@dataclass(frozen=True, eq=False)
class LayerFlow:
    """One layer's residual stream.

    Attributes:
        entered: the layer's input.
        parts: its additions in order; in a parallel layer, both are added to the input.
        left: the layer's output.
        order: "pre-norm", "post-norm", or "parallel" if attention and MLP read the same input.
    """

    entered: Float[Tensor, "position d_model"]
    parts: tuple[StreamPart, ...]
    left: Float[Tensor, "position d_model"]
    order: str

    @property
    def own(self) -> int:
        """The place of the trace's own call among the parts."""
        return next(at for at, part in enumerate(self.parts) if part.kind in ("attention", "mixer"))


@dataclass(frozen=True, eq=False)
class _Turn:
    """A module's rows in a run; by then `calls` of the own kind had ended, and `others` of the other."""

    module: nn.Module
    entered: Tensor | None
    left: Tensor
    calls: int
    others: int


@dataclass(frozen=True, eq=False)
class _LayerBlock:
    """A whole layer's turn, those of the modules within, and the calls of both kinds that had ended before it."""

    entered: Tensor
    left: Tensor
    turns: Sequence[_Turn]
    before: tuple[int, int]


@dataclass(frozen=True, eq=False)
class _Addition:
    """Turns whose outputs are added to the stream at once, and the stream after that."""

    turns: tuple[_Turn, ...]
    total: Tensor
    left: Tensor


@dataclass(eq=False)
class _TurnListener:
    """Hears the modules around one call, of `count` rows.

    Attributes:
        counts: how many calls of the own kind, and of the other, have ended.
        own: all calls of its stream.
        began: for each open module, how many calls and turns had ended before it.
    """

    counts: Callable[[], tuple[int, int]]
    number: int
    own: frozenset[int]
    count: int
    turns: list[_Turn] = field(default_factory=list[_Turn])
    began: list[tuple[tuple[int, int], int]] = field(default_factory=list[tuple[tuple[int, int], int]])
    block: _LayerBlock | None = None

    def enter(self, _module: nn.Module, _inputs: object) -> None:
        """Note where a module begins; the run ends once the stream's next layer has called."""
        counts = self.counts()
        if any(self.number < one < counts[0] for one in self.own):
            raise RunEnded
        self.began.append((counts, len(self.turns)))

    def leave(self, module: nn.Module, inputs: tuple[object, ...], named: dict[str, object], output: object) -> None:
        """Keep a module's rows; the largest module around this call alone is the layer."""
        first, start = self.began.pop()
        before = max((one for one in self.own if one < self.number), default=-1)
        output = output[0] if isinstance(output, tuple) and output else output
        left = rows(output, self.count) if isinstance(output, Tensor) else None
        calls, others = self.counts()
        if left is None or not left.is_floating_point() or calls <= before:
            return
        found = rows(entering(inputs, named), self.count)
        entered = None if found is None else found.detach().clone()
        left = left.detach().clone()
        alone = self.own.intersection(range(first[0], calls)) == frozenset({self.number})
        if alone and entered is not None and entered.shape == left.shape:
            self.block = _LayerBlock(entered, left, self.turns[start:], first)
        self.turns.append(_Turn(module, entered, left, calls, others))


_lock = threading.Lock()
_known = weakref.WeakKeyDictionary[Trace, "OrderedDict[tuple[str, int], LayerFlow | str]"]()


@without_autocast()
def layer_flow(trace: Trace, layer: int, stream: str | None = None) -> LayerFlow:
    """Return a layer's residual stream, from another run with the trace's edits; the last few are remembered.

    Raises:
        TraceError: the trace comes from a file or from another trace, or the model has changed since.
        UnsupportedModel: the layer isn't a sum of its input, its attention or mixer, and an MLP.
    """
    stream = stream if stream is not None and stream in trace.mixers else trace.attention_stream(stream)
    run = run_of(trace)
    with _lock:
        found = _known.setdefault(trace, OrderedDict()).get((stream, layer))
    if found is None:
        # Outside the lock, since others' layers needn't wait for this one.
        found = _flow(run, trace, layer, stream)
        with _lock:
            known = _known.setdefault(trace, OrderedDict())
            known[stream, layer] = found
            while len(known) > 1 and sum(map(_size, known.values())) > _ROOM:
                known.popitem(last=False)
    if isinstance(found, str):
        raise UnsupportedModel(f"this model's layer isn't read here: {found}")
    return found


def _size(flow: LayerFlow | str) -> int:
    """Return a flow's bytes; tensors that two parts share count twice."""
    if isinstance(flow, str):
        return 0
    tensors = [flow.entered, flow.left, *(one for part in flow.parts for one in (part.added, part.total, part.left))]
    return sum(one.nbytes for one in tensors)


def _flow(run: ModelRun, trace: Trace, layer: int, stream: str) -> LayerFlow | str:
    """Return the stream, or why it isn't read."""
    kind = "mixer" if stream in trace.mixers else "attention"
    places = run.anatomy.mixer_places if kind == "mixer" else run.anatomy.places
    number = places.index((stream, LayerNumber(layer)))
    own = frozenset(at for at, (name, _) in enumerate(places) if name == stream)
    block = _heard(run, trace, number, own, kind)
    if block is None:
        return f"no module of {run.name} is layer {layer} alone, from one vector per token to one"
    ways = _ways(block, block.entered, 0, number)
    found = next((way for way in ways if _calls_first(way, number)), None)
    if found is None:
        what = "mixer" if kind == "mixer" else "attention"
        return f"layer {layer} of {run.name} isn't its input plus what its {what} and its MLP output"
    parts = tuple(itertools.chain.from_iterable(_parts(found, block, number, kind)))
    first = next(part for part in parts if part.kind == kind)
    parallel = any(len(one.turns) > 1 for one in found)
    order = "parallel" if parallel else "pre-norm" if first.left is first.total else "post-norm"
    return LayerFlow(block.entered, parts, block.left, order)


def _heard(run: ModelRun, trace: Trace, number: int, own: frozenset[int], kind: str) -> _LayerBlock | None:
    """Run a copy until the stream's next layer has called; return the layer's turn."""
    twin = run.runner.twin(frozen=True)
    labels = mixer_labels(twin.model)
    attending = frozenset(layer for _, layer in run.anatomy.places)
    recorder = Recorder(run.edits, run.anatomy.places, frozenset())
    mixed = MixerRecorder(labels, run.edits, attending, keep={number} if kind == "mixer" else ())

    def counts() -> tuple[int, int]:
        both = recorder.count, len(mixed.heard)
        return both if kind == "attention" else (both[1], both[0])

    stream, layer = (run.anatomy.mixer_places if kind == "mixer" else run.anatomy.places)[number]
    listener = _TurnListener(counts, number, own, len(trace.query_tokens(stream)))

    def leave(module: nn.Module, inputs: tuple[object, ...], named: dict[str, object], output: object) -> None:
        listener.leave(module, inputs, named, output)

    def enter(module: nn.Module, inputs: object) -> None:
        listener.enter(module, inputs)

    with (
        contextlib.suppress(RunEnded),
        heard_mixers(labels, mixed),
        hooked(twin.model.modules(), leave, enter),
        twin.recorded(recorder, run.name),
    ):
        output_of(twin.model(**run.inputs, **twin.settings))
    if kind == "mixer":
        again, there = mixed.calls[0].of_row().value, trace.attention(layer, stream).value
        if not close(again.float().cpu(), there.float().cpu(), REPEATED):
            raise changed(run.name)
        return listener.block
    joins = run.anatomy.wirings[number].output
    joined = trace.layer(layer, stream).joined
    if joins is not None and joined is not None:
        made = (one.left for one in listener.turns if twin.original[one.module] is joins and one.calls == number + 1)
        left = next(made, None)
        if left is not None and not close(left.float().cpu(), joined.float().cpu(), REPEATED):
            raise changed(run.name)
    return listener.block


def _ways(
    block: _LayerBlock, stream: Tensor, start: int, number: int, depth: int = 0
) -> Iterator[tuple[_Addition, ...]]:
    """Yield ways from the stream to the layer's output, each bit by bit the run's own."""
    if depth == _MOST_PARTS:
        return
    for at, turn in enumerate(block.turns[start:], start):
        if turn.left.shape != stream.shape:
            continue
        for one in _after(block, (turn,), at, (_sum(stream, turn.left),)):
            if _equal(one.left, block.left):
                yield (one,)
            else:
                yield from ((one, *way) for way in _ways(block, one.left, at + 1, number, depth + 1))
    if depth == 0:
        yield from _parallel(block, stream, number)


def _parallel(block: _LayerBlock, stream: Tensor, number: int) -> Iterator[tuple[_Addition, ...]]:
    fits = [(at, one) for at, one in enumerate(block.turns) if one.left.shape == stream.shape]
    # The attention's output is the first after its call, unless the MLP came before.
    for (first, one), (second, other) in itertools.permutations(fits, 2):
        if one.calls <= number or (second < first and other.calls > number):
            continue
        a, m = one.left, other.left
        sums = (_sum(_sum(stream, a), m), _sum(_sum(stream, m), a), _sum(_sum(a, m), stream))
        for found in _after(block, (one, other), max(first, second), sums):
            if _equal(found.left, block.left):
                yield (found,)


def _after(block: _LayerBlock, turns: tuple[_Turn, ...], at: int, totals: Sequence[Tensor]) -> Iterator[_Addition]:
    """Yield additions with the stream after them: the layer's output, the total, or the total after a norm."""
    for total in totals:
        if _equal(total, block.left):
            yield _Addition(turns, total, total)
        taking = [one for one in block.turns[at + 1 :] if one.entered is not None and _equal(total, one.entered)]
        if taking:
            yield _Addition(turns, total, total)
        for one in taking:
            if one.left.shape == total.shape and next(one.module.children(), None) is None:
                yield _Addition(turns, total, one.left)


def _calls_first(way: Sequence[_Addition], number: int) -> bool:
    """Return whether the call's output is one of the additions."""
    return any(turn.calls > number for one in way for turn in one.turns)


def _parts(way: Sequence[_Addition], block: _LayerBlock, number: int, own: str) -> Iterator[tuple[StreamPart, ...]]:
    calls, others = block.before
    for one in way:
        kinds = list[str]()
        for turn in one.turns:
            # The other kind of call is another way to mix tokens.
            inside, beside = range(calls, turn.calls), turn.others > others
            kinds.append(own if number in inside else "other attention" if inside or beside else _feeding(block))
            calls, others = max(calls, turn.calls), max(others, turn.others)
        if len(one.turns) == 1:
            yield (StreamPart(kinds[0], one.turns[0].left, one.total, one.left),)
        else:
            first = _sum(block.entered, one.turns[0].left)
            attended = StreamPart(kinds[0], one.turns[0].left, first, first)
            yield (attended, StreamPart(kinds[1], one.turns[1].left, one.total, one.left))


def _feeding(block: _LayerBlock) -> str:
    names = " ".join(type(turn.module).__name__.lower() for turn in block.turns)
    return "mixture of experts" if any(word in names for word in _EXPERTS) else "MLP"


def _sum(one: Tensor, other: Tensor) -> Tensor:
    return one + other


def _equal(one: Tensor, other: Tensor) -> bool:
    """Compare bit by bit; most differ in their last row."""
    return one.shape == other.shape and torch.equal(one[-1], other[-1]) and torch.equal(one, other)
