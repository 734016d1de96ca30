"""All kinds of change, found in `attention_viz.edits.kinds`."""

from importlib import import_module
from pkgutil import iter_modules

from attention_viz.edits import kinds
from attention_viz.edits.asks import ASKS
from attention_viz.edits.entry import EditKind

__all__ = ["EDITS"]


def _found() -> dict[str, EditKind]:
    modules = [import_module(f"{kinds.__name__}.{found.name}") for found in iter_modules(kinds.__path__)]
    every: list[EditKind] = [entry for module in modules for entry in module.KINDS]
    return {entry.name: entry for entry in sorted(every, key=lambda entry: ASKS.index(type(entry.asks)))}


# By the name in the address, in the order in which pages offer them.
EDITS = _found()
