"""State each step's change in one sentence with computed numbers."""

import torch
from torch import Tensor

from attention_viz.operation.positional import rotation
from attention_viz.steps.head import OpenHead, row_statistics


def embedded(opened: OpenHead) -> str:
    """State the embeddings' number and width."""
    rows = opened.entry.embeddings
    if rows is None:
        return ""
    return f"{len(rows)} tokens, each a row of {rows.shape[-1]} numbers, {_range(rows)}."


def projected(opened: OpenHead, name: str) -> str:
    """State the projection's widths: d_model to d_k or d_v."""
    made = opened.attention.value if name == "value" else opened.unrotated(name)
    before = "" if opened.d_model is None else f" of {opened.d_model} numbers"
    return f"Each token's row{before} became one of {made.shape[-1]}, {_range(made)}."


def rotated(opened: OpenHead) -> str:
    """State the vectors' rotation by positions."""
    turn = rotation(opened.unrotated("query"), opened.attention.query)
    if turn is None:
        return "The vectors changed, but not by rotating pairs of numbers."
    count, most = len(turn.pairs), float(turn.angles.abs().max())
    return f"{count} pairs of dimensions rotated, by up to {most:.3g} radians; no vector became longer or shorter."


def scored(opened: OpenHead) -> str:
    """State the scores' number and range."""
    scores = opened.attention.scores
    queries, keys = scores.shape
    return f"{queries} queries and {keys} keys gave {queries * keys:,} numbers, one per pair, {_range(scores)}."


def scaled(opened: OpenHead) -> str:
    """State the factor, and the scores' range before and after."""
    call = opened.attention
    if opened.factor == 1:
        return f"Nothing: this head has no scale, so the scores stay {_range(call.scores)}."
    return f"Every score was multiplied by {opened.factor:.4g}: {_range(call.scores)} became {_range(call.scaled)}."


def capped(opened: OpenHead) -> str:
    """State the soft cap and its largest effect."""
    moved = float((opened.capped - opened.attention.scaled).abs().max())
    return f"Bounded to ±{opened.attention.softcap:g}: no number moved by more than {moved:.3g}."


def biased(opened: OpenHead) -> str:
    """State the bias's bounds on scores."""
    low, high = _ends(opened.biased - opened.capped)
    parts = [f"{name} {_range(part)}" for name, part in opened.bias_parts.items()]
    what = f": {' and '.join(parts)}" if len(parts) > 1 else ""
    return f"The model added between {low} and {high}{what}; the sums are {_range(opened.biased)}."


def picked(opened: OpenHead) -> str:
    """State how many keys the indexer left out, and how near the cut the nearest is."""
    picking = opened.picking
    if picking is None:
        return "No key is left out."
    left, margins = picking.left_out, picking.margins
    count, nearest = int(left.sum()), float(margins[left & margins.isfinite()].amax())
    return (
        f"{count:,} of {int((picking.scores > -torch.inf).sum()):,} keys are left out; the nearest by {-nearest:.3g}."
    )


def allowed(opened: OpenHead) -> str:
    """State the number of blocked cells."""
    masked = opened.attention.masked
    blocked, cells = int(torch.isneginf(masked).sum()), masked.numel()
    if blocked == 0:
        return f"Nothing: none of the {cells:,} cells is blocked, so every query may attend to every key."
    empty = int(torch.isneginf(masked).all(-1).sum())
    rows = f" {empty} rows have nothing left to attend to." if empty else ""
    return f"{blocked:,} of {cells:,} cells are blocked: they became −∞, and the others didn't change.{rows}"


def weighed(opened: OpenHead) -> str:
    """State the rows' sums and largest weight."""
    sums, largest = opened.weights.double().sum(-1), float(row_statistics(opened.weights).largest.max())
    empty = torch.isneginf(opened.attention.masked).all(-1)
    if empty.all():
        return "No row has anything left to attend to, so each is all zeros: softmax has no answer for them."
    low, high = float(sums[~empty].min()), float(sums[~empty].max())
    range_ = f"to {low:.4g}" if high - low < 5e-4 else f"to between {low:.4g} and {high:.4g}"
    sink = opened.attention.sinks
    rest = (
        ""
        if sink is None
        else f" The rest goes to this head's attention sink: a learned number, {_rounded(sink.item())}, "
    )
    rest += "" if sink is None else "beside the keys in every row, without a value."
    return f"Each query's row became weights that sum {range_}; the largest is {largest:.3g}.{rest}{_silent(empty)}"


def _silent(empty: Tensor) -> str:
    count = int(empty.sum())
    rows = "One row that has" if count == 1 else f"{count} rows that have"
    return f" {rows} nothing left to attend to {'is' if count == 1 else 'are'} all zeros." if count else ""


def mixed(opened: OpenHead) -> str:
    """State the ranges of the output and the values."""
    output, value = opened.attention.output, opened.attention.value
    mixture = f"Each query's row is now a mixture of {len(value)} values"
    return f"{mixture}: {_range(output)}; the values are {_range(value)}."


def joined(opened: OpenHead) -> str:
    """State the joined heads' width before and after the projection."""
    rows, width = opened.entry.joined, opened.attention.value.shape[-1]
    if rows is None:
        return ""
    side = f"{opened.heads} heads × {width} numbers side by side"
    return f"{side} were projected to {rows.shape[-1]} per token, {_range(rows)}."


def _range(tensor: Tensor) -> str:
    low, high = _ends(tensor)
    return f"from {low} to {high}"


def _ends(tensor: Tensor) -> tuple[str, str]:
    low, high = tensor.double().aminmax()
    return _rounded(float(low)), _rounded(float(high))


def _rounded(number: float) -> str:
    return f"{number:.3g}".replace("-", "−").replace("inf", "∞")
