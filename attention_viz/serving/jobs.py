"""Threads per model, shared by all: loads, which end if no thread waits, and downloads."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from attention_viz.errors import AttentionVizError, LoadCancelled

if TYPE_CHECKING:
    from attention_viz.sources import Plan

_Model = TypeVar("_Model")

# How often those who wait look whether they still want to, and how long a load goes on without anybody: whoever waited
# behind somebody who left takes that one's place within it.
_LOOK, GRACE = 0.25, 2.0


@dataclass(eq=False)
class _Load(Generic[_Model]):
    """A running load; `left` is when the last waiting thread left, if none is left."""

    future: Future[_Model] = field(default_factory=Future[_Model])
    waiting: int = 0
    left: float = 0.0

    def abandoned(self) -> bool:
        """Return whether no thread has waited for a while."""
        return self.waiting == 0 and time.monotonic() - self.left > GRACE


class Loads(Generic[_Model]):
    """Loads by name, each in a thread, so that waiting threads can leave."""

    def __init__(self, load: Callable[[str, Callable[[], bool]], _Model]) -> None:
        """Begin empty; `load` takes the name and a give-up check."""
        self._load = load
        self._under_way: dict[str, _Load[_Model]] = {}
        self._lock = threading.Lock()

    def wait(self, name: str, still_wanted: Callable[[], object] = lambda: None) -> _Model:
        """Return a model from a running or new load; `still_wanted` leaves by raising."""
        while True:
            load = self._join(name)
            try:
                return _result(load.future, still_wanted)
            except LoadCancelled:  # it was being given up when we came
                continue
            finally:
                with self._lock:
                    load.waiting, load.left = load.waiting - 1, time.monotonic()

    def _join(self, name: str) -> _Load[_Model]:
        with self._lock:
            load = self._under_way.get(name)
            begin = load is None
            load = load or self._under_way.setdefault(name, _Load())
            load.waiting += 1  # before it begins: it would find that nobody waits for it
        if begin:
            threading.Thread(target=self._run, args=(name, load), name=f"load of {name}", daemon=True).start()
        return load

    def _run(self, name: str, load: _Load[_Model]) -> None:
        try:
            found = self._load(name, load.abandoned)
        except BaseException as error:
            self._end(name)
            load.future.set_exception(error)
        else:
            self._end(name)
            load.future.set_result(found)

    def _end(self, name: str) -> None:
        with self._lock:
            del self._under_way[name]


def _result(future: Future[_Model], still_wanted: Callable[[], object]) -> _Model:
    while not wait([future], _LOOK).done:
        still_wanted()
    return future.result()


@dataclass(eq=False)
class Download:
    """A download; `over` once ended, with a `problem` if it failed."""

    plan: "Plan"
    received: int = 0
    over: bool = False
    problem: str = ""
    _stop: threading.Event = field(default_factory=threading.Event)

    @property
    def share(self) -> float:
        """The received share, from 0 to 1."""
        return min(self.received / self.plan.missing, 1.0) if self.plan.missing else 1.0

    def cancel(self) -> None:
        """Stop the download, within a few megabytes."""
        self._stop.set()

    def run(self) -> None:
        """Fetch all files, in a separate thread."""
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
