"""Patch each head of one text into another."""

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
_KNOWN = {"direction": ("noising", "denoising"), "parts": ("heads", "mlps"), "by": ("head", "position")}


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
    """Replace a head's output in one text by its output in another, and measure a number's change.

    These are total effects: everything after the head is computed again, including patterns and norms. One gradient
    estimates all effects at once: the new output minus the old one, times the number's gradient. Runs confirm them, in
    batches with one unpatched row; if that row differs from a single run, they run one by one.

    A copy over the same weights runs; the shared model isn't touched.

    Texts with images come as traces, `model.trace(text, picture=…)`, with equally many tokens and images of one shape.

    Source: Heimersheim & Nanda 2024, "How to use and interpret activation patching"; the estimate is that of Nanda
    2023, "Attribution Patching".

    Args:
        model: from `load` or `wrap`.
        text: the text (or its trace) where the model shows the behaviour.
        other: a text (or its trace) that differs where it matters.
        of: a `Logit`, a `Probability` or a `Direction`; its position counts in `text`.
        direction: "noising" puts outputs of `other` into `text` and shows what `text` needs; "denoising" puts outputs
            of `text` into `other` and shows what is enough.
        parts: "heads", or "mlps" for each layer's MLP.
        by: "head" patches all positions at once, "position" each position alone.
        aligned: pair texts of different lengths token by token; unpaired tokens stay unpatched. Without it, such texts
            are refused.
        confirm: number of runs, largest estimates first; None for all, 0 for none.
        report: called after each batch with the number of finished runs and of all runs; if it raises, the work stops.

    Returns:
        Index (layer, head), or layer for MLPs, plus position (in the patched text) for "position". With several
        streams, as in hybrids and models that read text with images, stream comes first. All channels of a layer
        without a softmax share a row without a head. Columns effect, the patched minus the unpatched number (NaN if it
        wasn't run), and estimate; for "position" also token, its word or its place in the image. `attrs` holds number,
        other_number (of the source text) and held (the kind of effect).

    Raises:
        ShapeError: the texts differ in length and `aligned` is False, or share no token; their images differ in shape
            or position; `of` is a `Score`; its position or token doesn't exist; or `confirm` is below 0.
        TraceError: a trace is another model's, is edited or comes from a file, or the model has changed since.
        UnusableText: the token's text isn't exactly one token.
        UnsupportedModel: the model is one of our own modules, is an encoder–decoder, has no unembedding for a logit or
            probability, reads an image in tiles, or its calls or MLPs can't be patched.
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


def _check(confirm: int | None, **given: str) -> None:
    for name, one in given.items():
        if one not in _KNOWN[name]:
            raise ShapeError(f"unknown {name}={one!r}; choose {' or '.join(map(repr, _KNOWN[name]))}")
    if confirm is not None and confirm < 0:
        raise ShapeError(f"confirm must be at least 0; got {confirm}")


def table_of(made: Patching, effects: dict[Put, float]) -> "pandas.DataFrame":
    """Return the table of `patch`: estimates, and known effects."""
    import pandas

    order = ("stream", "layer", "head", "position")
    found = {name: [getattr(put, name) for put in made.puts] for name in order}
    named = {
        name: pandas.array(one, dtype="Int64") if None in one and name == "head" else one for name, one in found.items()
    }
    names = [name for name in order if any(one is not None for one in found[name])]
    index = (
        pandas.MultiIndex.from_arrays([named[name] for name in names], names=names)
        if len(names) > 1
        else pandas.Index(named[names[0]], name=names[0])
    )
    columns = {
        "effect": [effects.get(put, float("nan")) for put in made.puts],
        "estimate": [made.estimates[put] for put in made.puts],
    }
    if "position" in names:
        queries, own = made.bench.run.queries, made.bench.run.tokens
        tokens = [queries.get(put.stream or "", own).names for put in made.puts]
        columns = {"token": [said[put.position or 0] for said, put in zip(tokens, made.puts, strict=True)], **columns}
    table = pandas.DataFrame(columns, index=index)
    table.attrs.update(number=made.number, other_number=made.other_number, held=TOTAL)
    return table
