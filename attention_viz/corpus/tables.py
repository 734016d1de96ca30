"""A scan's tables, from its sums."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy

from attention_viz.analysis.head_table import COUNT, ERROR
from attention_viz.analysis.metrics import METRICS, metrics_for, metrics_in
from attention_viz.analysis.roles import ROLES, SHARES, role_of, roles_for
from attention_viz.corpus.columns import with_columns
from attention_viz.corpus.kinds import KINDS
from attention_viz.corpus.one_text import Heads
from attention_viz.corpus.part import CorpusPart
from attention_viz.corpus.pictured import Pictured
from attention_viz.corpus.regions import RegionSums, table_of_regions
from attention_viz.corpus.tally import Chosen, Tally
from attention_viz.trace.files.arrow import parquet_bytes
from attention_viz.trace.kind import MIXER, InputKind, Unit

if TYPE_CHECKING:
    import pandas

# What the names of columns end in.
SPREAD, TEXTS, HOLDS = "_spread", "_texts", "_holds"
# Of which metric the examples of a head of some role tell most.
LEADING = {
    "previous": "previous", "next": "next", "above": "above", "itself": "self", "same token": "duplicate",
    "induction": "induction",
    "punctuation": "confidence", "first": "first", "broad": "entropy", "mixed": "confidence",
}  # fmt: skip
# The tables of a study, which lie beside those of the scan.
STUDIED = ("silenced", "alike", "written")
# The table of words that attend to one region, of texts with images.
REGIONS = "regions"
DECILES = tuple(range(10, 100, 10))
# How many texts are shown of each tenth of them: those where a head does least of it tell most of what it is not.
_OF_TENTH = (2, 2, 2, 1, 1, 1, 1, 1, 1, 1)


def file_of(name: str, table: "pandas.DataFrame") -> tuple[str, bytes]:
    """Return a table's file name and content."""
    return f"{name}.parquet", parquet_bytes(with_columns(name, table))


def metrics_of(heads: Heads) -> tuple[str, ...]:
    """Return the metrics of a scan's tables: what only pictures have is in them if the scan has an image's stream."""
    if _sees(heads):
        return metrics_in("softmax")
    return metrics_for(Unit.WORD, "mixer" if _mixes(heads) else "softmax")


def _sees(heads: Heads) -> bool:
    return any(stream == InputKind.PICTURE.value for stream, _, _ in heads)


def _mixes(heads: Heads) -> bool:
    """Return whether these are layers without a softmax, which are scanned by themselves."""
    return heads[0][0].startswith(MIXER)


def records_of(table: Any) -> list[dict[str, Any]]:
    """Return a table's rows by column name."""
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def tables_of(part: CorpusPart, heads: Heads, *, pictures: bool = False) -> "dict[str, pandas.DataFrame]":
    """Return tables by name: "heads", "kinds", "examples", "texts"; of texts with images also "regions"."""
    found = {
        "heads": _heads(part.tally, heads),
        "kinds": _kinds(part.tally, heads),
        "examples": _examples(part.tally, heads),
        "texts": _texts(part, pictures=pictures),
    }
    if pictures:
        found[REGIONS] = table_of_regions(part.regions or RegionSums.empty(len(heads)), heads)
    return found


def _heads(tally: Tally, heads: Heads) -> "pandas.DataFrame":
    import pandas

    columns = dict[str, Any](_places(heads))
    having = tally.count > 0
    count = numpy.maximum(tally.count, 1)
    numbers = {
        "": numpy.where(having, tally.mean, numpy.nan),
        SPREAD: numpy.where(having, numpy.sqrt(tally.away / count), numpy.nan),
    }
    if tally.squares.any():
        numbers[ERROR] = numpy.where(having, numpy.sqrt(tally.squares) / count, numpy.nan)
    for ending, found in {**numbers, COUNT: tally.queries, TEXTS: tally.count}.items():
        by_name = dict(zip(METRICS, found, strict=True))
        columns |= {name + ending: by_name[name] for name in metrics_of(heads)}
    columns |= _deciles(tally, metrics_of(heads))
    return pandas.DataFrame(columns | _roles(tally, _roles_of(heads)))


def _roles_of(heads: Heads) -> Sequence[str]:
    return tuple(ROLES) if _sees(heads) else roles_for(Unit.WORD, mixes=_mixes(heads))


def _deciles(tally: Tally, names: Sequence[str]) -> dict[str, Any]:
    """Use the random sample of texts: all, if the corpus is small."""
    found = dict[str, Any]()
    for at, name in enumerate(METRICS):
        if name not in names:
            continue
        of_metric = tally.sample_mean[:, at].astype(numpy.float64)
        columns = numpy.full((len(DECILES), of_metric.shape[1]), numpy.nan)
        for head, numbers in enumerate(of_metric.T):
            known = numbers[~numpy.isnan(numbers)]
            if len(known):
                columns[:, head] = numpy.percentile(known, DECILES)
        found |= {f"{name}_d{decile}": row for decile, row in zip(DECILES, columns, strict=True)}
    return found


def _roles(tally: Tally, names: Sequence[str]) -> dict[str, Any]:
    """Choose by mean shares; count testable and holding texts."""
    count = tally.role_count
    shares = numpy.where(count > 0, tally.role_sum / numpy.maximum(count, 1), numpy.nan)
    chosen = [role_of(dict(zip(SHARES, column.tolist(), strict=True))) for column in shares.T]
    found: dict[str, Any] = {"role": [role for role, _ in chosen], "score": [score for _, score in chosen]}
    for at, name in enumerate(SHARES):
        if name not in names:
            continue
        found |= {f"role {name}": shares[at]}
        found |= {f"role {name}{TEXTS}": count[at], f"role {name}{HOLDS}": tally.role_holds[at]}
    return found


def _kinds(tally: Tally, heads: Heads) -> "pandas.DataFrame":
    """Skip pairs of kinds that can't look at each other."""
    import pandas

    head, query, key = numpy.nonzero(tally.pairs)
    weight, expected = tally.weight[head, query, key], tally.expected[head, query, key]
    with numpy.errstate(divide="ignore", invalid="ignore"):
        lift = numpy.where(expected > 0, weight / expected, numpy.nan)
    names = numpy.array(KINDS)
    columns = {name: numpy.array(values)[head] for name, values in _places(heads).items()}
    return pandas.DataFrame(
        columns
        | {"query_kind": names[query], "key_kind": names[key], "weight": weight, "expected": expected, "lift": lift}
        | {"pairs": tally.pairs[head, query, key]}
    )


def _examples(tally: Tally, heads: Heads) -> "pandas.DataFrame":
    """Keep the strongest, and each tenth's at random."""
    import pandas

    strong, some = _strongest(tally.strongest, heads), _of_tenths(tally, heads)
    columns = {name: numpy.concatenate([strong[name], some[name]]) for name in strong}
    table = pandas.DataFrame(columns)
    order = ["stream", "layer", "head", "metric", "kind", "tenth", "rank"]
    streams = list(dict.fromkeys(stream for stream, _, _ in heads))
    placed = table.assign(stream=[streams.index(one) for one in table["stream"]], kind=table["kind"] != "strongest")
    return table.loc[placed.sort_values(order).index].reset_index(drop=True)


def _strongest(found: Chosen, heads: Heads) -> dict[str, Any]:
    metric, head, rank = numpy.nonzero(found.text >= 0)
    at = (metric, head, rank)
    rows = len(metric)
    return _rows(heads, head, metric, ["strongest"] * rows, numpy.zeros(rows, int), rank + 1, found.text[at]) | {
        "query": found.query[at],
        "key": found.key[at],
        "weight": found.weight[at].astype(float),
        "value": found.value[at].astype(float),
    }


def _of_tenths(tally: Tally, heads: Heads) -> dict[str, Any]:
    parts = list[tuple[int, int, int, int, int]]()
    for metric in range(len(METRICS)):
        for head in range(len(heads)):
            means = tally.sample_mean[:, metric, head]
            known = numpy.nonzero(~numpy.isnan(means) & numpy.isfinite(tally.sample_found[0, :, metric, head]))[0]
            order = known[numpy.argsort(means[known], kind="stable")]
            for tenth, some in enumerate(numpy.array_split(order, 10)):
                # Those that come first by lot, which nobody chose.
                chosen = numpy.sort(some)[: _OF_TENTH[tenth]]
                parts += [(metric, head, tenth + 1, rank, int(one)) for rank, one in enumerate(chosen, start=1)]
    metric, head, tenth, rank, at = numpy.array(parts, dtype=int).reshape(-1, 5).T
    value, query, key, weight = (one[at, metric, head] for one in tally.sample_found)
    return _rows(heads, head, metric, ["random"] * len(at), tenth, rank, tally.sample[at]) | {
        "query": query.astype(int),
        "key": key.astype(int),
        "weight": weight.astype(float),
        "value": value.astype(float),
    }


def _rows(heads: Heads, head: Any, metric: Any, kind: list[str], tenth: Any, rank: Any, text: Any) -> dict[str, Any]:
    columns = {name: numpy.array(values)[head] for name, values in _places(heads).items()}
    names = numpy.array(list(METRICS))
    return columns | {
        "metric": names[metric],
        "kind": numpy.array(kind, dtype="U9"),
        "tenth": tenth,
        "rank": rank,
        "text": text,
    }


def _texts(part: CorpusPart, *, pictures: bool) -> "pandas.DataFrame":
    import pandas

    sample = set(part.tally.sample.tolist())
    numbers = sorted(part.texts)
    entries, by_lot = [part.texts[number] for number in numbers], [number in sample for number in numbers]
    columns = {"said": entries}
    if pictures:
        several = [Pictured.of_entry(one) for one in entries]
        columns = {
            "said": [one.text for one in several],
            "picture": [one.path for one in several],
            "picture_sha256": [one.sha256 for one in several],
        }
    texts = {name: pandas.Series(column, dtype="str") for name, column in columns.items()}
    return pandas.DataFrame({"text": numbers, **texts, "by_lot": by_lot})


def _places(heads: Heads) -> dict[str, list[Any]]:
    names = ("stream", "layer", "head")
    return {name: list(column) for name, column in zip(names, zip(*heads, strict=True), strict=True)}
