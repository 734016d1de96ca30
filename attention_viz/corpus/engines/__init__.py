"""Engines that compute a scan's chunks: each returns them in order, with the same bits as any other."""
