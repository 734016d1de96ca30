"""Limit a bounded process by means of the operating system.

Memory and processor time are limited only on Linux; the waiting process limits the time on the clock everywhere.
"""

import contextlib
import ctypes
import math
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MEMORY_TABLE = Path("/proc/self/statm")
# Columns of that table, in pages: all that is mapped, and the process's own data in it.
_MAPPED, _DATA = 0, 5
_FILES_AT_ONCE = 64
# From Linux's headers: prctl.h and sched.h.
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000


@dataclass(frozen=True)
class Limits:
    """A process's limits; `memory` is in bytes beside its imports' share.

    Attributes:
        seconds: on the clock, per answer.
        processor: seconds of processor time of all threads together, per answer.
    """

    memory: int = 600_000_000
    seconds: float = 20.0
    processor: float = 20.0
    answer: int = 64_000_000

    def as_json(self) -> dict[str, float]:
        """Return the limits that the process itself needs."""
        return {"memory": self.memory, "seconds": self.seconds, "processor": self.processor, "answer": self.answer}

    @classmethod
    def of_json(cls, values: Mapping[str, Any]) -> "Limits":
        """Return limits from `as_json`."""
        return cls(int(values["memory"]), float(values["seconds"]), float(values["processor"]), int(values["answer"]))


def impose(limits: Limits) -> None:
    """Limit this process for good: memory, the number and size of its files, no dumps, no new rights."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    if sys.platform == "win32":
        return
    import resource

    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, 0)
    _lower(resource.RLIMIT_NOFILE, _FILES_AT_ONCE)
    if not _MEMORY_TABLE.exists():  # other systems neither say what is taken nor hold to these limits
        return
    taken = [int(pages) * resource.getpagesize() for pages in _MEMORY_TABLE.read_text().split()]
    _lower(resource.RLIMIT_DATA, taken[_DATA] + limits.memory)
    # Data is all that counts for most; what is mapped and shared is bounded, too, with room for libraries and arenas.
    _lower(resource.RLIMIT_AS, taken[_MAPPED] + 2 * limits.memory + 256_000_000)


def give_time(limits: Limits) -> None:
    """Allow this process the limits' processor time from now on, and end it after that."""
    if sys.platform == "win32":
        return
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    until = math.ceil(used.ru_utime + used.ru_stime + limits.processor)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (until, hard))


def leave_network() -> bool:
    """Cut this process and its children off the network; return whether the system allows that."""
    if not sys.platform.startswith("linux"):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    # The second is for users without rights: in a world of its own a process may do what only the system's owner may.
    return any(libc.unshare(flags) == 0 for flags in (_CLONE_NEWNET, _CLONE_NEWUSER | _CLONE_NEWNET))


def end_with_parent(parent: int) -> None:
    """End this process as soon as its parent is gone, even if it is busy."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
    if os.getppid() != parent:  # it went meanwhile
        os._exit(1)


def _prctl(option: int, value: int) -> None:
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _lower(which: int, most: int) -> None:
    """Lower a limit; never raise it."""
    import resource

    soft, hard = resource.getrlimit(which)
    bounds = [most if limit == resource.RLIM_INFINITY else min(most, limit) for limit in (soft, hard)]
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(which, (bounds[0], bounds[1]))
