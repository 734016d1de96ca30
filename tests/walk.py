"""The app started by a command, and a visitor's way through all its pages; prints each page's errors as JSON.

A program of its own, so that both can stand behind a cut that nothing gets through: `python -m tests.walk FOLDER PORT
COMMAND …`.
"""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

from benchmarks.visitor import Visitor
from scripts import serve

__all__ = ["walked"]


async def walked(visitor: Visitor) -> dict[str, tuple[str, ...]]:
    """The errors that a visitor met on each page."""
    await visitor.come()
    errors = {"Explore": (await visitor.open()).errors}
    for label in sorted(visitor.pages - {"Explore"}):
        errors[label] = (await visitor.follow(label)).errors
    await visitor.leave()
    return errors


def main() -> None:
    """Start it, walk, and end it as a service is ended."""
    folder, port, command = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    process = subprocess.Popen(command, cwd=folder, stdout=sys.stderr)
    try:
        if not serve.wait_until_healthy(process, port):
            sys.exit("the app did not start")
        errors = asyncio.run(walked(Visitor(f"http://127.0.0.1:{port}", {"model": "scratch"})))
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)
        print(json.dumps({"errors": errors, "listens": serve.is_taken(port)}))
    finally:
        process.kill()


if __name__ == "__main__":
    main()
