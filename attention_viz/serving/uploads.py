"""Visitors' images, videos and audio, which end with their holder.

Nothing here writes to disk or log. Requests use an unguessable name; runs are cached on the upload, to end with it.
"""

import secrets
from collections.abc import Callable, Hashable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar, cast
from weakref import WeakValueDictionary

from attention_viz.inputs.media import drawn
from attention_viz.inputs.media.shapes import draw_shapes
from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.serving.cache import SharedCache
from attention_viz.serving.run import Request
from attention_viz.serving.settings import SETTINGS
from attention_viz.trace.kind import InputKind

if TYPE_CHECKING:
    from attention_viz.inputs.media.readers import Medium
    from attention_viz.inputs.media.video import Video
    from attention_viz.serving.run import Run

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")

# Between the names of several images.
_BETWEEN = ","
# Before the name of an upload, so that none is that of a sample.
_OWN = "own-"
# Bytes of cached runs of all uploads together; one upload has a few, without and with a change or two.
_ROOM = SETTINGS.trace_memory * 1_000_000
# The most answers of a kind that are cached with it.
_ANSWERS = 200
_uploads: "WeakValueDictionary[str, Upload]" = WeakValueDictionary()
_questions = count()


class Upload:
    """A visitor's image, video or audio under an unguessable name, with its runs and answers."""

    def __init__(self, kind: InputKind, content: bytes, title: str) -> None:
        """Decode the content."""
        self._hold(kind, content, _opened(kind, content), title)

    def beginning_at(self, start: float) -> "Upload":
        """Return the audio from a second on, as a new upload."""
        from attention_viz.inputs.media.sound import Sound

        found = object.__new__(Upload)
        found._hold(self.kind, self._content, Sound(self._content, start=start), self.thing.name)
        return found

    def _hold(self, kind: InputKind, content: bytes, thing: "Medium | Video", title: str) -> None:
        self.kind, self.name, self._content = kind, _OWN + secrets.token_urlsafe(16), content
        self.thing = thing
        self.thing.name = title
        self.runs: SharedCache[tuple[Hashable, ...], Run] = SharedCache(_ROOM, room_of)
        self.answers = dict[int, SharedCache[Any, Any]]()
        self.asked = next(_questions)
        _uploads[self.name] = self


def runs_of(name: str, everybodys: "SharedCache[Any, Run]") -> "SharedCache[Any, Run]":
    """Return a request's cache of runs, shared or the upload's; evict the least recently used uploads' runs."""

    def own(upload: Upload) -> "SharedCache[Any, Run]":
        _make_way(upload)
        return upload.runs

    return _kept_with(name, own, everybodys)


def forget_runs(model: str) -> None:
    """Drop uploads' runs of a model, which would keep it."""
    for upload in list(_uploads.values()):
        upload.runs.discard(lambda key: isinstance(key[0], Request) and key[0].model == model)


def room_of(run: "Run") -> int:
    """Return a run's bytes in memory, plus a proportional share of its file's."""
    trace = run.trace
    return trace.nbytes + trace.resting_bytes * SETTINGS.trace_memory // SETTINGS.trace_disk


def _make_way(asking: Upload) -> None:
    asking.asked = next(_questions)
    held = sorted(list(_uploads.values()), key=lambda upload: upload.asked)
    total = sum(upload.runs.nbytes for upload in held)
    for upload in held:
        if total <= _ROOM or upload is asking:
            return
        total -= upload.runs.nbytes
        upload.runs.discard(lambda _: True)


def beside(name: str, cache: "SharedCache[_Key, _Value]") -> "SharedCache[_Key, _Value]":
    """Return an input's cache of results; uploads have their own."""
    return _kept_with(
        name, lambda upload: upload.answers.setdefault(id(cache), SharedCache(_ANSWERS, lambda _: 1)), cache
    )


def _kept_with(
    name: str, own: Callable[[Upload], "SharedCache[_Key, _Value]"], everybodys: "SharedCache[_Key, _Value]"
) -> "SharedCache[_Key, _Value]":
    """Return an upload's cache, an empty one if the upload is gone, else the shared one."""
    upload = next((found for one in names_of(name) if (found := upload_of(one)) is not None), None)
    if upload is not None:
        return own(upload)
    return SharedCache(1, lambda _: 1) if is_upload(name) else everybodys


def names_of(shown: str) -> list[str]:
    """Return the names of a request's images, one or several."""
    return shown.split(_BETWEEN)


def joined(names: Sequence[str]) -> str:
    """Return several images' names as one, for a request."""
    return _BETWEEN.join(names)


def is_upload(name: str) -> bool:
    """Return whether a request names an upload, alone or among several images."""
    return any(one.startswith(_OWN) for one in names_of(name))


def release(name: str) -> None:
    """Drop other uploads' runs and answers that include an upload, which ends."""
    for upload in list(_uploads.values()):
        for cache in (upload.runs, *upload.answers.values()):
            cache.discard(lambda key: name in repr(key))


def upload_of(name: str) -> Upload | None:
    """Return the upload of that name while a page holds it."""
    return _uploads.get(name)


def title_of(name: str) -> str:
    """Return an image's or audio's file name, or a drawing's title; of several images all."""
    if len(several := names_of(name)) > 1:
        return ", ".join(map(title_of, several))
    if name in SAMPLES:
        return SAMPLES[name].file
    if drawn.is_drawn(name):
        return "your drawing"
    upload = upload_of(name)
    return "gone" if upload is None else upload.thing.name


def shows_of(name: str) -> str:
    """Return what a sample or drawing shows, or what several do; "" for an upload."""
    if len(several := names_of(name)) > 1:
        return "" if is_upload(name) else ", ".join(map(shows_of, several))
    return (
        SAMPLES[name].shows if name in SAMPLES else drawn.shows(drawn.shapes_of(name)) if drawn.is_drawn(name) else ""
    )


def thing_of(kind: InputKind, name: str) -> "Medium":
    """Return a request's image or audio."""
    return cast("Medium", _kept_as(kind, name))


def _kept_as(kind: InputKind, name: str) -> "Medium | Video":
    if name in SAMPLES and SAMPLES[name].kind.medium == kind:
        return _opened(kind, SAMPLES[name].path)
    if kind == InputKind.PICTURE and drawn.is_drawn(name):
        return draw_shapes(drawn.shapes_of(name), title_of(name))
    upload = upload_of(name)
    if upload is None or upload.kind != kind:
        raise kind.error(f"the {kind} is gone, since it is kept only while its page is open; upload it again")
    return upload.thing


def beside_of(name: str) -> dict[str, Any]:
    """Return the image, images or video of a text's request, by the argument that `trace` takes them by."""
    if len(several := names_of(name)) > 1:
        return {"pictures": [_kept_as(InputKind.PICTURE, one) for one in several]}
    upload = upload_of(name)
    kind = InputKind.VIDEO if upload is not None and upload.kind == InputKind.VIDEO else InputKind.PICTURE
    return {str(kind): _kept_as(kind, name)}


def _opened(kind: InputKind, source: Any) -> "Medium | Video":
    from attention_viz.inputs.media.readers import CLASSES
    from attention_viz.inputs.media.video import Video

    return Video(source) if kind == InputKind.VIDEO else CLASSES[kind](source)
