"""A run repeated under edits, from its picture, sound or ids."""

import inspect
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from torch import Tensor

from attention_viz.edits.edit import Edit, snapshots
from attention_viz.edits.places import check_places, concerns
from attention_viz.errors import UnusableText
from attention_viz.inputs.padding import unpadded
from attention_viz.recording.gradients import ModelRun
from attention_viz.recording.recorder import Recorder
from attention_viz.trace.trace import Trace
from attention_viz.trace.trace_data import behind

__all__ = ["run_again"]

# How far a run that leaves its encoder out may be from the whole one, relative to the output's largest number.
_ROUNDING = 1e-4

# What the encoder of a run hands over to its decoder; None where a run that begins there comes out otherwise. It is
# most of the work of a sound, and no change of a decoder's heads touches it.
_encoded: "WeakKeyDictionary[Trace, Any]" = WeakKeyDictionary()


def run_again(before: Trace, edits: Sequence[Edit]) -> Tensor:
    """Return a recorded run's output under edits, (position, width)."""
    run = behind(before).run
    if not isinstance(run, ModelRun):
        raise UnusableText(
            "the run before the edits is of no text, and comes from a file or was made of another trace, so it can't "
            "be run again; needed: a trace of a text, or one that was recorded here"
        )
    check_places(edits, run.anatomy.layers)
    real = {stream: unpadded(stream, dict(run.inputs)) for stream in run.anatomy.layers}
    taken, first = snapshots(edits, real), _encoder_calls(run)
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
    """Run the whole, and return the encoder's output; None if the decoder needs more."""
    try:
        encoded = _hand_over(run)
        output = _decode(run, first, encoded, ())
    except Exception:  # whatever a model's own code says to being run in two parts, it is run whole then
        return None
    there = before.output[:]
    same = output.shape == there.shape and bool((output - there).abs().max() <= _ROUNDING * there.abs().max())
    return encoded if same else None


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
