"""Start the app's server and note when the app reached each point of its work.

Usage: python clocked.py STAMPS run app.py [options]. STAMPS is a file that gets one line per point: name and time.

The points are noted from outside: a hook on the import of a few modules, and a wrapper around two functions in them.
"""

import functools
import importlib.machinery
import sys
import time
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

# The function in a module whose beginning and end are noted; None for the beginning of the module's own import alone.
POINTS = {
    "torch": None,
    "attention_viz.models.loading.load_folder": "load_folder",
    "attention_viz.explorer.payload": "pack",
}


class Clock:
    """First of Python's module finders; watches some modules."""

    def __init__(self, stamps: Path) -> None:
        """Write to this file."""
        self.stamps = stamps

    def note(self, point: str) -> None:
        """Record that a point was reached."""
        with self.stamps.open("a") as file:
            file.write(f"{point} {time.time()}\n")

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Find a module as Python would, and watch it run if it is one of ours."""
        if name not in POINTS:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader.exec_module = functools.partial(self.run_module, name, spec.loader.exec_module)
        return spec

    def run_module(self, name: str, run: Callable[[ModuleType], None], module: ModuleType) -> None:
        """Run a module's code, and wrap its watched functions."""
        self.note(f"{name}:begins")
        run(module)
        watched = POINTS[name]
        if watched is not None:
            setattr(module, watched, self.timed(watched, getattr(module, watched)))

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with its start and end recorded."""

        @functools.wraps(function)
        def wrapper(*arguments: Any, **named: Any) -> Any:
            self.note(f"{name}:begins")
            result = function(*arguments, **named)
            self.note(f"{name}:ends")
            return result

        return wrapper


def main() -> None:
    """Hook in, then become the server."""
    stamps, *arguments = sys.argv[1:]
    sys.path[0] = str(Path.cwd())  # not this file's folder, whose modules are no packages of the app's
    sys.meta_path.insert(0, Clock(Path(stamps)))  # pyright: ignore[reportArgumentType] -- a finder needs no base class
    from attention_viz.ui.process import main as serve

    sys.argv = ["streamlit", *arguments]
    serve()


if __name__ == "__main__":
    main()
