"""What a notebook shows of two heads beside each other."""

import math
from typing import TYPE_CHECKING

from attention_viz.trace.in_html import table_in_html

if TYPE_CHECKING:
    from attention_viz.analysis.comparison.compare import Comparison, Side

__all__ = ["comparison_in_html"]

_LARGEST, _LONGEST = 5, 300


def comparison_in_html(comparison: "Comparison") -> str:
    """Both sides, how far apart they are, what was paired and left out, and the weights that differ most."""
    rows = [("first", _side(comparison.one)), ("second", _side(comparison.other))]
    counted = f"{comparison.rows} row{'s' * (comparison.rows != 1)}"
    far = "no row can be compared" if math.isnan(comparison.mean) else f"{comparison.mean:.6f} bits over {counted}"
    rows.append(("mean divergence", far))
    if comparison.shared:
        rows.append(("left out", f"{len(comparison.shared)} rows that can't differ: both texts begin alike"))
    for name, axis in (("queries", comparison.queries), ("keys", comparison.keys)):
        swapped = [axis.names[place] for place in axis.substituted]
        alone = [f"−{axis.names[place]}" for place in axis.removed] + [
            f"+{axis.names[place]}" for place in axis.inserted
        ]
        if swapped or alone:
            rows.append((f"{name} that differ", _shortened(", ".join([*swapped, *alone]))))
    return table_in_html([], rows) + table_in_html(["query", "key", "first", "second"], _changes(comparison))


def _side(side: "Side") -> str:
    origin = side.trace.provenance
    text = "" if origin.text is None else f" · “{origin.text}”"
    return _shortened(f"{origin.model} · {side.stream} layer {side.layer}, head {side.head}{text}")


def _changes(comparison: "Comparison") -> list[tuple[str, str, str, str]]:
    """The cells whose weights differ most."""
    change = comparison.difference.nan_to_num().abs()
    order = change.flatten().argsort(descending=True, stable=True)[:_LARGEST].tolist()
    cells = [divmod(cell, change.shape[1]) for cell in order]
    return [
        (
            comparison.queries.names[query],
            comparison.keys.names[key],
            _number(float(comparison.weights[query, key])),
            _number(float(comparison.other_weights[query, key])),
        )
        for query, key in cells
        if float(change[query, key]) > 0
    ]


def _number(weight: float) -> str:
    return "not there" if math.isnan(weight) else f"{weight:.4f}"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
