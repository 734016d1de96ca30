"""Records attention calls.

A context variable has the recorder, so threads can share a model.
"""

import contextlib
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from attention_viz.edits.edit import Edit, edited
from attention_viz.errors import AttentionVizError, UnsupportedModel
from attention_viz.operation.attention import Attention, fused, fusible
from attention_viz.operation.causal_mask import CausalMask
from attention_viz.operation.cutting import some_cells
from attention_viz.operation.reach import is_causal
from attention_viz.operation.terms import on_device
from attention_viz.recording.call_chunks import TurnCounter, blocks, continues, joined
from attention_viz.recording.call_rows import Call, WindowOrder, check_size, in_rows, joined_rows, memory_key
from attention_viz.recording.hooks import hooked
from attention_viz.trace.kept import KeptCells
from attention_viz.trace.memory import RestingFile

# Masks arrive as numbers to add. Below this a number means "blocked": BERT's first code added −10,000 (9,984 in
# bfloat16), everyone since adds the lowest number there is. A bias so low leaves a weight of exactly 0 anyway.
BLOCKED_BELOW = -9e3

Split = tuple[Tensor | None, Tensor | None]


def split_mask(mask: Tensor) -> Split:
    """Split a boolean or additive mask into (allowed, bias); None if nothing is blocked or added."""
    if isinstance(mask, CausalMask):
        return mask.as_allowed, None
    if mask.dtype == torch.bool:
        return (None if bool(mask.all()) else mask), None
    allowed = mask > BLOCKED_BELOW
    bias = None if torch.equal(allowed, mask == 0) else mask.masked_fill(~allowed, 0)
    return (None if bool(allowed.all()) else allowed), bias


@dataclass(eq=False)
class Recorder:
    """Records one pass's attention calls in order, and applies its edits.

    It does little during the pass, between matrices that fill the caches. What a module computes chunk by chunk in one
    turn is one call; see `call_chunks`. Edits see it whole: once its chunks are known, the turn runs again with the
    edited output. Rows of a batch are one call, too; see `call_rows`.

    Attributes:
        keep: the calls to keep; None for all.
        rest: file for a long text's terms; None for memory.
        cells: the heads and rows to keep of each call; None for all.
        progress: called with the number of calls; raises to end the pass.
        last: the call after which the pass ends.
        computing: whether our own function is running.
        ending: modules whose turns are heard to end.
        again: in a turn that runs again, the next chunk's number.
        parted: modules that attended several times in one turn, but not over chunks.
        windows: the orders of calls that attend in windows, by number.
        counts_turns: whether it hears modules' turns, which takes hooks; without, a module's second call raises
            `TurnsNeeded`.
    """

    edits: Sequence[Edit] = ()
    places: Sequence[tuple[str, int]] = ()
    keep: Collection[int] | None = None
    rest: RestingFile | None = None
    progress: Callable[[int], object] | None = None
    last: int | None = None
    computing: bool = False
    ending: frozenset[nn.Module] = frozenset()
    again: int | None = None
    parted: dict[nn.Module, None] = field(default_factory=dict[nn.Module, None])
    counts_turns: bool = True
    cells: KeptCells | None = None
    windows: Mapping[int, WindowOrder] = field(default_factory=dict[int, WindowOrder])
    _shared: dict[int, tuple[Tensor, Tensor | None]] = field(default_factory=dict[int, "tuple[Tensor, Tensor | None]"])
    _called: set[nn.Module] = field(default_factory=set[nn.Module])
    _calls: dict[int, Call] = field(default_factory=dict[int, Call])
    _modules: list[nn.Module] = field(default_factory=list[nn.Module])
    _chunks: dict[int, tuple[int, ...]] = field(default_factory=dict[int, "tuple[int, ...]"])
    _last: Call | None = None
    _splits: dict[object, tuple[Tensor, Split]] = field(default_factory=dict[object, "tuple[Tensor, Split]"])
    _closed: dict[object, tuple[Tensor, bool]] = field(default_factory=dict[object, "tuple[Tensor, bool]"])
    _turns: TurnCounter = field(default_factory=TurnCounter)
    _turn: int = 0
    _open: list[Call] = field(default_factory=list[Call])
    _late: AttentionVizError | None = None
    _outputs: Sequence[Tensor] = ()
    _blocks: dict[object, Tensor] = field(default_factory=dict[object, Tensor])
    _joined: int = 0
    _rows: dict[int, tuple[int, WindowOrder | None]] = field(default_factory=dict[int, Any])

    @property
    def count(self) -> int:
        """The number of calls so far."""
        return len(self._modules)

    @property
    def modules(self) -> tuple[nn.Module, ...]:
        """Each call's module."""
        return tuple(self._modules)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The kept calls' numbers."""
        return tuple(self._calls)

    @property
    def chunks(self) -> tuple[tuple[int, ...], ...]:
        """Each call's chunks by length; empty for a call of one."""
        self._close()
        return tuple(self._chunks.get(number, ()) for number in range(self.count))

    @property
    def joined_rows(self) -> tuple[int, ...]:
        """Each call's rows of a batch, joined into one; 1 for a call of one."""
        return tuple(self._rows.get(number, (1, None))[0] for number in range(self.count))

    @property
    def orders(self) -> tuple[WindowOrder | None, ...]:
        """Each call's order of windows; None without any."""
        return tuple(self._rows.get(number, (1, None))[1] for number in range(self.count))

    @property
    def chunked(self) -> bool:
        """Whether the last call has several chunks so far."""
        return len(self._open) > 1

    def calls(self) -> tuple[Call, ...]:
        """Return the kept calls, head first, all on one device: a model's layers may be on several."""
        self._close()
        if self.rest is not None:
            self.rest.settle()
        calls = tuple(call.of_row() for call in self._calls.values())
        devices = dict.fromkeys(call.attention.query.device for call in calls)
        if len(devices) < 2:
            return calls
        return tuple(replace(call, attention=on_device(call.attention, next(iter(devices)))) for call in calls)

    def compute(self, call: Call) -> Tensor:
        """Return `hear`'s output, with `computing` set."""
        self.computing = True
        try:
            return self.hear(call)
        finally:
            self.computing = False

    def hear(self, call: Call) -> Tensor:
        """Record a call; return its edited output, (row, head, query, d_v)."""
        attention, order = call.attention, self.windows.get(self.count) if self.again is None else None
        if len(attention.query) == 1 and order is None:
            return self._hear(call)
        kept = self.keep is None or self.count in self.keep
        if kept or self.edits:
            self._joined += check_size(attention, type(call.module).__name__, self._joined if kept else 0)
            attention = joined_rows(attention, type(call.module).__name__, self._blocks, order)
        return self._hear(Call(call.module, attention, len(call.attention.query), order), call)

    def _hear(self, call: Call, in_rows_of: Call | None = None) -> Tensor:
        """Record a call of one row; `in_rows_of` is the call whose rows it joins, if any."""
        if self.again is not None:
            self.again += 1
            return self._outputs[self.again - 1]
        again = self._last is not None and self._last.again(call)
        self._last = call
        if not again:
            if self._is_chunk(call):
                self._open.append(call)
                return self._output(call)
            self._close()
            self._open = [call]
            self._modules.append(call.module)
        number, whole = self.count - 1, call
        if in_rows_of is not None:
            self._rows[number] = call.rows, call.order
        if self.edits:
            call = self._edited(call, number)
        if self.keep is None or number in self.keep:
            some = self._some(call)
            self._keep(number, self._calls[number].beside(some) if again else some)
        if in_rows_of is None:
            output = self._output(call)
        else:
            output = self._output(in_rows_of) if call is whole else in_rows(self._output(call), call.rows, call.order)
        asked.get()()
        if self.progress is not None:
            self.progress(self.count)
        if number == self.last and call.module not in self.ending:
            raise RunEnded
        return output

    def begin_turn(self, module: nn.Module, _inputs: object = None) -> None:
        """Count a module's turn, if this is the run that records."""
        if recording.get() is self:
            self._turns.begin(module)

    def end_turn(self, module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> object:
        """Close the module's call; return the turn's new output if an edit changed joined chunks, else None."""
        if self.again is not None or not self._open or self._open[-1].module is not module:
            return None
        output, self.computing = None, True
        try:
            changed = self._close()
        finally:
            self.computing = False
        if changed:
            self.again, self._outputs = 0, changed
            try:
                output = module.forward(*inputs, **named)
            finally:
                self.again, self._outputs = None, ()
        if self.last == self.count - 1:
            raise RunEnded
        return output

    def unhook(self) -> None:
        """Remove the run's own hooks."""
        self._turns.unhook()

    def _is_chunk(self, call: Call) -> bool:
        """Return whether a call continues the last one in the same turn of its module."""
        if not self.counts_turns:
            if call.module in self._called:
                raise TurnsNeeded
            self._called.add(call.module)
            return False
        before, self._turn = self._turn, self._turns.of(call.module, self.begin_turn)
        if not self._open or self._open[-1].module is not call.module or self._turn != before:
            return False
        if continues(self._open[-1].attention, call.attention):
            return True
        self.parted[call.module] = None
        return False

    def _close(self) -> Sequence[Tensor]:
        """Join the last call's chunks; return their outputs if an edit changed them."""
        chunks, self._open = self._open, []
        late, self._late = self._late, None
        if len(chunks) < 2:
            if late is not None:
                raise late
            return ()
        number, module, attentions = self.count - 1, chunks[0].module, [one.attention for one in chunks]
        lengths = self._chunks[number] = tuple(one.shape[-1] for one in attentions)
        if lengths not in self._blocks:
            self._blocks[lengths] = blocks(lengths, attentions[0].query.device)
        call = whole = Call(module, joined(attentions, self._blocks[lengths]))
        if self.edits:
            call = self._edited(whole, number, whole=True)
        if self.keep is None or number in self.keep:
            self._keep(number, self._some(call))
        if call is whole:
            return ()
        if module not in self.ending:
            raise UnsupportedModel(f"can't edit {type(module).__name__} here, which attends in {len(chunks)} chunks")
        return self._output(call).split(lengths, dim=-2)

    def _some(self, call: Call) -> Call:
        """Return the heads and rows to keep; layers share a mask's kept part."""
        if self.cells is None:
            return call
        some, allowed = some_cells(call.attention, self.cells.heads, self.cells.queries), call.attention.allowed
        if allowed is not None:
            _, shared = self._shared.setdefault(id(allowed), (allowed, some.allowed))
            some = replace(some, allowed=shared)
        return replace(call, attention=some)

    def _keep(self, number: int, call: Call) -> None:
        self._calls[number] = call if self.rest is None else replace(call, attention=self.rest.take(call.attention))

    def _edited(self, call: Call, number: int, *, whole: bool = False) -> Call:
        if number >= len(self.places):
            raise UnsupportedModel(f"this run made an attention call, {number}, that the probe's run didn't make")
        own = call.of_row()
        try:
            attention = edited(self.edits, self.places[number], own.attention)
        except AttentionVizError as error:
            # An edit may not fit a chunk, though it fits what its turn computes.
            if whole or call.module not in self.ending:
                raise
            self._late, attention = error, own.attention
        return call if attention is own.attention else replace(own, attention=attention).in_a_batch()

    def _output(self, call: Call) -> Tensor:
        attention = call.attention
        if attention.query.ndim != 4 or not fusible(attention):
            return call.of_row().attention.output[None] if len(attention.query) == 1 else attention.output
        closed = attention.bias is None and self._is_closed(attention)
        return fused(attention, closed=closed)

    def _is_closed(self, attention: Attention) -> bool:
        """Return whether a mask is just causal, worked out once."""
        allowed = attention.allowed
        if allowed is None:
            return False
        key = memory_key(allowed)
        if key not in self._closed:
            self._closed[key] = (allowed, is_causal(allowed, attention.shape[-2:]))
        return self._closed[key][1]

    def split(self, mask: Tensor | None) -> Split:
        """Split a mask, once if layers share it."""
        if mask is None:
            return None, None
        key = memory_key(mask)
        if key not in self._splits:
            self.learn(mask, split_mask(mask))
        return self._splits[key][1]

    def needed(self, allowed: Tensor) -> Tensor | None:
        """Return a boolean mask, or None if it allows everything."""
        return None if bool(allowed.all()) else allowed

    def learn(self, mask: Tensor, split: Split, *, closed: bool = False) -> None:
        """Remember a mask's split; keep the mask, so that its memory isn't reused."""
        self._splits[memory_key(mask)] = (mask, split)
        if closed and split[0] is not None:
            self._closed[memory_key(split[0])] = (split[0], True)


recording: ContextVar[Recorder | None] = ContextVar("recording", default=None)


class RunEnded(BaseException):
    """Ends a run early; not an `Exception`, which a model's own code could catch."""


class TurnsNeeded(BaseException):
    """Ends a run once a module attends twice, if its recorder doesn't count turns."""


@contextlib.contextmanager
def heard_by(recorder: Recorder, modules: Collection[nn.Module] = ()) -> Generator[None]:
    """Record the calls inside; of `modules`, the ends of turns too."""

    def end(module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any], _output: object) -> object:
        return recorder.end_turn(module, inputs, named) if recording.get() is recorder else None

    modules = modules if recorder.counts_turns else ()
    recorder.ending, token = frozenset(modules), recording.set(recorder)
    try:
        with hooked(modules, end, recorder.begin_turn, first=True):
            yield
    finally:
        recording.reset(token)
        recorder.unhook()


# Called at each attention call while a model is loaded; what it raises ends the load.
asked: ContextVar[Callable[[], object]] = ContextVar("asked", default=lambda: None)


def whole_output(attention: Attention) -> Tensor:
    """Return an unchanged call's output, (row, head, query, d_v)."""
    return fused(attention, closed=False) if fusible(attention) else attention.output


def own_values(attention: Attention) -> Tensor:
    """Return each position's own value, (row, head, query, d_v); the output if keys aren't the queries' positions."""
    query, value = attention.query, attention.value
    if query.ndim != 4 or query.shape[-2] != attention.key.shape[-2]:
        return whole_output(attention)
    return value.repeat_interleave(query.shape[1] // value.shape[1], dim=1)
