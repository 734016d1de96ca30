"""Try untrusted folders in a bounded process before anything of them is loaded here."""

import contextlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING

from attention_viz.errors import AttentionVizError, ModelNotFound, UnsupportedModel
from attention_viz.sources.bounded import process
from attention_viz.sources.bounded.framing import Message
from attention_viz.sources.bounded.limits import Limits
from attention_viz.sources.folders import CheckedFolder, state_of

if TYPE_CHECKING:
    from attention_viz.models.loading.dry_run import Verdict

LIMITS = Limits(memory=1_000_000_000, seconds=30.0, processor=6.0, answer=1_000_000)

_MODULE = "attention_viz.models.loading.dry_run"
# Processes at once: each takes a core and, at worst, all of its memory.
_AT_ONCE = threading.BoundedSemaphore(4)
_LOOK = 0.25
# Verdicts and refusals of the last folders, by path and state of the files.
_known: "OrderedDict[object, Verdict | AttentionVizError]" = OrderedDict()
_MOST_KNOWN = 100
_LONGEST_REASON = 2_000
_lock = threading.Lock()


def prepare() -> None:
    """Start the verdicts' process image in the background; it takes some seconds once."""
    if process.isolates():
        process.prepare(_MODULE)


def verdict_of(folder: CheckedFolder, check: Callable[[], None], limits: Limits = LIMITS) -> "Verdict":
    """Return a folder's dry-run verdict from a bounded process, cached while its files stay the same.

    An exception in `check` ends the process.
    """
    key = folder.path.resolve(), folder.name, frozenset(state_of(folder.path).items())
    with _lock:
        if (known := _known.get(key)) is not None:
            _known.move_to_end(key)
    if known is None:
        known = _try(folder, check, limits)
        with _lock:
            _known[key] = known
            while len(_known) > _MOST_KNOWN:
                _known.popitem(last=False)
    if isinstance(known, AttentionVizError):
        raise type(known)(str(known))
    return known


def _try(folder: CheckedFolder, check: Callable[[], None], limits: Limits) -> "Verdict | AttentionVizError":
    """Return a verdict or refusal to keep; raise what another try may answer."""
    try:
        if process.isolates():
            return _try_apart(folder, check, limits)
        return _try_here(folder, check)
    except MemoryError:
        return _unbuildable(folder, "takes more memory than there is")


def _try_here(folder: CheckedFolder, check: Callable[[], None]) -> "Verdict | AttentionVizError":
    from attention_viz.models.loading.dry_run import dry_run

    try:
        return dry_run(folder, check)
    except (ModelNotFound, UnsupportedModel) as error:
        return error


def _try_apart(folder: CheckedFolder, check: Callable[[], None], limits: Limits) -> "Verdict | AttentionVizError":
    with _slot(check):
        try:
            answer = _ask(folder, check, limits)
        except (ModelNotFound, UnsupportedModel) as error:
            return error
        except process.Broken as broken:
            return ModelNotFound(f"can't load {folder.name}: {broken}")
        except process.Exceeded as stopped:
            return _unbuildable(folder, str(stopped))
        except process.ProcessEnded as stopped:
            raise UnsupportedModel(
                f"the process that tests {folder.name} before loading {stopped}; load the model again"
            ) from None
    return _read(folder.name, answer.values)


def _ask(folder: CheckedFolder, check: Callable[[], None], limits: Limits) -> Message:
    # Each has a process of its own: what one folder does there can't reach another's verdict.
    one = process.Process(_MODULE, limits)
    try:
        return one.ask(_request(folder), check)
    finally:
        one.end()


def _unbuildable(folder: CheckedFolder, why: str) -> UnsupportedModel:
    return UnsupportedModel(f"can't load {folder.name}: building and testing the model in its config.json {why}")


def _request(folder: CheckedFolder) -> Message:
    # As bytes, since there may be many thousand tensors.
    found = json.dumps({"config": folder.config, "tensors": folder.tensors, "dtypes": folder.dtypes}).encode()
    return Message({"path": str(folder.path.resolve()), "name": folder.name}, found)


def _read(name: str, values: Mapping[str, object]) -> "Verdict":
    """Parse an answer as a verdict, and check each value."""
    from attention_viz.models.loading.dry_run import Verdict
    from attention_viz.sources.huggingface import PreTrainedModel, transformers

    kind, size, why = (values.get(key) for key in ("kind", "size", "why_alone"))
    found = getattr(transformers, kind, None) if isinstance(kind, str) else None
    known = isinstance(found, type) and issubclass(found, PreTrainedModel)
    if not (known and isinstance(kind, str) and isinstance(size, int) and isinstance(why, str)):
        raise UnsupportedModel(f"the process that tests {name} before loading gave no result; load the model again")
    return Verdict(kind, size, why[:_LONGEST_REASON])


@contextlib.contextmanager
def _slot(check: Callable[[], None]) -> Generator[None]:
    while not _AT_ONCE.acquire(timeout=_LOOK):
        check()
    try:
        yield
    finally:
        _AT_ONCE.release()
