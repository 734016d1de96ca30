"""What a slide says and shows."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.analysis.slides.room import around, heaviest, short_token
from attention_viz.analysis.words import ordinal, quoted, words_of
from attention_viz.errors import AttentionVizError
from attention_viz.trace.seen import Seen
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace

__all__ = [
    "GivenTable",
    "Part",
    "ShownPicture",
    "Slide",
    "SlidePicture",
    "begun",
    "named",
    "only_allowed",
    "picture_of",
    "row_of",
    "shortened",
    "source_of",
]

# A part of a sentence and its role: "query", "key", "number", "small" for what stands below it, or "".
Part = tuple[str, str]

# Letters of a text that fit into a line of small print.
_LONGEST_SENTENCE = 90


@dataclass(frozen=True)
class SlidePicture:
    """A row of numbers over words, in text order.

    Attributes:
        form: "line" with links, or "bars".
        dim: True for special tokens and padding.
        values: None if blocked.
        before: before a change; empty for none.
        query: place among `tokens`, or None.
        cuts: places before which words are left out; the token count means the end.
        unit: for screen readers, after "?".
        written: replaces numbers; empty for numbers.
        asked: words while `before` shows; empty if equal.
        neutral: True if names are no words and have no role's colour.
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
    """A question's table of numbers.

    Attributes:
        cells: (row, column), as written.
        wrong: (row, column) of wrong cells, which the answer marks.
    """

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
    """A question with a blind picture, then its answer in place.

    Attributes:
        ask: parts with roles.
        source: model, layer, head, and the text unless the picture has all of it.
        given: tables shown with question and answer.
        shown: the picture beside the bars, or None.
    """

    ask: tuple[Part, ...]
    tell: tuple[Part, ...]
    picture: SlidePicture | None
    source: str
    given: tuple[GivenTable, ...] = ()
    shown: ShownPicture | None = None


def begun(parts: Sequence[Part]) -> tuple[Part, ...]:
    """A sentence that begins with a capital."""
    (text, role), *rest = parts
    return ((f"{text[:1].upper()}{text[1:]}", role), *rest)


def row_of(trace: Trace, stream: str, layer: int, head: int, query: int) -> Float[Tensor, " key"]:
    """Return one row's weights, (key,), from its call if possible."""
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
) -> SlidePicture:
    """Return the part of a row that fits; numbers not finite, (key,), are blocked."""
    needed = [key] if query is None else [query, key]
    if form == "line":
        kept = around(tokens, needed)
    else:
        kept = heaviest(torch.maximum(values.nan_to_num(), (values if before is None else before).nan_to_num()), [key])
    ends, said = [*kept, len(tokens)], tokens.said
    cuts = [place for place, here in enumerate(ends) if here != (ends[place - 1] + 1 if place else 0)]
    return SlidePicture(
        form,
        tuple(short_token(said[place]) for place in kept),
        tuple(tokens.special[place] or tokens.padding[place] for place in kept),
        _numbers(values, kept),
        kept.index(query) if query in kept else None,
        kept.index(key),
        tuple(cuts),
        () if before is None else _numbers(before, kept),
        unit,
        asked=tuple(short_token(asked[place]) for place in kept) if asked else (),
    )


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
    """Name a position's token in a sentence, with its ordinal and quotes.

    Pieces, not whole words, because only pieces have weights.
    """
    words = words_of(tokens)
    word = words.of_position[position]
    which, said = words.named(word) if len(words.pieces[word]) == 1 else _piece_named(tokens.said, position)
    return ((which, ""), (said, role)) if which else ((said, role),)


def _piece_named(said: Sequence[str], position: int) -> tuple[str, str]:
    folded = [piece.casefold() for piece in said]
    count, all_of_it = folded[: position + 1].count(folded[position]), folded.count(folded[position])
    return f"the {ordinal(count)} " if all_of_it > 1 else "", quoted(said[position])


def _numbers(values: Float[Tensor, " key"], kept: Sequence[int]) -> tuple[float | None, ...]:
    found = [float(values[place]) for place in kept]
    return tuple(round(one, 6) if isfinite(one) else None for one in found)
