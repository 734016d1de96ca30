"""Two heads on common axes for the Compare page: all rows, both texts, and how far every head is apart.

The arrays are rows of float32, (row, key) per side: NaN for a token that this text lacks, infinity for a blocked cell.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy
from jaxtyping import Bool, Float

from attention_viz.explorer.packet import Packet
from attention_viz.trace.kind import CROSSING_STREAMS
from attention_viz.trace.spelling import set_apart

if TYPE_CHECKING:
    from torch import Tensor

    from attention_viz.analysis.comparison.align import AlignedAxis
    from attention_viz.analysis.comparison.compare import Comparison, Side
    from attention_viz.analysis.comparison.texts import TextPiece
    from attention_viz.trace.tokens import Tokens

# More weights than these of a side, and only some rows are sent.
MOST_WEIGHTS = 600_000


@dataclass(frozen=True)
class ComparedSide:
    """A side's line: its name, and its text if the two differ."""

    name: str
    text: "Sequence[TextPiece]" = ()


@dataclass(frozen=True)
class HeadDistances:
    """How far heads are apart, in bits, with the heading; `rows` are the layers' numbers."""

    title: str
    bits: "Float[Tensor, 'layer head']"
    rows: Sequence[int]
    labels: Sequence[str]


def pack_compare(
    comparison: "Comparison",
    rows: Sequence[int],
    claims: Mapping[int, tuple[Sequence[tuple[str, str]], tuple[int | None, int | None]]],
    sides: tuple[ComparedSide, ComparedSide],
    *,
    where: str = "",
    predicts: bool = False,
    distances: HeadDistances | None = None,
) -> bytes:
    """Pack the rows at these places with their sentences, none if the browser writes them; equal inputs, equal bytes.

    Args:
        where: the second side, as a sentence about it begins.
    """
    packet = Packet()
    planes = [packet.add_numbers(_rows(comparison, which, rows)) for which in (0, 1)]
    queries, keys = (paired_names(comparison, role) for role in ("query", "key"))
    one = comparison.one
    mixes = one.mixes or comparison.other.mixes
    header = {
        "sides": [{"name": side.name, "text": [_piece(piece) for piece in side.text]} for side in sides],
        "queries": None if queries == keys and one.stream not in CROSSING_STREAMS else queries,
        "keys": keys,
        "pictures": _pictures(comparison, packet),
        "rows": list(rows),
        "claims": [{"parts": claims[at][0], "keys": claims[at][1]} for at in rows if at in claims],
        "where": where,
        "planes": planes,
        "signed": mixes,
        "turned": _is_turned(comparison),
        "predicts": predicts,
        "map": None if distances is None else _map(distances),
    }
    return packet.pack(header)


def _pictures(comparison: "Comparison", packet: Packet) -> list[dict[str, Any]] | None:
    """Pack both images with the places of their patches among the keys; None if a side has none."""
    # Without torch until there is a trace.
    from attention_viz.analysis.places import patch_grid, patches_beside_words

    found = list[dict[str, Any]]()
    for side, places in ((comparison.one, comparison.keys.one), (comparison.other, comparison.keys.other)):
        picture, keys = side.trace.seen.picture, _tokens(side, "key")
        if picture is None or not keys.patches or keys != _tokens(side, "query"):
            return None
        grid, place_of = patch_grid(keys), {at: place for place, at in enumerate(places) if at is not None}
        high, wide, _ = picture.shape
        found.append(
            {
                **{"rows": high, "columns": wide, "at": packet.add(picture.contiguous().numpy().tobytes())},
                **{"down": grid.shape[0], "across": grid.shape[1]},
                "places": [place_of.get(at, -1) for at in grid.flatten().tolist()],
                "joint": bool(patches_beside_words(keys)),
            }
        )
    return found


def head_rows(one: "Float[Tensor, 'head key']", other: "Float[Tensor, 'head key']") -> str:
    """Return one query's rows of all heads, first side before second, as float32 in base64; "" if too many."""
    if one.numel() + other.numel() > MOST_WEIGHTS:
        return ""
    rows = numpy.concatenate([side.float().numpy() for side in (one, other)])
    return base64.b64encode(rows.astype("<f4").tobytes()).decode()


def rows_sent(comparison: "Comparison", wanted: Sequence[int]) -> list[int]:
    """Return the rows to send: all, or of long texts the wanted ones and those that differ most."""
    count, width = len(comparison.queries), max(1, len(comparison.keys))
    most = max(len(wanted), MOST_WEIGHTS // width)
    if count <= most:
        return list(range(count))
    order = comparison.divergence.nan_to_num(-1.0).argsort(descending=True, stable=True).tolist()
    return sorted([*dict.fromkeys([*wanted, *order])][:most])


def blocked_cells(comparison: "Comparison", which: int) -> Bool[numpy.ndarray, "query key"]:
    """Return a side's blocked cells on the common axes, 0 for the first side."""
    side = (comparison.one, comparison.other)[which]
    places = [axis.other if which else axis.one for axis in (comparison.queries, comparison.keys)]
    blocked = numpy.zeros(tuple(map(len, places)), dtype=bool)
    blocked[numpy.ix_(*([at is not None for at in axis] for axis in places))] = side.blocked.numpy()
    return blocked


def _rows(comparison: "Comparison", which: int, rows: Sequence[int]) -> Float[numpy.ndarray, "row key"]:
    weights = (comparison.other_weights if which else comparison.weights).float().numpy()
    return numpy.where(blocked_cells(comparison, which), numpy.float32(numpy.inf), weights)[list(rows)]


def paired_names(comparison: "Comparison", role: str) -> list[list[str | None]]:
    """Return each place's token in both texts, None if missing, repeated ones numbered."""
    axis: AlignedAxis = comparison.queries if role == "query" else comparison.keys
    both = [_tokens(side, role) for side in (comparison.one, comparison.other)]
    names, plain = [numbered(tokens) for tokens in both], [_labels(tokens.written) for tokens in both]
    found = list[list[str | None]]()
    for place, pair in enumerate(zip(axis.one, axis.other, strict=True)):
        named = [None if at is None else own[at] for own, at in zip(names, pair, strict=True)]
        if None not in pair and place not in axis.substituted:
            # One word, with each text's own number; a text that has it once takes the other's.
            repeated = [one for one, own, at in zip(named, plain, pair, strict=True) if one != own[at or 0]]
            if len({(name or "").casefold() for name in repeated}) < 2:
                named = [repeated[0] if repeated else named[0]] * 2
        found.append(named)
    return found


def _tokens(side: "Side", role: str) -> "Tokens":
    return side.trace.query_tokens(side.stream) if role == "query" else side.trace.key_tokens(side.stream)


def numbered(tokens: "Tokens") -> list[str]:
    """Return tokens as labels, repeated ones numbered."""
    return _labels(tokens.names)


def _labels(names: Sequence[str]) -> list[str]:
    return [set_apart(name.removeprefix("·") or name) for name in names]


def _piece(piece: "TextPiece") -> list[str]:
    return [piece.text, piece.change, piece.number] if piece.change or piece.number else [piece.text]


def _is_turned(comparison: "Comparison") -> bool:
    """Return whether the first text runs from right to left."""
    keys = _tokens(comparison.one, "key")
    turned = sum(set_apart(text) != text for text in keys.texts)
    return 2 * turned > len(keys.counted)


def _map(distances: HeadDistances) -> dict[str, Any]:
    bits = [[None if one != one else round(one, 6) for one in row] for row in distances.bits.tolist()]
    layers = [
        {"number": number, "label": label, "heads": len(row)}
        for number, label, row in zip(distances.rows, distances.labels, bits, strict=True)
    ]
    return {"title": distances.title, "layers": layers, "bits": bits}
