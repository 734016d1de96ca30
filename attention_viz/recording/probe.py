"""Decides by a small run whether a model can be shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from torch import Tensor, nn

from attention_viz.errors import UnsupportedModel
from attention_viz.inputs.check import unpadded
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
from attention_viz.recording.interception.plan import InterceptionPlan
from attention_viz.recording.interception.planning import check_planned, is_unused, planned_by
from attention_viz.recording.layout.axes import Axes
from attention_viz.recording.layout.probed_inputs import probe_inputs
from attention_viz.recording.layout.slots import UnmatchedWordsError
from attention_viz.recording.layout.spans import span_streams
from attention_viz.recording.layout.streams import streams_of
from attention_viz.recording.layout.tiles import settle_rows
from attention_viz.recording.layout.windows import WindowFinder
from attention_viz.recording.layout.word_order import WordOrder
from attention_viz.recording.mixers.unheard import check_all_heard, why_silent
from attention_viz.recording.outputs.breaking import SEEN, TooLargeError, family_of, naming, restored
from attention_viz.recording.outputs.generation import why_no_words
from attention_viz.recording.outputs.varying import naming_draws
from attention_viz.recording.references.exact import (
    COPIES_DIFFER,
    ApartError,
    copies_differ,
    naming_nan,
    not_same,
    refuse_nan,
)
from attention_viz.recording.runner import Runner
from attention_viz.recording.towers import (
    layer_numbers,
    layers_without,
    mixer_places,
    numbering_note,
    sampling_parts,
)
from attention_viz.recording.wiring import Wiring
from attention_viz.trace.kept import KeptLayers, LayerNumber, chosen_layers
from attention_viz.trace.kind import SLOT_STREAMS, stream_kind
from attention_viz.trace.once import once
from attention_viz.trace.trace import STREAMS, Provenance

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
        has_spans: whether keys are the text's tokens, and spans of them.
        merged: whether a decoder's keys are its own tokens, and the encoder's.
        has_canvas: whether its rows refine a text beside the one it reads.
        words: proves that a text's words are in order.
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
    has_spans: bool = False
    merged: bool = False
    has_canvas: bool = False
    words: WordOrder = field(default_factory=WordOrder)

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
        names = {stream: stream_kind(stream) if self.has_spans else stream for stream in self.reading}
        return {stream: None if stream in self.axes else unpadded(one, inputs) for stream, one in names.items()}

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

    It uses transformers' attention interface, or else the model's own operations. If the model's eager attention
    differs, such as by masks, it follows torch's attention function instead.

    Args:
        example: input other than text; see `Reader.example`.
        least: how many tokens the model needs.
    """
    inputs = probe_inputs(runner, limit, example, least)
    with restored(runner.tree.modules), naming_draws(runner, inputs), naming_nan(runner, inputs):
        runner, anatomy = _probed_either_way(runner, inputs, limit)
        with naming(runner, inputs):
            anatomy.words.check(runner, inputs, anatomy)
        return runner, anatomy


def _probed_either_way(runner: Runner, inputs: dict[str, Tensor], limit: int | None) -> tuple[Runner, Anatomy]:
    """Probe a model, by its own functions if its eager attention differs."""
    try:
        return _probed(runner, inputs, limit)
    except ApartError as error:
        kept = replace(runner, switch=replace(runner.switch, plan=InterceptionPlan(keeps_own=True)))
        if kept.twin().is_eager:
            raise
        try:
            return _planned(kept, inputs, planned_by(kept, inputs, limit))
        except UnsupportedModel:
            raise error from None


def _probed(runner: Runner, inputs: dict[str, Tensor], limit: int | None) -> tuple[Runner, Anatomy]:
    """Probe a model whose interface calls our function."""
    beside, refusal = None, UnsupportedModel()
    try:
        anatomy, softmaxes_beside = _anatomy(runner, inputs)
        if not softmaxes_beside:
            return runner, anatomy
        beside = runner, anatomy
    except (UnmatchedWordsError, TooLargeError):
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
        try:
            return _planned(runner, inputs, plan, beside)
        except UnmatchedWordsError:
            raise
        except UnsupportedModel as error:
            if beside is None and plan.unless:
                raise (UnsupportedModel(plan.unless) if isinstance(refusal, ElsewhereError) else refusal) from None
            if beside is None:
                raise error from None
    if beside is None:
        raise refusal
    return beside


def _planned(
    runner: Runner, inputs: dict[str, Tensor], plan: InterceptionPlan, beside: tuple[Runner, Anatomy] | None = None
) -> tuple[Runner, Anatomy]:
    """Test a plan; return the runner with it and its anatomy, or `beside` if its pooling is unused."""
    # With a plan, there are other calls, whose windows are found anew.
    planned = replace(runner, switch=replace(runner.switch, plan=plan), windows=WindowFinder())
    anatomy, _ = _anatomy(planned, inputs)
    if beside is not None and is_unused(planned, inputs, anatomy.places, anatomy.heads):
        return beside
    with naming(runner, inputs):
        return check_planned(planned, inputs, anatomy.places), anatomy


def _anatomy(runner: Runner, inputs: dict[str, Tensor]) -> tuple[Anatomy, bool]:
    """Describe a verified model; also return whether its own softmaxes attend."""
    model = runner.model
    family = family_of(model)
    with naming(runner, inputs), outside_calls(model) as outside:
        recorded, wirings = listened(model, lambda: runner.record(inputs, proves=True))
    with naming(runner, inputs):
        if (windows := settle_rows(runner, inputs, recorded)) is not None:
            runner.windows.adopt(windows)
            del recorded, wirings  # as large as those that follow
            recorded, wirings = listened(model, lambda: runner.record(inputs, proves=True))
    if not recorded.calls and not recorded.mixers:
        if why := why_silent(model):
            raise UnsupportedModel(f"can't record {family}: {why}")
        raise ElsewhereError(refusal_of(model, family, outside))
    if not recorded.calls:
        with naming(runner, inputs):
            check_all_heard(family, model, recorded.mixing, lambda: runner.run_own(inputs))
    left_out = parts_left_out(model, outside, recorded, family)
    with naming(runner, inputs):
        twin, own = runner.twin(), runner.run_own(inputs)
        try:
            fidelity = compare(recorded, runner, inputs, twin=twin, own=own)
        except UnsupportedModel as error:
            if not copies_differ(twin, inputs, own):
                raise
            raise UnsupportedModel(f"it {COPIES_DIFFER}: {error}") from error
    refuse_nan(runner, recorded)
    if not fidelity.ok:
        raise not_same(family, fidelity, recorded, twin, inputs, own)
    calls = recorded.calls
    count, target = (inputs[name].shape[1] if name in inputs else 0 for name in ("input_ids", "decoder_input_ids"))
    count = count or (inputs["inputs_embeds"].shape[1] if "inputs_embeds" in inputs else 0)
    spans = None if runner.answers or SEEN & {*inputs} else span_streams(runner, inputs, recorded)
    streams, axes = streams_of(runner, inputs, recorded, family, (count, target), spans)
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
        has_spans=spans is not None,
        merged=runner.answers and set(streams) == {"encoder", "decoder"},
        has_canvas=runner.answers and set(map(stream_kind, streams)) == {"encoder", "cross"} and not SEEN & {*inputs},
    )
    return anatomy, any(one.by in FOLLOWED for one in outside)
