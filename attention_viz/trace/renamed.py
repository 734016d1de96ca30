"""Attributes by the names that they had before."""

import warnings
from typing import Any


def renamed(old: str, new: str) -> property:
    """Return a property for an attribute's old name, which warns."""

    def read(self: Any) -> Any:
        name = type(self).__name__
        warnings.warn(f"{name}.{old} is called {name}.{new} now", DeprecationWarning, stacklevel=2)
        return getattr(self, new)

    return property(read)
