"""Use an untrusted image or sound processor that runs in a process of its own, through its answers."""

import inspect
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attention_viz.errors import UnusableText
from attention_viz.inputs.isolated.asking import TextProcess
from attention_viz.sources.bounded.limits import Limits

_MODULE = "attention_viz.inputs.media.preparing"
# A picture of 50 million pixels takes 600 MB as floating numbers; 50 million numbers are read of it.
LIMITS = Limits(memory=1_500_000_000, seconds=20, processor=30, answer=220_000_000)
# Of one dimension; as many numbers as fit into an answer are fewer.
_LARGEST_SIZE = 2**31
_KINDS = frozenset(("<f2", "<f4", "<f8", "<i8", "<i4", "|u1", "|b1"))


class IsolatedProcessor:
    """The part of transformers' processor API that readers use; inputs are sent to its process."""

    def __init__(self, process: TextProcess, described: Mapping[str, Any], own: Mapping[str, Any]) -> None:
        """Keep the process's description; see `load`."""
        self._process, self._described, self._own = process, described, own
        self.kind = str(described["kind"])
        self.arguments = frozenset(map(str, described["arguments"]))
        words: Mapping[str, Any] | None = described["words"]
        self.tokenizer = None if words is None else SimpleNamespace(**words)

    @classmethod
    def load(
        cls,
        folder: Path,
        name: str,
        check: Callable[[], None] = lambda: None,
        *,
        both: bool = False,
        image: str | None = None,
    ) -> "IsolatedProcessor":
        """Load a folder's processor in a process of its own; an exception in `check` ends that."""
        process = TextProcess(name, folder, LIMITS, _MODULE, image, {"both": both})
        described = process.load(check).values
        return cls(process, described, described["own"])

    def __getattr__(self, name: str) -> Any:
        """Return a part, or an entry of the process's description."""
        own: Mapping[str, Any] = self.__dict__.get("_own", {})
        parts = self.__dict__.get("_described", {}).get("parts", {})
        if name in parts:
            return IsolatedProcessor(self._process, {**self._described, "parts": {}}, parts[name])
        if name.startswith("_") or name not in own:
            raise AttributeError(name)
        return own[name]

    def __call__(
        self,
        samples: Any = None,
        *,
        images: Any = None,
        text: str | None = None,
        audio: Any = None,
        sampling_rate: int | None = None,
        videos: Any = None,
        video_metadata: Any = None,
        do_sample_frames: bool = False,
        return_tensors: str = "pt",
    ) -> dict[str, Tensor]:
        """Prepare images, a sound, or a text beside images, audio or a video, all of whose frames are read."""
        samples = audio if samples is None else samples
        sound = samples is not None
        things = [samples] if sound else videos or (images if isinstance(images, list) else [images])
        given = [np.ascontiguousarray(one, "<f4" if sound else np.uint8) for one in things]
        shapes = [list(one.shape) for one in given]
        video = video_metadata[0] if videos else None
        values = {"text": text, "shapes": shapes, "rate": sampling_rate if sound else None, "video": video}
        content = b"".join(one.tobytes() for one in given)
        thing = "sound" if sound else "picture" if video is None else "video"
        answer = self._process.ask("prepare", values, content, what="processor", thing=thing)
        return _tensors(answer.values["tensors"], answer.content)


def arguments_of(processor: Any) -> frozenset[str]:
    """Return the names of a processor's arguments, in this process or in its own."""
    if isinstance(processor, IsolatedProcessor):
        return processor.arguments
    return frozenset(inspect.signature(type(processor).__call__).parameters)


def _tensors(metadata: list[tuple[str, str, list[Any]]], content: bytes) -> dict[str, Tensor]:
    found, at = dict[str, Tensor](), 0
    for name, kind, shape in metadata:
        if kind not in _KINDS or any(type(size) is not int or not 0 <= size <= _LARGEST_SIZE for size in shape):
            raise UnusableText(f"the processor makes {name} of unsupported type {kind!r} and shape {shape}")
        count = math.prod(shape)
        if at + count * np.dtype(kind).itemsize > len(content):
            raise UnusableText(f"the processor makes too few numbers for {name} of shape {shape}")
        numbers = np.frombuffer(content, np.dtype(kind), count, at).reshape(shape)
        found[str(name)] = torch.from_numpy(numbers.copy())
        at += numbers.nbytes
    return found
