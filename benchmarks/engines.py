"""Compare a scan by Ray's actors on this machine with one by as many threads of this process."""

import importlib.util
import tempfile
import time
from dataclasses import dataclass

import attention_viz as av
from benchmarks.report import Benchmark, Result, Table, at_most
from benchmarks.scanning import passages

__all__ = ["BENCHMARK"]

_MODEL, _TEXTS, _WORKERS = "all-MiniLM-L6-v2", 10_000, 2
# Times as long as threads.
_MARK = 1.15
_ENGINES = {"local": "two threads", "ray": "two actors of Ray"}


@dataclass(frozen=True)
class _Took:
    """Return the seconds until the first chunk was done, and until all were."""

    first: float
    whole: float


def run(quick: bool) -> Result:
    """Measure it by the clock; threads alone if Ray isn't installed."""
    model, texts = av.load(_MODEL), passages(130 if quick else _TEXTS)
    assert isinstance(model, av.AttentionModel)
    there = importlib.util.find_spec("ray") is not None
    took = {name: _scanned(model, texts, name) for name in _ENGINES if there or name != "ray"}
    rows = [
        [
            _ENGINES[name],
            f"{one.first:.0f}",
            f"{one.whole:.0f}",
            f"{1_000 * one.whole / len(texts):.1f}",
            f"{one.whole / took['local'].whole:.2f}",
        ]
        for name, one in took.items()
    ]
    columns = ("engine", "seconds to the first chunk", "seconds in all", "milliseconds per text", "÷ threads")
    remark = "Ray is not installed here, so it is not measured."
    if there:
        remark = at_most("Ray's time", took["ray"].whole / took["local"].whole, _MARK, "{:.2f} times that of threads")
    return Result([Table(columns, rows)], [remark], ("ray",))


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


BENCHMARK = Benchmark(
    title="Engines of a scan",
    method=(
        f"`av.scan` runs {_MODEL} over {_TEXTS:,} passages of about 64 tokens: first by {_WORKERS} threads of this "
        f"process, then by {_WORKERS} actors of Ray on the same machine, each on one thread. Time is by the clock, "
        "start and tables included. The time to the first chunk includes the preparation: comparing a batch with "
        "single runs and, with Ray, starting it and its actors, each of which loads the model. Ray is an extra, and "
        "measured only if it is installed."
    ),
    run=run,
)
