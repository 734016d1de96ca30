"""Load a model by name, wrap it, trace with it and generate with it.

Uses `recording` and the rooms below it. Names load on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
