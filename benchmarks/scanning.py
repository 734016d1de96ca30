"""Measure the cost of a scan against the model's own forward over the same batches."""

import heapq
import re
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from typing import Any, cast

import torch

import attention_viz as av
from attention_viz.corpus.chunks import chunks_of
from attention_viz.corpus.part import CorpusPart
from attention_viz.corpus.worker import ScanSettings, Worker
from benchmarks.measuring import Spread, on_one_thread, ratios, take_turns
from benchmarks.passages import PASSAGES
from benchmarks.report import Benchmark, Result, Table

__all__ = ["BENCHMARK", "passages"]

# Words of a passage, which are about 64 tokens; passages a model.
_WORDS, _COUNT = 48, {"all-MiniLM-L6-v2": 64, "SmolLM2-135M-Instruct": 16}
# Times the model's own forward: with everything, and recorded alone.
_MARKS, _RECORDED = {"all-MiniLM-L6-v2": 2.0, "SmolLM2-135M-Instruct": 1.6}, 1.3
# How much faster than one text at a time on all cores, of which model that is measured, and over how many passages.
_FASTER, _ALONE, _LOOP = 2.5, "all-MiniLM-L6-v2", 10_000
# One text at a time only each of so many passages is read: all of them would take five minutes and more.
_EACH = 5
# Passages of which the memory is measured, and their words: few, since thousands of 48 would take many minutes.
_FEW, _MANY, _SHORT, _MORE = 1_000, 4_000, 6, 1.05
# How many workers are simulated, on how many chunks.
_WORKERS, _CHUNKS = (1, 2, 4, 8, 16, 32, 64), 2_000


def passages(count: int, words: int = _WORDS) -> list[str]:
    """Return passages of English prose, each starting some words after the one before."""
    said = [word for passage in PASSAGES for word in passage.split()]
    starts = islice(cycle(range(0, len(said) - words, 17)), count)
    return [" ".join(said[start : start + words]) for start in starts]


def run(quick: bool) -> Result:
    """Measure it on one thread, and its memory in separate processes."""
    rows, remarks = list[list[str]](), list[str]()
    with on_one_thread():
        for name in list(_MARKS)[: 1 if quick else None]:
            _measure(name, quick, rows, remarks)
        shared = _shared_out(quick, remarks)
    columns = ("model", "texts", "way", "milliseconds per text", "times the forward")
    remarks.append(_on_all_cores(quick))
    remarks.append(_memory(64 if quick else _FEW, 70 if quick else _MANY))
    return Result([Table(columns, rows), shared], remarks)


def _measure(name: str, quick: bool, rows: list[list[str]], remarks: list[str]) -> None:
    model = _loaded(name)
    texts = passages(8 if quick else _COUNT[name])
    worker = _worker(model)
    ways: dict[str, Callable[[], object]] = {
        "the model's own forward": lambda: _forward(model, worker, texts),
        "recorded, without metrics": lambda: [model.trace_together(one) for one in worker.batches_of(texts)],
        "measured, as in av.scan": lambda: CorpusPart.empty(worker.heads).and_then(worker.run(0, texts)),
    }
    if name == _ALONE:
        ways["one text at a time"] = lambda: _one_by_one(model, texts)
    figures = take_turns(ways, lambda: (time.process_time(),), rounds=1 if quick else 3)
    spent = {way: [max(1e-9, one[0]) for one in readings] for way, readings in figures.items()}
    base = spent["the model's own forward"]
    for way, seconds in spent.items():
        each = Spread.of(one * 1_000 / len(texts) for one in seconds)
        rows.append([name, f"{len(texts)}", way, each.write("{:.1f}"), ratios(seconds, base).write()])
    whole = ratios(spent["measured, as in av.scan"], base).median
    remarks.append(
        f"{name}: the target, at most {_MARKS[name]} times its forward, is {_phrase(whole <= _MARKS[name])}."
    )
    once = _timed(lambda: _scanned(model, texts))[0] - min(spent["measured, as in av.scan"])
    remarks.append(f"{name}: once per scan, {once:.1f} s more, to compare a batch with single runs and write tables.")
    if name == _ALONE:
        alone = ratios(spent["recorded, without metrics"], base).median
        remarks.append(
            f"The target without metrics, at most {_RECORDED} times its forward, is {_phrase(alone <= _RECORDED)}."
        )


def _on_all_cores(quick: bool) -> str:
    """Compare a whole scan, start of its workers included, with a loop over single texts."""
    model, texts = _loaded(_ALONE), passages(16 if quick else _LOOP)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        av.scan(model, texts, folder)
    scanned = time.perf_counter()
    _one_by_one(model, texts[::_EACH])
    loop, whole = (time.perf_counter() - scanned) * len(texts) / len(texts[::_EACH]), scanned - began
    return (
        f"{len(texts):,} passages on all cores: av.scan took {whole:.0f} s, start and tables included. One text at a "
        f"time, in one process with one thread per core, takes {loop:.0f} s, measured on every {_EACH}th text and only "
        f"for tables of metrics and roles. The target, at least {_FASTER} times as fast, is "
        f"{_phrase(loop / whole >= _FASTER)}: {loop / whole:.2f}."
    )


def _one_by_one(model: av.AttentionModel, texts: list[str]) -> None:
    for text in texts:
        trace = model.trace(text)
        av.head_table(trace)
        av.roles(trace)


def _phrase(reached: bool) -> str:
    return "reached" if reached else "missed"


def _loaded(name: str) -> av.AttentionModel:
    model = av.load(name)
    assert isinstance(model, av.AttentionModel)
    return model


def _worker(model: av.AttentionModel) -> Worker:
    return Worker(model, ScanSettings(128), sum(map(sum, model.heads.values())))


def _scanned(model: av.AttentionModel, texts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        av.scan(model, texts, folder, workers=1)


def _forward(model: av.AttentionModel, worker: Worker, texts: list[str]) -> None:
    """Run the model in transformers over the same batches; a decoder without its unneeded logits."""
    plain, tokenizer = cast("Any", model.hf_model), cast("Any", model.tokenizer)
    plain = getattr(plain, "model", plain)
    for batch in worker.batches_of(texts):
        given = tokenizer(batch, padding=True, return_tensors="pt")
        with torch.no_grad():
            plain(input_ids=given["input_ids"], attention_mask=given["attention_mask"])


def _shared_out(quick: bool, remarks: list[str]) -> Table:
    """Simulate the speed of more workers from the measured parts of the work."""
    model = _loaded("all-MiniLM-L6-v2")
    worker = _worker(model)
    texts = passages(64)
    reading, chunks = _timed(lambda: list(chunks_of(texts)))
    working, parts = _timed(lambda: [worker.run(chunk.start, chunk.texts) for chunk in chunks])
    sent, packed = _timed(lambda: [part.to_bytes() for part in parts])
    # Both ends of the way: what a worker of another process hands over is unpacked before it is added.
    adding, _ = _timed(lambda: [type(parts[0]).of_bytes(one)[0].and_then(parts[0]) for one in packed])
    each = tuple(seconds / len(chunks) for seconds in (reading, working + sent, adding))
    alone = _simulated(1, *each)
    rows = [[f"{workers}", f"{alone / _simulated(workers, *each):.1f}"] for workers in _WORKERS]
    lone = each[0] + each[2]
    remarks.append(
        f"A chunk of 64 texts keeps a worker busy for {each[1]:.2f} s, and the one process that reads texts and adds "
        f"sums in order for {lone * 1_000:.0f} ms. That process limits the speed from {each[1] / lone:.0f} workers on."
    )
    return Table(("workers", "times as fast as one"), rows, f"Simulated from these times, {_CHUNKS:,} chunks")


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    found = work()
    return time.process_time() - began, found


def _simulated(workers: int, reading: float, working: float, adding: float) -> float:
    """Return the seconds until all chunks are done; one process hands them to workers and adds them in order."""
    now, free, waiting = 0.0, [0.0] * workers, deque[float]()
    for _ in range(_CHUNKS):
        if len(waiting) > workers:
            now = max(now, waiting.popleft()) + adding
        now += reading
        done = max(now, heapq.heappop(free)) + working
        heapq.heappush(free, done)
        waiting.append(done)
    for done in waiting:
        now = max(now, done) + adding
    return now


def _memory(few: int, many: int) -> str:
    """Compare the largest memory of two processes, one scanning few texts and one many."""
    command = [sys.executable, "-m", "benchmarks.scanning"]
    peaks = [
        float(subprocess.run([*command, str(count)], capture_output=True, text=True, check=True).stdout)
        for count in (few, many)
    ]
    ratio = peaks[1] / peaks[0]
    return (
        f"MiniLM over {few:,} and {many:,} passages of {_SHORT} words, workers=1: at most {peaks[0]:,.0f} and "
        f"{peaks[1]:,.0f} MB of memory. The target, at most {_MORE} times as much, is {_phrase(ratio <= _MORE)}: "
        f"{ratio:.3f}."
    )


def _scan_alone(count: int) -> None:
    """Scan short passages, and print the largest memory in MB."""
    _scanned(_loaded("all-MiniLM-L6-v2"), passages(count, _SHORT))
    # Not the largest that getrusage tells, which on Linux may be that of the process that started this one.
    found = re.search(r"^VmHWM:\s*(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    print(int(found[1]) / 1e3)


BENCHMARK = Benchmark(
    title="Many texts",
    method=(
        f"Passages of {_WORDS} English words, about 64 tokens, run in batches of about the same length. They are run "
        "by transformers' own model, by the model with our attention recorded, and by `av.scan`'s work on each chunk "
        "of texts, which also measures every head and keeps examples. `av.head_table` and `av.roles` then run on one "
        "trace after the other. We count processor time on one thread, in turns. Each figure is the median of three "
        "rounds, with the smallest and the largest in brackets; ratios are taken within a round. By the clock, a "
        f"whole scan on all cores is compared with one text after the other, where every {_EACH}th text is read and "
        f"the time is multiplied by {_EACH}. Memory is that of separate processes, on shorter and fewer passages than "
        "a corpus has. They start at a thousand, when a scan keeps as many passages as it ever will."
    ),
    run=run,
)

if __name__ == "__main__":
    _scan_alone(int(sys.argv[1]))
