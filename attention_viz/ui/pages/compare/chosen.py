"""The chosen pair of positions, which all pages share, on the axes that two texts have in common."""

from attention_viz.analysis.comparison.compare import Comparison
from attention_viz.trace.tokens import Tokens
from attention_viz.ui.pages.compare.sides import ShownSide

__all__ = ["can_choose", "pair_at", "places_of_pair"]


def places_of_pair(comparison: Comparison, first: ShownSide) -> tuple[int, int] | None:
    """Where the chosen pair stands on the common axes; it counts the first text's own tokens."""
    found: list[int] = []
    for position, axis, (own, shown) in zip(
        (first.state.query, first.state.key),
        (comparison.queries, comparison.keys),
        _axes(comparison, first),
        strict=True,
    ):
        groups = _groups(own, shown)
        word = next((at for at, group in enumerate(groups) if position in group), None)
        if word is None or word not in axis.one:
            return None
        found.append(axis.place_of(word))
    return found[0], found[1]


def _in_first(comparison: Comparison, cell: tuple[int, int]) -> tuple[int, int] | None:
    """A cell of the common axes as a row and a column of the first head.

    Of what only the second text has it is what stands there in the first, and None where nothing does.
    """
    found: list[int] = []
    for place, axis in zip(cell, (comparison.queries, comparison.keys), strict=True):
        there = axis.partner(place) if axis.one[place] is None else place
        row = None if there is None else axis.one[there]
        if row is None:
            return None
        found.append(row)
    return found[0], found[1]


def pair_at(comparison: Comparison, first: ShownSide, cell: tuple[int, int]) -> tuple[int, int] | None:
    """The same as positions of the first text's tokens: of a whole word its first piece."""
    rows = _in_first(comparison, cell)
    if rows is None or not can_choose(comparison, first):
        return None
    query, key = (_groups(*axis)[row][0] for axis, row in zip(_axes(comparison, first), rows, strict=True))
    return query, key


def can_choose(comparison: Comparison, first: ShownSide) -> bool:
    """Whether it is known which tokens of the first text the rows and columns are."""
    return all(_groups(own, shown) for own, shown in _axes(comparison, first))


def _axes(comparison: Comparison, first: ShownSide) -> tuple[tuple[Tokens, Tokens], tuple[Tokens, Tokens]]:
    """The tokens that ran and what is shown of them: of queries, and of keys."""
    stream, shown, own = comparison.one.stream, comparison.one.trace, first.run.trace
    return (
        (own.query_tokens(stream), shown.query_tokens(stream)),
        (own.key_tokens(stream), shown.key_tokens(stream)),
    )


def _groups(own: Tokens, shown: Tokens) -> tuple[tuple[int, ...], ...]:
    """Of each row that is shown its tokens' positions: one, or a word's pieces; nothing where that isn't known."""
    if shown == own:
        return tuple((position,) for position in range(len(own)))
    return own.pieces if len(own.pieces) == len(shown) else ()
