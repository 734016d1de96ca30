"""One thread at a time imports heavy modules.

Transformers' modules load on first use and fail if two threads begin. `one_importer` is reentrant.
"""

import threading

__all__ = ["one_importer"]

one_importer = threading.RLock()
