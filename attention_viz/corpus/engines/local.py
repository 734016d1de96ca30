"""Threads, each on its own chunk.

Each uses one torch thread, because their number changes a sum's last bits.
"""

import contextlib
import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import islice

import torch

from attention_viz.corpus.chunks import Chunk
from attention_viz.corpus.part import CorpusPart
from attention_viz.corpus.worker import Worker

# One in so many threads measures while the others run the model, which takes several times as long. To measure is
# thousands of small steps, and threads that take them at the same time wait for Python after each: that cost 8 %.
_MEASURING = 4


def run_local(worker: Worker, chunks: Iterable[Chunk], workers: int) -> Iterator[tuple[Chunk, CorpusPart]]:
    """Return each chunk's sums in order, reading chunks only when worked on."""
    waiting, ahead = deque[tuple[Chunk, Future[CorpusPart]]](), iter(chunks)
    worker = replace(worker, measuring=threading.Semaphore(max(1, workers // _MEASURING)))
    with alone(), ThreadPoolExecutor(workers, "scan", initializer=_one_thread) as pool:
        try:
            for chunk in islice(ahead, workers + 1):
                waiting.append((chunk, pool.submit(worker.run, chunk.start, chunk.texts)))
            while waiting:
                chunk, future = waiting.popleft()
                yield chunk, future.result()
                for following in islice(ahead, 1):
                    waiting.append((following, pool.submit(worker.run, following.start, following.texts)))
        finally:
            pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def alone() -> Generator[None]:
    """Use one torch thread per operation, here and in threads started meanwhile."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _one_thread() -> None:
    torch.set_num_threads(1)
