"""The Compare page's large sentence: the largest difference, or the chosen pair."""

import math

from jaxtyping import Float
from torch import Tensor

from attention_viz.analysis.comparison.compare import Comparison
from attention_viz.ui.pages.compare.choice import CompareChoice
from attention_viz.ui.pages.compare.words import NOTHING, said

__all__ = ["cell_claim", "claim", "claimed"]

# How the two sides are called in a sentence.
_PLACES = {
    "sentences": ("in the first sentence", "in the second"),
    "models": ("in the first model", "in the second"),
    "heads": ("in the first head", "in the second"),
    "edit": ("before", "after"),
    "snapshots": ("at the first moment", "at the second"),
}


def claimed(comparison: Comparison) -> tuple[int, int] | None:
    """Find the words' places whose weight differs most (0 for a missing word); None if none."""
    change = comparison.difference.nan_to_num().abs()
    for axis, name in ((0, comparison.queries), (1, comparison.keys)):
        for place, written in enumerate(name.written):
            if not _is_word(written):
                change.select(axis, place).zero_()
    if not change.numel() or float(change.max()) < NOTHING:
        return None
    query, key = divmod(int(change.flatten().argmax()), change.shape[1])
    return query, key


def cell_claim(comparison: Comparison, pair: tuple[int, int] | None = None) -> dict[str, tuple[tuple[int, int], ...]]:
    """Return `claim`'s cells, for "one", "other" and the difference."""
    places = claimed(comparison) if pair is None else pair
    if places is None:
        return {}
    query, key = places
    if pair is None:
        cells = [_cell_phrase(one, query, key) for one in (comparison.weights, comparison.other_weights)]
    else:
        row, column = comparison.queries.partner(query), comparison.keys.partner(key)
        cells = [places, *([] if row is None or column is None else [(row, column)])]
    return {"one": (cells[0],), "other": tuple(cells[1:]), "difference": tuple(dict.fromkeys(cells))}


def _cell_phrase(weights: Float[Tensor, "query key"], query: int, key: int) -> tuple[int, int]:
    """Describe a head's cell; without its key, the query's strongest."""
    row = weights[query]
    return query, int(row.nan_to_num().argmax()) if bool(row[key].isnan()) else key


def claim(choice: CompareChoice, comparison: Comparison, pair: tuple[int, int] | None = None) -> list[tuple[str, str]]:
    """Describe the largest difference in pieces with roles "query", "key", "number" or ""."""
    places = claimed(comparison) if pair is None else pair
    if places is None:
        return [(_none_words(choice, comparison), "")]
    parts = _most_phrase(choice, comparison, *places) if pair is None else _pair_phrase(choice, comparison, *places)
    (first, role), *rest = parts
    return [(f"{first[:1].upper()}{first[1:]}", role), *rest]


def _none_words(choice: CompareChoice, comparison: Comparison) -> str:
    one = comparison.one
    texts = {side.trace.provenance.text for side in (one, comparison.other)}
    if choice.what == "sentences" and len(texts) == 1 and not one.trace.seen.tensors:
        return "Both sentences are the same: type another one, or change a word."
    unit = one.trace.query_tokens(one.stream).unit
    return f"No {unit} looks at another by as much as {NOTHING} more or less."


def _most_phrase(choice: CompareChoice, comparison: Comparison, query: int, key: int) -> list[tuple[str, str]]:
    numbers = [float(matrix[query, key]) for matrix in (comparison.weights, comparison.other_weights)]
    which = math.isnan(numbers[0])  # it begins with the text that has the key
    start: list[tuple[str, str]] = [
        (said(comparison.queries, query, second=which), "query"),
        (" looks at ", ""),
        (said(comparison.keys, key, second=which), "key"),
    ]
    here, there = _places(choice, comparison)
    values = [(f"{one:.2f}", "number") for one in numbers]
    if not any(map(math.isnan, numbers)):
        also = _replaced(comparison, query, key)
        return [
            *start,
            (" ", ""),
            values[0],
            (f" {here}{';' if also else ','} ", ""),
            *also,
            values[1],
            (f" {there}", ""),
        ]
    rest = comparison.weights if which else comparison.other_weights
    _, most = _cell_phrase(rest, query, key)
    keys = comparison.keys
    names = [said(keys, at, second=not which) for at in range(len(keys))]
    has = [name for name, at in zip(names, keys.one if which else keys.other, strict=True) if at is not None]
    asks = said(comparison.queries, query, second=not which)
    lacks = "where it stands elsewhere" if start[-1][0] in has else "without it"
    return [
        *start,
        (" ", ""),
        values[which],
        (f" {(here, there)[which]}; {(here, there)[not which]}, ", ""),
        *([(asks, "query"), (", ", "")] if asks != start[0][0] else []),
        (f"{lacks}, most at ", ""),
        (names[most], "key"),
        (" ", ""),
        (_number(rest, query, most), "number"),
    ]


def _places(choice: CompareChoice, comparison: Comparison) -> tuple[str, str]:
    if choice.what == "sentences" and comparison.one.trace.seen.tensors:
        return "in the first picture", "in the second"
    return _PLACES[choice.what]


def _pair_phrase(choice: CompareChoice, comparison: Comparison, query: int, key: int) -> list[tuple[str, str]]:
    here, there = _places(choice, comparison)
    parts: list[tuple[str, str]] = [
        (said(comparison.queries, query), "query"),
        (" looks at ", ""),
        (said(comparison.keys, key), "key"),
        (" ", ""),
        (_number(comparison.weights, query, key), "number"),
        (f" {here}; ", ""),
    ]
    row, column = comparison.queries.partner(query), comparison.keys.partner(key)
    if row is None or column is None:
        return [*parts, (f"{there} nothing stands there", "")]
    if row != query:
        parts += _looks_at(said(comparison.queries, row), said(comparison.keys, column))
    elif column != key:
        parts += [("at ", ""), (said(comparison.keys, column), "key"), (" ", "")]
    if (row, column) == (query, key):
        parts += _replaced(comparison, query, key)
    return [*parts, (_number(comparison.other_weights, row, column), "number"), (f" {there}", "")]


def _replaced(comparison: Comparison, query: int, key: int) -> list[tuple[str, str]]:
    key_name = said(comparison.keys, key, second=True)
    if query in comparison.queries.substituted:
        return _looks_at(said(comparison.queries, query, second=True), key_name)
    return [("at ", ""), (key_name, "key"), (" ", "")] if key in comparison.keys.substituted else []


def _looks_at(query: str, key: str) -> list[tuple[str, str]]:
    """Name both words: a query alone would read as the key."""
    return [(query, "query"), (" looks at ", ""), (key, "key"), (" ", "")]


def _number(weights: Float[Tensor, "query key"], query: int, key: int) -> str:
    return f"{float(weights[query, key]):.2f}"


def _is_word(written: str) -> bool:
    """Exclude special tokens (in brackets) and marks (no letter)."""
    return any(sign.isalnum() for sign in written) and not (written[0] in "[<" and written[-1] in "]>")
