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
from attention_viz.trace.shown.seen import Seen
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
    """One row of numbers over words, in the order of the text.

    Attributes:
        form: "line" of words with a link from the one that looks, or "bars" below each other.
        dim: of each, whether it is special or padding.
        values: the number of each; None where the query may not look.
        before: what the numbers were before something was changed; empty where nothing was.
        query: the place among `tokens` of the word that looks; None where it isn't among them.
        key: the place of the word that is looked at.
        cuts: the places before which words are left out; as many as there are tokens: at the end.
        unit: what is said after "?" of the numbers, for those who can't see the picture.
        written: of each, what stands behind its bar in place of the number; empty where the number does.
        asked: what each word is while `before` is shown; empty where it is the same.
        neutral: whether the names are no words of the text, and have no role's colour.
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
    """A table of numbers that a question gives.

    Attributes:
        cells: (row, column), as they are written.
        wrong: row and column of the cells that are wrong, which the answer marks.
    """

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    wrong: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, eq=False)
class ShownPicture:
    """The picture that was read, with the weights of its patches, which the answer lays over it.

    Attributes:
        seen: what was read, with the picture in it.
        down: how many rows of patches it has.
        weights: of each patch, row by row; None where it may not be looked at.
        query: the patch that looks, framed from the beginning; None where none does, such as where a word looks.
        key: the patch that is looked at, framed with the answer; None where that is no patch.
        boxes: parts of it that are framed from the beginning: row, column, rows and columns of patches of each.
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
    """One slide: first the question with the picture blind, then the answer in the same place.

    Attributes:
        ask: the question, in parts with their roles.
        picture: what shows it; None where there is nothing to show.
        source: where the numbers are from: model, layer, head and, where the picture hasn't all of it, the text.
        given: tables that the question gives, seen with it and with its answer.
        shown: the picture that was read, beside the bars; None where none was.
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
    """The weights of one row, (key,), without the whole matrix where there is a call that they came from."""
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
    """A row with what may not be looked at as not a number, so that no picture links to it."""
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
    """The part of a row that there is room for.

    Args:
        values: of each, (key,); what isn't finite is shown as blocked.
    """
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
    """Model, layer and head, and the text where the picture doesn't have all of it."""
    said = [trace.provenance.model, where]
    if trace.provenance.edits:
        said.append("changed" if len(trace.provenance.edits) == 1 else f"{len(trace.provenance.edits)} changes")
    if picture is None or picture.cuts or picture.form != "line":
        short = shortened(trace.provenance.text or "")
        said += [f"“{short}”"] if short else []
    return " · ".join(said)


def shortened(text: str) -> str:
    """As much of a text as fits in a line of small print."""
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_SENTENCE else f"{text[: _LONGEST_SENTENCE - 1]}…"


def named(tokens: Tokens, position: int, role: str) -> tuple[Part, ...]:
    """What stands at a position in a sentence, in parts: which of several of its text, and itself in quotes.

    A word of several pieces has no weight of its own: its piece is named, as in the picture.
    """
    words = words_of(tokens)
    word = words.of_position[position]
    which, said = words.named(word) if len(words.pieces[word]) == 1 else _piece_named(tokens.said, position)
    return ((which, ""), (said, role)) if which else ((said, role),)


def _piece_named(said: Sequence[str], position: int) -> tuple[str, str]:
    """A piece of a word, as `Words.named` has whole ones."""
    folded = [piece.casefold() for piece in said]
    count, all_of_it = folded[: position + 1].count(folded[position]), folded.count(folded[position])
    return f"the {ordinal(count)} " if all_of_it > 1 else "", quoted(said[position])


def _numbers(values: Float[Tensor, " key"], kept: Sequence[int]) -> tuple[float | None, ...]:
    found = [float(values[place]) for place in kept]
    return tuple(round(one, 6) if isfinite(one) else None for one in found)
