"""Downloads under way: one per model for all, stopped by whoever began it."""

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from attention_viz.errors import AttentionVizError

if TYPE_CHECKING:
    from attention_viz.sources import Plan

__all__ = ["Download", "begin", "download_of", "forget"]


@dataclass(eq=False)
class Download:
    """One download; `over` if ended, with a `problem` if early."""

    plan: "Plan"
    received: int = 0
    over: bool = False
    problem: str = ""
    _stop: threading.Event = field(default_factory=threading.Event)

    @property
    def share(self) -> float:
        """Return the received share, from 0 to 1."""
        return min(self.received / self.plan.missing, 1.0) if self.plan.missing else 1.0

    def cancel(self) -> None:
        """Stop the download, within a few megabytes."""
        self._stop.set()

    def run(self) -> None:
        """Fetch everything, in a thread of its own."""
        from attention_viz.sources import download

        try:
            download(self.plan, progress=self._note, cancelled=self._stop.is_set)
        except AttentionVizError as error:
            self.problem = str(error)
        except Exception as error:
            self.problem = f"the download of {self.plan.name} failed: {type(error).__name__}"
            raise  # into the server's log
        finally:
            self.over = True

    def _note(self, received: int, _total: int) -> None:
        self.received = received


_downloads: dict[str, Download] = {}
_lock = threading.Lock()


def begin(name: str, plan: "Plan") -> Download:
    """Begin a download, or join a running one."""
    with _lock:
        found = _downloads.get(name)
        if found is None or found.over:
            found = _downloads[name] = Download(plan)
            threading.Thread(target=found.run, name=f"download of {name}", daemon=True).start()
        return found


def download_of(name: str) -> Download | None:
    """Return a model's download, running or failed."""
    return _downloads.get(name)


def forget(name: str) -> None:
    """Forget a download that is over."""
    with _lock:
        found = _downloads.get(name)
        if found is not None and found.over:
            del _downloads[name]
