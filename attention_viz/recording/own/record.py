"""Records any torch module's attention while it runs as written."""

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from torch import Tensor

from attention_viz.errors import ShapeError, UnsupportedModel
from attention_viz.operation.attention import Attention
from attention_viz.operation.kernel import BOUNDS
from attention_viz.operation.reach import is_causal
from attention_viz.operation.shapes import is_whole, side_by_side
from attention_viz.recording.as_written import plainly
from attention_viz.recording.own.heard import HeardCall
from attention_viz.recording.own.hearing import COMPILED, Hearing
from attention_viz.trace.given.from_tensors import Labels, origin_of, tokens_of
from attention_viz.trace.kind import STREAM_KINDS, STREAMS
from attention_viz.trace.layers import Layer
from attention_viz.trace.rerun import Rerun
from attention_viz.trace.slots import joined_tokens
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Fidelity, Trace
from attention_viz.trace.trace_data import attach

if TYPE_CHECKING:
    import pandas

__all__ = ["PlacedCalls", "Recording", "placed", "record"]
_REFERENCE = "torch's own attention on the same queries, keys and values, call by call"
# Name at most this many softmaxes if no attention was recorded.
_MOST_TOLD = 3


@dataclass(frozen=True, eq=False)
class PlacedCalls:
    """A recording's calls (one batch row, head first), with each stream's tokens."""

    calls: Sequence[Attention]
    streams: Sequence[str]
    queries: Mapping[str, Tokens]
    keys: Mapping[str, Tokens]


def placed(
    heard: Sequence[HeardCall],
    calls: Sequence[Attention],
    labels: Labels,
    key_labels: Labels,
    streams: Sequence[str] | None,
) -> PlacedCalls:
    """Sort calls into streams and label their axes."""
    found = _streams(heard, calls) if streams is None else _named(streams, calls)
    sizes: dict[str, tuple[int, ...]] = {}
    for number, (stream, call) in enumerate(zip(found, calls, strict=True)):
        if sizes.setdefault(stream, call.shape[-2:]) != call.shape[-2:]:
            raise ShapeError(
                f"call {number} of the {stream} attends over {call.shape[-2:]} (query, key), but an earlier one over "
                f"{sizes[stream]}; choose calls=[…] on the same tokens, as numbered in table()"
            )
    extra = {stream: heard[number].extra for number, stream in enumerate(found)}
    queries: dict[str, Tokens] = {}
    keys: dict[str, Tokens] = {}
    crosses = "cross" in found
    for stream in (one for one in STREAMS if one in found):
        asking, asked = sizes[stream]
        own = key_labels if stream == "encoder" and crosses and key_labels is not None else labels
        queries[stream] = tokens_of(own, asking, f"queries of the {stream}")
        if stream != "cross":
            keys[stream] = queries[stream]
            continue
        across = key_labels if key_labels is not None or len(extra[stream]) == 0 else labels
        across = labels if across is None and asked == asking else across
        keys[stream] = _with(tokens_of(across, asked - len(extra[stream]), "keys"), extra[stream])
    return PlacedCalls(calls, found, queries, keys)


def _with(tokens: Tokens, extra: tuple[str, ...]) -> Tokens:
    """Append a module's added keys, which belong to no word."""
    if not extra:
        return tokens
    count, most = len(extra), max(tokens.numbers, default=-1)
    ids = tuple(range(most + 1, most + 1 + count))
    added = Tokens(extra, ids, special=(True,) * count, spelling=("text",) * count)
    return joined_tokens(replace(tokens, ids=tokens.numbers), added)


def _named(streams: Sequence[str], calls: Sequence[Attention]) -> list[str]:
    if isinstance(streams, str) or len(streams) != len(calls) or not set(streams) <= set(STREAMS):
        raise ShapeError(
            f"streams must list one of {', '.join(STREAM_KINDS)} for each of the {len(calls)} calls; got {streams!r}"
        )
    for number, (stream, call) in enumerate(zip(streams, calls, strict=True)):
        if stream != "cross" and call.shape[-2] != call.shape[-1]:
            raise ShapeError(
                f"call {number} attends over {call.shape[-2:]} (query, key), so it can't be the {stream}'s "
                "self-attention; use cross"
            )
    return list(streams)


def _streams(heard: Sequence[HeardCall], calls: Sequence[Attention]) -> list[str]:
    crossing = [
        bool(one.crossing) or bool(one.extra) or call.shape[-2] != call.shape[-1]
        for one, call in zip(heard, calls, strict=True)
    ]
    closed = [is_causal(_of_all(call.allowed), call.shape[-2:]) for call in calls]
    own = [shut for shut, across in zip(closed, crossing, strict=True) if not across]
    if not any(crossing):
        return ["decoder" if all(own) else "encoder"] * len(calls)
    across = {call.shape[-2:] for call, one in zip(calls, crossing, strict=True) if one}
    if len(across) > 1:
        metadata = ", ".join(f"{queries} × {keys}" for queries, keys in sorted(across))
        raise ShapeError(
            f"calls attend over {metadata} (query, key), tokens to other tokens, as with a KV cache; choose calls=[…], "
            "as numbered in table()"
        )
    ((queries, keys),) = across
    return [
        "cross" if one else _side(call.shape[-1], queries, keys, shut, any(own))
        for call, one, shut in zip(calls, crossing, closed, strict=True)
    ]


def _side(tokens: int, queries: int, keys: int, closed: bool, is_several: bool) -> str:
    """Return whether tokens are cross-attention's queries ("decoder") or keys ("encoder")."""
    if queries != keys:
        return "decoder" if tokens == queries else "encoder"
    if not is_several:
        raise ShapeError(
            f"both texts have {queries} tokens and no call is causal, so a call may belong to either; give "
            'streams=["encoder", …], one per call'
        )
    return "decoder" if closed else "encoder"


def _of_all(allowed: Tensor | None) -> Tensor | None:
    return None if allowed is None or allowed[..., 0, 0].numel() > 1 else allowed


@dataclass(eq=False, repr=False)
class Recording:
    """Every attention call that ran in this thread while `record()` was open, in order."""

    _calls: list[HeardCall] = field(default_factory=list[HeardCall])
    _softmaxes: list[str] = field(default_factory=list[str])
    _compiled: bool = False

    def __len__(self) -> int:
        """Return the number of recorded attention calls."""
        return len(self._calls)

    def __repr__(self) -> str:
        """Return one line with the number of calls and their modules."""
        kinds = sorted({one.root for one in self._calls})
        calls = f"{len(self)} attention call{'s' * (len(self) != 1)}"
        return f"Recording({calls}{' of ' if kinds else ''}{', '.join(kinds)})"

    def _repr_html_(self) -> str:
        """Return the table as HTML, for notebooks."""
        return self.table().to_html()

    def table(self) -> "pandas.DataFrame":
        """Return one row per call: call, module, path, lead, queries, keys, error, nan.

        `path` is the module's name inside the outermost one. `lead` has the sizes of the axes before queries and keys.
        `error` is the largest difference between the call's result and torch's own, relative to torch's largest number.
        `nan` counts the rows for which torch itself gives NaN, because a query may attend to no key or an input has
        NaN; the module continues with that NaN.
        """
        import pandas

        names = ["call", "module", "path", "lead", "queries", "keys", "error", "nan"]
        rows = [
            (number, one.module, one.path, one.lead, *one.attention.shape[-2:], one.against.error, one.against.nan)
            for number, one in enumerate(self._calls)
        ]
        return pandas.DataFrame(rows, columns=names)

    def trace(
        self,
        labels: Labels = None,
        key_labels: Labels = None,
        *,
        batch: int | None = None,
        calls: Sequence[int] | None = None,
        streams: Sequence[str] | None = None,
        leading: str | None = None,
        name: str | None = None,
    ) -> Trace:
        """Return the recorded calls as a trace: each call is a layer, in the order they ran.

        If queries and keys are different tokens, the stream is "cross"; calls that never attend ahead are the
        "decoder", all others the "encoder". The trace's output is the last call's, with its heads joined.

        Args:
            labels: the queries' labels, one text per token; their positions by default.
            key_labels: the keys' labels if they are other tokens: the encoder's input, with cross-attention.
            batch: the row of the batch, from 0; required if there are several.
            calls: the numbers of the calls to take, as in `table`; all by default.
            streams: "encoder", "decoder" or "cross" for each of these calls, if they can't be recognized or are wrong.
            leading: "head" or "batch": the meaning of the first axis if torch was given only three.
            name: the name in figures and files; the outermost module's class by default.

        Raises:
            UnsupportedModel: no call was recorded, or a call's result isn't what torch's own attention gives.
            ShapeError: a row, call or axis is missing or must be named, or calls have different tokens.
            TraceError: the number of labels isn't the number of tokens.
        """
        if leading not in (None, "head", "batch"):
            raise ShapeError(f'unknown leading={leading!r}; choose "head" or "batch"')
        chosen = self._chosen(calls)
        row = _row(chosen, batch, leading)
        found = placed(chosen, [one.of_row(row, leading) for one in chosen], labels, key_labels, streams)
        origin = replace(origin_of(name or chosen[-1].root, found.calls[-1]), notes=_notes(chosen))
        trace = Trace(_layers(found, chosen), found.queries, found.keys, side_by_side(found.calls[-1].output), origin)
        return attach(trace, Rerun(lambda: _measured(chosen, row, leading)))

    def _hear(self, call: HeardCall) -> None:
        """Add a call to every open recording; only the innermost mode hears."""
        for run in _open.get():
            run._calls.append(call)

    def _see(self, softmax: str) -> None:
        for run in _open.get():
            run._softmaxes.append(softmax)

    def _deafen(self) -> None:
        self._compiled = True

    @contextmanager
    def _listening(self) -> "Generator[Recording]":
        """Keep this recording open during the block."""
        token = _open.set((*_open.get(), self))
        try:
            with plainly(self._deafen), Hearing(self._hear, self._see):
                yield self
        finally:
            _open.reset(token)

    def _chosen(self, numbers: Sequence[int] | None) -> list[HeardCall]:
        if self._compiled:
            raise UnsupportedModel(COMPILED)
        if not self._calls:
            seen = "; ".join(self._softmaxes[:_MOST_TOLD])
            phrase = f" It calls softmax by itself: {seen}." if seen else ""
            raise UnsupportedModel(
                "no attention call was recorded: the module calls neither torch's scaled_dot_product_attention nor its "
                f"MultiheadAttention, or ran in another thread or as TorchScript.{phrase} Use av.Trace.from_qkv or "
                "av.Trace.from_weights"
            )
        if numbers is None:
            numbers = range(len(self))
        for number in numbers:
            if not is_whole(number) or not 0 <= number < len(self):
                raise ShapeError(f"no call {number!r} was recorded; choose 0 to {len(self) - 1}")
        chosen = [self._calls[number] for number in numbers]
        if not chosen:
            raise ShapeError("calls is empty; leave it out to take all")
        for one in chosen:
            bound = BOUNDS[one.attention.query.dtype]
            if one.against.not_numbers:
                raise UnsupportedModel(self._not_numbers(one))
            if not one.against.error <= bound:
                raise UnsupportedModel(
                    f"{one.where} differs from our attention by {one.against.error:.1e} relative, allowed {bound:.0e}; "
                    "a figure of it could be wrong"
                )
        return chosen

    def _not_numbers(self, call: HeardCall) -> str:
        """Return the message for NaN, with the call that made it if known."""
        first = next((one for one in self._calls if one.against.without_key), None)
        if first is None or first is call:
            return f"{call.where} gets NaN, so its weights aren't numbers; give the module inputs without NaN"
        return (
            f"{call.where} gets NaN from {first.where}, where {first.against.without_key} rows have all keys masked; "
            "leave each row a key, or choose earlier calls=[…]"
        )


_open: ContextVar[tuple[Recording, ...]] = ContextVar("open recordings", default=())


def record() -> AbstractContextManager[Recording]:
    """Record every attention call that any torch module makes in this thread while the block is open.

    Use it as `with av.record() as run: module(x)`. Inside, our function computes each call of
    `torch.nn.functional.scaled_dot_product_attention` and of every `torch.nn.MultiheadAttention`, whose fast paths are
    switched off, and compares its result with torch's own on the same numbers. If torch's result is NaN, the module
    continues with NaN, as without recording. The module isn't changed, and gradients go through. A compiled module runs
    uncompiled. Blocks can be nested: each records all calls.

    It doesn't record attention that is written out by hand (a softmax of a product), in TorchScript, by other
    libraries' kernels, or in another thread.

    Returns:
        The recording; its `trace` works inside and after the block.

    Raises:
        UnsupportedModel: inside the block, if weights are dropped at random (call `module.eval()`), tensors are nested,
            or torch's kernels are called by hand.
    """
    return Recording()._listening()  # pyright: ignore[reportPrivateUsage] -- its own room


def _row(calls: Sequence[HeardCall], batch: int | None, leading: str | None) -> int:
    """Return the batch row, checked."""
    counts = sorted({one.rows(leading) for one in calls})
    if len(counts) > 1:
        raise ShapeError(
            f"the calls have {', '.join(map(str, counts))} rows, so a row isn't the same text in all; choose "
            "calls=[…], as numbered in table()"
        )
    if batch is None and counts != [1]:
        raise ShapeError(f"the calls have {counts[0]} rows; choose one with batch=0 to {counts[0] - 1}")
    if batch is not None and (not is_whole(batch) or not 0 <= batch < counts[0]):
        raise ShapeError(f"the batch has no row {batch!r}; choose 0 to {counts[0] - 1}")
    return batch or 0


def _layers(found: PlacedCalls, calls: Sequence[HeardCall]) -> dict[str, tuple[Layer, ...]]:
    """Return each stream's layers, labelled by distinct module numbers or order."""
    layers: dict[str, tuple[Layer, ...]] = {}
    for stream in found.queries:
        here = [number for number, one in enumerate(found.streams) if one == stream]
        numbers = [next((part for part in calls[one].path.split(".") if part.isdigit()), "") for one in here]
        are_numbered = all(numbers) and len(set(numbers)) == len(numbers)
        labels = numbers if are_numbered else [str(place) for place in range(len(here))]
        layers[stream] = tuple(Layer(found.calls[number], label) for number, label in zip(here, labels, strict=True))
    return layers


def _notes(calls: Sequence[HeardCall]) -> tuple[str, ...]:
    """Return notes on rows without a key, where torch gives NaN."""
    return tuple(
        f"{one.where}: torch gives NaN for {one.against.without_key} rows with all keys masked, and the module "
        "continues with NaN; the trace has weights of 0 there"
        for one in calls
        if one.against.without_key
    )


def _measured(calls: Sequence[HeardCall], row: int, leading: str | None) -> Fidelity:
    """Measure fidelity: outputs during the run, weights now."""
    started = time.perf_counter()
    errors = [one.weight_error(row, leading) for one in calls]
    bound = max(BOUNDS[one.attention.query.dtype] for one in calls)
    rows = min((count for _, count in errors if count is not None), default=None)
    weight, output = max(error for error, _ in errors), max(one.against.error for one in calls)
    return Fidelity(output, weight, bound, _REFERENCE, time.perf_counter() - started, rows)
