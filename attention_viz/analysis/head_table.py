"""Every metric of every head as a table: some rows at a time, and of long texts from a sample of the rows."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attention_viz.analysis.metrics import METRICS
from attention_viz.analysis.rows import Rows
from attention_viz.analysis.sample import sample_of
from attention_viz.errors import ShapeError, TraceError
from attention_viz.operation.attention import Attention
from attention_viz.operation.cutting import first
from attention_viz.operation.shapes import is_whole
from attention_viz.trace.ahead import Progress, ahead
from attention_viz.trace.rerun import behind
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas

__all__ = ["COUNT", "ERROR", "RANDOM", "few_behind", "head_table", "mean_table"]

# What the names of columns with standard errors end in, and of those that say behind how many queries a mean stands.
ERROR, COUNT = "_error", "_n"
# The column of the test with random tokens that are said twice.
RANDOM = "induction_random"
# A mean of fewer queries than these says little.
_FEW = 5

# Weights that are made at a time: 2 MiB in float32, which stay in the processor's caches from metric to metric.
_AT_ONCE = 2**19
# A text of more weights than this is measured by a sample, of so many rows, unless all are asked for.
_MANY, _SAMPLE = 2**29, 256
# Weights a second, on two cores.
_RATE = 1.2e8


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
        `attrs["rows"]` says from how many queries the means were taken and `attrs["queries"]` how many there are; where
        those are fewer, a column ending in "_error" has each mean's standard error, NaN where fewer than two queries
        had what is asked for. Source: Cochran 1977, "Sampling Techniques", section 2.6; taking a query from each
        stretch of the text makes the true error no larger, as a rule smaller. Where a few queries make up nearly all of
        a number, a sample may miss them, and its error then doesn't tell.

    Raises:
        TraceError: no trace, or no such stream, or none named where there are several; or traces of different heads; or
            repeated_random of a trace with no model behind it, or of an encoder–decoder's.
        ShapeError: fewer rows than 1.
    """
    if rows not in (None, "all") and (not is_whole(rows) or int(rows) < 1):
        raise ShapeError(f"{rows!r} rows were asked for; it has to be a whole number, 1 or more, “all”, or None")
    several = [traces] if isinstance(traces, Trace) else list(traces)
    if not several:
        raise TraceError("a table of heads was asked for without a trace; needed: one or more")
    tests = [behind(several[0]).repeated_random()] if repeated_random else []
    count, cells = len(several) + len(tests), sum(_cells(trace, trace.stream(stream), rows) for trace in several)
    progress = ahead("head_table", cells, cells / _RATE, progress, "weights", "rows=… measures some rows only")
    tables = [
        _table(trace, trace.stream(stream), rows, _part(progress, number, count))
        for number, trace in enumerate(several)
    ]
    table = tables[0] if isinstance(traces, Trace) else mean_table(tables)
    for test in tests:
        found = _table(test, test.stream(), "all", _part(progress, count - 1, count)).reindex(table.index)
        table = table.assign(**{RANDOM + ending: found["induction" + ending] for ending in ("", COUNT)})
    return table


def mean_table(tables: "Sequence[pandas.DataFrame]") -> "pandas.DataFrame":
    """The mean of several texts' tables, each of one trace, with its spread: what `head_table` gives for their traces.

    Where some are from samples, the mean's standard error is worked out from theirs.

    Raises:
        TraceError: no table, or tables of different heads.
    """
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
    for name in ("rows", "queries"):
        found.attrs[name] = sum(table.attrs.get(name, 0) for table in tables)
    return found


def few_behind(table: "pandas.DataFrame") -> dict[str, int]:
    """The metrics of a table whose means rest on fewer than 5 queries in every head, and on how many at most.

    Args:
        table: from `head_table`; columns that it lacks are left out.
    """
    most = {name: int(table[name + COUNT].to_numpy().max()) for name in METRICS if {name, name + COUNT} <= {*table}}
    return {name: count for name, count in most.items() if 0 < count < _FEW}


def _part(progress: Progress, number: int, count: int) -> Progress:
    """What tells of one of several parts as its share of the whole."""
    return lambda share: progress((number + share) / count)


def _measured(trace: Trace, stream: str, asked: int | Literal["all"] | None) -> Sequence[int]:
    """The queries from which means are taken."""
    counted = trace.query_tokens(stream).counted
    return counted if asked == "all" else sample_of(counted, _sample_size(trace, stream) if asked is None else asked)


def _cells(trace: Trace, stream: str, asked: int | Literal["all"] | None) -> int:
    """How many weights are read for a table."""
    shapes = [trace.attention(layer, stream).shape for layer in trace.layer_numbers(stream)]
    return len(_measured(trace, stream, asked)) * sum(heads * keys for heads, _, keys in shapes)


def _table(trace: Trace, stream: str, asked: int | Literal["all"] | None, progress: Progress) -> "pandas.DataFrame":
    import pandas

    counted, rows = trace.query_tokens(stream).counted, _measured(trace, stream, asked)
    calls = {layer: trace.attention(layer, stream) for layer in trace.layer_numbers(stream)}
    sums = {layer: torch.zeros(3, len(METRICS), call.shape[0], dtype=torch.float64) for layer, call in calls.items()}
    done, work = 0, len(rows) * len(calls)
    for some in _blocks(rows, max(call.shape[0] * call.shape[2] for call in calls.values())):
        known = Rows.of(trace.query_tokens(stream), trace.key_tokens(stream), alike=stream != "cross", positions=some)
        last: dict[object, int] = {}
        for layer, call in calls.items():
            sums[layer] += _sums(_for_rows(call, some, last), known)
            done += len(some)
            progress(done / work)
    index = pandas.MultiIndex.from_tuples(
        [(layer, head) for layer, call in calls.items() for head in range(call.shape[0])], names=["layer", "head"]
    )
    columns = _columns(torch.cat(list(sums.values()), dim=-1), len(rows) / max(1, len(counted)))
    table = pandas.DataFrame({name: column.numpy() for name, column in columns.items()}, index=index)
    table.attrs.update(rows=len(rows), queries=len(counted))
    return table


def _sample_size(trace: Trace, stream: str) -> int:
    """How many queries tell enough, where nobody said how many."""
    shapes = [trace.attention(layer, stream).shape for layer in trace.layer_numbers(stream)]
    return _SAMPLE if sum(math.prod(shape) for shape in shapes) > _MANY else max(1, shapes[0][-2])


def _blocks(rows: Sequence[int], cells: int) -> Iterator[Sequence[int]]:
    step = max(1, _AT_ONCE // cells)
    for start in range(0, len(rows), step):
        yield rows[start : start + step]


def _sums(call: Attention, rows: Rows) -> Float[Tensor, "3 metric head"]:
    """Of each metric and head: how many of these queries have it, the sum of what they have, and of its square."""
    weights, looking = _weights(call)
    found = torch.stack([metric.function(weights, rows) for metric in METRICS.values()]).double()
    having = ~found.isnan() & looking
    found = torch.where(having, found, 0)
    # A weight that is not a number makes its row so, which no mean may pass over.
    broken = (weights[..., 0].isnan() & looking).any(dim=-1)
    found[..., 0] = torch.where(broken, torch.nan, found[..., 0])
    return torch.stack([having.sum(dim=-1), found.sum(dim=-1), found.square().sum(dim=-1)])


def _for_rows(call: Attention, rows: Sequence[int], last: dict[object, int]) -> Attention:
    """The call for some of its queries, without the keys at the end that none of them may look at.

    `last` keeps how many keys those are, by mask: layers share theirs.
    """
    found, whole = call.rows(rows), call.allowed
    if whole is None or found.allowed is None or whole.shape[-1] == 1:
        return found
    mask = (whole.data_ptr(), whole.shape, whole.stride())
    if mask not in last:
        open_to_any = found.allowed.flatten(0, -2).any(dim=0).nonzero()
        last[mask] = int(open_to_any[-1]) + 1 if len(open_to_any) else 1
    return first(found, keys=last[mask])


def _weights(call: Attention) -> tuple[Float[Tensor, "head row key"], Bool[Tensor, "head row"]]:
    """The weights in float32, and which queries may look at anything."""
    if call.sinks is not None:
        logits, weights = call.masked.detach(), call.weights.detach()
    else:
        logits = replace(call, allowed=None).masked.detach()
        if call.allowed is not None:
            # Into the same memory, which was just made: this is asked of millions of rows.
            logits.masked_fill_(~call.allowed, -math.inf)
        weights = logits.softmax(dim=-1).to(call.query.dtype)
    return weights.float().cpu(), ~torch.isneginf(logits.amax(dim=-1)).cpu()


def _columns(sums: Float[Tensor, "3 metric head"], share: float) -> dict[str, Tensor]:
    """The means by metric, their standard errors where the queries are a share of all, and the queries behind each."""
    count, total, squares = sums
    mean = torch.where(count > 0, total / count, torch.nan)
    columns = dict(zip(METRICS, mean, strict=True))
    if share < 1:
        variance = ((squares - count * mean.square()) / (count - 1)).clamp_min(0)
        error = torch.where(count > 1, (variance / count * (1 - share)).sqrt(), torch.nan)
        columns |= {name + ERROR: one for name, one in zip(METRICS, error, strict=True)}
    return columns | {name + COUNT: one for name, one in zip(METRICS, count.long(), strict=True)}
