"""The painted mask's component and picture."""

import functools
import html
from collections.abc import Mapping
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from torch import Tensor

from attention_viz import views
from attention_viz.explorer import masks_source
from attention_viz.explorer.limits import LONGEST_DRAWN
from attention_viz.explorer.mask_payload import read_bits, written_bits
from attention_viz.serving.runs import Run
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import State
from attention_viz.ui.address.cells import Cells, to_code
from attention_viz.ui.controls.plot import add_targets, show_to_click
from attention_viz.ui.pages.masks.page import MASK_CHOICES, MASKS, SHOWN, MaskChoice
from attention_viz.ui.parts.explorer import show_channel
from attention_viz.ui.parts.layout import theme_name
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.selection import pair_of, take_head, take_pair
from attention_viz.ui.selection import SHARED
from attention_viz.views.figures.seen import blocked_patches, called

_KEY = "masks-board"

_board = widgets.component("masks", *masks_source())
# In pixels: the height of each figure beside the matrix, and the size of a clickable patch.
_HEIGHT, _TARGET = 272, 16


def show_board(
    packed: tuple[str, bytes],
    added: Tensor | None,
    choice: MaskChoice,
    place: tuple[int, int],
    pair: tuple[int | None, int | None],
    link: tuple[int, int],
    run: Mapping[str, Any] | None,
    *,
    locked: str = "",
    predicts: str = "",
    elsewhere: str = "",
) -> None:
    """Show the mask on a head's matrix, and receive choices.

    Args:
        packed: from `pack_board`; sent only when it changes.
        added: open cells, (query, key); None for everything.
        link: marked where no pair is chosen.
        run: from `run_of`.
        locked: the reason; empty if paintable.
        elsewhere: a stream that takes a mask, if this one takes none.
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
        link=list(link),
        seen=widgets.serial(_KEY),
        choice={name: getattr(choice, name) for name in ("mask", "window", "prefix", "in_layer", "in_head")},
        weights=choice.weights,
        added="" if rows_and_columns is None else written_bits(rows_and_columns),
        locked=locked,
        predicts=predicts,
        elsewhere=elsewhere,
        run=None if run is None else dict(run),
    )


def take_choice() -> None:
    """Take the component's choices, dropping invalid values."""
    message = widgets.sent(_KEY, "choice")
    # A browser may send anything.
    chosen: Mapping[str, Any] = message if isinstance(message, Mapping) else {}
    if (stream := chosen.get("stream")) is not None:
        _take_stream(stream)
        return
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


def _take_stream(stream: object) -> None:
    """Go to another stream, whose tokens are others, with a mask."""
    if stream not in tuple(visit.shared().facts.heads):
        return
    visit.pick(SHARED, stream=stream, query=None, key=None)
    if visit.chosen(MASK_CHOICES).mask == "none":
        visit.pick(MASK_CHOICES, mask="window" if stream == "decoder" else "causal")


def _cells(text: object, count: int) -> Cells | None:
    """Decode a square matrix's blocked cells, eight per byte; None if invalid."""
    return read_bits(text, count) if 1 <= count <= LONGEST_DRAWN else None


def show_masked_picture(before: Run, after: Run, state: State, choice: MaskChoice) -> DeltaGenerator:
    """Draw the weights on the image, blocked patches hatched; return the matrix's slot."""
    tokens = before.trace.key_tokens(before.stream(state.stream))
    if before.trace.seen.picture is None or not tokens.patches or len(before.trace.attention_streams) > 1:
        return st.container()
    left, right = st.columns([1, 2.6], gap="small")
    query, key = pair_of(before, state)
    with left.container(key="masked-picture", gap="xsmall"):
        with st.container(key="masked-before", gap="xsmall"):
            _show(before, "Before" if choice.mask != "none" else "Without a mask", query, key, state)
        if choice.mask != "none" and after is not before:
            with st.container(key="masked-after", gap="xsmall"):
                _show(after, "With the mask", query, key, state)
        _choose_others(before, key, state)
    return right.container()


def _show(run: Run, name: str, query: int, key: int, state: State) -> None:
    """Draw a run's image; a clicked patch becomes the query."""
    trace = run.trace
    layer, head = run.place(state.stream, state.layer, state.head)
    shut = int(blocked_patches(trace, layer, head, query).sum())
    tokens = trace.query_tokens()
    cells = {place: at for at, place in tokens.patches.items()}
    may = f"may not attend to {shut} of the {len(cells)} patches" if shut else "may attend to every patch"
    phrase = f"{name}: {called(tokens, query)} {may}"
    # On a phone, where the sentence above the matrix names the patch, a line has room for the number alone.
    short = f"{name}: {shut or 'none'} blocked"
    st.html(
        f'<p class="masked-told">{html.escape(phrase)}</p><p class="masked-told" aria-hidden="true">'
        f"{html.escape(short)}</p>"
    )
    figure = views.overlay(trace, layer, head, query, theme=theme_name())
    figure.update_layout(height=_HEIGHT, title_text="", margin={"t": 4, "b": 4, "l": 4, "r": 4}, annotations=[])
    add_targets(figure, list(cells), size=_TARGET)
    show_to_click(figure, f"masked-{name}", phrase, functools.partial(_take, cells, key))


def _take(cells: dict[tuple[int, int], int], key: int, cell: tuple[int, int]) -> None:
    take_pair(cells[cell], key)


def _choose_others(run: Run, key: int, state: State) -> None:
    """Choose positions that aren't patches, such as the class token."""
    tokens = run.trace.query_tokens()
    with st.container(key="masked-others", horizontal=True, gap="xsmall"):
        for at, place in enumerate(tokens.place):
            if place is None and not tokens.padding[at]:
                st.button(
                    plain(f"From {tokens.names[at]}"), key=f"masked-from-{at}", on_click=take_pair, args=(at, key)
                )
