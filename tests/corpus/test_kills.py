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
    command = [sys.executable, "-m", "tests.corpus.killed", str(tmp_path / "out"), *moments]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    lines = told.stdout.splitlines()
    assert told.returncode == 0 and lines[-1] == "whole", told.stdout + told.stderr
    assert len(lines) == len(moments) + 1 and lines[0].startswith("killed")
    # In a process of its own, too: in this one other tests may have set how many threads torch has.
    whole = [*command[:3], str(tmp_path / "whole")]
    assert subprocess.run(whole, cwd=ROOT, capture_output=True, text=True, timeout=600).stdout.endswith("whole\n")
    assert files_of(tmp_path / "out") == files_of(tmp_path / "whole")
