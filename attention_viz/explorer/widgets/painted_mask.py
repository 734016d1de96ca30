"""A mask that a reader paints, as a host hears of it, and the run with it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy
import torch
from torch import Tensor

from attention_viz.analysis.arrived import channels_together
from attention_viz.analysis.signed import has_channels
from attention_viz.edits.effects import likelier
from attention_viz.edits.kinds.masks import Allow
from attention_viz.errors import AttentionVizError, TraceError
from attention_viz.explorer.limits import LONGEST_DRAWN
from attention_viz.explorer.mask_payload import (
    CROSSING,
    TWO_TEXTS,
    Likelihood,
    MaskEffect,
    mask_cells,
    moved_of,
    pack_board,
    read_bits,
    run_of,
    written_bits,
)
from attention_viz.trace.kind import CROSSING_STREAMS
from attention_viz.trace.spelling import set_apart

if TYPE_CHECKING:
    from attention_viz.models.model import AttentionModel
    from attention_viz.trace.trace import Trace

__all__ = [
    "SHOWN",
    "PaintedMask",
    "board_of",
    "heard_mask",
    "locked_words",
    "mask_effect",
    "mask_message",
    "moved_by",
    "refuse_unmaskable",
    "run_masked",
]

_MASKS = ("none", "causal", "window", "prefix", "drawn")
# The weights in the matrix.
SHOWN = ("before", "after", "difference")


@dataclass(frozen=True)
class PaintedMask:
    """A chosen mask; `blocked` are a drawn one's blocked cells, eight per byte."""

    mask: str = "none"
    window: int = 2
    prefix: int = 2
    in_layer: int | None = None
    in_head: int | None = None
    blocked: bytes = b""

    @classmethod
    def of(cls, allowed: Tensor) -> "PaintedMask":
        """Return a drawn mask, (query, key)."""
        return cls("drawn", blocked=numpy.packbits(~allowed.cpu().numpy()).tobytes())

    def cells(self, count: int) -> Tensor | None:
        """Return the open cells; None for no mask."""
        drawn = None
        if self.mask == "drawn":
            bits = numpy.unpackbits(numpy.frombuffer(self.blocked, numpy.uint8), count=count * count)
            drawn = torch.from_numpy(bits.reshape(count, count) == 0)
        return mask_cells(self.mask, count, self.window, self.prefix, drawn=drawn)


def refuse_unmaskable(trace: "Trace") -> None:
    """Refuse a trace whose text alone can't be run again."""
    made = trace.provenance
    # An encoder–decoder's generated tokens are its target's.
    generated = made.generated and made.target is None
    if made.text is None or made.edits or generated or made.chat or trace.seen.tensors:
        raise TraceError("a mask needs a run of plain text, without edits, generated tokens, chat, image or audio")


def locked_words(trace: "Trace", stream: str) -> str:
    """Return why no mask can be painted; empty if one can."""
    count = len(trace.query_tokens(stream))
    if stream == "cross":
        return TWO_TEXTS
    if stream in CROSSING_STREAMS:
        return CROSSING
    if count > LONGEST_DRAWN:
        return f"You can paint cells for up to {LONGEST_DRAWN} tokens. This text has {count}."
    return ""


def heard_mask(message: Mapping[str, Any], trace: "Trace", stream: str) -> PaintedMask:
    """Return the browser's mask; none if it isn't one for this text, since a browser may send anything."""
    count = len(trace.query_tokens(stream))
    blocked = read_bits(message.get("cells"), count)
    if message.get("mask") not in _MASKS or (message["mask"] == "drawn" and blocked is None):
        return PaintedMask()
    numbers = (message.get(name) for name in ("window", "prefix", "in_layer", "in_head"))
    window, prefix, layer, head = (one if type(one) is int and one >= 0 else None for one in numbers)
    layer = layer if layer in trace.layer_numbers(stream) else None
    if layer is None or has_channels(trace, stream, layer) or (head or 0) >= trace.head_count(layer, stream):
        head = None
    cells = numpy.packbits(blocked).tobytes() if message["mask"] == "drawn" and blocked is not None else b""
    return PaintedMask(message["mask"], max(1, min(count, window or 1)), min(count, prefix or 0), layer, head, cells)


def run_masked(model: "AttentionModel", trace: "Trace", stream: str, mask: PaintedMask) -> "Trace":
    """Run a trace's text with a mask; without one, return the trace."""
    allowed = mask.cells(len(trace.query_tokens(stream)))
    if allowed is None:
        return trace
    made, several = trace.provenance, len(trace.streams) > 1
    edit = Allow(allowed, mask.in_layer, mask.in_head, stream if several else None)
    return model.trace(
        made.text or "", made.second_text, target=made.target, edits=[edit], special_tokens=made.special_tokens
    )


def board_of(trace: "Trace", stream: str, layer: int, head: int) -> tuple[str, bytes]:
    """Pack an unmasked head; a layer's channels are one."""
    return pack_board(_together(trace), *_place(trace, stream, layer, head))


def moved_by(before: "Trace", after: "Trace", stream: str) -> MaskEffect:
    """Return a mask's effect on all heads; slow for a long text."""
    drawn = _together(before)
    return moved_of(drawn, drawn if after is before else _together(after), stream)


def mask_effect(
    model: "AttentionModel", before: "Trace", after: "Trace", place: tuple[str, int, int], moved: MaskEffect
) -> dict[str, Any]:
    """Return the run with a mask, as a head draws it."""
    shown = _place(before, *place)
    return run_of(_together(before), _together(after), *shown, _likelier(model, before, after), moved)


def mask_message(
    model: "AttentionModel", trace: "Trace", place: tuple[str, int, int], mask: PaintedMask
) -> dict[str, Any]:
    """Return the message's part that no run is needed for."""
    cells = mask.cells(len(trace.query_tokens(place[0])))
    at, words = _prediction(model, trace), trace.query_tokens(trace.streams[-1]).names
    return {
        "choice": {name: getattr(mask, name) for name in ("mask", "window", "prefix", "in_layer", "in_head")},
        "added": "" if cells is None else written_bits(cells.numpy()),
        "predicts": "" if at is None else f"Next token after “{set_apart(words[at])}”",
        "elsewhere": "",
    }


def _place(trace: "Trace", stream: str, layer: int, head: int) -> tuple[str, int, int]:
    return stream, layer, 0 if has_channels(trace, stream, layer) else head


def _together(trace: "Trace") -> "Trace":
    return channels_together(trace) if trace.mixers else trace


def _prediction(model: "AttentionModel", trace: "Trace") -> int | None:
    """Return the position that the next token follows; None if the model reads in both directions."""
    return len(trace.output) - 1 if model.facts.predicts and model.facts.continues_text else None


def _likelier(model: "AttentionModel", before: "Trace", after: "Trace") -> list[Likelihood]:
    at = _prediction(model, before)
    if at is None:
        return []
    try:
        found = likelier(before, after, at)
    except AttentionVizError:
        return []
    labels = model.labels([number for number, *_ in found])
    write = before.query_tokens(before.streams[-1]).write
    return [Likelihood(write(label), old, new) for label, (_, old, new) in zip(labels, found, strict=True)]
