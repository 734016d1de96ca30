"""A second look at a scan: some texts rerun."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy
import torch

from attention_viz.analysis.likeness import head_distances
from attention_viz.corpus.one_text import Heads
from attention_viz.corpus.study.silence import measure_of, silenced
from attention_viz.corpus.study.written import words_written
from attention_viz.corpus.worker import Worker

if TYPE_CHECKING:
    import pandas

# The number of similar heads per head.
_NEAREST = 5

# Told how many steps are done, and of how many.
Told = Callable[[int, int], object]


def study(
    worker: Worker,
    heads: Heads,
    texts: Sequence[str],
    examples: Sequence[Mapping[str, Any]],
    progress: Told | None = None,
) -> "dict[str, pandas.DataFrame]":
    """Measure ablations, similar heads, and heads' written words.

    Args:
        progress: called with steps done and total; raising stops it.
    """
    model, report = worker.model, progress or _nobody
    measure = measure_of(model)
    by_text = [list(some) for _, some in groupby(sorted(examples, key=_number), key=_number)]
    by_text = by_text if measure == "loss" else []
    (stream,) = {stream for stream, _, _ in heads}
    places = [(layer, head) for _, layer, head in heads]
    steps, before = len(texts) * len(places) + len(by_text), len(texts) * len(places)
    changes, apart = list[Any](), torch.zeros(len(places), len(places), dtype=torch.float64)
    for number, text in enumerate(texts):
        run, done = model.trace(text, layers=worker.settings.layers), number * len(places)
        changes.append(silenced(model, run, places, lambda more, done=done: report(done + more, steps)))
        apart += head_distances(run, stream)
    rows = list[dict[str, Any]]()
    for number, some in enumerate(by_text):
        report(before + number, steps)
        rows += words_written(model, model.trace(str(some[0]["said"])), some)
    return {
        "silenced": _silenced(heads, numpy.stack(changes), measure),
        "alike": _alike(heads, apart.numpy() / len(texts)),
        "written": _written(rows),
    }


def _nobody(_done: int, _of: int) -> None:
    """Report nothing."""


def _number(example: Mapping[str, Any]) -> int:
    return int(example["text"])


def _silenced(heads: Heads, changes: Any, measure: str) -> "pandas.DataFrame":
    """Give means and standard errors over texts, heads in order."""
    import pandas

    count = len(changes)
    error = changes.std(axis=0, ddof=1) / count**0.5 if count > 1 else numpy.full(changes.shape[1], numpy.nan)
    stream, layer, head = zip(*heads, strict=True)
    found = {"stream": stream, "layer": layer, "head": head, "change": changes.mean(axis=0), "change_error": error}
    return pandas.DataFrame({**found, "of": measure, "texts": count})


def _alike(heads: Heads, apart: Any) -> "pandas.DataFrame":
    import pandas

    rows = list[dict[str, Any]]()
    for one, (stream, layer, head) in enumerate(heads):
        order = [int(other) for other in numpy.argsort(apart[one], kind="stable") if other != one][:_NEAREST]
        for other in order:
            _, other_layer, other_head = heads[other]
            place = {"stream": stream, "layer": layer, "head": head}
            rows.append(place | {"other_layer": other_layer, "other_head": other_head, "apart": apart[one, other]})
    return pandas.DataFrame(rows)


def _written(rows: Sequence[Mapping[str, Any]]) -> "pandas.DataFrame":
    import pandas

    columns = {"stream": "str", "layer": "int64", "head": "int64", "text": "int64", "query": "int64", "words": "str"}
    return pandas.DataFrame(rows, columns=list(columns)).astype(columns)
