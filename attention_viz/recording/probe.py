"""Decides by a small run whether a model can be shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor, nn

from attention_viz.edits.kinds.ablation import Ablate
from attention_viz.errors import UnsupportedModel
from attention_viz.inputs.check import unpadded
from attention_viz.inputs.device import device_of
from attention_viz.inputs.text import vocabulary
from attention_viz.operation.positional import bias_kind
from attention_viz.recording.fidelity import compare
from attention_viz.recording.find_wiring import listened
from attention_viz.recording.interception.outside import (
    FOLLOWED,
    ElsewhereError,
    outside_calls,
    parts_left_out,
    refusal_of,
)
from attention_viz.recording.interception.planning import check_planned, planned_by
from attention_viz.recording.layout.axes import TEXT, Axes, Axis
from attention_viz.recording.layout.slots import WORDS, SlotStreams, UnmatchedWordsError, slot_streams
from attention_viz.recording.layout.tiles import check_rows
from attention_viz.recording.mixers.unheard import check_all_heard, why_silent
from attention_viz.recording.outputs.breaking import SEEN, family_of, naming
from attention_viz.recording.outputs.generation import why_no_words
from attention_viz.recording.outputs.varying import naming_draws
from attention_viz.recording.recorder import Call
from attention_viz.recording.references.exact import COPIES_DIFFER, copies_differ, why_nan, why_not_same
from attention_viz.recording.runner import Pass, Runner
from attention_viz.recording.towers import (
    check_heads,
    check_shape,
    check_turns,
    layer_numbers,
    layers_without,
    looks_back,
    mixer_places,
    numbering_note,
    paths_of,
    sampling_parts,
    streams_by_tower,
)
from attention_viz.recording.wiring import Wiring
from attention_viz.trace.kept import KeptLayers, LayerNumber, chosen_layers
from attention_viz.trace.kind import SLOT_STREAMS
from attention_viz.trace.once import once
from attention_viz.trace.trace import STREAMS, Provenance

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel

# Of an encoder–decoder's two texts: by their lengths its kinds of attention are told apart.
_TOKENS, _TARGET = 11, 7
_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class Anatomy:
    """The probe's findings per attention call, in order.

    Attributes:
        numbers: layer numbers within the streams; see `layer_numbers`.
        without: by stream, the layers without attention.
        left_out: unrecorded attention, in words; see `parts_left_out`.
        no_words: why output rows aren't logits of tokens; "" if they are.
        mixer_places: the stream and number of each call of a layer that mixes tokens without a softmax, in order.
        mixer_heads: those calls' heads or channels.
        mixer_channels: whether those calls have a matrix per channel.
        axes: the kinds of rows and columns of streams with slots.
    """

    streams: tuple[str, ...]
    modules: tuple[nn.Module, ...]
    numbers: tuple[LayerNumber, ...]
    heads: tuple[int, ...]
    wirings: tuple[Wiring, ...]
    without: Mapping[str, tuple[int, ...]]
    output: str
    biases: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    no_words: str = ""
    mixer_places: tuple[tuple[str, LayerNumber], ...] = ()
    mixer_heads: tuple[int, ...] = ()
    mixer_channels: tuple[bool, ...] = ()
    axes: Mapping[str, Axes] = field(default_factory=dict[str, Axes])

    @once
    def layers(self) -> Mapping[str, KeptLayers]:
        """All layers."""
        found = self.by_stream(self.numbers)
        return {stream: KeptLayers.all_of(numbers, self.without.get(stream, ())) for stream, numbers in found.items()}

    @once
    def mixers(self) -> Mapping[str, tuple[LayerNumber, ...]]:
        """By stream, the layers that mix tokens without a softmax."""
        streams = dict.fromkeys(stream for stream, _ in self.mixer_places)
        return {name: tuple(number for stream, number in self.mixer_places if stream == name) for name in streams}

    @property
    def reading(self) -> tuple[str, ...]:
        """The streams that have tokens of their own: those of attention, or the first mixers of a model without."""
        return tuple(self.layers) or tuple(self.mixers)[:1]

    def real_rows(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor | None]:
        """Return which queries of each stream aren't padding; None if unknown."""
        return {stream: None if stream in self.axes else unpadded(stream, inputs) for stream in self.reading}

    @property
    def heads_by_stream(self) -> Mapping[str, tuple[int, ...]]:
        """By stream, each layer's heads; those of mixers only if the model has no softmax attention."""
        return self.by_stream(self.heads) if self.streams else self.heads_of_mixers

    @property
    def heads_of_mixers(self) -> Mapping[str, tuple[int, ...]]:
        """By stream, the heads or channels of each layer without a softmax."""
        counts = list(zip(self.mixer_places, self.mixer_heads, strict=True))
        return {name: tuple(count for (stream, _), count in counts if stream == name) for name in self.mixers}

    @property
    def layers_of_channels(self) -> frozenset[tuple[str, int]]:
        """The stream and number of each layer that has a matrix per channel."""
        return frozenset(place for place, one in zip(self.mixer_places, self.mixer_channels, strict=True) if one)

    def described(self, provenance: Provenance) -> Provenance:
        """Add the output's name, omissions and notes to a provenance."""
        notes = (*provenance.notes, *numbering_note(self.streams, self.modules))
        return replace(provenance, output=self.output, notes=notes).leaving_out(self.left_out)

    def by_stream(self, of_calls: Sequence[_T], numbers: Sequence[int] | None = None) -> dict[str, tuple[_T, ...]]:
        """Sort one value per call into streams; `numbers` if they aren't all calls."""
        streams = self.streams if numbers is None else [self.streams[number] for number in numbers]
        placed = list(zip(streams, of_calls, strict=True))
        there = [stream for stream in STREAMS if stream in streams]
        return {name: tuple(one for stream, one in placed if stream == name) for name in there}

    def kept(self, numbers: Sequence[int]) -> dict[str, KeptLayers]:
        """Return each stream's layers among some calls."""
        found = self.by_stream([self.numbers[number] for number in numbers], numbers)
        return {stream: replace(self.layers[stream], numbers=layers) for stream, layers in found.items()}

    def calls_of(self, layers: Sequence[int] | None) -> frozenset[int] | None:
        """Return layers' calls in all streams; None for all. Calls of mixers are counted after those of attention."""
        if layers is None:
            return None
        mixers = {stream: KeptLayers.all_of(numbers) for stream, numbers in self.mixers.items()}
        every = {**self.layers, **mixers}
        chosen = chosen_layers(layers, every)
        places = (*self.places, *self.mixer_places)
        return frozenset(places.index((stream, one)) for stream, kept in chosen.items() for one in kept.numbers)

    @once
    def places(self) -> tuple[tuple[str, LayerNumber], ...]:
        """Each call's stream and layer number."""
        return tuple(zip(self.streams, self.numbers, strict=True))

    def call(self, stream: str, layer: LayerNumber) -> int:
        """Return a layer's call."""
        return self.places.index((stream, layer))

    def calls(self, stream: str) -> tuple[int, ...]:
        """Return a stream's calls."""
        return tuple(number for number, one in enumerate(self.streams) if one == stream)


def probe(
    runner: Runner, limit: int | None, example: Mapping[str, Tensor] | None = None, least: int = 0
) -> tuple[Runner, Anatomy]:
    """Compare a small run with our attention and the model's own, and describe the model.

    It uses transformers' attention interface, or else the model's own operations.

    Args:
        example: input other than text; see `Reader.example`.
        least: how many tokens the model needs.
    """
    inputs = probe_inputs(runner, limit, example, least)
    with naming_draws(runner, inputs):
        return _probed(runner, limit, inputs)


def _probed(runner: Runner, limit: int | None, inputs: dict[str, Tensor]) -> tuple[Runner, Anatomy]:
    beside, refusal = None, UnsupportedModel()
    try:
        anatomy, softmaxes_beside = _anatomy(runner, inputs)
        if not softmaxes_beside:
            return runner, anatomy
        beside = runner, anatomy
    except UnmatchedWordsError:
        raise
    except UnsupportedModel as error:
        refusal = error
    try:
        with naming(runner, inputs):
            plan = planned_by(runner, inputs, limit)
    except UnsupportedModel as error:
        if beside is not None:
            return beside
        why = error if isinstance(refusal, ElsewhereError) else refusal
        raise why from why.__cause__
    if plan.is_own:
        planned = replace(runner, switch=replace(runner.switch, plan=plan))
        try:
            anatomy, _ = _anatomy(planned, inputs)
            if beside is not None and _is_unused(planned, inputs, anatomy):
                return beside
            with naming(runner, inputs):
                return check_planned(planned, inputs, anatomy.places), anatomy
        except UnmatchedWordsError:
            raise
        except UnsupportedModel as error:
            if beside is None:
                raise (UnsupportedModel(plan.unless) if plan.unless else error) from None
    if beside is None:
        raise refusal
    return beside


def _is_unused(runner: Runner, inputs: Mapping[str, Tensor], anatomy: Anatomy) -> bool:
    """Return whether a text's output doesn't depend on pooled images, as with SigLIP's tower in language models."""
    pooling = [number for number, stream in enumerate(anatomy.streams) if stream == "pooling"]
    if not pooling or "input_ids" not in inputs:
        return False
    heads = [(anatomy.numbers[number], head) for number in pooling for head in range(anatomy.heads[number])]
    edits = [Ablate(layer, head, stream="pooling") for layer, head in heads]
    return torch.equal(runner.record(inputs, edits, anatomy.places).output[:], runner.record(inputs).output[:])


def probe_inputs(
    runner: Runner, limit: int | None, example: Mapping[str, Tensor] | None, least: int = 0
) -> dict[str, Tensor]:
    """Return the probe's inputs: the example, or a few tokens, at least `least`."""
    return _read(runner, limit, least) if example is None else _shown(runner, example)


def _read(runner: Runner, limit: int | None, least: int) -> dict[str, Tensor]:
    ids = probe_ids(runner.model, limit, least)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if runner.answers:
        target = ids[:, -min(_TARGET, ids.shape[1] - 1) :]
        inputs |= {"decoder_input_ids": target, "decoder_attention_mask": torch.ones_like(target)}
    return runner.inputs(inputs)


def _shown(runner: Runner, example: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the example, with a few ids for a decoder."""
    inputs = runner.inputs(example)
    if runner.answers and "decoder_input_ids" not in inputs:
        inputs["decoder_input_ids"] = probe_ids(runner.model, _TARGET).to(device_of(runner.model))
    return inputs


def _anatomy(runner: Runner, inputs: dict[str, Tensor]) -> tuple[Anatomy, bool]:
    """Describe a verified model; also return whether its own softmaxes attend."""
    model = runner.model
    family = family_of(model)
    with naming(runner, inputs), outside_calls(model) as outside:
        recorded, wirings = listened(model, lambda: runner.record(inputs, proves=True))
    if not recorded.calls and not recorded.mixers:
        if why := why_silent(model):
            raise UnsupportedModel(f"can't record {family}: {why}")
        raise ElsewhereError(refusal_of(model, family, outside))
    if not recorded.calls:
        with naming(runner, inputs):
            check_all_heard(family, model, recorded.mixing, lambda: runner.run_own(inputs))
    with naming(runner, inputs):
        check_rows(runner, inputs, recorded)
    left_out = parts_left_out(model, outside, recorded, family)
    with naming(runner, inputs):
        twin, own = runner.twin(), runner.run_own(inputs)
        try:
            fidelity = compare(recorded, runner, inputs, twin=twin, own=own)
        except UnsupportedModel as error:
            if not copies_differ(twin, inputs, own):
                raise
            raise UnsupportedModel(f"it {COPIES_DIFFER}: {error}") from error
    if isinstance(recorded.output, Tensor) and bool(recorded.output.isnan().any()):
        raise UnsupportedModel(f"{family} {why_nan(model)}")
    if not fidelity.ok:
        raise UnsupportedModel(f"{family} {why_not_same(fidelity, recorded, twin, inputs, own)}")
    calls = recorded.calls
    count, target = (inputs[name].shape[1] if name in inputs else 0 for name in ("input_ids", "decoder_input_ids"))
    count = count or (inputs["inputs_embeds"].shape[1] if "inputs_embeds" in inputs else 0)
    streams, axes = _streams(runner, inputs, recorded, family, (count, target))
    if SEEN & {*inputs}:
        # An image's positions may come before the words, in the output, too.
        count = max(count, calls[-1].attention.shape[-2]) if count else 0
    count += max((one.queries.before for stream, one in axes.items() if stream not in SLOT_STREAMS), default=0)
    anatomy = Anatomy(
        streams,
        tuple(call.module for call in calls),
        layer_numbers(model, calls, streams),
        tuple(call.attention.shape[0] for call in calls),
        wirings(),
        layers_without(model, calls, streams),
        recorded.named,
        tuple(bias_kind(call.attention) for call in calls),
        (*left_out, *sampling_parts(model, streams)),
        no_words=why_no_words(model, recorded.named, recorded.output.shape, target or count),
        mixer_places=mixer_places(recorded.mixers),
        mixer_heads=tuple(call.mixer.shape[-3] for call in recorded.mixers),
        mixer_channels=tuple(call.mixer.per == "channel" for call in recorded.mixers),
        axes=axes,
    )
    return anatomy, any(one.by in FOLLOWED for one in outside)


def _streams(
    runner: Runner, inputs: Mapping[str, Tensor], recorded: Pass, family: str, lengths: tuple[int, int]
) -> tuple[tuple[str, ...], Mapping[str, Axes]]:
    """Return each call's stream, and the axes of streams with slots."""
    calls = recorded.calls
    if SEEN & {*inputs}:
        if runner.switch.plan.sites:
            check_heads(runner.model, calls)
        else:
            check_turns(recorded.parted)
        slots = _slots(runner, inputs, recorded)
        return streams_by_tower(runner.model, calls, inputs, slots.names), slots.axes
    if not calls:
        return (), {}
    sparse = {site.reads: site.axes for site in runner.switch.plan.sparse if site.axes is not None}
    if runner.answers:
        return _pair(family, calls, lengths, sparse)
    own = sparse.get("input_ids")
    slots = _slots(runner, inputs, recorded) if own is None else SlotStreams(("",) * len(calls), {WORDS: own})
    return _alone(family, calls, lengths[0], slots)


def _slots(runner: Runner, inputs: Mapping[str, Tensor], recorded: Pass) -> SlotStreams:
    """Find streams with slots, if a call's shape or name says that there may be some."""
    paths, shapes = paths_of(runner.model, recorded.calls), [call.attention.shape[1:] for call in recorded.calls]
    seen, ids = bool(SEEN & {*inputs}), inputs.get("input_ids")
    writes = "decoder_input_ids" in inputs and ids is None
    crossing = any(queries != keys for queries, keys in shapes) and not writes
    more = not seen and ids is not None and any(keys != ids.shape[1] for _, keys in shapes)
    asking = ids is None and not writes and any("decoder" in path.split(".") for path in paths)
    if not (crossing or more or asking) or any(rows > 1 for rows in recorded.rows):
        return SlotStreams(("",) * len(paths), {})
    return slot_streams(runner, inputs, recorded, paths)


def probe_ids(model: "PreTrainedModel", limit: int | None, least: int = 0) -> Tensor:
    """Return a row of ids from all over the vocabulary, distinct if possible."""
    wanted = max(_TOKENS, least)
    size, count = vocabulary(model), min(wanted, limit or wanted)
    if size < 1:
        raise UnsupportedModel(f"{family_of(model)} has no vocabulary; use a model that reads text")
    step = max(size // count, 1)
    return ((step // 2 + step * torch.arange(count)) % size)[None]


def _alone(
    family: str, calls: Sequence[Call], count: int, slots: SlotStreams
) -> tuple[tuple[str, ...], Mapping[str, Axes]]:
    """Return "decoder" for all calls between words if none attends ahead, else "encoder"; and the streams of slots."""
    words = [call for call, name in zip(calls, slots.names, strict=True) if name in ("", WORDS)]
    added = slots.axes.get(WORDS)
    rows, columns = (0, 0) if added is None else (added.queries.slots_of(count), added.keys.slots_of(count))
    for call in words:
        check_shape(family, call, ((count + rows, count + columns),))
    closed = [looks_back(call) for call in words]
    if any(closed) and not all(closed):
        raise UnsupportedModel(f"{family} attends ahead in only some layers; use a model that does so in all or none")
    own = "decoder" if closed and all(closed) else "encoder"
    axes = {own if name == WORDS else name: one for name, one in slots.axes.items()}
    return tuple(own if name in ("", WORDS) else name for name in slots.names), axes


def _pair(
    family: str, calls: Sequence[Call], lengths: tuple[int, int], sparse: Mapping[str, Axes]
) -> tuple[tuple[str, ...], Mapping[str, Axes]]:
    """Return an encoder–decoder's streams, by the lengths of queries and keys, and the axes of those with slots."""
    count, target = lengths
    none = Axes(Axis(rest=TEXT), Axis(rest=TEXT))
    reading, writing = sparse.get("input_ids", none), sparse.get("decoder_input_ids", none)
    axes = {"encoder": reading, "decoder": writing, "cross": Axes(writing.queries, none.keys)}
    kinds = {
        axes["encoder"].sizes(count, count): "encoder",
        axes["decoder"].sizes(target, target): "decoder",
        axes["cross"].sizes(target, count): "cross",
    }
    for call in calls:
        check_shape(family, call, tuple(kinds))
    streams = tuple(kinds[call.attention.shape[1], call.attention.shape[2]] for call in calls)
    missing = [stream for stream in ("encoder", "decoder", "cross") if stream not in streams]
    if missing:
        raise ElsewhereError(
            f"no {' or '.join(missing)} attention was found in the encoder–decoder {family}; use one with all three, "
            "such as by building its decoder with add_cross_attention=True"
        )
    if not all(looks_back(call) for call, stream in zip(calls, streams, strict=True) if stream == "decoder"):
        raise UnsupportedModel(f"the decoder of {family} attends ahead; use a causal decoder")
    return streams, {stream: one for stream, one in axes.items() if one != none}
