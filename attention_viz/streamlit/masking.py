"""A mask that the reader paints, and the run with it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor

from attention_viz.explorer.source import masks_source
from attention_viz.explorer.widgets.head_selection import Selection
from attention_viz.explorer.widgets.painted_mask import (
    SHOWN,
    PaintedMask,
    board_of,
    heard_mask,
    locked_words,
    mask_effect,
    mask_message,
    moved_by,
    refuse_unmaskable,
    run_masked,
)
from attention_viz.streamlit import mounting
from attention_viz.streamlit.packing import packed

if TYPE_CHECKING:
    from attention_viz.models.model import AttentionModel
    from attention_viz.trace.trace import Trace

__all__ = ["MaskedRun", "mask"]

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
    refuse_unmaskable(trace)
    of, name = packed(trace), mounting.name_of(key)
    message = mounting.stored(name, "choice")
    heard = None if message is None else {**message, **_without_half_pair(message)}
    shown, seen = mounting.follow(name, trace, of.id, heard, selection, of.opening)
    locked = locked_words(trace, shown.stream)
    chosen = PaintedMask() if locked or message is None else heard_mask(message, trace, shown.stream)
    allowed = chosen.cells(len(trace.query_tokens(shown.stream)))
    after = trace
    if allowed is not None:
        after = of.last((shown.stream, chosen), lambda: run_masked(model, trace, shown.stream, chosen))
    _draw(model, (trace, after), name, shown, chosen, {"seen": seen, "locked": locked, **_weights_of(message)})
    return MaskedRun(shown, allowed, after)


def _without_half_pair(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return an empty pair if the message has half of one; the component sends both or neither."""
    return {"query": None, "key": None} if message.get("query") is None or message.get("key") is None else {}


def _weights_of(message: Mapping[str, Any] | None) -> dict[str, str]:
    shown = None if message is None else message.get("weights")
    return {"weights": shown if shown in SHOWN else "difference"}


def _draw(
    model: "AttentionModel",
    runs: "tuple[Trace, Trace]",
    name: str,
    shown: Selection,
    chosen: PaintedMask,
    beside: Mapping[str, Any],
) -> None:
    trace, place = runs[0], (shown.stream, shown.layer, shown.head)
    of = packed(trace)
    board, data = of.made(("board", *place), lambda: board_of(trace, *place))
    effect = of.made(("mask", *place, chosen), lambda: mask_effect(model, *runs, place, moved_by(*runs, shown.stream)))
    _ = _masks(key=name, data=data, height="content", on_choice_change=mounting.nothing)
    link = list(of.pair(Selection(*place)))
    message = mask_message(model, trace, place, chosen)
    mounting.tell(name, shown, board=board, run=effect, link=link, **message, **beside)
