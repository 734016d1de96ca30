"""Changes to a model as text: few letters each in the address, and a sentence each on the page."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from attention_viz.edits.kinds import Edit
    from attention_viz.operation.attention import Attention
    from attention_viz.trace.tokens import Tokens
    from attention_viz.trace.trace import Trace

__all__ = [
    "CHANGES",
    "HIGHEST",
    "LOWEST",
    "MOST",
    "Cell",
    "Change",
    "describe",
    "misfit",
    "read_changes",
    "to_edits",
    "write_changes",
]

# What can be done, by its name in the address.
CHANGES = {
    "zero": "it says nothing",
    "mean": "it always says its average",
    "temp": "it looks more sharply or more evenly",
    "block": "one word may not look at another",
    "draw": "its weights become the drawn pattern",
}

# As many as a list on a page can tell, and the temperatures that a softmax shows a difference for.
MOST = 20
LOWEST, HIGHEST = 0.01, 100.0

Cell = tuple[int, int]

_STREAMS = {"encoder": "the encoder", "decoder": "the decoder", "cross": "cross-attention"}
_PART = re.compile(r"([a-z]+)(?::([^@]*))?(?:@(.+))?")
_PLACE = re.compile(
    r"(?P<stream>encoder|decoder|cross)?(?:(?(stream)\.)(?P<layer>[0-9]{1,4})(?:\.(?P<head>[0-9]{1,4}))?)?"
)
_CELL = re.compile(r"([0-9]{1,4})>([0-9]{1,4})")
_NUMBER = re.compile(r"[0-9]{1,3}(\.[0-9]{1,4})?")

_SHOWN_ROWS = 2
_ALLOWED = (
    "zero, mean, temp:0.5, block:4>5 or draw:2>4,3>4, each for all heads or with its place, such as @3 for a layer, "
    "@3.1 for a head, @cross.3.1 for one of a stream; several are parted by “;”"
)


@dataclass(frozen=True)
class Change:
    """One change of a model, as a person chose it.

    Attributes:
        what: a name in `CHANGES`.
        layer: the only layer that it is for, from 0; None for all.
        head: the only head, from 0; None for all of the layer.
        stream: "encoder", "decoder" or "cross"; None where a model has but one.
        value: the temperature, for "temp".
        cells: (query, key) positions, from 0: the one that is blocked, for "block"; those that are drawn, for "draw".
    """

    what: str
    layer: int | None = None
    head: int | None = None
    stream: str | None = None
    value: float = 1.0
    cells: tuple[Cell, ...] = ()


def write_changes(changes: Sequence[Change]) -> str:
    """The changes as one parameter of the address, such as "zero@3.1;temp:0.5@3;block:4>5"."""
    return ";".join(_written(change) for change in changes)


def read_changes(text: str) -> tuple[tuple[Change, ...], list[str]]:
    """What an address asks for, and a plain sentence for each part of it that can't be read.

    Args:
        text: the parameter, as anybody may have typed it.
    """
    changes, notices = list[Change](), list[str]()
    for part in (one.strip() for one in text.split(";")):
        change = _read(part) if part else None
        if change is not None and len(changes) < MOST:
            changes.append(change)
        elif change is not None:
            notices.append(f"The address asks for more than {MOST} changes; {_short(part)} is left out.")
        elif part:
            notices.append(f"The address asks for the change {_short(part)}, left out here. Allowed are {_ALLOWED}.")
    return tuple(changes), notices[:MOST]


def misfit(change: Change, trace: "Trace") -> str:
    """Why a change can't be made in this model and text, in words; empty where it can."""
    if change.stream not in trace.streams and (change.stream is not None or len(trace.streams) > 1):
        return f"this model has {', '.join(_STREAMS[stream] for stream in trace.streams)}"
    stream = _stream(change, trace)
    layers = trace.layer_count(stream)
    if change.layer is not None and change.layer >= layers:
        return f"this model has {_upto('layer', layers)}"
    if change.head is not None and change.head >= (heads := trace.head_count(change.layer or 0, stream)):
        return f"this layer has {_upto('head', heads)}"
    queries, keys = len(trace.query_tokens(stream)), len(trace.key_tokens(stream))
    if any(query >= queries or key >= keys for query, key in change.cells):
        columns = "" if keys == queries else f", and {_upto('position', keys)} to look at"
        return f"this text has {_upto('position', queries)}{columns}"
    if change.what == "draw" and any(_has_sink(one.sinks) for one in _calls(change, trace)):
        return "an attention sink takes a share of each row here, so rows that weren't drawn can't stay what they are"
    return ""


def describe(change: Change, trace: "Trace") -> str:
    """A change in plain words, with the tokens' names where the text has them."""
    subject, where = _place_words(change, trace)
    if change.what == "block":
        ((query, key),) = (_names(cell, change, trace) for cell in change.cells)
        return f"{query} may not look at {key} in {where}"
    if change.what == "draw":
        return f"{subject} looks where it was drawn: {_drawn_words(change, trace)}"
    if change.what == "temp":
        how = "as before" if change.value == 1 else "more sharply" if change.value < 1 else "more evenly"
        return f"{subject} looks {how} (temperature {change.value:g})"
    return f"{subject} {'says nothing (its output is 0)' if change.what == 'zero' else 'always says its average'}"


def to_edits(change: Change, trace: "Trace") -> "tuple[Edit, ...]":
    """What the change is to the model: for what edits only one head at a time, an edit for each head that is meant.

    Args:
        change: one that fits, as `misfit` tells.
        trace: the run before any change, of which a drawing keeps the rows that weren't drawn.
    """
    from attention_viz.edits.kinds import Ablate, Block, Replace, Temperature

    stream, (layer, head) = change.stream, (change.layer, change.head)
    if change.what == "temp":
        return (Temperature(change.value, layer, head, stream),)
    if change.what == "block":
        return tuple(Block(*cell, layer, head, stream) for cell in change.cells)
    if change.what == "draw":
        return tuple(Replace(*one, _drawn(change, trace, *one), stream) for one in _heads(change, trace))
    to = "zero" if change.what == "zero" else "mean"
    return tuple(Ablate(*one, to, stream) for one in _heads(change, trace))


def _written(change: Change) -> str:
    cells = ",".join(f"{query}>{key}" for query, key in change.cells)
    detail = {"temp": f"{change.value:.4f}".rstrip("0").rstrip("."), "block": cells, "draw": cells}.get(change.what)
    place = ".".join(str(part) for part in (change.stream, change.layer, change.head) if part is not None)
    return change.what + (f":{detail}" if detail is not None else "") + (f"@{place}" if place else "")


def _read(part: str) -> Change | None:
    """One part of the address; None for what can't be read."""
    found = _PART.fullmatch(part)
    place = None if found is None else _PLACE.fullmatch(found[3] or "")
    if found is None or place is None or found[1] not in CHANGES:
        return None
    layer, head = (None if place[name] is None else int(place[name]) for name in ("layer", "head"))
    return _DETAILS[found[1]](Change(found[1], layer, head, place["stream"]), found[2])


def _bare(change: Change, detail: str | None) -> Change | None:
    return change if detail is None else None


def _cooled(change: Change, detail: str | None) -> Change | None:
    value = float(detail) if detail is not None and _NUMBER.fullmatch(detail) else 0.0
    return replace(change, value=value) if LOWEST <= value <= HIGHEST else None


def _with_cells(change: Change, detail: str | None) -> Change | None:
    found = [_CELL.fullmatch(one.strip()) for one in (detail or "").split(",")]
    cells = {(int(one[1]), int(one[2])) for one in found if one is not None}
    if None in found or (change.what == "block" and len(cells) != 1):
        return None
    return replace(change, cells=tuple(sorted(cells)))


_DETAILS: dict[str, Callable[[Change, str | None], Change | None]] = {
    "zero": _bare,
    "mean": _bare,
    "temp": _cooled,
    "block": _with_cells,
    "draw": _with_cells,
}


def _stream(change: Change, trace: "Trace") -> str:
    """The stream that is meant; another model may not have it."""
    first, *_ = trace.streams
    return change.stream if change.stream in trace.streams else first


def _heads(change: Change, trace: "Trace") -> list[Cell]:
    """Layer and head of each head that is meant."""
    stream = _stream(change, trace)
    layers = range(trace.layer_count(stream)) if change.layer is None else [change.layer]
    every = [(layer, head) for layer in layers for head in range(trace.head_count(layer, stream))]
    return [one for one in every if change.head in (None, one[1])]


def _calls(change: Change, trace: "Trace") -> "list[Attention]":
    """The attention calls of the layers that are meant."""
    stream = _stream(change, trace)
    return [trace.attention(layer, stream) for layer in sorted({layer for layer, _ in _heads(change, trace)})]


def _has_sink(sinks: "Tensor | None") -> bool:
    return sinks is not None and bool((sinks > float("-inf")).any())


def _drawn(change: Change, trace: "Trace", layer: int, head: int) -> "Tensor":
    """A head's weights, with each row that was drawn shared evenly by its cells."""
    import torch

    one = trace.attention(layer, _stream(change, trace)).head(head)
    weights = one.weights.detach().cpu().double()
    drawn = torch.zeros(weights.shape, dtype=torch.bool)
    for cell in change.cells:
        drawn[cell] = True
    rows = drawn.any(dim=-1)
    weights[rows] = drawn[rows].double()
    # A row that looks at nothing stays one; of half a precision, a row's sum may be a little beside 1.
    sums = weights.sum(dim=-1, keepdim=True)
    return (weights / sums.where(sums > 0, 1)).float()


def _place_words(change: Change, trace: "Trace") -> tuple[str, str]:
    """Who it is that changes, as a sentence begins, and where that is."""
    several = f" of {_STREAMS[change.stream]}" if change.stream is not None and len(trace.streams) > 1 else ""
    if change.layer is None:
        return f"Every head{several}", f"all layers{several}"
    if change.head is None:
        return f"Every head of layer {change.layer}{several}", f"layer {change.layer}{several}"
    where = f"layer {change.layer}, head {change.head}{several}"
    return where.capitalize(), where


def _drawn_words(change: Change, trace: "Trace") -> str:
    from attention_viz.views.style.wording import listed

    rows: dict[int, list[Cell]] = {}
    for cell in change.cells:
        rows.setdefault(cell[0], []).append(cell)
    told = [
        f"{_names(cells[0], change, trace)[0]} at {listed([_names(cell, change, trace)[1] for cell in cells])}"
        for cells in list(rows.values())[:_SHOWN_ROWS]
    ]
    more = len(rows) - len(told)
    return "; ".join([*told, *([f"{more} more {'row' if more == 1 else 'rows'}"] if more else [])])


def _names(cell: Cell, change: Change, trace: "Trace") -> tuple[str, str]:
    """The two tokens of a cell, as the page writes them."""
    stream = _stream(change, trace)
    axes = (trace.query_tokens(stream), trace.key_tokens(stream))
    first, second = (_name(tokens, position) for tokens, position in zip(axes, cell, strict=True))
    return first, second


def _name(tokens: "Tokens", position: int) -> str:
    from attention_viz.views.style.wording import shortened, spelled

    if position >= len(tokens):
        return f"position {position}"
    label = tokens.labels[position]
    repeated = f" (position {position})" if tokens.labels.count(label) > 1 else ""
    return f"“{shortened(spelled(label))}”{repeated}"


def _upto(what: str, count: int) -> str:
    return f"only {what} 0" if count == 1 else f"{what}s 0 to {count - 1}"


def _short(part: str) -> str:
    return f"“{part if len(part) <= 40 else part[:39] + '…'}”"
