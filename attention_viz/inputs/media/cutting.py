"""Find the size that a processor reads an image at: as patches in a list, or cut into tiles.

The processor reads soft noise of the image's own size, never the image: colours and smooth parts would agree with
every order of tiles.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

import numpy as np
import torch
from torch import Tensor

from attention_viz.inputs.media.remade import PICTURE, Pixels, is_packed, resized_to, sizes_read

__all__ = ["Process", "TileFit", "fits"]

Process = Callable[[Sequence[Pixels]], Mapping[str, Tensor]]
Size = tuple[int, int]
# Noise has this many cells along a side: few enough to survive resizing, enough to show another order of tiles.
_CELLS = 24
# Noise read at the right size correlates more than this; tiles in another order correlate less by the margin.
_SAME, _MARGIN = 0.9, 0.05


@dataclass(frozen=True)
class TileFit:
    """An image's size as it was read, rows and columns in pixels, and its corner in its tiles."""

    size: Size
    corner: Size = (0, 0)


def fits(
    tensors: Mapping[str, Tensor], sizes: Sequence[Size], patch: int, process: Process
) -> tuple[TileFit, ...] | None:
    """Return how the processor reads each image; None if no size is proven.

    Args:
        tensors: the processor's tensors of the images.
        sizes: the images' own sizes.
        patch: the side of a patch, in pixels.
    """
    noise = [_noise(size, number) for number, size in enumerate(sizes)]
    try:
        read = process(noise)
        if not _same_shapes(read, tensors):
            return None
        found = _listed(tensors, len(sizes), patch) if is_packed(tensors) else _tiled(read[PICTURE], noise, process)
        if found is None:
            return None
        again = process([resized_to(one, fit.size) for one, fit in zip(noise, found, strict=True)])
    except Exception:  # whatever a processor's own code says to noise, or to an image of another size
        return None
    return found if _same_shapes(again, tensors) and _likeness(again[PICTURE], read[PICTURE]) > _SAME else None


def _listed(tensors: Mapping[str, Tensor], pictures: int, patch: int) -> tuple[TileFit, ...] | None:
    """Return the sizes that the grids of lists of patches name."""
    sizes = next(iter(sizes_read(tensors, pictures, patch)), None)
    return None if sizes is None else tuple(map(TileFit, sizes))


def _noise(size: Size, seed: int) -> Pixels:
    """Return an image of soft noise of this size."""
    cells = tuple(min(side, _CELLS) for side in size)
    return resized_to(np.random.default_rng(seed).integers(0, 256, (*cells, 3), dtype=np.uint8), size)


def _same_shapes(made: Mapping[str, Tensor], tensors: Mapping[str, Tensor]) -> bool:
    """Return whether both have the same pixels' shape and the same grids."""
    ours = {name: one for name, one in tensors.items() if name in made and not name.endswith(("_ids", "_mask"))}
    return PICTURE in ours and all(
        made[name].shape == one.shape
        and (one.is_floating_point() or name == "image_sizes" or torch.equal(made[name], one))
        for name, one in ours.items()
    )


def _tiled(pixels: Tensor, noise: Sequence[Pixels], process: Process) -> tuple[TileFit, ...] | None:
    """Return how images were cut into tiles in rows; None if nothing fits one, or several."""
    if pixels.ndim < 4 or pixels.shape[-3] != 3:
        return None
    tiles, found = pixels.reshape(-1, *pixels.shape[-3:]), list[TileFit]()
    for at, one in enumerate(noise):
        others = [255 - other if number == at else other for number, other in enumerate(noise)]
        own = (process(others)[PICTURE].reshape(tiles.shape) != tiles).flatten(1).any(dim=1)
        if (fit := _fit(tiles[own].double(), one)) is None:
            return None
        found.append(fit)
    return tuple(found)


def _fit(tiles: Tensor, noise: Pixels) -> TileFit | None:
    """Return how one image was cut into tiles."""
    best = list[tuple[float, Size, Size]]()
    reduced = torch.from_numpy(resized_to(noise, (tiles.shape[-2], tiles.shape[-1]))).movedim(-1, 0)
    for rows, several, thumbnail in _orders(tiles):
        if thumbnail is None or _likeness(thumbnail, reduced) > _SAME:
            canvas = torch.cat([torch.cat(list(row), dim=-1) for row in several.split(len(several) // rows)], dim=-2)
            best.append(max((_fitting(canvas, noise, *where), *where) for where in _placements(noise, canvas, tiles)))
    best.sort(reverse=True)
    clear = all(one[0] - other[0] > _MARGIN for one, other in pairwise(best[:2]))
    return TileFit(best[0][2], best[0][1]) if best and best[0][0] > _SAME and clear else None


def _orders(tiles: Tensor) -> Iterator[tuple[int, Tensor, Tensor | None]]:
    """Yield numbers of rows, the tiles in them, and a thumbnail before or after these."""
    for several, thumbnail in ((tiles, None), (tiles[1:], tiles[:1]), (tiles[:-1], tiles[-1:])):
        for rows in range(1, len(several) + 1):
            if len(several) % rows == 0:
                yield rows, several, None if thumbnail is None else thumbnail[0]


def _placements(picture: Pixels, canvas: Tensor, tiles: Tensor) -> Iterator[tuple[Size, Size]]:
    """Yield an image's possible corners and sizes in a canvas: stretched, or fitted in its middle or first corner.

    No row or column of tiles stays empty.
    """
    height, width = canvas.shape[-2:]
    yield (0, 0), (height, width)
    share = min(height / picture.shape[0], width / picture.shape[1])
    for rounded in (ceil, round, int):
        size = (min(height, rounded(picture.shape[0] * share)), min(width, rounded(picture.shape[1] * share)))
        empty = height - size[0] >= tiles.shape[-2] or width - size[1] >= tiles.shape[-1]
        if min(size) > 0 and size != (height, width) and not empty:
            yield ((height - size[0]) // 2, (width - size[1]) // 2), size
            yield (0, 0), size


def _fitting(canvas: Tensor, picture: Pixels, corner: Size, size: Size) -> float:
    """Return how alike an image in this size and a part of a canvas are."""
    inside = canvas[:, corner[0] : corner[0] + size[0], corner[1] : corner[1] + size[1]]
    return _likeness(inside, torch.from_numpy(resized_to(picture, size)).movedim(-1, 0))


def _likeness(one: Tensor, other: Tensor) -> float:
    """Return the correlation of two tensors, per channel if they have three."""
    one, other = one.double(), other.double()
    axes = (-2, -1) if one.ndim > 2 and one.shape[-3] == 3 else None
    both = [of - (of.mean() if axes is None else of.mean(dim=axes, keepdim=True)) for of in (one, other)]
    size = float(both[0].norm() * both[1].norm())
    return float((both[0] * both[1]).sum()) / size if size else 0.0
