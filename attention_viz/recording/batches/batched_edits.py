"""One text under many changes, in one batch with edits for each row."""

import contextlib
import inspect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.edits.edit import Edit, edited, edited_mixer, snapshots
from attention_viz.edits.places import check_places, concerns, concerns_mixer
from attention_viz.errors import UnsupportedModel, UnusableText
from attention_viz.inputs.device import device_of
from attention_viz.inputs.text import InputRow
from attention_viz.operation.numerics import REORDERED, close
from attention_viz.protocol.model import Model
from attention_viz.recording.batches.batch import Batch
from attention_viz.recording.gradients import ModelRun
from attention_viz.recording.mixers.listening import heard_mixers
from attention_viz.recording.mixers.record import MixerCall, MixerRecorder
from attention_viz.recording.recorder import Call, Recorder, whole_output
from attention_viz.recording.tracer import Tracer
from attention_viz.trace.slots import has_target
from attention_viz.trace.trace import Trace
from attention_viz.trace.trace_data import behind, by_row

# The encoder's output, from which a decoder's run can start; None if such a run gives another result. It is most of
# the work for audio, and no change of a decoder's heads touches it.
_encoded: "WeakKeyDictionary[Trace, Any]" = WeakKeyDictionary()
# A batch of so many tokens and rows fills the processor, and one of so many numbers doesn't fill the memory.
_TOKENS, _ROWS, _NUMBERS = 512, 24, 20_000_000
# Where one position of the output is enough, most decoders make few numbers, so that more rows fit.
_TOKENS_OF_ONE, _ROWS_OF_ONE, _NUMBERS_OF_ONE = 768, 64, 60_000_000


@dataclass(eq=False)
class BatchedMixers(MixerRecorder):
    """Recorder of a batch's layers without a softmax, with edits for each row; keeps only whose turn it was."""

    tries: Sequence[Sequence[Edit]] = ()

    def hear(self, call: MixerCall) -> Tensor:
        """Return the kernel's output, in edited rows our own."""
        call = self.placed(call)
        if call.mixer.shape[0] != len(self.tries):
            raise UnsupportedModel(f"{type(call.module).__name__} computes a batch differently from its rows")
        output = call.own_output
        if not call.label.isdigit():
            return output
        place = call.stream, int(call.label)
        for row, edits in enumerate(self.tries):
            here = [edit for edit in edits if concerns_mixer(edit, place, self.attending)]
            if here:
                mixer = edited_mixer(here, place, call.of_row(row), self.attending)
                output = output.clone() if output is call.own_output else output
                output[row] = call.shape_as(mixer.output[None])[0].to(output.dtype)
        return output


def run_again(before: Trace, edits: Sequence[Edit]) -> Tensor:
    """Return a run's output under edits, (position, width)."""
    run = behind(before).run
    if not isinstance(run, ModelRun):
        raise UnusableText(
            "can't repeat the run before the edits, since it has no text and wasn't recorded here; pass a trace of a "
            "text, or one recorded in this process"
        )
    check_places(edits, run.anatomy.layers, run.anatomy.mixers)
    taken, first = snapshots(edits, run.anatomy.real_rows(dict(run.inputs))), _encoder_calls(run)
    if first and not any(concerns(edit, place) for edit in taken for place in run.anatomy.places[:first]):
        if before not in _encoded:
            _encoded[before] = _encode(run, first, before)
        if _encoded[before] is not None:
            return _decode(run, first, _encoded[before], taken)
    return run.runner.record(run.inputs, taken, run.anatomy.places, keep=()).output[:]


def _encoder_calls(run: ModelRun) -> int:
    """Count the calls before the decoder's; 0 if the encoder can't be left out."""
    streams = [stream for stream, _ in run.anatomy.places]
    count = streams.count("encoder")
    return count if "encoder_outputs" in run.runner.named and streams[:count] == ["encoder"] * count else 0


def _encode(run: ModelRun, first: int, before: Trace) -> Any:
    """Return the encoder's output; None if the decoder needs more."""
    try:
        encoded = _hand_over(run)
        output = _decode(run, first, encoded, ())
    except Exception:  # whatever a model's own code says to being run in two parts, it is run whole then
        return None
    return encoded if close(output, before.output[:], REORDERED) else None


def _hand_over(run: ModelRun) -> Any:
    encoder: Any = run.runner.model.get_encoder()
    named = inspect.signature(encoder.forward).parameters
    inputs = {name: one for name, one in run.inputs.items() if name in named}
    with run.runner.hearing(Recorder((), run.anatomy.places, ())):
        return encoder(**inputs)


def _decode(run: ModelRun, first: int, encoded: Any, edits: Sequence[Edit]) -> Tensor:
    named = {name: one for name, one in run.inputs.items() if name.startswith("decoder_") or name == "attention_mask"}
    given: Any = {**named, "encoder_outputs": encoded}
    return run.runner.record(given, edits, run.anatomy.places[first:], keep=()).output[:]


def rows_at_once(before: Trace, only: int | None = None) -> int:
    """Return edited runs per batch, for one output position or all (None)."""
    tokens = len(before.query_tokens(before.streams[0]))
    if only is not None:
        return max(
            1, min(_ROWS_OF_ONE, _TOKENS_OF_ONE // tokens, _NUMBERS_OF_ONE // math.prod(before.output_shape)) - 1
        )
    return max(1, min(_ROWS, _TOKENS // tokens, _NUMBERS // math.prod(before.output_shape)))


def try_each(
    model: Model, before: Trace, tries: Sequence[Sequence[Edit]], only: int | None = None
) -> list[Float[Tensor, "position width"]]:
    """Return a run's output for each list of edits, in order.

    They run in one batch with an unedited row. If that doesn't match `before`, they run one by one; so do
    encoder–decoders, our own module, half precision, and inputs without text.

    Args:
        tries: at most `rows_at_once`.
        only: the wanted position, from 0: one row, less work in most decoders.
    """
    behind(before).check()
    origin = before.provenance
    is_text = origin.text is not None and origin.picture is None and origin.video is None
    several = is_text and (len(tries) > 1 or origin.generated > 0)
    outputs = model.run_batch(before, tries, only) if several else None
    if outputs is not None:
        return outputs
    as_typed = is_text and not origin.messages
    alone = [_alone(model, before, edits) if as_typed else run_again(before, edits) for edits in tries]
    return alone if only is None else [one[only : only + 1] for one in alone]


def _alone(model: Model, before: Trace, edits: Sequence[Edit]) -> Tensor:
    origin = before.provenance
    target = origin.target if has_target(before.attention_streams) and not origin.generated else None
    return model.trace(
        origin.text or "",
        origin.second_text,
        target=target,
        edits=edits,
        special_tokens=origin.special_tokens,
        chat=origin.chat,
    ).output


def batch_outputs(
    tracer: Tracer, reading: InputRow, before: Trace, tries: Sequence[Sequence[Edit]], only: int | None = None
) -> list[Tensor] | None:
    """Return each edit list's output, at `only` or all; None in half precision or if the unedited row differs."""
    for edits in tries:
        check_places(edits, tracer.anatomy.layers, tracer.anatomy.mixers)
    if by_row(before).dtype not in (torch.float32, torch.float64):
        return None
    try:
        outputs = _run_rows(tracer, reading, ((), *tries), only)
    except UnsupportedModel:
        return None
    there = before.output if only is None else by_row(before)[only : only + 1]
    if only is not None:
        outputs = [one[:, only : only + 1] if one.ndim == 3 and one.shape[1] > 1 else one for one in outputs]
    shape = (1 + len(tries), *there.shape)
    found = [one for one in outputs if one.shape == shape and close(one[0], there, REORDERED)]
    return list(found[0][1:]) if found else None


def _run_rows(tracer: Tracer, reading: InputRow, tries: Sequence[Sequence[Edit]], only: int | None) -> list[Tensor]:
    runner, rows = tracer.runner, len(tries)
    inputs = {name: torch.cat([row] * rows) for name, row in runner.inputs(reading.tensors).items()}
    settings: dict[str, Any] = {"use_cache": False} if "use_cache" in runner.named else {}
    if only is not None and "logits_to_keep" in runner.named:
        settings["logits_to_keep"] = torch.tensor([only], device=device_of(runner.model))
    places = tracer.anatomy.places

    def compute(number: int, call: Call) -> Tensor:
        output = whole_output(call.attention)
        for row, edits in enumerate(tries):
            here = [edit for edit in edits if concerns(edit, places[number])]
            if here:
                output[row] = edited(here, places[number], call.of_row(row).attention).output
        return output

    attending = frozenset(number for _, number in places)
    mixed = BatchedMixers(runner.mixing, attending=attending, tries=tries) if tracer.anatomy.mixers else None
    with (
        contextlib.nullcontext() if mixed is None else heard_mixers(runner.mixing, mixed),
        runner.hearing(Batch(places=places, rows=rows, compute_rows=compute)),
    ):
        result = runner.model(**inputs, **settings)
    returned = result if isinstance(result, tuple) else tuple(result.values())
    return [one for one in returned if isinstance(one, Tensor)]
