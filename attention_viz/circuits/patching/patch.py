"""Each head of one text patched into another, as a table."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from attention_viz.circuits.asked import Direction, Logit, Probability
from attention_viz.circuits.patching.patching import TOTAL, Patching, Put
from attention_viz.errors import ShapeError
from attention_viz.protocol.needing import need_trained
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas

    from attention_viz.models.model import AttentionModel

__all__ = ["patch", "table_of"]


def patch(
    model: "AttentionModel",
    text: str | Trace,
    other: str | Trace,
    of: Logit | Probability | Direction,
    *,
    direction: Literal["noising", "denoising"] = "noising",
    parts: Literal["heads", "mlps"] = "heads",
    by: Literal["head", "position"] = "head",
    aligned: bool = False,
    confirm: int | None = None,
    report: Callable[[int, int], object] = lambda done, of: None,
) -> "pandas.DataFrame":
    """What becomes of a number of one text when a head hands on, instead of its own output, what it did in another.

    Total effects: all that comes after the head is computed again, patterns and norms included. All effects are
    estimated at once by a gradient: what is put less what was there, times the number's slope there. Runs of the model
    confirm them, many in a batch beside one into which nothing is put; where that one doesn't come out as it does
    alone, they run one after the other.

    The shared model isn't touched: a twin over the same numbers runs.

    Source: Heimersheim & Nanda 2024, "How to use and interpret activation patching"; the estimate is that of Nanda
    2023, "Attribution Patching".

    Args:
        model: from `load` or `wrap`.
        text: the text in which the model does what is looked into; or a trace of it.
        other: one that differs where it matters; or a trace of it.
        of: a `Logit`, a `Probability` or a `Direction`. A position counts in `text`.
        direction: "noising" puts other's heads into `text`, which shows what it needs; "denoising" those of `text` into
            `other`, which shows what is enough.
        parts: "heads", or "mlps" for the MLP of each layer.
        by: "head" for all positions at once, or "position" for each position alone.
        aligned: pair texts of different lengths token by token; a token without a counterpart keeps what it has. They
            are refused without it.
        confirm: how many are run, those with the largest estimates first; all by default, 0 for none.
        report: is told after each batch how many runs are done, and of how many; what it raises stops the work.

    Returns:
        Index (layer, head), of MLPs layer; by position also position, of the text that was put into. Columns effect,
        the number with the head put less the number without, NaN where it wasn't run; and estimate. Its `attrs` hold
        number, other_number (of the text that was put from) and what the effects are, "held".

    Raises:
        ShapeError: texts of different lengths that aren't to be aligned, or that share no token; a `Score`, or a
            position or token that isn't there; a count below 0.
        TraceError: a trace is another model's, was edited, comes from a file, or the model has changed since.
        UnusableText: a token asked for by its text is none, or several.
        UnsupportedModel: our own module, an encoder–decoder, a model without a word head where a logit or a
            probability was asked for, or one whose calls or MLPs can't be put.
    """
    _check(confirm, direction=direction, parts=parts, by=by)
    need_trained(model)
    mine, yours = (model.trace(one) if isinstance(one, str) else one for one in (text, other))
    made = Patching.begin(model, mine, yours, of, direction=direction, parts=parts, by=by, aligned=aligned)
    return table_of(made, _confirmed(made, confirm, report))


def _confirmed(made: Patching, count: int | None, report: Callable[[int, int], object]) -> dict[Put, float]:
    ranked = sorted(made.puts, key=lambda put: -abs(made.estimates[put]))[:count]
    effects: dict[Put, float] = {}
    report(0, len(ranked))
    # Heads of neighbouring layers share a batch, which begins at the first of them.
    for found in made.batches(sorted(ranked, key=lambda put: put.layer)):
        effects |= found
        report(len(effects), len(ranked))
    return effects


_KNOWN = {"direction": ("noising", "denoising"), "parts": ("heads", "mlps"), "by": ("head", "position")}


def _check(confirm: int | None, **given: str) -> None:
    for name, one in given.items():
        if one not in _KNOWN[name]:
            raise ShapeError(f"{name} is {' or '.join(map(repr, _KNOWN[name]))}; got {one!r}")
    if confirm is not None and confirm < 0:
        raise ShapeError(f"{confirm} runs were asked for; it has to be 0 or more")


def table_of(made: Patching, effects: dict[Put, float]) -> "pandas.DataFrame":
    """Return the table of `patch`: estimates, and known effects."""
    import pandas

    names = [name for name in Put._fields if any(getattr(put, name) is not None for put in made.puts)]
    rows = [tuple(getattr(put, name) for name in names) for put in made.puts]
    index = (
        pandas.MultiIndex.from_tuples(rows, names=names)
        if len(names) > 1
        else pandas.Index([row[0] for row in rows], name=names[0])
    )
    columns = {
        "effect": [effects.get(put, float("nan")) for put in made.puts],
        "estimate": [made.estimates[put] for put in made.puts],
    }
    table = pandas.DataFrame(columns, index=index)
    table.attrs.update(number=made.number, other_number=made.other_number, held=TOTAL)
    return table
