"""Wording of changes: subject, place and tokens."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attention_viz.edits.change import Cell, Change, Spell, stream_of
from attention_viz.trace.kind import stream_kind

if TYPE_CHECKING:
    from attention_viz.trace.tokens import Tokens
    from attention_viz.trace.trace import Trace

# The prefix of a provenance note on evicted keys.
EVICTION = "evict: "

# Each kind of stream in a sentence.
_STREAMS = {
    "encoder": "the encoder",
    "decoder": "the decoder",
    "cross": "cross-attention",
    "picture": "the image",
    "sound": "the audio",
    "pooling": "pooling",
    "slots": "the slots",
    "readout": "the readout",
    "mixer": "the mixer",
}

_SHOWN_ROWS = 2


def stream_words(stream: str) -> str:
    """Return a stream in a sentence, such as "the slots" or "the slots 2"."""
    kind = stream_kind(stream)
    return _STREAMS.get(kind, f"the {kind}") + stream.removeprefix(kind)


def listed(parts: Sequence[str]) -> str:
    """Join words: "one", "one and two", "one, two and three"."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def subject_of(change: Change, trace: "Trace") -> str:
    """Return a change's subject, to begin a sentence."""
    several = _several(change, trace)
    if change.layer is None:
        return f"Every head{several}"
    if change.head is None:
        return f"Every head of layer {change.layer}{several}"
    return place_of(change, trace).capitalize()


def place_of(change: Change, trace: "Trace") -> str:
    """Return a change's place, to continue a sentence."""
    if change.layer is None:
        return f"all layers{_several(change, trace)}"
    head = "" if change.head is None else f", head {change.head}"
    return f"layer {change.layer}{head}{_several(change, trace)}"


def tokens_of(cell: Cell, change: Change, trace: "Trace", spell: Spell) -> tuple[str, str]:
    """Name a cell's query and key by token; by position if absent."""
    stream = stream_of(change, trace)
    axes = (trace.query_tokens(stream), trace.key_tokens(stream))
    first, second = (_token(tokens, position, spell) for tokens, position in zip(axes, cell, strict=True))
    return first, second


def rows_of_cells(change: Change, trace: "Trace", spell: Spell) -> str:
    """Group a change's cells by query."""
    rows: dict[int, list[Cell]] = {}
    for cell in change.cells:
        rows.setdefault(cell[0], []).append(cell)
    named = [[tokens_of(cell, change, trace, spell) for cell in cells] for cells in list(rows.values())[:_SHOWN_ROWS]]
    parts = [f"{cells[0][0]} to {listed([key for _, key in cells])}" for cells in named]
    more = len(rows) - len(parts)
    return "; ".join([*parts, *([f"{more} more {'row' if more == 1 else 'rows'}"] if more else [])])


def _several(change: Change, trace: "Trace") -> str:
    if change.stream is None or len(trace.streams) < 2:
        return ""
    return f" of {stream_words(change.stream)}"


def _token(tokens: "Tokens", position: int, spell: Spell) -> str:
    if position >= len(tokens):
        return f"position {position}"
    return tokens.placed_at(position) or f"“{spell(tokens.names[position])}”"


def is_eviction(edit: str) -> bool:
    """Return whether a provenance edit evicted keys from a cache."""
    return edit.startswith(EVICTION)
