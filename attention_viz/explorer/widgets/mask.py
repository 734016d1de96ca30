"""A mask as a widget: its cells, and the weights before and after."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attention_viz.analysis.findings.link import link_of
from attention_viz.circuits.opened import run_behind
from attention_viz.edits.kinds.masks import Allow
from attention_viz.errors import AttentionVizError, ShapeError, TraceError
from attention_viz.explorer.mask_payload import MaskEffect
from attention_viz.explorer.page import Opening
from attention_viz.explorer.source import embedded, masks_source
from attention_viz.explorer.widgets.code import component_code
from attention_viz.explorer.widgets.component import ComponentWidget
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
from attention_viz.trace.spelling import xml_text
from attention_viz.views.export.svg import heatmap_svg

if TYPE_CHECKING:
    from torch import Tensor

    from attention_viz.models.model import AttentionModel
    from attention_viz.trace.trace import Trace

__all__ = ["PaintedMaskWidget"]


class PaintedMaskWidget(ComponentWidget):
    """One head with a mask that Python sets and the reader paints."""

    def __init__(self, model: "AttentionModel", trace: "Trace", allowed: "Tensor | None", opening: Opening) -> None:
        """Run the text with the mask."""
        _ = run_behind(model, trace)
        refuse_unmaskable(trace)
        self._model, self._weights, self._refused = model, "difference", ""
        self._stream = opening.selection["stream"]
        self._mask, self._after = PaintedMask(), trace
        self._moved: MaskEffect | None = None
        self._board: tuple[tuple[str, int, int], tuple[str, bytes]] | None = None
        super().__init__(trace, component_code(embedded(masks_source())), opening.theme, opening.selection)
        _ = self._packed()
        if allowed is not None:
            self.allowed = allowed

    def __repr__(self) -> str:
        """Return model, head and mask."""
        chosen, mask = self.selection, self._mask.mask
        head = f"layer {chosen['layer']}, head {chosen['head']}"
        return f"<mask of {self._trace.provenance.model!r}: {head}, mask {mask}>"

    @property
    def trace(self) -> "Trace":
        """The run with the mask; without one, the trace itself."""
        return self._after

    @property
    def allowed(self) -> "Tensor | None":
        """The mask, (query, key); None without one."""
        return self._mask.cells(len(self._trace.query_tokens(self._stream)))

    @allowed.setter
    def allowed(self, wanted: "Tensor | None") -> None:
        """Run the model with another mask, or with none."""
        with self._lock:
            if wanted is not None:
                self._check_allowed(wanted)
            self._put(PaintedMask() if wanted is None else PaintedMask.of(wanted))
            self._refused = ""
            self._show_mask()

    def saved_picture(self) -> tuple[str, str]:
        """Return the chosen head with the mask as an SVG document, and its name."""
        picture, words = super().saved_picture()
        if self._after is self._trace:
            return picture, words
        stream, layer, head = (self._chosen[name] for name in ("stream", "layer", "head"))
        return heatmap_svg(self.trace, layer, head, stream), f"{words}, with a mask"

    def _check_allowed(self, wanted: "Tensor") -> None:
        if locked := locked_words(self._trace, self._stream):
            raise TraceError(locked)
        _ = Allow(wanted)
        count = len(self._trace.query_tokens(self._stream))
        if tuple(wanted.shape) != (count, count):
            raise ShapeError(f"the mask of this text is {count} × {count}; got {tuple(wanted.shape)}")

    def _put(self, mask: PaintedMask) -> None:
        if mask != self._mask:
            self._after = run_masked(self._model, self._trace, self._stream, mask)
            self._mask, self._moved = mask, None

    def _show_mask(self) -> None:
        if self._shown:
            self._messages = self._told()
        self._draw_saved()

    def _place(self) -> tuple[str, int, int]:
        stream, layer, head = (self._chosen[name] for name in ("stream", "layer", "head"))
        return stream, layer, head

    def _packed_board(self) -> tuple[str, bytes]:
        place = self._place()
        if self._board is None or self._board[0] != place:
            self._board = place, board_of(self._trace, *place)
        return self._board[1]

    def _packed(self) -> bytes:
        return self._packed_board()[1]

    def _told(self) -> list[dict[str, Any]]:
        (shown,) = super()._told()
        place, locked = self._place(), self._refused or locked_words(self._trace, self._stream)
        self._moved = self._moved or moved_by(self._trace, self._after, self._stream)
        effect = mask_effect(self._model, self._trace, self._after, place, self._moved)
        link = list(link_of(self._trace, *place))
        beside = {
            "link": link,
            "board": self._packed_board()[0],
            "weights": self._weights,
            "locked": locked,
            "run": effect,
        }
        return [{**shown, **mask_message(self._model, self._trace, place, self._mask), **beside}]

    def _follow(self) -> None:
        if self._chosen["stream"] != self._stream:
            # Another stream's tokens are others.
            self._stream = self._chosen["stream"]
            self._mask, self._after, self._moved = PaintedMask(), self._trace, None
        super()._follow()

    def _choose(self, choice: Mapping[str, Any]) -> None:
        super()._choose(choice)
        if choice.get("weights") in SHOWN:
            self._weights = choice["weights"]
        if not locked_words(self._trace, self._stream):
            try:
                self._put(heard_mask(choice, self._trace, self._stream))
                self._refused = ""
            except AttentionVizError as error:
                self._refused = xml_text(str(error))
        self._show_mask()
