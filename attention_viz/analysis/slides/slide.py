"""What a slide says and shows: parts of a sentence, the words of a row that fit, and a picture."""

import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import isfinite

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.analysis.findings.mixing import shares_of
from attention_viz.analysis.places import patch_grid, patch_words
from attention_viz.analysis.words import token_named
from attention_viz.errors import AttentionVizError
from attention_viz.trace.seen import Seen
from attention_viz.trace.spelling import cut
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace

# Letters that fit on a line across a room, in which each word has some room around it, and a short one the least that
# a box takes; and bars below each other.
_LETTERS, _AROUND, _LEAST = 62, 2, 4
_BARS = 9
# So many rows of bars and of signs fit in a column; so many bars stay in any case.
_ROWS, _LEAST_BARS = 11, 4
_LONGEST_TOKEN = 16
# What repeated words are numbered by.
_NUMBERS = "₀₁₂₃₄₅₆₇₈₉"
# A part of a sentence and its role: "query", "key", "number", "small" for what is below it, "formula" for MathML of
# ours, or "".
Part = tuple[str, str]

# Letters of a text that fit into a line of small print.
_LONGEST_SENTENCE = 90


def around(tokens: Tokens, places: Sequence[int]) -> tuple[int, ...]:
    """Return positions that fit on a line around some words."""
    kept = set(places)
    said = tokens.names
    room = _LETTERS - sum(_width(said[place]) for place in kept)
    for distance in range(1, len(tokens)):
        near = [place + side for place in places for side in (-distance, distance)]
        near = [place for place in dict.fromkeys(near) if 0 <= place < len(tokens) and place not in kept]
        for place in near:
            room -= _width(said[place])
            if room < 0:
                return tuple(sorted(kept))
            kept.add(place)
    return tuple(sorted(kept))


def heaviest(values: Float[Tensor, " key"], places: Collection[int]) -> tuple[int, ...]:
    """Return positions that fit in a column: some, and the heaviest; NaN last."""
    ranked = values.nan_to_num(-1e30, posinf=-1e30, neginf=-1e30).abs().argsort(descending=True, stable=True).tolist()
    wanted = list(dict.fromkeys([*places, *ranked]))
    # A sign for one word that is left out takes as much room as the word.
    return tuple(sorted(wanted if len(values) == _BARS + 1 else wanted[: max(_BARS, len(set(places)))]))


def short_token(text: str) -> str:
    """Shorten a token to fit beside a bar."""
    return cut(text, _LONGEST_TOKEN)


def _width(text: str) -> int:
    letters = sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in short_token(text))
    return max(letters + _AROUND, _LEAST)


@dataclass(frozen=True)
class SlidePicture:
    """A row of numbers over words, in text order.

    Attributes:
        form: "line" with links, or "bars".
        dim: True for special tokens and padding.
        values: None if blocked.
        before: before a change; empty for none.
        query: index among `tokens`, or None.
        cuts: indices before which words are left out; the token count means the end.
        unit: for screen readers, after "?".
        written: replaces numbers; empty for numbers.
        asked: words while `before` shows; empty if equal.
        neutral: True if names aren't words and have no role's colour.
    """

    form: str
    tokens: tuple[str, ...]
    dim: tuple[bool, ...]
    values: tuple[float | None, ...]
    query: int | None
    key: int | None
    cuts: tuple[int, ...] = ()
    before: tuple[float | None, ...] = ()
    unit: str = "weight"
    written: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    neutral: bool = False


@dataclass(frozen=True)
class GivenTable:
    """A question's table of cells as written, and those (row, column) that the answer marks as wrong."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    wrong: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, eq=False)
class ShownPicture:
    """A picture with its patches' weights, laid over it by the answer.

    Attributes:
        down: number of patch rows.
        weights: row by row; None if blocked.
        query: the patch framed from the beginning; None for none, such as a word.
        key: the patch framed with the answer, or None.
        boxes: further frames: row, column, rows, columns.
    """

    seen: Seen
    down: int
    across: int
    weights: tuple[float | None, ...]
    query: int | None
    key: int | None
    boxes: tuple[tuple[int, int, int, int], ...] = ()


@dataclass(frozen=True)
class Slide:
    """A question with a blind picture, then its answer in place; parts of sentences have roles.

    Attributes:
        formulas: MathML, shown with the answer.
        figure: a Plotly figure as JSON, shown with the question; empty for none.
    """

    ask: tuple[Part, ...]
    tell: tuple[Part, ...]
    picture: SlidePicture | None
    source: str
    given: tuple[GivenTable, ...] = ()
    shown: ShownPicture | None = None
    formulas: tuple[str, ...] = ()
    figure: str = ""


def begun(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Begin a sentence with a capital."""
    (text, role), *rest = parts
    return ((f"{text[:1].upper()}{text[1:]}", role), *rest)


def row_of(trace: Trace, stream: str, layer: int, head: int, query: int) -> Float[Tensor, " key"]:
    """Return one row's weights, (key,), from its call if possible; of a mixer, their shares of its size."""
    if stream in trace.mixers:
        return shares_of(trace, stream, layer, head, [query])[0].detach().cpu().double()
    keys = range(len(trace.key_tokens(stream)))
    try:
        row = trace.attention(layer, stream).tile(head, [query], keys)[0]
    except AttentionVizError:
        # A reading has weights and no call that they came from.
        row = trace.weights(layer, head, stream)[query]
    return row.detach().cpu().double()


def only_allowed(
    row: Float[Tensor, " key"], trace: Trace, stream: str, layer: int, head: int, query: int
) -> Float[Tensor, " key"]:
    """Replace blocked weights by NaN, so that no picture links to them."""
    try:
        allowed = trace.attention(layer, stream).head(head).allowed
    except AttentionVizError:
        # A reading has weights and no call that they came from.
        return row
    if allowed is None:
        return row
    return row.masked_fill(~allowed.expand(len(trace.query_tokens(stream)), len(row))[query].cpu(), float("nan"))


def picture_of(
    form: str,
    tokens: Tokens,
    values: Float[Tensor, " key"],
    query: int | None,
    key: int,
    *,
    before: Float[Tensor, " key"] | None = None,
    unit: str = "weight",
    asked: Sequence[str] = (),
    also: Sequence[int] = (),
) -> SlidePicture:
    """Return the part of a row that fits, `also` on a line; numbers not finite, (key,), are blocked."""
    needed = [key, *also] if query is None else [query, key, *also]
    if form == "line":
        kept = around(tokens, needed)
    else:
        sizes = [one.nan_to_num().abs() for one in (values, values if before is None else before)]
        kept = _uncrowded(torch.maximum(*sizes), [key])
    cuts, said = _cuts(kept, len(tokens)), tokens.names
    return SlidePicture(
        form,
        tuple(short_token(said[place]) for place in kept),
        tuple(tokens.special[place] or tokens.padding[place] for place in kept),
        _numbers(values, kept),
        kept.index(query) if query in kept else None,
        kept.index(key),
        cuts,
        () if before is None else _numbers(before, kept),
        unit,
        asked=tuple(short_token(asked[place]) for place in kept) if asked else (),
    )


def _uncrowded(values: Float[Tensor, " key"], places: Sequence[int]) -> tuple[int, ...]:
    """Return the heaviest positions that fit in a column with the signs for words left out between them."""
    kept = heaviest(values, places)
    while len(kept) + len(_cuts(kept, len(values))) > _ROWS and len(kept) > _LEAST_BARS:
        lightest = min((at for at in kept if at not in places), key=lambda at: float(values[at]))
        kept = tuple(at for at in kept if at != lightest)
    return kept


def _cuts(kept: Sequence[int], count: int) -> tuple[int, ...]:
    """Return the indices before which positions are left out; the number of kept ones means the end."""
    ends = [*kept, count]
    return tuple(place for place, here in enumerate(ends) if here != (ends[place - 1] + 1 if place else 0))


def source_of(trace: Trace, where: str, picture: SlidePicture | None) -> str:
    """Name model and head, and the text if the picture cuts it."""
    said = [trace.provenance.model, where]
    if trace.provenance.edits:
        said.append("changed" if len(trace.provenance.edits) == 1 else f"{len(trace.provenance.edits)} changes")
    if picture is None or picture.cuts or picture.form != "line":
        short = shortened(trace.provenance.text or "")
        said += [f"“{short}”"] if short else []
    return " · ".join(said)


def shortened(text: str) -> str:
    """Shorten a text to a line of small print."""
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_SENTENCE else f"{text[: _LONGEST_SENTENCE - 1]}…"


def named(tokens: Tokens, position: int, role: str) -> tuple[Part, ...]:
    """Name a position's token in a sentence, in quotes; a patch by where it is in its image."""
    where = patch_words(tokens, position)
    return ((f"a patch {where}" if where else token_named(tokens, position), role),)


def _numbers(values: Float[Tensor, " key"], kept: Sequence[int]) -> tuple[float | None, ...]:
    found = [float(values[place]) for place in kept]
    return tuple(round(one, 6) if isfinite(one) else None for one in found)


def picture_shown(
    trace: Trace, keys: Tokens, row: Float[Tensor, " key"], query: tuple[int, int] | None, key: int | None
) -> ShownPicture | None:
    """Return a trace's picture for a slide, with a patch (row, column) and a key; None if keys aren't its patches."""
    grid = patch_grid(keys)
    if trace.seen.picture is None or not grid.numel():
        return None
    down, across = grid.shape

    def number(place: tuple[int, int] | None) -> int | None:
        return None if place is None else place[0] * across + place[1]

    def weight(at: int) -> float | None:
        if at < 0:
            return 0.0
        return round(float(row[at]), 4) if torch.isfinite(row[at]) else None

    weights = tuple(weight(at) for at in grid.flatten().tolist())
    looked_at = None if key is None else number(keys.patches.get(key))
    return ShownPicture(trace.seen, down, across, weights, number(query), looked_at)


def with_picture(slide: Slide, trace: Trace, stream: str, row: Float[Tensor, " key"], query: int, key: int) -> Slide:
    """Add the trace's picture, if any, to a slide's bars."""
    shown = picture_shown(trace, trace.key_tokens(stream), row, trace.query_tokens(stream).patches.get(query), key)
    if shown is None or slide.picture is None:
        return slide
    # Where patches are left out is seen in the picture; that some are, is said once.
    bars = slide.picture
    return replace(slide, shown=shown, picture=replace(bars, cuts=(len(bars.tokens),) if bars.cuts else ()))
