"""A scan by Ray's actors on this machine, beside one by as many threads of this process."""

import importlib.util
import tempfile
import time
from dataclasses import dataclass
from statistics import median

import attention_viz as av
from benchmarks.measuring import Spread, ratios
from benchmarks.report import Benchmark, Result, Table
from benchmarks.scanning import passages

__all__ = ["BENCHMARK"]

_MODEL, _TEXTS, _TURNS, _WORKERS = "all-MiniLM-L6-v2", 1_000, 2, 2
# Times as long as threads, and over how many passages.
_MARK, _OF = 1.15, 10_000
_ENGINES = {"local": "two threads", "ray": "two actors of Ray"}


@dataclass(frozen=True)
class _Took:
    """Seconds until the first chunk was done, and until all were."""

    first: float
    whole: float

    def rate(self, texts: int, chunk: int) -> float:
        """Seconds a text, once it is under way."""
        return (self.whole - self.first) / (texts - chunk)


def run(quick: bool) -> Result:
    """Measure it in turns, by the clock; threads alone where Ray isn't installed."""
    model, texts = av.load(_MODEL), passages(130 if quick else _TEXTS)
    assert isinstance(model, av.AttentionModel)
    there = importlib.util.find_spec("ray") is not None
    names = [name for name in _ENGINES if there or name != "ray"]
    took = {name: list[_Took]() for name in names}
    for _ in range(1 if quick else _TURNS):
        for name in names:
            took[name].append(_scanned(model, texts, name))
    rates = {name: [max(1e-9, one.rate(len(texts), 64)) for one in found] for name, found in took.items()}
    rows = [
        [
            _ENGINES[name],
            Spread.of(one.first for one in took[name]).write("{:.0f}"),
            Spread.of(1_000 * one for one in rates[name]).write("{:.1f}"),
            ratios(rates[name], rates["local"]).write(),
        ]
        for name in names
    ]
    columns = ("engine", "seconds to the first chunk", "milliseconds a text from there", "÷ threads")
    remarks = [_told(took, rates)] if there else ["Ray is not installed here, so it is not measured."]
    return Result([Table(columns, rows)], remarks, ("ray",))


def _scanned(model: av.AttentionModel, texts: list[str], engine: str) -> _Took:
    done = list[float]()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        av.scan(
            model,
            texts,
            folder,
            engine=engine,
            workers=_WORKERS,
            progress=lambda _: done.append(time.perf_counter() - began),
        )
        return _Took(done[0], time.perf_counter() - began)


def _told(took: dict[str, list[_Took]], rates: dict[str, list[float]]) -> str:
    """What this makes of as many passages as the mark is about; the first start of Ray counts whole."""
    whole = {name: max(one.first for one in took[name]) + median(rates[name]) * _OF for name in took}
    ratio = whole["ray"] / whole["local"]
    return (
        f"By these figures {_OF:,} passages, start included, would take Ray {ratio:.2f} times as long. The mark, at "
        f"most {_MARK} times, is {'reached' if ratio <= _MARK else 'missed'} by them; so many were not run."
    )


BENCHMARK = Benchmark(
    title="Engines of a scan",
    method=(
        f"`av.scan` of {_MODEL} over {_TEXTS:,} passages of about 64 tokens, by {_WORKERS} threads of this process and "
        f"by {_WORKERS} actors of Ray on the same machine, each of which computes with one thread. By the clock, "
        f"{_TURNS} turns each. The time to the first chunk has what comes before: a batch is compared with single "
        "runs, and with Ray its start, its actors', and that each of them loads the model. Medians, with the smallest "
        "and the largest in brackets; a ratio is taken within a turn. Ray is an extra, and only measured where it is "
        "installed."
    ),
    run=run,
)
