"""A number's contributions for the Why page."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attention_viz.explorer.packet import Packet, read_packet

if TYPE_CHECKING:
    import pandas

    from attention_viz.trace.kind import Unit
    from attention_viz.trace.tokens import Tokens
    from attention_viz.trace.trace import Trace

# So many heads are listed, and of each head so many words that it took something from.
_LISTED, _SOURCES = 10, 40
# So many lines of a group are shown one by one; the others as one.
_LINES = 5
# A sum below this is rounding.
_SEEN = 1e-4


@dataclass(frozen=True)
class Question:
    """The question in words.

    Attributes:
        more: a positive number's meaning, such as "“Mary”".
        remainder: the rows' miss.
        at: the position that heads write to.
        side: of a score, else "output".
    """

    more: str
    less: str
    total: float
    remainder: float
    stream: str
    at: int
    side: str = "output"


def largest_heads(
    table: "pandas.DataFrame", side: str, count: int = _LISTED, stream: str | None = None
) -> list[tuple[int, int, float]]:
    """Return layer, head and contribution; largest first."""
    written = _heads(_rows(table), side, stream)
    best = sorted(written.items(), key=lambda one: -abs(one[1]))[:count]
    return [(layer, head, number) for (layer, head), number in best]


def pack_why(trace: "Trace", question: Question, table: "pandas.DataFrame", fetched: "pandas.DataFrame") -> bytes:
    """Pack a header alone; equal numbers give equal bytes."""
    stream, side = question.stream, question.side
    rows = [row for row in _rows(table) if row["side"] == side]
    several = len(trace.attention_streams) > 1
    written = _heads(rows, side, stream if several else None)
    taken = [row for row in _rows(fetched) if row["side"] == side and row["stream"] == stream]
    keys, at = trace.key_tokens(stream), question.at
    units = {"query": trace.query_tokens(stream).unit, "key": keys.unit}
    unit = units["key" if side == "key" else "query"]
    mlps = _sums((row["layer"], row["contribution"]) for row in rows if row["kind"] == "mlp")
    # A row for each layer of the model: those without attention have no heads, and may have an MLP.
    numbers = trace.layer_numbers(stream)
    layers = range(1 + max(*numbers, *(layer for layer in mlps if layer is not None)))
    heads = [trace.head_count(layer, stream) if layer in numbers else 0 for layer in layers]
    header = {
        "more": question.more,
        "less": question.less,
        "total": question.total,
        "remainder": question.remainder,
        "side": side,
        "at": at,
        "own": stream != "cross",
        "queries": _words(trace.query_tokens(stream)),
        "keys": _words(keys),
        "heads": heads,
        "map": [[_rounded(written.get((layer, head))) for head in range(many)] for layer, many in enumerate(heads)],
        "mlps": [_rounded(mlps.get(layer, 0.0)) for layer in layers],
        "groups": _groups(rows, written, mlps, unit),
        "unit": unit,
        "units": units,
        "words": _by_word(taken),
        "sources": _sources(trace, stream, at, taken),
        "listed": [list(head[:2]) for head in largest_heads(table, side, stream=stream if several else None)],
    }
    packet = Packet()
    # Names the number: what is told of it later is shown with no other.
    return packet.pack({**header, "name": packet.digest(header)})


def name_of(packed: bytes) -> str:
    """Return a packed number's name."""
    return read_packet(packed)[0]["name"]


def _rows(table: "pandas.DataFrame") -> list[dict[str, Any]]:
    columns = {name: [_known(one) for one in table[name].tolist()] for name in table}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _known(cell: Any) -> Any:
    return cell if isinstance(cell, (str, int, float)) else None


def _sums(pairs: Iterable[tuple[Any, float]]) -> dict[Any, float]:
    found: dict[Any, float] = {}
    for key, number in pairs:
        found[key] = found.get(key, 0.0) + number
    return found


def _heads(rows: Sequence[Mapping[str, Any]], side: str, stream: str | None) -> dict[tuple[int, int], float]:
    return _sums(
        ((row["layer"], row["head"]), row["contribution"])
        for row in rows
        if row["side"] == side and row["kind"] == "head" and (stream is None or row["stream"] == stream)
    )


def _groups(
    rows: Sequence[Mapping[str, Any]],
    heads: Mapping[tuple[int, int], float],
    mlps: Mapping[int | None, float],
    unit: "Unit",
) -> list[dict[str, Any]]:
    named = {
        "Heads": [(f"layer {layer}, head {head}", one, [layer, head]) for (layer, head), one in heads.items()],
        "MLPs": [("outside layers" if layer is None else f"layer {layer}", one, None) for layer, one in mlps.items()],
        "Layers without a softmax": [(name, one, None) for name, one in _mixers(rows).items()],
    }
    found: list[dict[str, Any]] = []
    for kind, parts in named.items():
        for sign, towards in ((1, "more"), (-1, "less")):
            chosen = [part for part in parts if part[1] * sign > 0]
            if chosen:
                found.append(_group(kind, towards, chosen))
    names = {
        "embedding": f"{unit.capitalize()} embedding",
        "position": "Position embedding",
        "bias": "Biases",
        "constant": "Constants",
        "other": "Other parts",
    }
    rest = _sums((str(row["kind"]), row["contribution"]) for row in rows if row["kind"] not in ("head", "mlp", "mixer"))
    found += [_group(names.get(kind) or kind, "", [(kind, number, None)]) for kind, number in rest.items()]
    # Heads of the model's other streams have no place in this one's map.
    elsewhere = sum(row["contribution"] for row in rows if row["kind"] == "head") - sum(heads.values())
    if abs(elsewhere) > _SEEN:
        found.append(_group("Other streams' heads", "", [("heads", elsewhere, None)]))
    return found


def _mixers(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Sum the rows of layers without a softmax by head, or by layer if channels have no rows of their own."""
    named = (
        (f"layer {row['layer']}" + ("" if row["head"] is None else f", head {row['head']}"), row["contribution"])
        for row in rows
        if row["kind"] == "mixer"
    )
    return _sums(named)


def _group(kind: str, towards: str, parts: Sequence[tuple[str, float, list[int] | None]]) -> dict[str, Any]:
    ordered = sorted(parts, key=lambda part: -abs(part[1]))
    lines = [{"label": label, "number": _rounded(one), "head": head} for label, one, head in ordered[:_LINES]]
    if others := ordered[_LINES:]:
        lines.append({"label": f"{len(others)} more", "number": _rounded(sum(one[1] for one in others)), "head": None})
    return {
        "kind": kind,
        "towards": towards,
        "sum": _rounded(sum(one for _, one, _ in parts)),
        "lines": lines if len(parts) > 1 else [],
    }


def _by_word(taken: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    sums = _sums((row["source"], row["contribution"]) for row in taken)
    ordered = sorted(sums.items(), key=lambda one: -abs(one[1]))
    lines: list[dict[str, Any]] = [{"at": at, "number": _rounded(one)} for at, one in ordered[: _LINES + 2]]
    if rest := ordered[len(lines) :]:
        lines.append({"at": None, "count": len(rest), "number": _rounded(sum(one for _, one in rest))})
    return lines


def _sources(
    trace: "Trace", stream: str, at: int, taken: Sequence[Mapping[str, Any]]
) -> dict[str, list[list[float | None]]]:
    """Return each head's main source words: position, weight, contribution."""
    by_head: dict[tuple[int, int], dict[int, float]] = {}
    for row in taken:
        by_head.setdefault((row["layer"], row["head"]), {})[row["source"]] = row["contribution"]
    found: dict[str, list[list[float | None]]] = {}
    for (layer, head), numbers in by_head.items():
        weights: list[float] = trace.weights(layer, head, stream)[at].tolist()
        best = sorted(range(len(weights)), key=lambda key: -max(weights[key], abs(numbers.get(key, 0.0))))[:_SOURCES]
        found[f"{layer} {head}"] = [[key, round(weights[key], 4), _rounded(numbers.get(key))] for key in sorted(best)]
    return found


def _words(tokens: "Tokens") -> list[str]:
    from attention_viz.trace.spelling import CONTINUES, SPACE

    return [word.strip(f"{SPACE}{CONTINUES}") or word for word in tokens.said]


def _rounded(number: float | None) -> float | None:
    """Round to six places, more than shown anywhere."""
    return 0.0 if number is None else round(number, 6)
