"""Prepare images and sounds with a folder's processor, inside a process of its own."""

import inspect
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from attention_viz.inputs.media.remade import tensors_in
from attention_viz.sources.bounded.framing import Message
from attention_viz.sources.processors import read_both, read_processor

# Attributes of a processor that prepare pictures and sounds, besides itself.
_PARTS = ("image_processor", "video_processor", "feature_extractor")
# What readers ask of a processor or of its parts, besides to prepare something.
_ASKED = (
    "image_mean",
    "image_std",
    "do_normalize",
    "do_rescale",
    "rescale_factor",
    "do_center_crop",
    "sampling_rate",
    "n_samples",
    "image_token",
    "video_token",
    "video_start_id",
    "audio_token",
    "audio_bos_token",
    "audio_eos_token",
    "image_start_token",
    "image_end_token",
    "vision_start_token",
    "vision_end_token",
    "chat_template",
)


def start() -> Callable[[Message], Message]:
    """Return the request handler for one processor."""
    torch.set_num_threads(1)
    return _Preparing().answer


class _Preparing:
    """A processor, once it is loaded."""

    def __init__(self) -> None:
        self._processor: Any = None

    def answer(self, request: Message) -> Message:
        """Load the processor, or prepare an input with it."""
        return self._load(request) if request.values["do"] == "load" else self._prepare(request)

    def _load(self, request: Message) -> Message:
        folder = request.values["folder"]
        if request.values["both"]:
            self._processor = read_both(Path(folder))
        else:
            self._processor = read_processor(Path(folder))
        own = self._processor
        parts = {name: _asked(part) for name in _PARTS if (part := getattr(own, name, None)) is not None}
        words = _words(getattr(own, "tokenizer", None))
        arguments = sorted(inspect.signature(type(own).__call__).parameters)
        described = {"kind": type(own).__name__, "arguments": arguments, "own": _asked(own)}
        return Message({**described, "parts": parts, "words": words})

    def _prepare(self, request: Message) -> Message:
        positional, named = _given(request)
        tensors = tensors_in(self._processor(*positional, **named, return_tensors="pt"))
        arrays = {name: (one.float() if one.dtype == torch.bfloat16 else one).numpy() for name, one in tensors.items()}
        kinds = [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()]
        return Message({"tensors": kinds}, b"".join(np.ascontiguousarray(array).tobytes() for array in arrays.values()))


def _asked(part: Any) -> dict[str, Any]:
    """Return the settings that readers need, as data."""
    found: dict[str, Any] = {}
    for name in _ASKED:
        value = getattr(part, name, None)
        value = list(value) if isinstance(value, tuple) else value
        if value is not None and isinstance(value, str | int | float | list):
            json.dumps(value)
            found[name] = value
    return found


def _words(tokenizer: Any) -> dict[str, Any] | None:
    """Return what chat templates need of a tokenizer, as data; None without one."""
    if tokenizer is None:
        return None
    special: Mapping[str, object] = getattr(tokenizer, "special_tokens_map", {})
    tokens = {name: str(one) for name, one in special.items() if not isinstance(one, list)}
    return {"special_tokens_map": tokens, "chat_template": getattr(tokenizer, "chat_template", None)}


def _given(request: Message) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the processor's arguments: positional, and by name."""
    values: Mapping[str, Any] = request.values
    text = {} if values["text"] is None else {"text": values["text"]}
    if values["rate"] is not None:
        samples, rate = np.frombuffer(request.content, "<f4"), {"sampling_rate": values["rate"]}
        return ((), {**text, "audio": samples, **rate}) if text else ((samples,), rate)
    from PIL import Image

    if values["video"] is not None:
        frames = np.frombuffer(request.content, np.uint8).reshape(values["shapes"][0])
        how = {"video_metadata": [values["video"]], "do_sample_frames": False}
        return (), {**text, "videos": [frames], **how}
    images, at = list[Any](), 0
    for shape in values["shapes"]:
        pixels = np.frombuffer(request.content, np.uint8, math.prod(shape), at).reshape(shape)
        images.append(Image.fromarray(pixels))
        at += pixels.size
    return (), {**text, "images": images[0] if len(images) == 1 else images}
