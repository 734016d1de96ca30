"""Move heads' and MLPs' outputs between runs of a model's copy."""

import contextlib
import functools
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from attention_viz.circuits.opened import open_run
from attention_viz.circuits.rows import WritingParts
from attention_viz.errors import UnsupportedModel
from attention_viz.inputs.device import device_of
from attention_viz.operation.attention import Attention
from attention_viz.operation.numerics import EXACT, close
from attention_viz.operation.terms import map_terms, on_device
from attention_viz.recording.batches.batch import Batch
from attention_viz.recording.batches.turns import LayerTurn, layer_turns, repeated
from attention_viz.recording.call_chunks import CallPart
from attention_viz.recording.gradients import ModelRun
from attention_viz.recording.hooks import hooked
from attention_viz.recording.interception.plan import NO_PLAN
from attention_viz.recording.mixers.listening import heard_mixers
from attention_viz.recording.mixers.record import MixerCall, MixerRecorder
from attention_viz.recording.outputs.returned import outputs_of
from attention_viz.recording.recorder import Call, whole_output
from attention_viz.recording.towers import mixer_labels
from attention_viz.recording.twin import Twin
from attention_viz.trace.once import once
from attention_viz.trace.tokens import Tokens

# What becomes of what a site hands on, (row, head, position, width); an MLP is one head, a channel of a mixer one, too.
Change = Callable[[int, Tensor], Tensor]


def shared_beginning(run: ModelRun, other: Tokens, spots: Sequence[tuple[int, int]], most: int) -> int:
    """Count shared first tokens; 0 unless keys and values are known, attention is causal and positions are settable."""
    mine, pairs = run.tokens.numbers, set(spots)
    same = next((at for at in range(most) if (at, at) not in pairs or mine[at] != other.numbers[at]), most)
    known = len(run.layers) == len(run.anatomy.places) and run.runner.switch.plan is NO_PLAN
    by_position = "position_ids" in run.runner.named and all(_by_token(one, len(mine)) for one in run.inputs.values())
    known = known and not run.runner.mixing
    whole = all(bool(run.inputs[name].all()) for name in ("attention_mask",) if name in run.inputs)
    closed = known and all(_is_closed(layer.attention, same) for layer in run.layers)
    return same if by_position and whole and closed else 0


def ending(inputs: Mapping[str, Tensor], start: int) -> dict[str, Tensor]:
    """Return a text's inputs from a position on, with their positions."""
    found = {name: given[:, start:] for name, given in inputs.items()}
    some = next(iter(inputs.values()))
    return found | {"position_ids": torch.arange(start, some.shape[1], device=some.device)[None]}


def continued(call: Attention, whole: Attention, start: int) -> Attention:
    """Return an ending's call, with the beginning's keys from a whole run."""
    # Of a long text the whole run is in memory, whatever device the model is on.
    rows = map_terms(
        on_device(whole.rows(slice(start, None)), call.query.device),
        lambda term, value: value[None] if term.is_matrix and value.ndim == 3 else value,
    )

    def joined(before: Tensor, after: Tensor) -> Tensor:
        return torch.cat([before[..., :start, :].to(after).expand(*after.shape[:2], -1, -1), after], dim=-2)

    key, value = joined(whole.key, call.key), joined(whole.value, call.value)
    return replace(call, key=key, value=value, allowed=rows.allowed, bias=rows.bias)


def parts_of(run: ModelRun) -> tuple[CallPart, ...]:
    """Return a run's attention calls; where towers read images, by chunks, which takes a run."""
    if not any(one.is_floating_point() for one in run.inputs.values()):
        return tuple(map(CallPart, range(len(run.anatomy.places))))
    return tuple(run.runner.record(run.inputs, (), run.anatomy.places, keep=()).parts)


def _by_token(given: Tensor, count: int) -> bool:
    return tuple(given.shape) == (1, count) and not given.is_floating_point()


def _is_closed(call: Attention, start: int) -> bool:
    queries, keys = call.shape[-2:]
    if call.allowed is None or queries != keys:
        return False
    allowed = call.allowed.expand(*call.allowed.shape[:-2], queries, keys)
    return not bool(allowed[..., :start, start:].any())


@dataclass(frozen=True, eq=False)
class Mlp:
    """The module that outputs an MLP's result."""

    stream: str
    layer: int
    module: nn.Module


@dataclass(eq=False)
class _ChangedMixers(MixerRecorder):
    """Recorder that changes the outputs of layers without a softmax; keeps only whose turn it was."""

    sites: Mapping[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    rows: int = 1
    change: Change = lambda _site, output: output
    channels: set[int] = field(default_factory=set[int])

    def hear(self, call: MixerCall) -> Tensor:
        """Return the kernel's own output, plus what changed of ours."""
        call = self.placed(call)
        site = self.sites.get((call.stream, call.label))
        if site is None:
            return call.own_output
        if call.mixer.shape[0] != self.rows:
            raise UnsupportedModel(f"{type(call.module).__name__} computes a batch differently from its rows")
        if call.mixer.per == "channel":
            self.channels.add(site)
        with torch.no_grad():
            output = call.mixer.output
        # Slopes are those of this tensor, and of the kernel for what is before it.
        changed = self.change(site, output.requires_grad_(torch.is_grad_enabled()))
        if changed is output and not torch.is_grad_enabled():
            return call.own_output
        moved = call.shape_as(changed) - call.shape_as(output.detach())
        return call.own_output + moved.to(call.own_output.dtype)


@dataclass(frozen=True, eq=False)
class Bench:
    """A private copy of a model over the same weights.

    Sites are attention calls, or their chunks, in order, then mixers, or MLPs.

    Attributes:
        channels: the sites of layers with a matrix per channel, known once they ran.
    """

    run: ModelRun
    twin: Twin
    parts: tuple[CallPart, ...]
    mlps: tuple[Mlp, ...] = ()
    channels: set[int] = field(default_factory=set[int])

    @classmethod
    def of(cls, run: ModelRun, *, mlps: bool = False) -> "Bench":
        """Copy the model."""
        bare = cls(run, run.runner.twin(frozen=True), parts_of(run))
        return replace(bare, mlps=_find_mlps(bare)) if mlps else bare

    @property
    def sites(self) -> range:
        """Return the sites: MLPs if recorded, else attention calls and layers without a softmax."""
        if self.mlps:
            return range(self.calls, self.calls + len(self.mlps))
        return range(self.calls + len(self.mixers))

    @once
    def mixers(self) -> tuple[tuple[str, int], ...]:
        """Return the streams and layers without a softmax."""
        found = self.run.anatomy.mixers
        return tuple((stream, layer) for stream, layers in found.items() for layer in layers)

    def place(self, site: int) -> tuple[str, int]:
        """Return a site's stream and layer."""
        if site < self.calls:
            return self.places[site]
        mlp = self.mlps[site - self.calls] if self.mlps else None
        return self.mixers[site - self.calls] if mlp is None else (mlp.stream, mlp.layer)

    def start(self, site: int) -> int:
        """Return a site's first position in its stream: chunks follow each other."""
        return self.parts[site].start if site < self.calls else 0

    @once
    def places(self) -> tuple[tuple[str, int], ...]:
        """Return the stream and layer of each attention call, or its chunks."""
        return tuple(self.run.anatomy.places[part.number] for part in self.parts)

    @property
    def calls(self) -> int:
        """Return the number of attention calls, or their chunks."""
        return len(self.parts)

    @property
    def chunked(self) -> bool:
        """Return whether a module attends chunk by chunk."""
        return self.calls > len(self.run.anatomy.places)

    def outputs(
        self,
        inputs: Mapping[str, Tensor],
        rows: int,
        change: Change,
        *,
        only: int | None = None,
        first: int = 0,
        start: int = 0,
        slopes: bool = False,
        hear: Callable[[int, Call], None] | None = None,
    ) -> Tensor:
        """Run one text's batch, (row, position, width); `only` may limit the logits to a position."""
        inputs = ending(inputs, start) if start else inputs
        given: dict[str, Any] = {name: torch.cat([row] * rows) for name, row in inputs.items()}
        if only is not None and self.can_limit:
            given["logits_to_keep"] = torch.tensor([only - start], device=device_of(self.twin.model))
        whole = tuple(layer.attention for layer in self.run.layers) if start else ()

        def compute(number: int, call: Call) -> Tensor:
            attention = continued(call.attention, whole[number], start) if start else call.attention
            output = whole_output(attention)
            if hear is not None:
                hear(number, call)
            return change(number, output)

        batch = Batch(places=self.places, rows=rows, first=first, compute_rows=compute)
        with (
            torch.inference_mode(False),
            self._heard(rows, change),
            self._mixed(rows, change),
            self._left_out(self.layers[:first] if first else (), rows, start),
            self.twin.recorded(
                batch, self.run.name, "computes a batch differently from its rows one by one", slopes=slopes
            ),
        ):
            found = outputs_of(self.twin.model(**given, **self.twin.settings))
        if batch.heard != self.calls - first or len(found) != rows:
            raise UnsupportedModel(f"{self.run.name} computes a batch differently from its rows one by one")
        return found

    @property
    def can_limit(self) -> bool:
        """Return whether the model can compute one position's logits alone."""
        return "logits_to_keep" in self.twin.named

    @once
    def layers(self) -> tuple[LayerTurn, ...]:
        """Return the layer around each call; none if calls share one, or in a model's own attention code."""
        streams = list(self.run.anatomy.layers)
        if len(streams) != 1 or self.chunked or self.twin.plan is not NO_PLAN:
            return ()
        with torch.inference_mode(False):
            turns = layer_turns(self.run, self.twin, streams[0])
        found = [turns[call] for call in range(self.calls) if call in turns]
        apart = len({id(turn.module) for turn in found}) == self.calls
        alone = all(turn.first == call and "forward" not in vars(turn.module) for call, turn in enumerate(found))
        return tuple(found) if apart and alone else ()

    @contextlib.contextmanager
    def _left_out(self, turns: Sequence[LayerTurn], rows: int, start: int) -> Generator[None]:
        """Replace layers of the private copy by their outputs, once per row."""
        for turn in turns:
            turn.module.forward = functools.partial(_gave, turn, rows, start)
        try:
            yield
        finally:
            for turn in turns:
                del turn.module.forward

    def _mixed(self, rows: int, change: Change) -> AbstractContextManager[object]:
        """Hear the layers without a softmax of the private copy."""
        if self.mlps or not self.mixers:
            return contextlib.nullcontext()
        labels = mixer_labels(self.twin.model)
        sites = {(stream, str(layer)): at for at, (stream, layer) in enumerate(self.mixers, start=self.calls)}
        return heard_mixers(
            labels, _ChangedMixers(labels, sites=sites, rows=rows, change=change, channels=self.channels)
        )

    @contextlib.contextmanager
    def _heard(self, rows: int, change: Change) -> Generator[None]:
        """Hook the MLPs of the private copy."""

        def hook(site: int) -> Callable[[nn.Module, object, Tensor], Tensor]:
            def hear(_module: nn.Module, _inputs: object, output: Tensor) -> Tensor:
                # Some models flatten all rows into one before their MLPs.
                batched = output if output.ndim == 3 else output.unflatten(0, (rows, -1))
                return change(site, batched[:, None])[:, 0].view_as(output)

            return hear

        handles = [mlp.module.register_forward_hook(hook(self.calls + at)) for at, mlp in enumerate(self.mlps)]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()


def _gave(turn: LayerTurn, rows: int, start: int, *_inputs: object, **_named: object) -> object:
    return repeated(turn.output, rows, start)


def _find_mlps(bench: Bench) -> tuple[Mlp, ...]:
    """Find the module that outputs each MLP's result, by numbers, not by name."""
    run, opened = bench.run, open_run(bench.run)
    parts = WritingParts(opened, run)
    left: list[tuple[nn.Module, Tensor]] = []

    def hear(module: nn.Module, _inputs: object, _named: object, output: object) -> None:
        if isinstance(output, Tensor):
            left.append((module, output.detach().clone()))

    with hooked(bench.twin.model.modules(), hear):
        _ = bench.outputs(run.inputs, 1, lambda _site, output: output)
    found: list[Mlp] = []
    for leaf in opened.leaves:
        stream, layer = parts.place(leaf) if leaf.kind == "mlp" else (None, None)
        if stream is None or layer is None:
            continue
        module = next((module for module, output in left if _equal(output, leaf.tensor.detach())), None)
        if module is None or any(module is one.module for one in found):
            raise UnsupportedModel(
                f"can't patch the MLP of layer {layer}, since {run.name} has no separate MLP module; patch its heads"
            )
        found.append(Mlp(stream, layer, module))
    if not found:
        raise UnsupportedModel(f"no MLP was found in {run.name}; patch its heads")
    return tuple(found)


def _equal(one: Tensor, other: Tensor) -> bool:
    if one.numel() != other.numel() or one.shape[-1] != other.shape[-1] or not one.is_floating_point():
        return False
    return close(one.reshape(other.shape), other, EXACT)
