"""Downloads under way: one a model, for everybody who waits for it, stopped by whoever began it."""

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from attention_viz.errors import AttentionVizError

if TYPE_CHECKING:
    from attention_viz.models import Plan

__all__ = ["Arrival", "arrival_of", "begin", "forget"]


@dataclass(eq=False)
class Arrival:
    """One download.

    Attributes:
        plan: what is fetched.
        come: how many bytes have come.
        over: whether it has ended, well or not.
        problem: why it ended before its end; empty where it did not.
    """

    plan: "Plan"
    come: int = 0
    over: bool = False
    problem: str = ""
    _stop: threading.Event = field(default_factory=threading.Event)

    @property
    def share(self) -> float:
        """How much of it has come, from 0 to 1."""
        return min(self.come / self.plan.missing, 1.0) if self.plan.missing else 1.0

    def cancel(self) -> None:
        """Ask it to stop; it does so within a few megabytes."""
        self._stop.set()

    def run(self) -> None:
        """Fetch everything, in a thread of its own."""
        from attention_viz.models import download

        try:
            download(self.plan, progress=self._hear, cancelled=self._stop.is_set)
        except AttentionVizError as error:
            self.problem = str(error)
        except Exception as error:
            self.problem = f"the download of {self.plan.name} failed: {type(error).__name__}"
            raise  # into the server's log
        finally:
            self.over = True

    def _hear(self, come: int, _total: int) -> None:
        self.come = come


_arrivals: dict[str, Arrival] = {}
_lock = threading.Lock()


def begin(name: str, plan: "Plan") -> Arrival:
    """Begin a download, or join the one that is under way."""
    with _lock:
        found = _arrivals.get(name)
        if found is None or found.over:
            found = _arrivals[name] = Arrival(plan)
            threading.Thread(target=found.run, name=f"download of {name}", daemon=True).start()
        return found


def arrival_of(name: str) -> Arrival | None:
    """The download of a model, under way or ended with a problem."""
    return _arrivals.get(name)


def forget(name: str) -> None:
    """Forget a download that is over."""
    with _lock:
        found = _arrivals.get(name)
        if found is not None and found.over:
            del _arrivals[name]
