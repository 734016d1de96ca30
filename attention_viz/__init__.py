"""attention_viz: see what attention in a transformer really computes.

The attention you see is the attention that ran: our own function computes inside the model, what it computed is kept
as one immutable `Trace`, and every picture, table and export is a function of that trace.

Names load on first use, so that `import attention_viz` costs nothing and needs neither torch nor plotly.
"""

import sys
import types

import lazy_loader

__version__ = "1.0.0"

__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = [*_names, "__version__"]  # pyright: ignore[reportUnsupportedDunderAll]


class _Package(types.ModuleType):
    """This module: importing a room doesn't hide the function of the same name."""

    def __setattr__(self, name: str, value: object) -> None:
        # The import machinery sets each room that it loads; public names come from the list.
        if not (name in _names and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
