"""A trace's axes for the browser: tokens, and their groups."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from attention_viz.analysis.chat.table import SegmentAxis
from attention_viz.analysis.places import after_the_sound
from attention_viz.analysis.words import words_of
from attention_viz.errors import AttentionVizError
from attention_viz.explorer.seen import ImageSheet, on_sheet
from attention_viz.trace.kind import SLOT_STREAMS, Unit
from attention_viz.trace.slots import has_target
from attention_viz.trace.spelling import cut_characters

if TYPE_CHECKING:
    from attention_viz.trace.tokens import Tokens
    from attention_viz.trace.trace import Trace

# Generated tokens whose probabilities are computed; each takes a row of logits.
_MOST_CHANCES = 256


# The largest matrix of segments is this many rows.
MOST_SEGMENTS_DRAWN = 64


class PackedAxes:
    """Rows of tokens, packed once for all streams."""

    def __init__(self, generated: int, sheet: ImageSheet | None = None, chances: Sequence[float] = ()) -> None:
        """Begin empty; `generated` counts the model's own last tokens, and patches are named on the sheet.

        Args:
            chances: the probability that each generated token had, if known.
        """
        self.entries: list[dict[str, Any]] = []
        self._generated, self._sheet, self._chances = generated, sheet, list(chances)

    def add(self, tokens: "Tokens", stream: str) -> int:
        """Return an axis's number, packing it if new; an image's own stream has no generated tokens."""
        slots = list(zip(tokens.labels, tokens.slots, strict=True))
        entry: dict[str, Any] = {
            "labels": [Unit(slot).shortened(label) if slot else label for label, slot in slots],
            "special": places_of(tokens.special),
            "padding": places_of(tokens.padding),
        }
        silent = {*entry["special"], *entry["padding"]}
        if signs := [at for at in (~words_of(tokens).carrying).nonzero()[:, 0].tolist() if at not in silent]:
            entry["signs"] = signs
        if set(tokens.spelling) != {"unknown"}:
            entry["spelling"] = tokens.spelling[0] if len(set(tokens.spelling)) == 1 else list(tokens.spelling)
        if cut := cut_characters(tokens.labels, tokens.spelling):
            entry["characters"] = [[one.text, one.first, list(one.counts)] for one in cut]
        if 1 in tokens.sentence:
            entry["sentences"] = [[i for i, one in enumerate(tokens.sentence) if one == which] for which in (0, 1)]
        if self._generated and stream not in ("picture", *SLOT_STREAMS):
            entry["generated"] = list(range(max(0, len(tokens) - self._generated), len(tokens)))
            if len(self._chances) == len(entry["generated"]):
                entry["chances"] = self._chances
        if tokens.placed:
            entry["place"] = [None if place is None else list(place) for place in tokens.place]
            if (sheet := self._sheet) is not None:
                entry["named"] = [None if one is None else sheet.named(one) for one in tokens.regions]
        if any(tokens.slots):
            named = entry.get("named", [None] * len(tokens))
            entry["named"] = [label if slot else one for (label, slot), one in zip(slots, named, strict=True)]
        if entry not in self.entries:
            self.entries.append(entry)
        return self.entries.index(entry)


def places_of(marks: Iterable[bool]) -> list[int]:
    """Return the marked positions."""
    return [place for place, marked in enumerate(marks) if marked]


def packed_layers(trace: "Trace", stream: str) -> list[dict[str, Any]]:
    """Return each layer's name in the model, number and head count."""
    return [
        {"label": layer.label, "number": number, "heads": trace.head_count(number, stream)}
        for number, layer in zip(trace.layer_numbers(stream), trace.layers[stream], strict=True)
    ]


def segments_in_sight(trace: "Trace") -> SegmentAxis | None:
    """Return a chat's segments as the explorer draws them; None for other texts, and for more than it has room for."""
    stream = trace.text_stream
    known = (
        trace.segments and stream in trace.layers and len(trace.query_tokens(stream)) == len(trace.key_tokens(stream))
    )
    return SegmentAxis.of(trace) if known and len(trace.segments) <= MOST_SEGMENTS_DRAWN else None


def packed_segments(trace: "Trace", axis: SegmentAxis) -> dict[str, Any]:
    """Return the stream that segments are of, each one's name, start and end, and the columns' names."""
    spans = zip(axis.rows, trace.segments, strict=False)
    return {
        "stream": trace.text_stream,
        "spans": [[name, one.start, one.end] for name, one in spans],
        "rows": list(axis.rows),
        "columns": list(axis.columns),
    }


def in_sight(trace: "Trace", tokens: "Tokens") -> "Tokens":
    """Return the tokens, patches of several images on one sheet; frames after a sound's end become special."""
    tokens = on_sheet(trace, tokens)
    past = after_the_sound(trace.seen, tokens)
    if not any(past):
        return tokens
    special = tuple(one or after for one, after in zip(tokens.special, past, strict=True))
    return replace(tokens, special=special)


def chances_of(trace: "Trace") -> list[float]:
    """Return the probability that each generated token had, rounded; empty if unknown or if there are too many."""
    from attention_viz.inputs.chances import chances

    if not 0 < generated_by(trace) <= _MOST_CHANCES:
        return []
    try:
        return [float(f"{one:.4g}") for one in chances("", None, trace, None)["probability"]]
    except AttentionVizError:  # words were merged, or the model has changed since
        return []


def generated_by(trace: "Trace") -> int:
    """Count a text's generated tokens; 0 for an encoder–decoder, which has another axis."""
    return 0 if has_target(trace.attention_streams) else trace.provenance.generated
