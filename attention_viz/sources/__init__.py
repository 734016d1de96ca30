"""Where models come from: the catalogue, folders, the hub, packages; and processes that read strangers' files.

Uses `scratch` and the rooms below it. Names load on first use, so that the catalogue can be listed without importing
transformers.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
