"""The painted mask's browser component: its input and the reader's choices."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import numpy
from streamlit.components import v2 as components
from torch import Tensor

from attention_viz.explorer import masks_source
from attention_viz.explorer.mask_payload import written_bits
from attention_viz.ui import visit, widgets
from attention_viz.ui.address.cells import LONGEST_DRAWN, Cells, to_code
from attention_viz.ui.pages.masks.choice import MASK_CHOICES, MASKS, SHOWN, MaskChoice
from attention_viz.ui.parts.explorer import show_channel
from attention_viz.ui.parts.selection import take_head, take_pair

__all__ = ["show_board", "take_choice"]

_KEY = "masks-board"

# Registered once, when the module is imported: a component's name stands for its code from then on.
_html, _css, _js = masks_source()
_board = components.component("attention_viz_masks", html=_html, css=_css, js=_js)


def show_board(
    packed: tuple[str, bytes],
    added: Tensor | None,
    choice: MaskChoice,
    place: tuple[int, int],
    pair: tuple[int | None, int | None],
    run: Mapping[str, Any] | None,
    *,
    locked: str = "",
    predicts: str = "",
) -> None:
    """Show the mask on a head's matrix, and receive choices.

    Args:
        packed: from `pack_board`; sent only when it changes.
        added: open cells, (query, key); None for everything.
        run: from `run_of`; None if there is none.
        locked: the reason; empty if paintable.
    """
    board, data = packed
    _board(key=_KEY, data=data, height="content", on_choice_change=take_choice)
    layer, head = place
    rows_and_columns = None if added is None else added.cpu().numpy()
    show_channel(
        _KEY,
        board=board,
        layer=layer,
        head=head,
        query=pair[0],
        key=pair[1],
        seen=widgets.whole(widgets.sent(_KEY, "choice"), "serial") or 0,
        choice={name: getattr(choice, name) for name in ("mask", "window", "prefix", "in_layer", "in_head")},
        weights=choice.weights,
        added="" if rows_and_columns is None else written_bits(rows_and_columns),
        locked=locked,
        predicts=predicts,
        run=None if run is None else dict(run),
    )


def take_choice() -> None:
    """Take the component's choices into the page's, dropping invalid values."""
    message = widgets.sent(_KEY, "choice")
    # A browser may send anything.
    chosen: Mapping[str, Any] = message if isinstance(message, Mapping) else {}
    found: dict[str, Any] = {name: widgets.whole(chosen, name) for name in ("window", "prefix")}
    found = {name: number for name, number in found.items() if number is not None}
    found |= {name: widgets.whole(chosen, name) for name in ("in_layer", "in_head")}
    if chosen.get("mask") in MASKS:
        found["mask"] = chosen["mask"]
    if chosen.get("weights") in SHOWN:
        found["weights"] = chosen["weights"]
    if chosen.get("mask") == "drawn" and chosen.get("cells") is not None:
        cells = _cells(chosen.get("cells"), widgets.whole(chosen, "count") or 0)
        if cells is None:
            return
        found["cells"] = to_code(cells) if cells.any() else ""
    visit.pick(MASK_CHOICES, **found)
    pair = widgets.whole(chosen, "query"), widgets.whole(chosen, "key")
    layer, head = widgets.whole(chosen, "layer"), widgets.whole(chosen, "head")
    if layer is None or head is None:
        take_pair(*pair)
    else:
        take_head(layer, head, pair=pair)


def _cells(text: object, count: int) -> Cells | None:
    """Decode a square matrix's blocked cells, eight a byte; None if invalid."""
    if not isinstance(text, str) or not 1 <= count <= LONGEST_DRAWN:
        return None
    try:
        packed = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    if len(packed) != -(-count * count // 8):
        return None
    bits = numpy.unpackbits(numpy.frombuffer(packed, dtype=numpy.uint8), count=count * count)
    return bits.reshape(count, count).astype(bool)
