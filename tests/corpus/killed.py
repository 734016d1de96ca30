"""Scans in a process that is killed: `python -m tests.corpus.killed OUT WHOLE MOMENTS`, each moment in seconds.

Torch is loaded once: for each moment a child is forked, which scans until it is killed; the last is left alone, as is
one that scans into WHOLE.
"""

import os
import signal
import sys
import time
from pathlib import Path

import torch

import attention_viz as av
from attention_viz.corpus import scanning
from attention_viz.corpus.chunks import CHUNK
from tests.corpus.texts import by_lot

__all__ = ["TEXTS"]

TEXTS = by_lot(6 * CHUNK, seed=3)


def scan(out: Path) -> None:
    """As anybody would, but that each chunk is kept at once."""
    scanning.KEPT_EVERY = -1  # pyright: ignore[reportPrivateUsage]
    av.scan(av.load("induction"), TEXTS, out, workers=2)


def attempt(out: Path, seconds: float | None) -> bool:
    """Scan in a child, which is killed after so many seconds of work; whether it came to its end."""
    child = os.fork()
    if child == 0:
        try:
            scan(out)
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    if seconds is not None:
        # From when it begins to write: what loading takes differs from machine to machine.
        while not out.exists() and os.waitpid(child, os.WNOHANG)[0] == 0:
            time.sleep(0.002)
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1] == 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    where, untouched, *moments = sys.argv[1:]
    for moment in moments:
        done = attempt(Path(where), float(moment))
        left = sorted(path.name for path in Path(where).iterdir())
        print("killed" if not done else "ended", *left, flush=True)
    for out in (where, untouched):
        print("whole" if attempt(Path(out), None) else "failed", flush=True)
