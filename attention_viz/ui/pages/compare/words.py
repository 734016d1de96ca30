"""The Compare page's sentences."""

import math
from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from attention_viz.analysis.blocks import block_size
from attention_viz.analysis.comparison.align import AlignedAxis
from attention_viz.analysis.comparison.compare import Comparison
from attention_viz.serving import permissions as allowed
from attention_viz.trace.spelling import set_apart, weight_text
from attention_viz.ui.address import State
from attention_viz.ui.controls import reading as readings
from attention_viz.ui.pages.compare.choice import CompareChoice, sides
from attention_viz.views.style.wording import shortened

# Smaller changes can't be seen.
_NOTHING = 0.005
# In bits: smaller distances count as none.
_SAME = 0.0005
_NAMED = 3
# In longer texts a cell is hard to find: name more of them, with positions.
_LONG, _NAMED_OF_LONG = 100, 6


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
    return f"Second − first, {weight_text(comparison.mean)} bits apart"


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
        f"Mean Jensen–Shannon divergence of {rows} {which}: {weight_text(comparison.mean)} bits "
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
    return f"{sentence} The largest is {weight_text(float(comparison.divergence[most]))}, for {name}."


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


def rank_words(
    apart: Float[Tensor, "layer head"], chosen: tuple[int, int], layers: Sequence[int], beside: str = ""
) -> tuple[str, tuple[int, int] | None]:
    """Say how much the chosen head differs, and return the head that differs most, if it is another.

    Args:
        beside: the first side's head if all are compared with that one; the nearer half then counts from the nearest.
    """
    found = {(layers[row], head): float(apart[row, head]) for row, head in _cells(apart)}
    known = [value for value in found.values() if not math.isnan(value)]
    name = f"layer {chosen[0]}, head {chosen[1]}"
    if not known or math.isnan(found[chosen]):
        return f"{name}, can’t be compared: no row of both texts can differ", None
    if max(known) < _SAME:
        return f"{name}; no head differs", None
    rank, bits = sum(value > found[chosen] for value in known) + 1, weight_text(found[chosen])
    place = "differs most" if rank == 1 else f"the {_counted(rank)} most different"
    if beside:
        nearest = sum(value < found[chosen] for value in known) + 1
        way, number = ("nearest to", nearest) if nearest < rank else ("farthest from", rank)
        place = f"{way} {beside}" if number == 1 else f"the {_counted(number)} {way} {beside}"
    largest = max(found, key=lambda head: -1.0 if math.isnan(found[head]) else found[head])
    sentence = f"{name}, {place} of {len(known)}: {bits} (0 same, 1 nothing in common)"
    return sentence, None if rank == 1 else largest


def _counted(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _said(axis: AlignedAxis, place: int, *, second: bool = False) -> str:
    """Format a token, by default the first text's; patches and frames by position."""
    placed = (axis.other_placed if second else axis.placed)[place]
    written = (axis.other_written if second else axis.written)[place]
    return placed or f"“{set_apart(shortened(written.removeprefix('·') or written))}”"


def _cells(apart: Float[Tensor, "layer head"]) -> list[tuple[int, int]]:
    return [(layer, head) for layer in range(apart.shape[0]) for head in range(apart.shape[1])]


def _from(comparison: Comparison, query: int, key: int) -> str:
    numbers = [float(matrix[query, key]) for matrix in (comparison.weights, comparison.other_weights)]
    return " → ".join("absent" if math.isnan(one) else weight_text(one) for one in numbers)


def _name(axis: AlignedAxis, place: int) -> str:
    name = axis.names[place]
    return axis.placed[place] or f"“{shortened(name.removeprefix('·') or name)}”"
