"""Decode a video's frames with PyAV, in a process of limited memory and time."""

import errno
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attention_viz.errors import AttentionVizError, UnusableVideo, first_line
from attention_viz.sources.bounded.framing import Message
from attention_viz.sources.bounded.limits import Limits
from attention_viz.sources.bounded.process import Broken, Process, ProcessEnded, isolates

_MODULE = "attention_viz.inputs.media.decoding"
# Containers that hold one video and name no other file.
_FORMATS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,ogg,mpegts,mpeg,gif"
_KINDS = "MP4, MOV, WebM, MKV, AVI, Ogg, MPEG or GIF"
# The smallest side of a frame, the most pixels of one, and how much longer one side may be.
_SMALLEST, LARGEST, _LONGEST_FOR_WIDTH = 8, 20_000_000, 50
LIMITS = Limits(memory=1_500_000_000, seconds=60, processor=60, answer=310_000_000)


@dataclass(frozen=True, eq=False)
class Decoded:
    """Frames, (frame, row, column, 3); whether the file has more; whether they were rotated."""

    frames: NDArray[np.uint8]
    more: bool
    turned: bool


def decoded(source: Path | bytes, name: str, rate: float, start: float, most: int, pixels: int) -> Decoded:
    """Return a file's frames at regular times, up to both limits."""
    if find_spec("av") is None:
        raise UnusableVideo(
            f'{name} can\'t be decoded without PyAV; run pip install "attention-viz[video]", or pass frames as arrays'
        )
    values = {"name": name, "rate": rate, "start": start, "most": most, "pixels": pixels}
    path = {"path": str(source.absolute())} if isinstance(source, Path) else {}
    request = Message({**values, **path}, b"" if isinstance(source, Path) else source)
    answer = _asked(request, name) if isolates() else _answer(request)
    frames = np.frombuffer(answer.content, np.uint8).reshape(answer.values["shape"])
    return Decoded(frames, bool(answer.values["more"]), bool(answer.values["turned"]))


def _asked(request: Message, name: str) -> Message:
    process = Process(_MODULE, LIMITS)
    try:
        return process.ask(request)
    except ProcessEnded as error:
        raise UnusableVideo(f"decoding {name} {error}; use a shorter or smaller video") from None
    except Broken as error:
        raise UnusableVideo(f"{name} can't be decoded: {error}") from None
    finally:
        process.end()


def prepare() -> None:
    """Import what decoding needs, before the process has its limits."""
    import_module("av")


def start() -> Callable[[Message], Message]:
    """Return the request handler."""
    return _answer


def _answer(request: Message) -> Message:
    """Decode the file that a request names or holds."""
    values = request.values
    name, path = values["name"], values.get("path")
    try:
        with open(path, "rb") if path else io.BytesIO(request.content) as file:
            if not file.read(1):
                raise UnusableVideo(f"{name} is empty; use {_KINDS}")
            file.seek(0)
            return _decode(file, values)
    except (AttentionVizError, MemoryError):
        raise
    except Exception as error:  # decoders raise all kinds of errors on broken files
        if getattr(error, "errno", None) == errno.ENOMEM:
            raise MemoryError from None
        why = str(getattr(error, "strerror", "")) or first_line(error)
        raise UnusableVideo(f"{name} is broken or in an unknown format ({why}); use {_KINDS}") from None


def _decode(file: Any, values: Any) -> Message:
    av: Any = import_module("av")
    # Without this list, a playlist could name other files to open.
    with av.open(file, options={"format_whitelist": _FORMATS, "protocol_whitelist": ""}) as container:
        if not container.streams.video:
            raise UnusableVideo(f"{values['name']} has no video in it; use av.Sound(path) for audio")
        stream = container.streams.video[0]
        stream.thread_type = "NONE"
        _check_size(values["name"], stream.codec_context.width, stream.codec_context.height)
        first = float((stream.start_time or 0) * stream.time_base)
        frames = _timed(container, stream, first)
        # Others than these have no index, and would begin anywhere.
        if values["start"] > 0 and container.format.name.startswith(("mov", "matroska")):
            container.seek(int((first + values["start"]) * av.time_base))
            found = next(frames := _timed(container, stream, first), None)
            if found is not None and found[0] <= values["start"]:
                frames = chain([found], frames)
            else:
                container.seek(int(first * av.time_base))
                frames = _timed(container, stream, first)
        return _regular(frames, values)


def _timed(container: Any, stream: Any, first: float) -> Iterator[tuple[float, Any]]:
    """Yield frames with their times, in seconds from the first frame of the file."""
    for frame in container.decode(stream):
        yield float(first if frame.time is None else frame.time) - first, frame


def _regular(frames: Iterator[tuple[float, Any]], values: Any) -> Message:
    """Return the frames shown at regular times: each the last that began by then."""
    rate, start, name = values["rate"], values["start"], values["name"]
    found, shown, turned, more = list[NDArray[np.uint8]](), None, False, False

    def put(until: float) -> bool:
        """Take the frame shown until a time as often as it is wanted; return whether no more fit."""
        while shown is not None and start + len(found) / rate < until - 1e-6:
            most = min(values["most"], values["pixels"] * 3 // shown.size)
            if len(found) >= max(most, 1):
                return True
            found.append(shown)
        return False

    length = 0.0
    for time, frame in frames:
        if put(time):
            more = True
            break
        _check_size(name, frame.width, frame.height)
        turns = round(frame.rotation / 90) % 4
        shown, turned = np.rot90(frame.to_ndarray(format="rgb24"), turns), turned or turns > 0
        if found and found[0].shape != shown.shape:
            raise UnusableVideo(f"{name} changes its size within; cut it where it changes")
        length = time
    if not more:
        # The last frame is shown for no stated time.
        more = put(length + 2e-6)
    if not found:
        raise UnusableVideo(f"{name} has no frame from {start:g} s on; it ends at {length:.2f} s")
    content = np.stack(found)
    return Message({"shape": list(content.shape), "more": more, "turned": turned}, content.tobytes())


def _check_size(name: str, width: int, height: int) -> None:
    if width * height > LARGEST:
        raise UnusableVideo(f"{name} is {width:,} × {height:,} pixels; use at most {LARGEST:,} per frame")
    if min(width, height) < _SMALLEST or max(width, height) > _LONGEST_FOR_WIDTH * min(width, height):
        raise UnusableVideo(
            f"{name} is {width:,} × {height:,} pixels; use at least {_SMALLEST} each way, and no side over "
            f"{_LONGEST_FOR_WIDTH} times the other"
        )
