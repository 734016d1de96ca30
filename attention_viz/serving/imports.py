"""Import heavy modules in one thread at a time: they load on first use and fail if two threads begin."""

import threading

one_importer = threading.RLock()
