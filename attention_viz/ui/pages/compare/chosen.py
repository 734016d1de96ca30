"""The pair of positions that all pages share, on two texts' common axes."""

from attention_viz.analysis.comparison.compare import Comparison
from attention_viz.trace.tokens import Tokens
from attention_viz.ui.pages.compare.sides import ShownSide

__all__ = ["can_choose", "pair_at", "places_of_pair"]


def places_of_pair(comparison: Comparison, first: ShownSide) -> tuple[int, int] | None:
    """Return the chosen pair's place on the common axes, from the first text's positions."""
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
    """Return the cell's place in the first head; None if missing."""
    found: list[int] = []
    for place, axis in zip(cell, (comparison.queries, comparison.keys), strict=True):
        there = axis.partner(place) if axis.one[place] is None else place
        row = None if there is None else axis.one[there]
        if row is None:
            return None
        found.append(row)
    return found[0], found[1]


def pair_at(comparison: Comparison, first: ShownSide, cell: tuple[int, int]) -> tuple[int, int] | None:
    """Return a cell as first-text positions: a whole word's first piece."""
    rows = _in_first(comparison, cell)
    if rows is None or not can_choose(comparison, first):
        return None
    query, key = (_groups(*axis)[row][0] for axis, row in zip(_axes(comparison, first), rows, strict=True))
    return query, key


def can_choose(comparison: Comparison, first: ShownSide) -> bool:
    """Return whether rows and columns map to the first text's tokens."""
    return all(_groups(own, shown) for own, shown in _axes(comparison, first))


def _axes(comparison: Comparison, first: ShownSide) -> tuple[tuple[Tokens, Tokens], tuple[Tokens, Tokens]]:
    stream, shown, own = comparison.one.stream, comparison.one.trace, first.run.trace
    return (
        (own.query_tokens(stream), shown.query_tokens(stream)),
        (own.key_tokens(stream), shown.key_tokens(stream)),
    )


def _groups(own: Tokens, shown: Tokens) -> tuple[tuple[int, ...], ...]:
    """Return each row's token positions (a word's pieces); empty if unknown."""
    if shown == own:
        return tuple((position,) for position in range(len(own)))
    return own.pieces if len(own.pieces) == len(shown) else ()
