"""What a server holds of memory after texts of thousands of tokens."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from attention_viz.cli.server import KEEP_MEMORY

# Visitors in threads of their own, one after the other. Each takes 40 MB for a text and keeps one of them, so that what
# is free doesn't lie at the end of what the C library has for the thread. Printed is how many megabytes are held after.
_VISITORS = """
import re, sys, threading
from pathlib import Path
import torch
from attention_viz.serving.door import long_text

def own():
    return int(re.search(r"RssAnon:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1e3

def visit():
    with turn, long_text(int(sys.argv[1])):
        pieces = [torch.ones(250_000) for _ in range(40)]
        kept.append(pieces.pop())
        del pieces
    all_were_here.wait()

kept, turn, all_were_here = [], threading.Lock(), threading.Barrier(12)
torch.ones(250_000)
before = own()
visitors = [threading.Thread(target=visit) for _ in range(12)]
for visitor in visitors:
    visitor.start()
for visitor in visitors:
    visitor.join()
print(own() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="memory is counted as Linux tells it")
def test_what_long_texts_freed_goes_back_to_the_system() -> None:
    command = [sys.executable, "-c", _VISITORS, "8192"]
    found = subprocess.run(command, env={**os.environ, **KEEP_MEMORY}, capture_output=True, text=True, check=True)
    assert float(found.stdout) < 60  # 470 where the C library keeps it, as after texts of a few tokens


@pytest.mark.parametrize("file", ["Dockerfile", "Makefile"])
def test_the_image_and_the_benchmarks_keep_memory_as_the_app_does(file: str) -> None:
    path = Path(__file__).parents[2] / file
    set_there = dict(re.findall(r"\b(MALLOC_\w+)=(\d+)", path.read_text("utf-8")))
    assert set_there == KEEP_MEMORY
