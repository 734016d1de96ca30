"""Prepare a text beside a video's frames with the processor of a model that reads both."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from attention_viz.errors import AttentionVizError, UnsupportedModel, UnusableVideo, first_line
from attention_viz.inputs.media.as_read import seen_of
from attention_viz.inputs.media.readers import InputField
from attention_viz.inputs.media.remade import VIDEO, Pixels, Remade, resized_to, sizes_read, tensors_in
from attention_viz.inputs.media.video import Video
from attention_viz.trace.kind import InputKind

__all__ = ["read_video", "why_no_video", "with_marks"]


# Marks around a video that GLM-V's processor looks for.
_MARKS = "<|begin_of_video|>", "<|end_of_video|>"


def with_marks(processor: Any, text: str) -> tuple[str, tuple[str, ...]]:
    """Return a text whose video has the marks that its processor looks for, and notes on the change."""
    start, end = _MARKS
    if getattr(processor, "video_start_id", None) is None or start in text:
        return text, ()
    return text.replace(processor.video_token, f"{start}{processor.video_token}{end}"), (
        f"{start} and {end} were put around the video’s place, as the model reads frames only between them.",
    )


def why_no_video(name: str, inputs: frozenset[str], processor: Any, *, own_tower: bool = False) -> str:
    """Return why a model reads no video with its processor; empty if it does.

    Args:
        own_tower: whether it reads videos by other modules than images.
    """
    if VIDEO not in inputs:
        return f"{name} reads images, not video; pass some of its frames with pictures=[…]"
    if own_tower:
        return (
            f"{name} reads videos with a tower of its own, but a trial run on an image finds its layers; pass some of "
            "its frames with pictures=[…]"
        )
    if getattr(processor, "video_processor", None) is None:
        return f"the processor of {name} prepares no video; install torchvision, then load the processor again"
    if not isinstance(getattr(processor, "video_token", None), str):
        return f"the processor of {name} has no placeholder for a video; pass some of its frames with pictures=[…]"
    return ""


def read_video(name: str, processor: Any, text: str, video: Video, patch: int) -> InputField:
    """Return the input of a text with a place for a video, whose frames are all read at their times."""

    def process(frames: Sequence[Pixels]) -> Mapping[str, Tensor]:
        return _tensors(processor, text, np.stack(frames), video)

    try:
        tensors = process(list(video.frames))
    except AttentionVizError:
        raise
    except Exception as error:
        raise UnusableVideo(
            f"{name}'s processor can't read {video.name} ({video.size}): {first_line(error)}"
        ) from error
    size = _size_read(tensors, video, patch)
    remade = Remade(tensors, (size,) * len(video.frames), patch, process, video.times)
    seen = seen_of([resized_to(one, size) for one in video.frames], video.times)
    named = {InputKind.VIDEO: f"{video.name}, {video.size} pixels"}
    return InputField(tensors, seen, named, (*video.notes, *_notes(tensors, video, size)), remade=remade)


def _tensors(processor: Any, text: str, frames: Pixels, video: Video) -> dict[str, Tensor]:
    count = len(frames)
    first = round(video.start * video.rate)
    metadata = {
        "fps": video.rate,
        "total_num_frames": count,
        "duration": count / video.rate,
        "frames_indices": [first + at for at in range(count)],
    }
    # All frames are read: which ones to read was decided when the video was opened.
    made = processor(text=text, videos=[frames], video_metadata=[metadata], do_sample_frames=False, return_tensors="pt")
    tensors = tensors_in(made)
    if VIDEO not in tensors:
        raise UnsupportedModel(f"the processor makes no {VIDEO} of a video; it makes {', '.join(tensors)}")
    return tensors


def _size_read(tensors: Mapping[str, Tensor], video: Video, patch: int) -> tuple[int, int]:
    """Return the frames' rows and columns as the model reads them, in pixels; by default their own."""
    sizes = sizes_read(tensors, 1, patch) if any(name.endswith("grid_thw") for name in tensors) else []
    values = tensors[VIDEO]
    if sizes:
        return sizes[0][0]
    if values.ndim == 5:
        return int(values.shape[-2]), int(values.shape[-1])
    return int(video.frames.shape[1]), int(video.frames.shape[2])


def _notes(tensors: Mapping[str, Tensor], video: Video, size: tuple[int, int]) -> tuple[str, ...]:
    """Return notes on frames that were resized, or read twice."""
    notes = list[str]()
    if video.frames.shape[1:3] != size:
        notes.append(f"Its frames were read at {size[1]} × {size[0]} pixels.")
    grid = tensors.get("video_grid_thw")
    together = -(-len(video.frames) // max(1, int(grid[0, 0]))) if grid is not None else 1
    if len(video.frames) % together:
        notes.append(f"The model reads {together} frames at a time, so its last frame was repeated.")
    return tuple(notes)
