"""A mask that the reader paints, and the run with it."""

import base64
import binascii
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
from attention_viz.explorer.mask_payload import Likelihood, pack_board, run_of, written_bits
from attention_viz.explorer.source import masks_source
from attention_viz.explorer.widgets.head_selection import Selection
from attention_viz.operation import masks
from attention_viz.streamlit import mounting
from attention_viz.streamlit.packing import packed
from attention_viz.trace.spelling import set_apart

if TYPE_CHECKING:
    from attention_viz.models.model import AttentionModel
    from attention_viz.trace.trace import Trace

__all__ = ["MaskedRun", "mask"]

# Of a longer text no cells are sent.
_LONGEST = 512
_MASKS = ("none", "causal", "window", "prefix", "drawn")
_SHOWN = ("before", "after", "difference")
_CROSS = "cross"

_masks = mounting.register("masks", masks_source())


@dataclass(frozen=True)
class MaskedRun:
    """A painted mask, and the run with it.

    Attributes:
        selection: the chosen head, and the pair of tokens.
        allowed: the mask, (query, key), True if a query may attend to a key; None without a mask.
        trace: the run with the mask; without one, the trace itself.
    """

    selection: Selection
    allowed: Tensor | None
    trace: "Trace"


@dataclass(frozen=True)
class _Mask:
    """A chosen mask; `blocked` are the bytes of a drawn one's cells."""

    mask: str = "none"
    window: int = 2
    prefix: int = 2
    in_layer: int | None = None
    in_head: int | None = None
    blocked: bytes = b""

    def cells(self, count: int) -> Tensor | None:
        """Return the open cells; None for no mask."""
        if self.mask == "drawn":
            bits = numpy.unpackbits(numpy.frombuffer(self.blocked, numpy.uint8), count=count * count)
            return torch.from_numpy(bits.reshape(count, count) == 0)
        make = {
            "causal": lambda: masks.causal(count),
            "window": lambda: masks.sliding_window(count, self.window),
            "prefix": lambda: masks.prefix(count, self.prefix),
        }
        return make[self.mask]() if self.mask in make else None


def mask(
    model: "AttentionModel", trace: "Trace", *, key: str, selection: Selection | Mapping[str, Any] | None = None
) -> MaskedRun:
    """Let the reader paint a mask on a head's matrix, and run the model with it.

    Args:
        model: the trace's model.
        trace: an unedited run of one text, of 512 tokens at most.
        key: names this component on the page.
        selection: as in `explorer`.

    Raises:
        TraceError: the trace has edits, generated tokens, a chat, an image or audio, or no text; or `selection` has a
            stream or layer that it lacks.
        ShapeError: `selection` has a head or position that isn't there.
        ValueError: `selection` has an unknown name, or half a pair.
    """
    _refuse_others(trace)
    of, name = packed(trace), mounting.name_of(key)
    message = mounting.stored(name, "choice")
    heard = None if message is None else {**message, **_without_half_pair(message)}
    shown, seen = mounting.follow(name, trace, of.id, heard, selection, of.opening)
    tokens = trace.query_tokens(shown.stream)
    locked = _locked(shown.stream, len(tokens))
    chosen = _Mask() if locked else _chosen(message, trace, shown.stream, len(tokens))
    allowed = None if locked else chosen.cells(len(tokens))
    after = trace if allowed is None else _run(model, trace, shown, chosen, allowed)
    _draw(model, (trace, after), name, shown, chosen, {"seen": seen, "locked": locked, **_weights_of(message)})
    return MaskedRun(shown, allowed, after)


def _refuse_others(trace: "Trace") -> None:
    made = trace.provenance
    if made.text is None or made.edits or made.generated or made.chat or trace.seen.tensors:
        raise TraceError("a mask needs a run of plain text, without edits, generated tokens, chat, image or audio")


def _without_half_pair(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return an empty pair if the message has half of one; the component sends both or neither."""
    return {"query": None, "key": None} if message.get("query") is None or message.get("key") is None else {}


def _locked(stream: str, count: int) -> str:
    """Return why no mask can be painted; empty if one can."""
    if stream == _CROSS:
        return "Cross-attention reads two texts; these masks need one."
    if count > _LONGEST:
        return f"You can paint cells for up to {_LONGEST} tokens. This text has {count}."
    return ""


def _chosen(message: Mapping[str, Any] | None, trace: "Trace", stream: str, count: int) -> _Mask:
    """Return the browser's mask, if it is one for this text: a browser may send anything."""
    if message is None or message.get("mask") not in _MASKS:
        return _Mask()
    numbers = {name: message.get(name) for name in ("window", "prefix", "in_layer", "in_head")}
    window, prefix, layer, head = (one if type(one) is int and one >= 0 else None for one in numbers.values())
    layer = layer if layer in trace.layer_numbers(stream) else None
    if layer is not None and has_channels(trace, stream, layer):
        head = None
    if head is not None and head >= (trace.head_count(layer, stream) if layer is not None else 0):
        head = None
    blocked = _bytes(message.get("cells"), count)
    if message["mask"] == "drawn" and blocked is None:
        return _Mask()
    return _Mask(message["mask"], max(1, min(count, window or 1)), min(count, prefix or 0), layer, head, blocked or b"")


def _bytes(text: object, count: int) -> bytes | None:
    try:
        found = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except (binascii.Error, ValueError):
        return None
    return found if len(found) == -(-count * count // 8) else None


def _weights_of(message: Mapping[str, Any] | None) -> dict[str, str]:
    shown = None if message is None else message.get("weights")
    return {"weights": shown if shown in _SHOWN else "difference"}


def _run(model: "AttentionModel", trace: "Trace", shown: Selection, chosen: _Mask, allowed: Tensor) -> "Trace":
    made, several = trace.provenance, len(trace.streams) > 1
    edit = Allow(allowed, chosen.in_layer, chosen.in_head, shown.stream if several else None)
    return packed(trace).last(
        (shown.stream, chosen),
        lambda: model.trace(
            made.text or "", made.second_text, target=made.target, edits=[edit], special_tokens=made.special_tokens
        ),
    )


def _draw(
    model: "AttentionModel",
    runs: "tuple[Trace, Trace]",
    name: str,
    shown: Selection,
    chosen: _Mask,
    beside: Mapping[str, Any],
) -> None:
    trace, after = runs
    of = packed(trace)
    before, with_mask = (channels_together(one) if one.mixers else one for one in runs)
    head = 0 if has_channels(trace, shown.stream, shown.layer) else shown.head
    place = shown.stream, shown.layer, head
    board, data = of.made(("board", *place), lambda: pack_board(before, *place))
    effect = of.made(
        ("mask", *place, chosen), lambda: run_of(before, with_mask, *place, likelier=_likelier(model, trace, after))
    )
    _ = _masks(key=name, data=data, height="content", on_choice_change=mounting.nothing)
    cells = chosen.cells(len(trace.query_tokens(shown.stream)))
    at = _prediction(model, trace)
    words = trace.query_tokens(trace.streams[-1]).names
    mounting.tell(
        name,
        shown,
        board=board,
        link=list(of.pair(Selection(*place))),
        choice={one: getattr(chosen, one) for one in ("mask", "window", "prefix", "in_layer", "in_head")},
        added="" if cells is None else written_bits(cells.numpy()),
        predicts="" if at is None else f"Next token after “{set_apart(words[at])}”",
        elsewhere="",
        run=effect,
        **beside,
    )


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
