"""Finds keys that a model makes of several neighbouring tokens, as DeepSeek V4 compresses a text, and these tokens.

Gradients decide: a key is made of the tokens in its layer's input that move it. Keys are added up by the bits of their
numbers in Gray code, so that few runs show which token moves which key.
"""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from attention_viz.errors import UnsupportedModel
from attention_viz.operation.masks import causal
from attention_viz.recording.hooks import hooked
from attention_viz.recording.layout.measured import gray_bit
from attention_viz.recording.recorder import Call, Recorder, RunEnded, recording
from attention_viz.trace.kind import STREAMS
from attention_viz.trace.slots import joined_tokens, span_tokens
from attention_viz.trace.tokens import Tokens

if TYPE_CHECKING:
    from attention_viz.recording.runner import Pass, Runner

# The first and the last token that a key is made of.
Span = tuple[int, int]


class _Keys(Recorder):
    """Ends a run at its first call, whose keys and values it keeps."""

    heard: Call | None = None

    def hear(self, call: Call) -> Tensor:
        """Keep the call, and end the run."""
        self.heard = call
        raise RunEnded


@dataclass(frozen=True, eq=False)
class EnteredTurn:
    """One turn's inputs of a module."""

    module: nn.Module
    inputs: tuple[Any, ...]
    named: Mapping[str, Any]

    @property
    def rows(self) -> dict[int | str, Tensor]:
        """Its inputs of rows, (1, token, width), by place or name."""
        every: dict[int | str, Any] = {**dict(enumerate(self.inputs)), **self.named}
        return {
            place: one
            for place, one in every.items()
            if isinstance(one, Tensor) and one.ndim == 3 and one.is_floating_point()
        }

    @property
    def main(self) -> int | str:
        """The place or name of its first input of rows."""
        if not (found := [*self.rows]):
            raise UnsupportedModel(f"{type(self.module).__name__} doesn't read rows of tokens")
        return found[0]

    def call(self, runner: "Runner", place: int | str, rows: Tensor) -> Call:
        """Run the module up to its attention, with other rows at one place."""
        inputs = [rows if at == place else one for at, one in enumerate(self.inputs)]
        named = {name: rows if name == place else one for name, one in self.named.items()}
        recorder = _Keys()
        # A module may refuse to run again, such as one with a cache, whatever its own code raises.
        with contextlib.suppress(RunEnded, Exception), runner.hearing(recorder, slopes=True):
            self.module.forward(*inputs, **named)
        if recorder.heard is None:
            raise UnsupportedModel(f"{type(self.module).__name__} doesn't attend when it runs alone")
        return recorder.heard


@dataclass(frozen=True, eq=False)
class SpanReader:
    """Names the keys of streams with spans, which a model may cut by a text's words; keeps the last text's."""

    runner: "Runner"
    streams: Sequence[str]
    _known: dict[object, dict[str, tuple[Span, ...]]] = field(
        default_factory=dict[object, "dict[str, tuple[Span, ...]]"]
    )

    def keys(self, inputs: Mapping[str, Tensor], recorded: "Pass", tokens: Tokens) -> dict[str, Tokens]:
        """Return each stream's keys: the text's tokens, then the spans."""
        counts = dict[str, int]()
        modules = dict[str, nn.Module]()
        for call, number in zip(recorded.calls, recorded.numbers, strict=True):
            count, stream = call.attention.shape[-1] - len(tokens), self.streams[number]
            if counts.setdefault(stream, count) != count:
                raise UnsupportedModel(
                    f"{type(call.module).__name__} makes {counts[stream]} keys of several tokens in one layer and "
                    f"{count} in another of the same kind; their layers can't share an axis"
                )
            modules.setdefault(stream, call.module)
        place = (*counts.items(), *((name, tuple(one.flatten().tolist())) for name, one in inputs.items()))
        if place not in self._known:
            self._known.clear()
            adding = {stream: modules[stream] for stream, count in counts.items() if count}
            self._known[place] = dict(zip(adding, spans_of(self.runner, inputs, [*adding.values()]), strict=True))
        known = self._known[place]
        return {
            stream: joined_tokens(tokens, span_tokens(known[stream])) if stream in known else tokens
            for stream in dict.fromkeys(self.streams)
        }


def span_streams(runner: "Runner", inputs: Mapping[str, Tensor], recorded: "Pass") -> tuple[str, ...] | None:
    """Return each call's stream in a text whose keys are its tokens and then spans; None if no layer has such keys.

    Layers of a kind share a stream, since they share their spans. A short text may have none.
    """
    calls, ids = recorded.calls, inputs.get("input_ids")
    count = 0 if ids is None else ids.shape[1]
    shapes = {call.attention.shape[1:] for call in calls}
    longer = [call for call in calls if call.attention.shape[-1] > count]
    if not longer or any(queries != count or keys < count for queries, keys in shapes):
        return None
    try:
        found = spans_of(runner, inputs, [call.module for call in longer])
    except UnsupportedModel:  # positions that the model learned, which others name
        return None
    spans = {id(call): one for call, one in zip(longer, found, strict=True)}
    closed = all(_looks_back(call, count, spans.get(id(call), ())) for call in calls)
    kinds, base = list(map(kind_of, calls)), "decoder" if closed else "encoder"
    for kind in dict.fromkeys(kinds):
        if len({spans.get(id(call), ()) for call, own in zip(calls, kinds, strict=True) if own == kind}) > 1:
            raise UnsupportedModel(f"{kind[0]} makes keys of other tokens in another layer of the same kind")
    order = {kind: number for number, kind in enumerate(dict.fromkeys(kinds), 1)}
    names = tuple(base if order[kind] == 1 else f"{base} {order[kind]}" for kind in kinds)
    if unknown := {*names} - {*STREAMS}:
        raise UnsupportedModel(f"it has more kinds of layers with keys of several tokens than names: {len(unknown)}")
    return names


def spans_of(
    runner: "Runner", inputs: Mapping[str, Tensor], modules: Sequence[nn.Module]
) -> tuple[tuple[Span, ...], ...]:
    """Return the spans of each module's keys, in order.

    Raises:
        UnsupportedModel: its keys aren't the tokens, then keys made of neighbouring tokens.
    """
    return tuple(_spans(runner, one) for one in entered_turns(runner, inputs, modules))


def entered_turns(runner: "Runner", inputs: Mapping[str, Tensor], modules: Sequence[nn.Module]) -> list[EnteredTurn]:
    """Return each module's inputs in a run."""
    recorder, found = Recorder(keep=()), dict[nn.Module, EnteredTurn]()

    def enter(module: nn.Module, given: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        if recording.get() is not recorder:
            return
        found.setdefault(module, EnteredTurn(module, given, dict(named)))
        if len(found) == len(set(modules)):
            raise RunEnded

    with hooked(dict.fromkeys(modules), lambda *_: None, enter, named=True):
        with contextlib.suppress(RunEnded), runner.hearing(recorder):
            runner.model(**(runner.settings | dict(inputs)))
    return [found[module] for module in modules]


def _spans(runner: "Runner", entered: EnteredTurn) -> tuple[Span, ...]:
    place = entered.main
    rows = entered.rows[place].detach().clone().requires_grad_(True)
    call, count, name = entered.call(runner, place, rows), rows.shape[1], type(entered.module).__name__
    if {side.shape[-2] for side in (call.attention.key, call.attention.value)} != {call.attention.shape[-1]}:
        raise UnsupportedModel(f"{name} attends over several sets of keys at once")
    own, made = (moving(call, rows, range(*edges)) for edges in ((0, count), (count, call.attention.shape[-1])))
    if not torch.equal(own, torch.eye(count, dtype=torch.bool)):
        raise UnsupportedModel(f"{name}'s first keys aren't the text's tokens in their order")
    for token, keys in enumerate(made):
        numbers = keys.nonzero().flatten().tolist()
        # Gray codes of neighbours differ in one bit, so no third key hides behind two.
        if len(numbers) > 2 or any(other != one + 1 for one, other in pairwise(numbers)):
            raise UnsupportedModel(f"{name} makes other keys than two neighbours of token {token}")
    found = [column.nonzero().flatten().tolist() for column in made.T]
    if any(not one or one[-1] - one[0] != len(one) - 1 for one in found):
        raise UnsupportedModel(f"{name} has keys that aren't made of neighbouring tokens")
    return tuple((one[0], one[-1]) for one in found)


def moving(call: Call, rows: Tensor, keys: range) -> Bool[Tensor, "token key"]:
    """Return which of some keys each token may move: no sum of keys denies it."""
    chance = torch.Generator().manual_seed(0)
    sides = [side[..., keys.start : keys.stop, :] for side in (call.attention.key, call.attention.value)]
    weighed = [side * torch.randn(side.shape, generator=chance).to(side) for side in sides]
    numbers = torch.arange(len(keys))
    found = torch.ones(rows.shape[1], len(keys), dtype=torch.bool)
    for bit in range(max(1, (len(keys) - 1).bit_length())):
        ones = torch.tensor([bool(gray_bit(int(number), bit)) for number in numbers])
        for which in (ones, ~ones):
            total = torch.stack([one[..., which.to(one.device), :].sum() for one in weighed]).sum()
            slope = torch.zeros_like(rows)
            if total.requires_grad:
                slope = torch.autograd.grad(total, rows, retain_graph=True, materialize_grads=True)[0]
            if not bool(slope.isfinite().all()):
                raise UnsupportedModel(f"{type(call.module).__name__}'s keys have no finite gradients")
            found[:, which] &= (slope[0] != 0).any(dim=-1).cpu()[:, None]
    return found


def kind_of(call: Call) -> tuple[str, ...]:
    """Return the classes of an attention module and of all in it: layers of a kind have the same."""
    return tuple(type(one).__name__ for one in call.module.modules())


def _looks_back(call: Call, count: int, spans: Iterable[Span]) -> bool:
    """Return whether no query sees a later token, or a span that ends later."""
    allowed = call.attention.allowed
    if allowed is None:
        return False
    ends = torch.tensor([last for _, last in spans], dtype=torch.long)
    later = torch.cat([~causal(count), ends > torch.arange(count)[:, None]], dim=-1)
    return not bool((allowed.cpu() & later).any())
