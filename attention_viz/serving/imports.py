"""One thread at a time imports heavy modules, which load on first use and fail if two threads begin."""

import threading

one_importer = threading.RLock()
