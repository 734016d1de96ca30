"""One thread at a time imports what is heavy: transformers' modules load on first use and fail where two threads begin.

Whoever holds `one_importer` may import again below it: one thread can take it several times.
"""

import threading

__all__ = ["one_importer"]

one_importer = threading.RLock()
