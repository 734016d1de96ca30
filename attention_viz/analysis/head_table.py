"""Every head's metrics as a table, sampled for long texts."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.analysis.measured import asked_rows, measured, names_of
from attention_viz.analysis.metrics import METRICS
from attention_viz.edits.words import listed
from attention_viz.errors import ShapeError, TraceError
from attention_viz.operation.shapes import is_whole
from attention_viz.trace.ahead import Progress, ahead
from attention_viz.trace.files.arrow import PLACES, Column, described
from attention_viz.trace.kind import Unit
from attention_viz.trace.slots import are_alike
from attention_viz.trace.trace import Trace
from attention_viz.trace.trace_data import behind

if TYPE_CHECKING:
    import pandas

__all__ = ["COUNT", "ERROR", "RANDOM", "few_behind", "head_table", "mean_table", "metric_columns", "together"]

# What the names of columns with standard errors end in, and of those that say behind how many queries a mean stands.
ERROR, COUNT = "_error", "_n"
# The column of the test with random tokens that are said twice.
RANDOM = "induction_random"
# A mean of fewer queries than these says little.
FEW = 5

# Weights a second, on two cores.
WEIGHTS_A_SECOND = 1.2e8


def head_table(
    traces: "Trace | Sequence[Trace]",
    stream: str | None = None,
    *,
    rows: int | Literal["all"] | None = None,
    repeated_random: bool = False,
    progress: Progress | None = None,
) -> "pandas.DataFrame":
    """Return every metric of every head.

    Work of more than ten seconds warns of its weight count and duration first, then prints its progress to standard
    error.

    Args:
        traces: one text's trace, or those of several texts and one model. Several are averaged over the texts that have
            the metric; a column ending in "_spread" has the standard deviation (population).
        stream: the attention type; None for the only one. "mixer" has the layers without a softmax. Their metrics are
            of shares of size, |A| over the row's Σ|A|, and a few of signed weights (see `Metric.in_mixers`).
        rows: how many queries of each text to use, spread over it and the same each time; "all" for all. By default
            all, or 256 if a text has more than 2²⁹ weights in all heads together.
        repeated_random: also run the standard test of induction: the model behind the (first) trace reads 50 random
            tokens twice. The last columns are its score, "induction_random", and its token count, "induction_random_n".
            Source: Olsson et al. 2022, "In-context Learning and Induction Heads"; see `model.repeated_random`.
        progress: called now and then with the share done, from 0 to 1, instead of printing; an exception from it stops
            the work.

    Returns:
        One row per head, index (layer, head), one column per metric, float64. NaN if no query qualifies.
        Cross-attention has no metric that compares positions, because its axes are different texts. A column ending in
        "_n" has the number of queries behind each mean, over all texts; means of fewer than 5 are weak evidence.
        `attrs["missing"]` has the reason, by metric, if the input can't have it: image patches and audio frames have no
        ids, and a text has nothing above a word. Layers without a softmax have no column for a metric that makes no
        sense for signed rows, and the reason is there, too. `attrs["rows"]` has the number of queries used,
        `attrs["queries"]` of those there are. If fewer were used, a column ending in "_error" has each mean's standard
        error, NaN below two queries. Source: Cochran 1977, "Sampling Techniques", section 2.6; taking one query from
        each stretch of the text makes the true error no larger, usually smaller. If a few queries make up nearly all of
        a number, a sample may miss them, and the error then doesn't show it.

    Raises:
        TraceError: no trace, a missing stream, several streams and none named, traces of different models or heads, or
            `repeated_random` for a trace without a model or of an encoder–decoder.
        ShapeError: fewer rows than 1.
    """
    if rows not in (None, "all") and (not is_whole(rows) or int(rows) < 1):
        raise ShapeError(f"rows must be a whole number, 1 or more, “all” or None; got {rows!r}")
    several = together(traces, "head_table")
    tests = [behind(several[0]).repeated_random()] if repeated_random else []
    count, cells = len(several) + len(tests), sum(_cells(trace, trace.stream(stream), rows) for trace in several)
    progress = ahead("head_table", cells, cells / WEIGHTS_A_SECOND, progress, "weights", "rows=… measures fewer rows")
    tables = [
        _table(trace, trace.stream(stream), rows, _part(progress, number, count))
        for number, trace in enumerate(several)
    ]
    table = tables[0] if isinstance(traces, Trace) else mean_table(tables)
    for test in tests:
        own = test.stream(stream if stream in test.mixers else None)
        found = _table(test, own, "all", _part(progress, count - 1, count)).reindex(table.index)
        table = table.assign(**{RANDOM + ending: found["induction" + ending] for ending in ("", COUNT)})
    return described(table, metric_columns(mixes=several[0].stream(stream) in several[0].mixers))


def metric_columns(*, mixes: bool) -> dict[str, Column]:
    """Return the columns of tables of metrics, described by `METRICS`."""
    found = dict(PLACES)
    for name, metric in METRICS.items():
        one = metric.in_mixers if mixes else metric
        what = f"{one.label}: {one.meaning}"
        found |= {
            name: Column(what, one.unit),
            name + "_spread": Column(f"standard deviation over texts of {name}", one.unit),
            name + ERROR: Column(f"standard error of {name}, since queries were sampled", one.unit),
            name + COUNT: Column(f"number of queries behind {name}", "queries"),
        }
    random = {
        RANDOM: Column("the metric induction on random tokens that are read twice", METRICS["induction"].unit),
        RANDOM + COUNT: Column(f"number of queries behind {RANDOM}", "queries"),
    }
    return found | random


def together(traces: "Trace | Sequence[Trace]", what: str) -> list[Trace]:
    """Return traces of one model as a list."""
    several = [traces] if isinstance(traces, Trace) else list(traces)
    if not several:
        raise TraceError(f"{what} needs one or more traces; got none")
    names = sorted({one.provenance.model for one in several})
    weights = {one.provenance.sha256 for one in several}
    # By another name, such as its folder's, it is the same model where the weights are the same.
    if len(names) > 1 and (len(weights) > 1 or None in weights):
        raise TraceError(f"{what} needs traces of one model; got {listed(names)}")
    if len(weights - {None}) > 1:
        raise TraceError(f"{what} needs traces of one model; got {names[0]} with different weights")
    return several


def mean_table(tables: "Sequence[pandas.DataFrame]") -> "pandas.DataFrame":
    """Average several texts' `head_table`, with spread and standard errors from samples."""
    import pandas

    if not tables:
        raise TraceError("mean_table needs one or more tables; got none")
    if any(not table.index.equals(tables[0].index) for table in tables):
        raise TraceError(
            f"averaging needs traces with the same heads; got {sorted({len(table) for table in tables})} heads"
        )
    names = [name for name in METRICS if name in tables[0]]
    numbers = torch.stack([torch.tensor(table[names].to_numpy(copy=True)) for table in tables])
    mean = numbers.nanmean(dim=0)
    columns = {"": mean, "_spread": (numbers - mean).square().nanmean(dim=0).sqrt()}
    errors = [name + ERROR for name in names]
    if any(errors[0] in table for table in tables):
        own = [table.reindex(columns=errors, fill_value=0.0).to_numpy(copy=True) for table in tables]
        squares = torch.stack([torch.tensor(one) for one in own]).square()
        having = ~numbers.isnan()
        columns[ERROR] = torch.where(having, squares, 0).sum(dim=0).sqrt() / having.sum(dim=0)
    found = pandas.DataFrame(
        torch.cat(list(columns.values()), dim=-1).numpy(),
        index=tables[0].index,
        columns=[name + ending for ending in columns for name in names],
    )
    found[[name + COUNT for name in names]] = sum(table[[name + COUNT for name in names]] for table in tables)
    missing = [table.attrs.get("missing", {}) for table in tables]
    found.attrs["missing"] = {name: why for name, why in missing[0].items() if all(name in one for one in missing)}
    for name in ("rows", "queries"):
        found.attrs[name] = sum(table.attrs.get(name, 0) for table in tables)
    return found


def few_behind(table: "pandas.DataFrame") -> dict[str, int]:
    """Return metrics with fewer than 5 queries in every head, and their maximum."""
    most = {name: int(table[name + COUNT].to_numpy().max()) for name in METRICS if {name, name + COUNT} <= {*table}}
    return {name: count for name, count in most.items() if 0 < count < FEW}


def _part(progress: Progress, number: int, count: int) -> Progress:
    return lambda share: progress((number + share) / count)


def _cells(trace: Trace, stream: str, asked: int | Literal["all"] | None) -> int:
    shapes = [trace.attention(layer, stream).shape for layer in trace.layer_numbers(stream)]
    return len(asked_rows(trace, stream, asked)) * sum(heads * keys for heads, _, keys in shapes)


def _table(trace: Trace, stream: str, asked: int | Literal["all"] | None, progress: Progress) -> "pandas.DataFrame":
    import pandas

    rows, counted = asked_rows(trace, stream, asked), trace.query_tokens(stream).counted
    layers = trace.layer_numbers(stream)
    heads = [(layer, head) for layer in layers for head in range(trace.head_count(layer, stream))]
    names = names_of(trace, stream)
    sums = torch.zeros(3, len(names), len(heads), dtype=torch.float64)
    done, work = 0, len(rows) * len(heads)
    for some in measured(trace, stream, rows):
        start = heads.index(some.heads[0])
        sums[..., start : start + len(some.heads)] += some.sums()
        done += len(some.rows.positions) * len(some.heads)
        progress(done / work)
    index = pandas.MultiIndex.from_tuples(heads, names=["layer", "head"])
    columns = _columns(names, sums, len(rows) / max(1, len(counted)))
    table = pandas.DataFrame({name: column.numpy() for name, column in columns.items()}, index=index)
    table.attrs.update(rows=len(rows), queries=len(counted), missing=_missing(trace, stream))
    return table


def _missing(trace: Trace, stream: str) -> dict[str, str]:
    tokens = trace.query_tokens(stream)
    alike, patches = are_alike(stream, tokens, trace.key_tokens(stream)), tokens.unit is Unit.PATCH
    reasons = {
        "ids": "" if tokens.ids is not None or not alike else "its tokens have no ids, so no two are the same",
        "patches": "" if patches and alike else "its input has no image patches",
    }
    there = names_of(trace, stream)
    known = {name: reasons[METRICS[name].of] for name in there if METRICS[name].of and reasons[METRICS[name].of]}
    never = {name: one.mixers for name, one in METRICS.items() if name not in there} if stream in trace.mixers else {}
    return {name: why for name in METRICS if (why := known.get(name) or never.get(name))}


def _columns(names: Sequence[str], sums: Float[Tensor, "3 metric head"], share: float) -> dict[str, Tensor]:
    count, total, squares = sums
    mean = torch.where(count > 0, total / count, torch.nan)
    columns = dict(zip(names, mean, strict=True))
    if share < 1:
        variance = ((squares - count * mean.square()) / (count - 1)).clamp_min(0)
        error = torch.where(count > 1, (variance / count * (1 - share)).sqrt(), torch.nan)
        columns |= {name + ERROR: one for name, one in zip(names, error, strict=True)}
    return columns | {name + COUNT: one for name, one in zip(names, count.long(), strict=True)}
