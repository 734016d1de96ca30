"""The model object: loading it by name, wrapping it, tracing with it, generating with it.

Uses `recording` and the rooms below it. Names load on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
