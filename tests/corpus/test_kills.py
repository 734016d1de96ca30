"""A scan that is killed at any moment, again and again, ends in the files of one that was never killed."""

import os
import random
import subprocess
import sys
from pathlib import Path

from tests.corpus.test_scan import files_of

ROOT = Path(__file__).parents[2]


def test_kills_at_random_moments_change_nothing(tmp_path: Path) -> None:
    chance = random.Random(22)
    # From soon after it has begun: a fast machine may have ended before the last of them.
    moments = sorted(f"{chance.uniform(0, 1.5):.3f}" for _ in range(int(os.environ.get("KILLS", "6"))))
    command = [sys.executable, "-m", "tests.corpus.killed", *map(str, (tmp_path / "out", tmp_path / "whole")), *moments]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    lines = told.stdout.splitlines()
    assert told.returncode == 0 and lines[-2:] == ["whole"] * 2, told.stdout + told.stderr
    assert len(lines) == len(moments) + 2 and lines[0].startswith("killed")
    assert files_of(tmp_path / "out") == files_of(tmp_path / "whole")
