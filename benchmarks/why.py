"""Measure the cost of decomposing a number, against the pass that made the trace."""

import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path

import torch

import attention_viz as av
from benchmarks.measuring import Spread, ratios, take_turns
from benchmarks.passages import PASSAGES, cut
from benchmarks.report import Benchmark, Result, Table, at_most

__all__ = ["BENCHMARK"]

_MODEL = "SmolLM2-135M-Instruct"
_STORY = "When Mary and John went to the store, John gave a drink to"
_LONG = 512
_FIRST, _SECOND, _HELD = 2.5, 0.2, 500.0  # passes, of the first, megabytes


def run(quick: bool) -> Result:
    """Measure it, on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        model = av.load(_MODEL)
        assert isinstance(model, av.AttentionModel) and model.tokenizer is not None
        texts = [_STORY] if quick else [_STORY, cut(model.tokenizer, PASSAGES[0], _LONG)]
        measured = [_number(model, text, 1 if quick else 7) for text in texts]
    finally:
        torch.set_num_threads(threads)
    rows = [row for row, *_ in measured]
    first = max(one.median for _, one, *_ in measured)
    second = max(one.median for _, _, one, _ in measured)
    held = max(one for *_, one in measured)
    remarks = [
        at_most("a first number, in recorded passes", first, _FIRST),
        at_most("a second number, as a share of the first", second, _SECOND),
        at_most("memory held meanwhile, in MB", held, _HELD, "{:.0f}"),
    ]
    columns = ("tokens", "recorded pass", "a first number ÷ a pass", "a second number ÷ the first", "held")
    return Result([Table(columns, rows)], remarks)


def _number(model: av.AttentionModel, text: str, rounds: int) -> tuple[list[str], Spread, Spread, float]:
    """Return a row, its two ratios, and the megabytes that the opened run holds."""
    # Of a trace that was opened last the run is kept: with two in turns each is opened anew.
    traces = [model.trace(text), model.trace(text)]
    turns, last = itertools.cycle(traces), traces[:1]
    row = traces[0].output[-1]
    likely = row.topk(3).indices.tolist()

    def first() -> None:
        last[:] = [next(turns)]
        _ = av.decompose(model, last[0], av.Logit(likely[0], against=likely[1]))

    def second() -> None:
        _ = av.decompose(model, last[0], av.Logit(likely[0], against=likely[2]))

    before = _resident()
    first()
    held = max(0.0, _resident() - before)
    ways: dict[str, Callable[[], object]] = {"pass": lambda: model.trace(text), "first": first, "second": second}
    figures = take_turns(ways, lambda: (time.process_time(),), rounds=rounds)
    spent = {name: [max(1e-9, reading[0]) for reading in readings] for name, readings in figures.items()}
    ratio, share = ratios(spent["first"], spent["pass"]), ratios(spent["second"], spent["first"])
    cells = [
        f"{len(traces[0].query_tokens())}",
        f"{Spread.of(spent['pass']).median:.2f} s",
        ratio.write(),
        share.write(),
        f"{held:.0f} MB",
    ]
    return cells, ratio, share, held


def _resident() -> float:
    """Return the process's memory in megabytes."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


BENCHMARK = Benchmark(
    title="Decomposing a number",
    method=(
        f"`av.decompose` breaks a number into the contributions of every part of {_MODEL}. The number is the logit of "
        "the likeliest next word minus that of the second. The run that it needs and the rows are counted, against "
        "the recorded pass of a trace of the same text. A second number of the same text reuses that run. We count "
        "processor time on one thread and take the ways in turns. Each figure is the median of seven rounds, with the "
        "smallest and the largest in brackets; ratios are taken within a round. *Held* is the growth of the process "
        "when a text was decomposed for the first time."
    ),
    run=run,
)
