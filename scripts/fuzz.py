"""Run the tests in `tests/fuzz` with new random examples until the time is up.

Usage: fuzz.py [--minutes 10] [pytest's options]. A failure ends it, with the example and how to repeat it.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

__all__ = ["main"]

ROOT = Path(__file__).parents[1]
# Examples of each strategy per round.
_EXAMPLES = 300


def main() -> int:
    """Run rounds until the time is up; return the exit code of a failed round, else 0."""
    parser = argparse.ArgumentParser(description="Try random examples on everything that reads input.")
    parser.add_argument("--minutes", type=float, default=10, help="how long to run; the current round is finished")
    arguments, options = parser.parse_known_args()
    begun, rounds = time.monotonic(), 0
    seed = time.time_ns() % 10**9
    while True:
        print(f"Round {rounds + 1}, seed {seed + rounds}", flush=True)
        if failed := _round(seed + rounds, options):
            return failed
        rounds += 1
        minutes = (time.monotonic() - begun) / 60
        if minutes >= arguments.minutes:
            print(f"{rounds} rounds of {_EXAMPLES} examples per strategy in {minutes:.1f} minutes: no failures.")
            return 0


def _round(seed: int, options: list[str]) -> int:
    environment = {**os.environ, "ATTENTION_VIZ_FUZZ_EXAMPLES": str(_EXAMPLES)}
    command = [sys.executable, "-m", "pytest", "-q", "-x", f"--hypothesis-seed={seed}", "tests/fuzz", *options]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
