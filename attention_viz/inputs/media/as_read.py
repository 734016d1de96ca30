"""Find the images as a model read them: cut and resized by its processor."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from attention_viz.inputs.media.cutting import Process, fits
from attention_viz.inputs.media.remade import PICTURE, Pixels, Remade, as_numbers, is_packed, resized_to, sizes_read
from attention_viz.trace.seen import NOTHING, Seen

if TYPE_CHECKING:
    from attention_viz.inputs.media.readers import PictureReader

# Images, or a video's frames, of more pixels than this in all are reduced before a trace keeps them.
_MOST_KEPT = 4_000_000


def as_read(
    tensors: Mapping[str, Tensor],
    pictures: Sequence[Pixels],
    names: Sequence[str],
    patch: int,
    process: Process,
    reader: "PictureReader",
) -> tuple[Seen, Remade | None, tuple[str, ...]]:
    """Return the images as read, how to make their tensors again, and notes on cut images."""
    if _is_whole(tensors, len(pictures)):
        seen, remade = _of_whole(tensors, patch, reader)
        pairs = zip(names, pictures, seen.pictures, strict=True)
        notes = [note for name, one, read in pairs for note in reader.cut(one, read, name if len(names) > 1 else "")]
        return seen, remade, tuple(notes)
    found = fits(tensors, [(one.shape[0], one.shape[1]) for one in pictures], patch, process)
    if found is None:
        return seen_of(pictures), None, ()
    sizes = tuple(one.size for one in found)
    remade = Remade(tensors, sizes, patch, process, corners=tuple(one.corner for one in found))
    resized = [resized_to(one, size) for one, size in zip(pictures, sizes, strict=True)]
    pairs = zip(names, pictures, sizes, strict=True)
    notes = tuple(filter(None, (_note(name, one, size, several=len(names) > 1) for name, one, size in pairs)))
    return seen_of(resized), remade, notes


def of_tensors(
    tensors: Mapping[str, Tensor], patch: int, process: Process, reader: "PictureReader"
) -> tuple[Seen, Remade | None]:
    """Return the images in a processor's own tensors, and how to make them again; None if that is unknown."""
    pixels = tensors[PICTURE]
    if _is_whole(tensors, len(pixels)):
        if len(pixels) > 1 and _fitting(tensors, 1, patch, process):
            return NOTHING, None  # its rows may be one image's tiles
        return _of_whole(tensors, patch, reader)
    grids = [one for name, one in tensors.items() if name.endswith(("grid_thw", "spatial_shapes", "target_sizes"))]
    fitting = _fitting(tensors, len(grids[0]) if grids else 1, patch, process)
    # Several orders of tiles may fit: then none is known.
    return NOTHING, Remade(tensors, fitting[0], patch, process) if len(fitting) == 1 else None


def _of_whole(tensors: Mapping[str, Tensor], patch: int, reader: "PictureReader") -> tuple[Seen, Remade]:
    """Return the images of one row each, and how to make them again."""
    pixels = tensors[PICTURE]
    sizes = ((int(pixels.shape[-2]), int(pixels.shape[-1])),) * len(pixels)
    remade = Remade(tensors, sizes, patch, lambda several: {PICTURE: as_numbers(several, pixels)})
    return seen_of([reader.as_seen(one).numpy() for one in pixels]), remade


def _fitting(
    tensors: Mapping[str, Tensor], pictures: int, patch: int, process: Process
) -> list[tuple[tuple[int, int], ...]]:
    """Return the sizes of images that would give tensors of these shapes."""
    return [one for one in sizes_read(tensors, pictures, patch) if _agree(process, one, tensors)]


def _note(name: str, picture: Pixels, size: tuple[int, int], *, several: bool) -> str:
    """Return a note if an image was resized."""
    who = name if several else "It"
    return "" if picture.shape[:2] == size else f"{who} was read at {size[1]} × {size[0]} pixels."


def _is_whole(tensors: Mapping[str, Tensor], pictures: int) -> bool:
    """Return whether each image is one row of pixels, neither cut into tiles nor listed patch by patch."""
    pixels = tensors[PICTURE]
    return pixels.ndim == 4 and len(pixels) == pictures and not is_packed(tensors) and pixels.shape[1] in (1, 3)


def _agree(process: Process, sizes: Sequence[tuple[int, int]], tensors: Mapping[str, Tensor]) -> bool:
    """Return whether images of these sizes give tensors of the same shapes, and the same grids."""
    try:
        made = process([np.zeros((*size, 3), np.uint8) for size in sizes])
    except Exception:  # whatever a processor's own code says to an image of another size
        return False
    return PICTURE in made and all(
        made[name].shape == one.shape and (one.is_floating_point() or torch.equal(made[name], one))
        for name, one in tensors.items()
        if name in made
    )


def seen_of(pictures: Sequence[Pixels], times: tuple[float, ...] = ()) -> Seen:
    """Return images, or a video's frames at their times, small enough for a trace to keep."""
    share = (_MOST_KEPT / sum(one.shape[0] * one.shape[1] for one in pictures)) ** 0.5
    smaller = [
        one if share >= 1 else resized_to(one, (max(1, int(one.shape[0] * share)), max(1, int(one.shape[1] * share))))
        for one in pictures
    ]
    first, *others = (torch.from_numpy(np.array(one)) for one in smaller)
    return Seen(picture=first, others=tuple(others), times=times)
