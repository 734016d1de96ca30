"""Changes that only layers without a softmax have."""

from attention_viz.edits.change import Change, EditKind, NumberDetail, Spell, stream_of
from attention_viz.edits.mixing import Decay, Skip
from attention_viz.edits.words import place_of
from attention_viz.trace.trace import Trace

__all__ = ["KINDS"]

# Kinds that keep no state between tokens.
_STATELESS = ("convolution", "Fourier", "YOSO")


def _stream(change: Change, trace: Trace) -> str:
    return stream_of(change, trace)


def _skipped(change: Change, trace: Trace, spell: Spell) -> str:
    position, tokens = int(change.number), trace.query_tokens(_stream(change, trace))
    named = f"“{spell(tokens.names[position])}”" if position < len(tokens) else f"position {position}"
    return f"{named} is skipped in {place_of(change, trace)}: it is neither written nor decays anything"


def _misfit(change: Change, trace: Trace) -> str:
    stream = _stream(change, trace)
    for layer, one in zip(trace.layer_numbers(stream), trace.mixers[stream], strict=True):
        if change.layer in (None, layer) and one.mixer.kind in _STATELESS:
            return f"layer {layer} ({one.mixer.kind}) keeps no memory"
        if change.layer in (None, layer) and change.what == "decay" and one.mixer.decay is None:
            return f"layer {layer} ({one.mixer.kind}) has no decay"
    count = len(trace.query_tokens(stream))
    return f"this text has positions 0 to {count - 1}" if change.what == "skip" and change.number >= count else ""


KINDS = (
    EditKind(
        name="skip",
        label="skip a token",
        asks=NumberDetail("Skipped position", 0, 999, 1, 1),
        example="skip:3",
        words=_skipped,
        short=lambda change: f"without token {int(change.number)}",
        make=lambda change, trace: (Skip(int(change.number), change.layer, change.head, _stream(change, trace)),),
        misfit=_misfit,
        fits=("mixer",),
    ),
    EditKind(
        name="decay",
        label="decay × factor",
        asks=NumberDetail("Decay factor", 0, 100, 0.5, 0.5),
        example="decay:0.5",
        words=lambda change, trace, spell: (
            f"the decays of {place_of(change, trace)} are taken times {change.number:g} in the logarithm"
        ),
        short=lambda change: f"with decays × {change.number:g}",
        make=lambda change, trace: (Decay(change.number, change.layer, change.head, _stream(change, trace)),),
        misfit=_misfit,
        fits=("mixer",),
    ),
)
