"""Something done in a process of its own that is killed in the middle of it, as by the system when memory is short."""

import os
import signal
from collections.abc import Callable

__all__ = ["die", "killed_in"]


def die(*_: object) -> None:
    """Kill this process at once, with nothing tidied up."""
    os.kill(os.getpid(), signal.SIGKILL)


def killed_in(do: Callable[[], object]) -> None:
    """Do it in a child that has all that is in memory here; it has to come to where it calls `die`."""
    child = os.fork()
    if child == 0:
        try:
            do()
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "it ended before it was killed"
    assert os.WTERMSIG(status) == signal.SIGKILL
