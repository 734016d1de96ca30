"""Find models: in the catalogue, folders, on the hub and in packages; read untrusted files in bounded processes.

Uses `scratch` and the rooms below it. Names load on first use, so that the catalogue can be listed without importing
transformers.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
