"""Makes a trace of one input row."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from attention_viz.edits.edit import Edit, snapshots
from attention_viz.edits.eviction import Evict
from attention_viz.edits.kinds.masks import Allow
from attention_viz.edits.places import check_places
from attention_viz.errors import ShapeError, UnsupportedModel
from attention_viz.inputs.cost import cost_of, file_for
from attention_viz.operation.modules import Projection
from attention_viz.operation.numerics import REPEATED
from attention_viz.operation.positional import bias_kind
from attention_viz.recording.as_written import refuse_autocast
from attention_viz.recording.batches.zeroing import value_zeroing
from attention_viz.recording.differences import Real
from attention_viz.recording.fidelity import compare
from attention_viz.recording.gradients import ModelRun, relevance
from attention_viz.recording.interception.bias_parts import bias_parts
from attention_viz.recording.interception.outside import OutsideListener, parts_left_out
from attention_viz.recording.layout.merged import merged_keys
from attention_viz.recording.layout.tiles import settle_rows
from attention_viz.recording.outputs.breaking import SEEN, naming_foreign, reporting, restored
from attention_viz.recording.outputs.readout import body_of
from attention_viz.recording.probe import Anatomy
from attention_viz.recording.recorder import Call
from attention_viz.recording.references.exact import naming_nan, refuse_nan
from attention_viz.recording.references.own_output import steps_alike
from attention_viz.recording.runner import Pass, Runner, alike
from attention_viz.recording.stepping import Grown, apart, compare_steps
from attention_viz.recording.towers import check_calls, check_layers, check_positions, check_turns, mixer_layers
from attention_viz.recording.weights.unchanged import Unchanged, checked_state
from attention_viz.trace.ahead import Progress, ahead
from attention_viz.trace.derived import last_tokens
from attention_viz.trace.kept import KeptCells, LayerNumber, no_such_layer
from attention_viz.trace.kind import stream_kind
from attention_viz.trace.layers import MixerLayer
from attention_viz.trace.memory import last_rows
from attention_viz.trace.rerun import Rerun
from attention_viz.trace.seen import NOTHING, Seen
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Fidelity, Layer, Provenance, Trace, TracePart
from attention_viz.trace.trace_data import attach, by_row

if TYPE_CHECKING:
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

# How many times the bound rounding may add up to where a text is read in steps; beyond it, something else is wrong.
_ROUNDING = 100


@dataclass(frozen=True)
class TokenAxes:
    """The tokens along each stream's axes."""

    queries: Mapping[str, Tokens]
    keys: Mapping[str, Tokens]

    @classmethod
    def of_one(cls, stream: str, tokens: Tokens) -> "TokenAxes":
        """Return a self-attending stream's axes."""
        return cls({stream: tokens}, {stream: tokens})

    @classmethod
    def of_text(cls, anatomy: Anatomy, tokens: Tokens) -> "TokenAxes":
        """Return a text's axes: those of its words and of streams with slots."""
        of_slots = {stream: one.of_text(tokens) for stream, one in anatomy.axes.items()}
        words = [stream for stream in anatomy.reading if stream not in of_slots]
        return cls(dict.fromkeys(words, tokens), dict.fromkeys(words, tokens)).with_slots(of_slots)

    @classmethod
    def of_pair(cls, source: Tokens, read: Tokens, produced: Tokens) -> "TokenAxes":
        """Return an encoder–decoder's axes; the tokens produced name the rows of cross-attention."""
        queries = {"encoder": source, "decoder": read, "cross": produced}
        return cls(queries, {"encoder": source, "decoder": read, "cross": source})

    @classmethod
    def of_merged(cls, source: Tokens, read: Tokens) -> "TokenAxes":
        """Return the axes of an encoder–decoder whose decoder attends to both texts at once."""
        return cls({"encoder": source, "decoder": read}, {"encoder": source, "decoder": merged_keys(read, source)})

    def with_slots(self, found: Mapping[str, tuple[Tokens, Tokens]]) -> "TokenAxes":
        """Return these axes with those of more streams, rows and columns each."""
        queries, keys = ({stream: both[side] for stream, both in found.items()} for side in (0, 1))
        return TokenAxes({**self.queries, **queries}, {**self.keys, **keys})

    def within(self, every: "TokenAxes") -> "TokenAxes":
        """Return all streams' axes, with these where they have as many positions."""

        def better(own: Mapping[str, Tokens], others: Mapping[str, Tokens]) -> dict[str, Tokens]:
            fits = {stream for stream, one in own.items() if stream in others and len(one) == len(others[stream])}
            return {stream: own[stream] if stream in fits else one for stream, one in others.items()}

        return TokenAxes(better(self.queries, every.queries), better(self.keys, every.keys))

    def real(self, streams: Sequence[str]) -> Real:
        """Return a pass's real rows; `streams` has one per call."""
        calls = [_real(self.queries.get(stream)) for stream in streams]
        last = "cross" if streams and streams[0] == "encoder" and "cross" in streams else next(iter(streams), "")
        read = "decoder" if "decoder" in streams else last or next(iter(self.queries))
        return Real(_real(self.queries.get(read)), calls)


def _real(tokens: Tokens | None) -> tuple[bool, ...] | None:
    return None if tokens is None or not any(tokens.padding) else tuple(not padded for padded in tokens.padding)


@dataclass(frozen=True, eq=False)
class Tracer:
    """Makes the traces of one model."""

    name: str
    runner: Runner
    anatomy: Anatomy
    tokenizer: "PreTrainedTokenizerBase | None" = None
    _listener: OutsideListener = field(default_factory=OutsideListener)
    # Shapes of images whose rows in a batch are known to be tiles.
    _rows: set[object] = field(default_factory=set[object])

    def trace(
        self,
        inputs: dict[str, Tensor],
        axes: Callable[[Pass], TokenAxes],
        edits: Sequence[Edit],
        provenance: Provenance,
        keep: frozenset[int] | None = None,
        progress: Progress | None = None,
        seen: Seen = NOTHING,
        cells: KeptCells | None = None,
    ) -> Trace:
        """Run once and return its trace; report the cost first if it takes long.

        Args:
            keep: the calls to keep; None for all.
            cells: the heads and rows to keep of each; None for all.
        """
        refuse_autocast(self.name, self.runner.model)
        anatomy = self.anatomy
        # Tensors of whoever asks, who may write into them while the trace still needs them.
        inputs = {name: tensor.clone() for name, tensor in inputs.items()}
        check_places(edits, anatomy.layers, anatomy.mixers)
        edits = snapshots(edits, anatomy.real_rows(inputs))
        calls, rest = len(anatomy.streams) + len(anatomy.mixer_places), file_for(inputs)
        later, kept = rest is not None and body_of(self.runner.model) is not None, None if keep is None else len(keep)
        size, seconds = cost_of(self.runner.tree, inputs, calls, kept, words_later=later)
        report = reporting(ahead("model.trace", size, seconds, progress, "bytes", "layers=[…] keeps some layers only"))
        with restored(self.runner.tree.modules):
            unproven = anatomy.words.refusal(self.runner, inputs, anatomy)
            with (
                self._listener.listening(self.runner.model, inputs) as outside,
                naming_nan(self.runner, inputs),
                naming_foreign(self.runner, inputs, edited=bool(edits)),
            ):
                recorded = self.runner.record(
                    inputs, edits, anatomy.places, keep, rest, lambda count: report(min(count / calls, 1)), cells=cells
                )
            self._check_calls(recorded, inputs)
            found = axes(recorded)
            refuse_nan(self.runner, recorded, found.real(anatomy.streams), only_last=rest is not None)
            if unproven is not None:
                raise unproven
        measure = self._measure(inputs, None if edits else recorded, found, keep)
        shapes = None if cells is None else [call.attention.shape[-1:] * 2 for call in recorded.calls]
        provenance = provenance.leaving_out(parts_left_out(self.runner.model, outside, recorded, self.name, shapes))
        provenance = replace(provenance, edits=tuple(str(edit) for edit in edits))
        if cells is not None:
            return self._part_of(recorded, inputs, edits, found, provenance, cells)
        return self._trace_of(recorded, inputs, edits, found, measure, provenance, seen)

    def _part_of(
        self,
        recorded: Pass,
        inputs: dict[str, Tensor],
        edits: Sequence[Edit],
        axes: TokenAxes,
        provenance: Provenance,
        cells: KeptCells,
    ) -> Trace:
        """Return the trace of some heads and rows; its run only measures its fidelity."""
        numbers, anatomy = recorded.numbers, self.anatomy

        def again(cells: KeptCells | None = cells) -> Pass:
            return self.runner.record(inputs, edits, anatomy.places, numbers, file_for(inputs), cells=cells)

        def measure() -> Fidelity:
            # A run that keeps all is compared, once it has the kept numbers.
            unchanged.confirm()
            found = self._measure(inputs, None if edits else again(None), axes, frozenset(numbers))()
            return replace(found, reference=f"{found.reference}; measured in a second run, with all heads and rows")

        unchanged = Unchanged(self.name, self.runner.tree, inputs, lambda: apart(recorded, again()) <= REPEATED)
        calls = zip(recorded.calls, numbers, strict=True)
        layers = tuple(Layer(call.attention, str(anatomy.numbers[number])) for call, number in calls)
        ((stream, tokens),) = axes.queries.items()
        count = len(tokens) if cells.queries is None else cells.queries
        trace = Trace(
            layers=anatomy.by_stream(layers, numbers),
            queries={stream: last_tokens(tokens, count)},
            keys={stream: axes.keys[stream]},
            output=last_rows(recorded.output, count) if len(recorded.output) == len(tokens) else recorded.output,
            provenance=provenance,
            kept=anatomy.kept(numbers),
        )
        rerun = Rerun(measure=measure, check=unchanged.check, confirm=unchanged.confirm)
        return TracePart.of(attach(trace, rerun), cells)

    def trace_steps(
        self, grown: Grown, tokens: Tokens, evict: Evict | None, provenance: Provenance, checked: object = None
    ) -> Trace:
        """Return the trace of a text read in steps, to be compared with a whole run.

        Args:
            checked: the result of the check of the trace before the last step.
        """
        ids = torch.tensor([tokens.numbers])
        inputs = self.runner.inputs({"input_ids": ids, "attention_mask": torch.ones_like(ids)})
        axes, recorded = TokenAxes.of_one(self.anatomy.reading[0], tokens), grown.record
        refuse_nan(self.runner, recorded, only_last=True)
        edits = () if evict is None else (Allow(grown.allowed),)
        whole = self._measure(inputs, recorded if evict is None else None, axes)
        typed = len(tokens) - provenance.generated

        def measure() -> Fidelity:
            found, far, reference = whole(), 0.0, ""
            if evict is not None:
                far = apart(recorded, self.runner.record(inputs, edits, self.anatomy.places))
                reference = "a run of the whole text with the evicted keys blocked, and with "
            found = replace(found.at_least(far), reference=reference + found.reference)
            off = found.largest_error or 0.0
            if (found.ok and steps_alike(self.runner, self.anatomy.modules)) or off > _ROUNDING * found.bound:
                return found
            steps = compare_steps(recorded, self.runner, ids, typed, range if evict is None else evict.kept)
            steps = replace(steps, reference=f"{steps.reference} (one run of the whole text is {off:.0e} off)")
            return steps if evict is None else steps.before("the edits")

        return self._trace_of(recorded, inputs, edits, axes, measure, provenance, checked=checked)

    def _trace_of(
        self,
        recorded: Pass,
        inputs: dict[str, Tensor],
        edits: Sequence[Edit],
        axes: TokenAxes,
        measure: Callable[[], Fidelity],
        provenance: Provenance,
        seen: Seen = NOTHING,
        checked: object = None,
    ) -> Trace:
        """Return a record's trace, with its rerun."""
        anatomy = self.anatomy
        calls, numbers = zip(recorded.calls, recorded.numbers, strict=True), recorded.numbers
        layers = tuple(
            Layer(call.attention, str(anatomy.numbers[number]), picking=recorded.picks.get(number))
            for call, number in calls
        )
        run = ModelRun(
            self.name, self.runner, anatomy, self.tokenizer, inputs, tuple(edits), layers, numbers, axes.queries
        )
        unchanged = Unchanged(
            self.name,
            self.runner.tree,
            inputs,
            lambda: self._gives_again(recorded, inputs, edits),
            checked_state(checked),
        )
        rerun = Rerun(
            measure=unchanged.measured(measure),
            complete=unchanged.checked(
                lambda: anatomy.by_stream(self._surrounded(inputs, edits, layers, numbers), numbers)
            ),
            differentiate=unchanged.checked(lambda of: relevance(run, of)),
            zero=unchanged.checked(lambda stream: value_zeroing(run, stream)),
            run=run,
            seconds=recorded.seconds,
            check=unchanged.check,
            confirm=unchanged.confirm,
        )
        kept, mixers = anatomy.kept(numbers), self._mixers(recorded, axes)
        # With layers of mixers alone, these have the tokens.
        reading = {
            stream: stream if stream in axes.queries else next(iter(axes.queries))
            for stream in kept or list(mixers)[:1]
        }
        trace = Trace(
            layers=anatomy.by_stream(layers, numbers),
            queries={stream: axes.queries[one] for stream, one in reading.items()},
            keys={stream: axes.keys[one] for stream, one in reading.items()},
            output=recorded.output,
            provenance=provenance,
            kept=kept,
            seen=seen,
            mixers=mixers,
        )
        return attach(trace, rerun)

    def _mixers(self, recorded: Pass, axes: TokenAxes) -> dict[str, tuple[MixerLayer, ...]]:
        """Return the kept layers without a softmax, if the model reads one text with them."""
        if len(self.anatomy.layers) > 1:
            return {}
        tokens = len(next(iter(axes.queries.values())))
        found = mixer_layers(recorded.mixers)
        shapes = {layer.mixer.shape[1:] for layers in found.values() for layer in layers}
        return found if shapes == {(tokens, tokens)} else {}

    def _gives_again(self, recorded: Pass, inputs: dict[str, Tensor], edits: Sequence[Edit]) -> bool:
        """Return whether a second run repeats the numbers."""
        again = self.runner.record(inputs, edits, self.anatomy.places, recorded.numbers, file_for(inputs))
        return apart(recorded, again) <= REPEATED

    def record_of(self, trace: Trace) -> Pass:
        """Return the record of a decoder's whole trace."""
        (layers,) = trace.layers.values()
        calls = zip(self.anatomy.modules, layers, strict=True)
        made = tuple(Call(module, layer.attention) for module, layer in calls)
        return Pass(by_row(trace), made, self.anatomy.modules, tuple(range(len(made))))

    def projections(self, layer: int, stream: str | None) -> Mapping[str, Projection]:
        """Return one layer's learned matrices; see `AttentionModel.projections`."""
        anatomy, streams = self.anatomy, list(self.anatomy.layers)
        if not streams:
            raise UnsupportedModel(f"{self.name} has no softmax attention; its layers have no projections to show")
        if stream not in streams and (stream is not None or len(streams) > 1):
            problem = "has several streams" if stream is None else f"has no stream {stream!r}"
            raise ShapeError(f"{self.name} {problem}; choose {', '.join(streams)}")
        stream = stream or next(iter(streams))
        if layer not in anatomy.layers[stream].every:
            raise ShapeError(no_such_layer(layer, anatomy.layers[stream], self.name))
        return anatomy.wirings[anatomy.call(stream, LayerNumber(layer))].projections()

    def _surrounded(
        self, inputs: dict[str, Tensor], edits: Sequence[Edit], layers: Sequence[Layer], numbers: Sequence[int]
    ) -> tuple[Layer, ...]:
        """Return layers with their surroundings, from a second run."""
        anatomy = self.anatomy
        keep = None if len(numbers) == len(anatomy.streams) else frozenset(numbers)
        again, around = self.runner.record_around(inputs, edits, anatomy.places, anatomy.wirings, keep)
        if again.numbers != tuple(numbers):
            return tuple(layers)
        parts = self._bias_parts(inputs, edits, layers, numbers)
        return tuple(
            around.layer(
                number,
                replace(layer, bias_parts=parts.get(number, {})),
                crossing=stream_kind(anatomy.streams[number]) == "cross",
            )
            if alike(layer.attention, call.attention)
            else layer
            for number, layer, call in zip(numbers, layers, again.calls, strict=True)
        )

    def _bias_parts(
        self, inputs: dict[str, Tensor], edits: Sequence[Edit], layers: Sequence[Layer], numbers: Sequence[int]
    ) -> dict[int, dict[str, Tensor]]:
        """Return bias parts by call and name; one known part is the bias itself."""
        found = dict[int, dict[str, Tensor]]()
        if any(site.parts for site in self.runner.switch.plan.sites):
            found = bias_parts(self.runner, inputs, edits, self.anatomy.places)
        for number, layer in zip(numbers, layers, strict=True):
            call, kind = layer.attention, self.anatomy.biases[number]
            # An edit may have put another bias in its place, which its numbers tell.
            if call.bias is not None and kind and (not edits or bias_kind(call) == kind):
                found[number] = {kind: call.bias}
        return found

    def _measure(
        self, inputs: dict[str, Tensor], recorded: Pass | None, axes: TokenAxes, keep: frozenset[int] | None = None
    ) -> Callable[[], Fidelity]:
        """Return a function that measures the fidelity.

        Without a record, the trace was edited: the unedited model is measured.
        """

        def measure() -> Fidelity:
            real = axes.real(self.anatomy.streams)
            if recorded is not None:
                return compare(recorded, self.runner, inputs, real)
            unedited = self.runner.record(inputs, (), self.anatomy.places, keep)
            unedited = compare(unedited, self.runner, inputs, real)
            return unedited.before("the edits")

        return measure

    def _check_calls(self, recorded: Pass, inputs: Mapping[str, Tensor]) -> None:
        """Refuse a pass whose calls differ from the probe's, or aren't layers."""
        if SEEN & {*inputs} and not self.runner.switch.plan.sites:
            check_turns(recorded.parted)
        rows = recorded.rows, tuple((name, tuple(one.shape)) for name, one in inputs.items() if name in SEEN)
        if rows not in self._rows:
            if settle_rows(self.runner, inputs, recorded) is not None:
                raise UnsupportedModel(f"{self.name} attends in windows only here; wrap it with inputs of this size")
            self._rows.add(rows)
        if self.runner.windows.active:
            check_positions(self.name, self.anatomy.streams, zip(recorded.numbers, recorded.calls, strict=True))
        check_layers(self.name, len(recorded.mixing), len(self.anatomy.mixer_places))
        check_calls(self.name, recorded.modules, self.anatomy.modules)
