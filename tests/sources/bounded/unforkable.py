"""An image in which each second fork fails, as on a machine that is out of processes; it answers as `misbehaving`."""

import errno
import itertools
import os

from tests.sources.bounded.misbehaving import start

__all__ = ["prepare", "start"]


def prepare() -> None:
    """Have each second fork fail from now on; it is called in the image alone."""
    fork, counted = os.fork, itertools.count()

    def sometimes() -> int:
        if next(counted) % 2:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return fork()

    os.fork = sometimes
