"""The Compare page's sentences."""

import math
from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from attention_viz.analysis.blocks import block_size
from attention_viz.analysis.comparison.align import AlignedAxis
from attention_viz.analysis.comparison.compare import Comparison
from attention_viz.serving import permissions as allowed
from attention_viz.trace.spelling import set_apart
from attention_viz.ui.address import State
from attention_viz.ui.controls import reading as readings
from attention_viz.ui.pages.compare.choice import CompareChoice, sides
from attention_viz.views.style.wording import shortened, with_minus

# Smaller changes can't be seen.
_NOTHING = 0.005
# In bits: smaller distances count as none.
_SAME = 0.0005
_NAMED = 3
# In longer texts a cell is hard to find: name more of them, with positions.
_LONG, _NAMED_OF_LONG = 100, 6
# Names of the two sides in a sentence.
_PLACES = {
    "sentences": ("in the first sentence", "in the second"),
    "models": ("in the first model", "in the second"),
    "heads": ("in the first head", "in the second"),
    "edit": ("before", "after"),
    "snapshots": ("at the first checkpoint", "at the second"),
}


def called_words(choice: CompareChoice, state: State) -> str:
    """Name the second side within a slide's sentence."""
    second = sides(choice, state)[1]
    return {
        "sentences": f"in the second {'image' if state.shown else 'sentence'}",
        "models": f"in {allowed.display_name(second.model)}",
        "heads": f"in {_head(second)}",
        "edit": "after the change",
        "snapshots": f"after {choice.other_moment} steps of training instead of {choice.moment}",
    }[choice.what]


def _head(state: State) -> str:
    return "all heads together" if readings.together(state) else f"layer {state.layer}, head {state.head}"


def side_words(choice: CompareChoice, state: State, stream: str, *, second: bool, where: str = "") -> str:
    """Return the title of a side's figure; `where` names a layer without a softmax."""
    head = "all heads" if readings.together(state) else f"head {state.head}"
    where = where or f"{stream} " * (len(state.facts.heads) > 1) + f"layer {state.layer}, {head}"
    step = choice.other_moment if second else choice.moment
    return {
        "sentences": f"{'Second' if second else 'First'} {'image' if state.shown else 'sentence'}: {where}",
        "models": f"{allowed.display_name(state.model)[-28:]}: {where}",
        "heads": f"{'Second' if second else 'First'}: {where}",
        "edit": f"{'After' if second else 'Before'}: {where}",
        "snapshots": f"After {step} steps: {where}",
    }[choice.what]


def far_words(comparison: Comparison) -> str:
    """Return the difference's title, with its number."""
    if math.isnan(comparison.mean):
        return "No row can differ" if comparison.shared else "No token in common"
    return f"{comparison.mean:.3f} bits apart: second − first"


def apart_words(comparison: Comparison) -> str:
    """Describe the distance and its largest row."""
    shared = len(comparison.shared)
    equal = f"The first {shared} rows" if shared > 1 else "The first row"
    left_out = f"{equal} can’t differ: both texts begin alike, and this model doesn’t attend to later tokens."
    if math.isnan(comparison.mean):
        nothing = "The two texts have no token in common, so no rows can be compared."
        return f"{left_out} No other row is in both texts." if shared else nothing
    compared = [place for place, counts in enumerate(comparison.compared) if counts]
    most = max(compared, key=lambda place: float(comparison.divergence[place]))
    rows = f"the {len(compared)} rows" if len(compared) > 1 else "the one row"
    which = "that can differ" if shared else f"that both {'have' if len(compared) > 1 else 'texts have'}"
    sentence = (
        f"Mean Jensen–Shannon divergence of {rows} {which}: {comparison.mean:.3f} bits "
        "(0: equal, 1: nothing in common)."
    )
    if _mixes(comparison):
        sentence = (
            "Both heads are compared by signed shares of size: each weight over its row’s sum of sizes. A softmax "
            f"weight is one already; a row that only grows or shrinks looks the same. {sentence}"
        )
    if shared:
        sentence = f"{sentence} {left_out}"
    if float(comparison.divergence[most]) < _NOTHING:
        return sentence
    name = _name(comparison.queries, most)
    return f"{sentence} The largest is {float(comparison.divergence[most]):.3f}, for {name}."


def _mixes(comparison: Comparison) -> bool:
    """Return whether a side has no softmax, so that both are signed shares of size."""
    return comparison.one.mixes or comparison.other.mixes


def block_words(comparison: Comparison, most: int) -> str:
    """Explain dots that merge cells beyond `most`; "" if none do."""
    rows, columns = block_size((len(comparison.queries), len(comparison.keys)), most)
    if (rows, columns) == (1, 1):
        return ""
    return f"Each dot covers {rows} × {columns} cells and shows their largest weight or change."


def token_words(comparison: Comparison) -> str:
    """List replaced and one-sided tokens; "" if the texts match."""
    axis = comparison.keys
    swapped = [f"{_said(axis, place)} and {_said(axis, place, second=True)}" for place in axis.substituted]
    parts = [f"Compared with each other: {', '.join(dict.fromkeys(swapped))}"] if swapped else []
    parts += [
        f"{sign} only in the {which}: {', '.join(dict.fromkeys(_name(axis, place) for place in places))}"
        for sign, which, axis, places in (
            ("−", "first", comparison.keys, comparison.keys.removed),
            ("+", "second", comparison.keys, comparison.keys.inserted),
        )
        if places
    ]
    return f"{'; '.join(parts)}." if parts else ""


def moved_words(comparison: Comparison) -> str:
    """List the most changed cells in common rows."""
    change = comparison.difference.nan_to_num().abs()
    long = max(change.shape) > _LONG
    order = change.flatten().argsort(descending=True, stable=True)[: _NAMED_OF_LONG if long else _NAMED].tolist()
    cells = [divmod(cell, change.shape[1]) for cell in order]

    def name(axis: AlignedAxis, place: int) -> str:
        """Add the position in a long text."""
        return f"{_name(axis, place)} ({place})" if long else _name(axis, place)

    parts = [
        f"{name(comparison.queries, query)} at {name(comparison.keys, key)} {_from(comparison, query, key)}"
        for query, key in cells
        if float(change[query, key]) >= _NOTHING
    ]
    return (
        f"Most changed: {'; '.join(parts)}."
        if parts
        else f"No {'share' if _mixes(comparison) else 'weight'} differs by as much as 0.005."
    )


def heads_words(apart: Float[Tensor, "layer head"], chosen: tuple[int, int], layers: Sequence[int]) -> str:
    """Name the farthest and nearest heads, and the chosen one's rank."""
    found = {(layers[row], head): float(apart[row, head]) for row, head in _cells(apart)}
    known = [(value, head) for head, value in found.items() if not math.isnan(value)]
    if not known:
        return "No head can be compared: the two texts have no token in common, or no row can differ."
    (most, far), (least, near) = max(known), min(known)
    if most < _SAME:
        return f"No head differs by as much as {_SAME} bits."
    rank = sum(value > found[chosen] for value, _ in known) + 1
    return (
        f"Farthest apart: layer {far[0]}, head {far[1]}, {most:.3f} bits; nearest: layer {near[0]}, head {near[1]}, "
        f"{least:.3f}. Layer {chosen[0]}, head {chosen[1]} is number {rank} of {len(known)}: {found[chosen]:.3f}"
        "."
    )


def _said(axis: AlignedAxis, place: int, *, second: bool = False) -> str:
    """Format a token, by default the first text's; patches and frames by position."""
    placed = (axis.other_placed if second else axis.placed)[place]
    written = (axis.other_written if second else axis.written)[place]
    return placed or f"“{set_apart(shortened(written.removeprefix('·') or written))}”"


def _cells(apart: Float[Tensor, "layer head"]) -> list[tuple[int, int]]:
    return [(layer, head) for layer in range(apart.shape[0]) for head in range(apart.shape[1])]


def _from(comparison: Comparison, query: int, key: int) -> str:
    numbers = [float(matrix[query, key]) for matrix in (comparison.weights, comparison.other_weights)]
    return " → ".join("absent" if math.isnan(one) else with_minus(f"{round(one, 3) + 0:.3f}") for one in numbers)


def _name(axis: AlignedAxis, place: int) -> str:
    name = axis.names[place]
    return axis.placed[place] or f"“{shortened(name.removeprefix('·') or name)}”"


def _claimed(comparison: Comparison) -> tuple[int, int] | None:
    """Find the words whose weight differs most (0 for a missing word)."""
    change = comparison.difference.nan_to_num().abs()
    for axis, name in ((0, comparison.queries), (1, comparison.keys)):
        for place, written in enumerate(name.written):
            if not _is_word(written):
                change.select(axis, place).zero_()
    if not change.numel() or float(change.max()) < _NOTHING:
        return None
    query, key = divmod(int(change.flatten().argmax()), change.shape[1])
    return query, key


def cell_claim(comparison: Comparison, pair: tuple[int, int] | None = None) -> dict[str, tuple[tuple[int, int], ...]]:
    """Return `claim`'s cells, for "one", "other" and the difference."""
    places = _claimed(comparison) if pair is None else pair
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
    return query, int(row.nan_to_num().abs().argmax()) if bool(row[key].isnan()) else key


def claim(choice: CompareChoice, comparison: Comparison, pair: tuple[int, int] | None = None) -> list[tuple[str, str]]:
    """Describe the largest difference; roles are "query", "key", "number" or ""."""
    places = _claimed(comparison) if pair is None else pair
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
    what = "share for" if _mixes(comparison) else "weight on"
    return f"No {unit}’s {what} another changes by {_NOTHING} or more."


def _most_phrase(choice: CompareChoice, comparison: Comparison, query: int, key: int) -> list[tuple[str, str]]:
    numbers = [float(matrix[query, key]) for matrix in (comparison.weights, comparison.other_weights)]
    which = math.isnan(numbers[0])  # the sentence begins with the text that has the key
    start: list[tuple[str, str]] = [
        (_said(comparison.queries, query, second=which), "query"),
        (_verb(comparison), ""),
        (_said(comparison.keys, key, second=which), "key"),
    ]
    here, there = _places(choice, comparison)
    values = [(with_minus(f"{round(one, 2) + 0:.2f}"), "number") for one in numbers]
    if not any(map(math.isnan, numbers)):
        also = _replaced(comparison, query, key)
        return [
            *start,
            (_with(comparison), ""),
            values[0],
            (f" {here}{';' if also else ','} ", ""),
            *also,
            values[1],
            (f" {there}", ""),
        ]
    rest = comparison.weights if which else comparison.other_weights
    _, most = _cell_phrase(rest, query, key)
    keys = comparison.keys
    names = [_said(keys, at, second=not which) for at in range(len(keys))]
    has = [name for name, at in zip(names, keys.one if which else keys.other, strict=True) if at is not None]
    asks = _said(comparison.queries, query, second=not which)
    lacks = "where it moved" if start[-1][0] in has else "without it"
    return [
        *start,
        (_with(comparison), ""),
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
        return "in the first image", "in the second"
    return _PLACES[choice.what]


def _pair_phrase(choice: CompareChoice, comparison: Comparison, query: int, key: int) -> list[tuple[str, str]]:
    here, there = _places(choice, comparison)
    parts: list[tuple[str, str]] = [
        (_said(comparison.queries, query), "query"),
        (_verb(comparison), ""),
        (_said(comparison.keys, key), "key"),
        (_with(comparison), ""),
        (_number(comparison.weights, query, key), "number"),
        (f" {here}; ", ""),
    ]
    row, column = comparison.queries.partner(query), comparison.keys.partner(key)
    if row is None or column is None:
        return [*parts, (f"{there} this pair is absent", "")]
    if row != query:
        parts += _looks_at(comparison, _said(comparison.queries, row), _said(comparison.keys, column))
    elif column != key:
        parts += [("at ", ""), (_said(comparison.keys, column), "key"), (" ", "")]
    if (row, column) == (query, key):
        parts += _replaced(comparison, query, key)
    return [*parts, (_number(comparison.other_weights, row, column), "number"), (f" {there}", "")]


def _replaced(comparison: Comparison, query: int, key: int) -> list[tuple[str, str]]:
    key_name = _said(comparison.keys, key, second=True)
    if query in comparison.queries.substituted:
        return _looks_at(comparison, _said(comparison.queries, query, second=True), key_name)
    return [("at ", ""), (key_name, "key"), (" ", "")] if key in comparison.keys.substituted else []


def _looks_at(comparison: Comparison, query: str, key: str) -> list[tuple[str, str]]:
    """Name both words: a query alone would read as the key."""
    return [(query, "query"), (_verb(comparison), ""), (key, "key"), (" ", "")]


def _verb(comparison: Comparison) -> str:
    return " receives " if _mixes(comparison) else " looks at "


def _with(comparison: Comparison) -> str:
    return ", share of size " if _mixes(comparison) else " "


def _number(weights: Float[Tensor, "query key"], query: int, key: int) -> str:
    return with_minus(f"{round(float(weights[query, key]), 2) + 0:.2f}")


def _is_word(written: str) -> bool:
    """Exclude special tokens (in brackets) and marks (no letter)."""
    return any(sign.isalnum() for sign in written) and not (written[0] in "[<" and written[-1] in "]>")
