"""A number's contributions for the Why page."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attention_viz.explorer.packet import Packet, read_packet
from attention_viz.explorer.seen import pictures_beside
from attention_viz.trace.kind import CROSSING_STREAMS, Unit

if TYPE_CHECKING:
    import pandas
    from torch import Tensor

    from attention_viz.circuits.asked import Score
    from attention_viz.circuits.layers.first_layer import SplitScores
    from attention_viz.trace.tokens import Tokens
    from attention_viz.trace.trace import Trace

# So many heads are listed, and of each head so many words that it took something from.
_LISTED, _SOURCES = 10, 40
# So many beside images, whose patches are drawn in them.
_PATCHES = 256
# So many lines of a group are shown one by one; the others as one.
_LINES = 5
# Rows of parts that carry values between positions, and the name of those without a softmax.
_MIXING, _WITHOUT = ("head", "mixer"), "Mixers"
# A sum below this is rounding.
_SEEN = 1e-4


@dataclass(frozen=True)
class Question:
    """The question in words.

    Attributes:
        more: a positive number's meaning, such as "“Mary”".
        remainder: the rows' miss.
        streams: those of the heads in the map, as `streams_beside` returns them.
        at: the position that heads write to.
        side: of a score, else "output".
        pair: a score's layer, query and key.
    """

    more: str
    less: str
    total: float
    remainder: float
    streams: Sequence[str]
    at: int
    side: str = "output"
    pair: tuple[int, int, int] | None = None


def streams_beside(trace: "Trace", stream: str) -> tuple[str, ...]:
    """Return the streams that share a map with this one: all of them if they have one input and no layer twice."""
    layers = [layer for one in trace.streams for layer in trace.layer_numbers(one)]
    alone = len(trace.attention_streams) > 1 or len(set(layers)) < len(layers)
    return (stream,) if alone else trace.streams


def stream_of(trace: "Trace", streams: Sequence[str], layer: int) -> str:
    """Return the stream that has a layer."""
    return next((one for one in streams if layer in trace.layer_numbers(one)), streams[0])


def largest_heads(
    table: "pandas.DataFrame", side: str, count: int = _LISTED, streams: Sequence[str] = ()
) -> list[tuple[int, int, float]]:
    """Return layer, head and contribution; largest first. All channels of a layer count as its head 0."""
    written = _heads(_rows(table), side, streams)
    best = sorted(written.items(), key=lambda one: -abs(one[1]))[:count]
    return [(layer, head, number) for (layer, head), number in best]


def pack_why(
    trace: "Trace",
    question: Question,
    table: "pandas.DataFrame",
    fetched: "pandas.DataFrame",
    split: Mapping[str, Any] | None = None,
) -> bytes:
    """Pack a header alone; equal numbers give equal bytes. `split` is that of a score that no head wrote."""
    streams, side, at = question.streams, question.side, question.at
    rows = [row for row in _rows(table) if row["side"] == side]
    written = _heads(rows, side, streams)
    taken = [row for row in _rows(fetched) if row["side"] == side and row["stream"] in streams]
    queries, keys = trace.query_tokens(streams[0]), trace.key_tokens(streams[0])
    seen = pictures_beside(trace, keys)
    units = {"query": queries.unit, "key": keys.unit} if seen is None else {"query": Unit.WORD, "key": Unit.WORD}
    unit = (keys if side == "key" else queries).units[at]
    mlps = _sums((row["layer"], row["contribution"]) for row in rows if row["kind"] == "mlp")
    # A row for each layer of the model: those without attention have no heads, and may have an MLP.
    kinds = _kinds(trace, streams)
    layers = range(1 + max([*kinds, *(layer for layer in mlps if layer is not None)]))
    heads = [kinds[layer][1] if layer in kinds else 0 for layer in layers]
    sources, sizes, over = _sources(trace, streams, at, taken, seen["boxes"] if seen else ())
    header = {
        "more": question.more,
        "less": question.less,
        "total": question.total,
        "remainder": question.remainder,
        "side": side,
        "pair": question.pair,
        "at": at,
        "own": streams[0] not in CROSSING_STREAMS,
        "queries": _words(queries),
        "keys": _words(keys),
        "specials": {"query": _specials(queries), "key": _specials(keys)},
        "spoken": {"query": _spoken(queries), "key": _spoken(keys)},
        "heads": heads,
        "kinds": [kinds[layer][0] if layer in kinds else "" for layer in layers],
        "channels": [layer for layer in kinds if kinds[layer][2]],
        "map": [[_rounded(written.get((layer, head))) for head in range(many)] for layer, many in enumerate(heads)],
        "mlps": [_rounded(mlps.get(layer, 0.0)) for layer in layers],
        "groups": _groups(rows, written, mlps, unit, kinds, net=not question.less),
        "unit": unit,
        "units": units,
        "words": _by_word(taken),
        "sources": sources,
        "sizes": sizes,
        "listed": [list(head[:2]) for head in largest_heads(table, side, streams=streams)],
        "split": split,
        "seen": None if seen is None else seen | {"over": over},
    }
    packet = Packet()
    # Names the number: what is told of it later is shown with no other.
    return packet.pack({**header, "name": packet.digest(header)})


def layer_heads(trace: "Trace", streams: Sequence[str]) -> dict[int, int]:
    """Return the number of heads of each layer in the map; all channels of a layer count as one."""
    return {layer: heads for layer, (_, heads, _) in _kinds(trace, streams).items()}


def _kinds(trace: "Trace", streams: Sequence[str]) -> dict[int, tuple[str, int, bool]]:
    """Return each layer's kind without a softmax, or "", its heads, and whether one stands for all its channels."""
    # Without torch until there is a trace.
    from attention_viz.analysis.signed import mixer_of

    found: dict[int, tuple[str, int, bool]] = {}
    for stream in streams:
        for layer in trace.layer_numbers(stream):
            if stream not in trace.mixers:
                found[layer] = ("", trace.head_count(layer, stream), False)
                continue
            mixer = mixer_of(trace, stream, layer)
            found[layer] = (mixer.kind, 1 if mixer.per == "channel" else mixer.shape[0], mixer.per == "channel")
    return found


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


def _heads(rows: Sequence[Mapping[str, Any]], side: str, streams: Sequence[str]) -> dict[tuple[int, int], float]:
    return _sums(
        ((row["layer"], row["head"] or 0), row["contribution"])
        for row in rows
        if row["side"] == side and row["kind"] in _MIXING and (not streams or row.get("stream", streams[0]) in streams)
    )


def _groups(
    rows: Sequence[Mapping[str, Any]],
    heads: Mapping[tuple[int, int], float],
    mlps: Mapping[int | None, float],
    unit: "Unit",
    kinds: Mapping[int, tuple[str, int, bool]],
    *,
    net: bool,
) -> list[dict[str, Any]]:
    """Return the parts of the sum; `net` has what adds and what subtracts in one."""
    named: dict[str, list[tuple[str, float, list[int] | None]]] = {"Heads": [], "MLPs": [], _WITHOUT: []}
    for (layer, head), one in heads.items():
        kind, _, whole = kinds[layer]
        label = f"layer {layer}" if whole else f"layer {layer}, head {head}"
        named[_WITHOUT if kind else "Heads"].append((label, one, [layer, head]))
    for layer, one in mlps.items():
        named["MLPs"].append(("outside layers" if layer is None else f"layer {layer}", one, None))
    found: list[dict[str, Any]] = []
    for kind, parts in named.items():
        if net and parts:
            found.append(_group(kind, "", parts))
            continue
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
    rest = _sums((str(row["kind"]), row["contribution"]) for row in rows if row["kind"] not in (*_MIXING, "mlp"))
    found += [_group(names.get(kind) or kind, "", [(kind, number, None)]) for kind, number in rest.items()]
    # Heads of the model's other streams have no place in this one's map.
    elsewhere = sum(row["contribution"] for row in rows if row["kind"] in _MIXING) - sum(heads.values())
    if abs(elsewhere) > _SEEN:
        found.append(_group("Other streams' heads", "", [("heads", elsewhere, None)]))
    return found


def _group(kind: str, towards: str, parts: Sequence[tuple[str, float, list[int] | None]]) -> dict[str, Any]:
    ordered = sorted(parts, key=lambda part: -abs(part[1]))
    shown = _shown(len(ordered), _LINES)
    lines = [{"label": label, "number": _rounded(one), "head": head} for label, one, head in ordered[:shown]]
    if others := ordered[shown:]:
        total = _rounded(sum(one[1] for one in others))
        lines.append({"label": f"{len(others)} others", "number": total, "head": None})
    return {
        "kind": kind,
        "towards": towards,
        "sum": _rounded(sum(one for _, one, _ in parts)),
        "lines": lines if len(parts) > 1 else [],
    }


def _shown(count: int, most: int) -> int:
    """Return how many lines have a name: all, if the line for the others would stand for one."""
    return count if count == most + 1 else most


def _by_word(taken: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    sums = _sums((row["source"], row["contribution"]) for row in taken)
    ordered = sorted(sums.items(), key=lambda one: -abs(one[1]))
    shown = ordered[: _shown(len(ordered), _LINES + 2)]
    lines: list[dict[str, Any]] = [{"at": at, "number": _rounded(one)} for at, one in shown]
    if rest := ordered[len(lines) :]:
        lines.append({"at": None, "count": len(rest), "number": _rounded(sum(one for _, one in rest))})
    return lines


def _sources(
    trace: "Trace", streams: Sequence[str], at: int, taken: Sequence[Mapping[str, Any]], seen: Collection[int]
) -> tuple[dict[str, list[list[float | None]]], dict[str, float], dict[str, tuple[float, float]]]:
    """Return each head's main source words: position, weight, contribution; Σ|·| of signed rows; and sums over images.

    All channels of a layer have the part of what arrives from each word in the place of a weight.
    """
    by_head: dict[tuple[int, int], dict[int, float]] = {}
    for row in taken:
        by_head.setdefault((row["layer"], row["head"] or 0), {})[row["source"]] = row["contribution"]
    found: dict[str, list[list[float | None]]] = {}
    sizes: dict[str, float] = {}
    over: dict[str, tuple[float, float]] = {}
    most = _PATCHES if seen else _SOURCES
    for (layer, head), numbers in by_head.items():
        name, row = f"{layer} {head}", _row(trace, stream_of(trace, streams, layer), layer, head, at)
        weights: list[float] = row.tolist()
        best = sorted(range(len(weights)), key=lambda key: -max(abs(weights[key]), abs(numbers.get(key, 0.0))))
        found[name] = [[key, round(weights[key], 4), _rounded(numbers.get(key))] for key in sorted(best[:most])]
        over[name] = sum(weights[key] for key in seen), sum(numbers.get(key, 0.0) for key in seen)
        if stream_of(trace, streams, layer) in trace.mixers:
            sizes[name] = _rounded(float(row.abs().sum())) or 1.0
    return found, sizes, over


def _row(trace: "Trace", stream: str, layer: int, head: int, at: int) -> "Tensor":
    from attention_viz.analysis.findings.mixing import sizes_of
    from attention_viz.analysis.signed import mixer_of

    if stream in trace.mixers:
        mixer = mixer_of(trace, stream, layer)
        if mixer.per == "channel":
            return sizes_of(mixer, [at])[0, 0].detach().float().cpu()
        return mixer.head(head).rows([at]).weights[0].detach().float().cpu()
    return trace.weights(layer, head, stream)[at]


def _words(tokens: "Tokens") -> list[str]:
    from attention_viz.trace.spelling import set_apart

    return list(map(set_apart, tokens.names))


def _spoken(tokens: "Tokens") -> dict[int, str]:
    """Return each patch's name in a sentence, as Explore has it."""
    from attention_viz.analysis.places import patch_grid, where_words

    if not tokens.patches:
        return {}
    rows, columns = patch_grid(tokens).shape
    where = {at: ((row + 0.5) / rows, (column + 0.5) / columns) for at, (row, column) in tokens.patches.items()}
    return {at: f"a patch {where_words(*place)}" for at, place in where.items()}


def _specials(tokens: "Tokens") -> list[int]:
    """Return the positions that aren't quoted: special tokens, and patches beside words."""
    return [at for at, special in enumerate(tokens.special) if special or at in tokens.patches]


def _rounded(number: float | None) -> float | None:
    """Round to six places, more than shown anywhere."""
    return 0.0 if number is None else round(number, 6)


def split_header(trace: "Trace", of: "Score", found: "SplitScores | str", no_words: str) -> dict[str, Any]:
    """Return the split as JSON; `found` may be the reason for none, `no_words` that for no other words at the key."""
    stream = trace.attention_stream(of.stream)
    header: dict[str, Any] = {"layer": of.layer, "head": of.head, "query": of.query, "key": of.key}
    header["fixed"] = no_words
    if isinstance(found, str):
        return header | {"refused": found}
    keys = list(found.keys)
    weights = trace.weights(of.layer, of.head, stream)[of.query].detach().float().cpu()[keys]
    return header | {
        "names": found.parts,
        "keys": keys,
        # Of each key, the query's parts times the key's.
        "pairs": _millionths(found.pairs.flatten(0, 1).T),
        "scores": _millionths(found.scores),
        "beside": None if found.beside is None else _millionths(found.beside),
        "together": None if found.together is None else _millionths(found.together),
        "shared": _millionths(found.shared),
        "weights": _millionths(weights),
        "places": found.places,
        "softcap": trace.attention(of.layer, stream).softcap is not None,
    }


def _millionths(values: "Tensor") -> list[Any]:
    return values.double().mul(1e6).round().div(1e6).tolist()
