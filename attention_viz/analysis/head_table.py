"""Every head's metrics as a table, sampled for long texts."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.analysis.measured import asked_rows, measured
from attention_viz.analysis.metrics import METRICS
from attention_viz.edits.words import listed
from attention_viz.errors import ShapeError, TraceError
from attention_viz.operation.shapes import is_whole
from attention_viz.trace.ahead import Progress, ahead
from attention_viz.trace.kind import Unit
from attention_viz.trace.trace import Trace
from attention_viz.trace.trace_data import behind

if TYPE_CHECKING:
    import pandas

__all__ = ["COUNT", "ERROR", "RANDOM", "few_behind", "head_table", "mean_table", "together"]

# What the names of columns with standard errors end in, and of those that say behind how many queries a mean stands.
ERROR, COUNT = "_error", "_n"
# The column of the test with random tokens that are said twice.
RANDOM = "induction_random"
# A mean of fewer queries than these says little.
_FEW = 5

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
    """Every metric of every head.

    What takes more than ten seconds says first how many weights it reads and how long it may take, and then on standard
    error how far it is.

    Args:
        traces: one text's trace; or several texts' of one model, whose mean is taken over the texts that have what a
            metric asks for, with its spread (standard deviation, population) in a column ending in "_spread".
        stream: which attention; the only one there is, if none is named.
        rows: from how many queries of each text the means are taken, spread over it and the same each time; "all" for
            all of them. By default all, or 256 where a text has more than 2²⁹ weights in all heads together.
        repeated_random: whether the model behind the (first) trace also reads 50 random tokens twice, the standard test
            of induction: a last column "induction_random" has its score, and "induction_random_n" of how many tokens.
            Source: Olsson et al. 2022, "In-context Learning and Induction Heads"; see `model.repeated_random`.
        progress: told now and then which share of the work is done, from 0 to 1, in place of lines on standard error;
            what it raises stops the work.

    Returns:
        One row a head, index (layer, head), one column a metric, float64. NaN where no query has what is asked for;
        of cross-attention, whose two axes are different texts, that is so for all that compares their positions.
        A column ending in "_n" says from how many queries each mean is taken, over all texts: fewer than 5 say little.
        `attrs["missing"]` says why, by the metric's name, where what was read can't have it: patches of a picture and
        frames of a sound are no tokens of which two are the same, and a text has nothing above it.
        `attrs["rows"]` says from how many queries the means were taken and `attrs["queries"]` how many there are; where
        those are fewer, a column ending in "_error" has each mean's standard error, NaN where fewer than two queries
        had what is asked for. Source: Cochran 1977, "Sampling Techniques", section 2.6; taking a query from each
        stretch of the text makes the true error no larger, as a rule smaller. Where a few queries make up nearly all of
        a number, a sample may miss them, and its error then doesn't tell.

    Raises:
        TraceError: no trace, or no such stream, or none named where there are several; or traces of different models or
            heads; or repeated_random of a trace with no model behind it, or of an encoder–decoder's.
        ShapeError: fewer rows than 1.
    """
    if rows not in (None, "all") and (not is_whole(rows) or int(rows) < 1):
        raise ShapeError(f"{rows!r} rows were asked for; it has to be a whole number, 1 or more, “all”, or None")
    several = together(traces, "a table of heads")
    tests = [behind(several[0]).repeated_random()] if repeated_random else []
    count, cells = len(several) + len(tests), sum(_cells(trace, trace.stream(stream), rows) for trace in several)
    progress = ahead(
        "head_table", cells, cells / WEIGHTS_A_SECOND, progress, "weights", "rows=… measures some rows only"
    )
    tables = [
        _table(trace, trace.stream(stream), rows, _part(progress, number, count))
        for number, trace in enumerate(several)
    ]
    table = tables[0] if isinstance(traces, Trace) else mean_table(tables)
    for test in tests:
        found = _table(test, test.stream(), "all", _part(progress, count - 1, count)).reindex(table.index)
        table = table.assign(**{RANDOM + ending: found["induction" + ending] for ending in ("", COUNT)})
    return table


def together(traces: "Trace | Sequence[Trace]", what: str) -> list[Trace]:
    """Return traces of one model as a list."""
    several = [traces] if isinstance(traces, Trace) else list(traces)
    if not several:
        raise TraceError(f"{what} was asked for without a trace; needed: one or more")
    names = sorted({one.provenance.model for one in several})
    weights = {one.provenance.sha256 for one in several}
    # By another name, such as its folder's, it is the same model where the weights are the same.
    if len(names) > 1 and (len(weights) > 1 or None in weights):
        raise TraceError(f"{what} can't be told of several models together; got {listed(names)}")
    if len(weights - {None}) > 1:
        raise TraceError(f"{what} can't be told of several models together; got {names[0]} with different weights")
    return several


def mean_table(tables: "Sequence[pandas.DataFrame]") -> "pandas.DataFrame":
    """Average several texts' `head_table`, with spread and standard errors from samples."""
    import pandas

    if not tables:
        raise TraceError("the mean of several tables was asked for without a table; needed: one or more")
    if any(not table.index.equals(tables[0].index) for table in tables):
        raise TraceError(
            f"traces of different heads can't be averaged; got {sorted({len(table) for table in tables})} heads"
        )
    names = list(METRICS)
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
    return {name: count for name, count in most.items() if 0 < count < _FEW}


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
    sums = torch.zeros(3, len(METRICS), len(heads), dtype=torch.float64)
    done, work = 0, len(rows) * len(heads)
    for some in measured(trace, stream, rows):
        start = heads.index(some.heads[0])
        sums[..., start : start + len(some.heads)] += some.sums()
        done += len(some.rows.positions) * len(some.heads)
        progress(done / work)
    index = pandas.MultiIndex.from_tuples(heads, names=["layer", "head"])
    columns = _columns(sums, len(rows) / max(1, len(counted)))
    table = pandas.DataFrame({name: column.numpy() for name, column in columns.items()}, index=index)
    table.attrs.update(rows=len(rows), queries=len(counted), missing=_missing(trace, stream))
    return table


def _missing(trace: Trace, stream: str) -> dict[str, str]:
    tokens = trace.query_tokens(stream)
    alike, patches = stream != "cross", tokens.unit is Unit.PATCH
    reasons = {
        "ids": "" if tokens.ids is not None or not alike else "what it reads has no ids, so no two tokens are the same",
        "patches": "" if patches and alike else "what it reads is no picture, in which patches have places",
    }
    return {name: reasons[metric.of] for name, metric in METRICS.items() if metric.of and reasons[metric.of]}


def _columns(sums: Float[Tensor, "3 metric head"], share: float) -> dict[str, Tensor]:
    count, total, squares = sums
    mean = torch.where(count > 0, total / count, torch.nan)
    columns = dict(zip(METRICS, mean, strict=True))
    if share < 1:
        variance = ((squares - count * mean.square()) / (count - 1)).clamp_min(0)
        error = torch.where(count > 1, (variance / count * (1 - share)).sqrt(), torch.nan)
        columns |= {name + ERROR: one for name, one in zip(METRICS, error, strict=True)}
    return columns | {name + COUNT: one for name, one in zip(METRICS, count.long(), strict=True)}
