"""Make a model's image tensors again from changed images, to measure each position's part of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attention_viz.errors import UnsupportedModel

__all__ = ["Remade", "sizes_read"]

Pixels = NDArray[np.uint8]
# Images and videos in the forward of a model, and what tells the rows and columns of their patches.
PICTURE, VIDEO = "pixel_values", "pixel_values_videos"
_GRIDS = (
    "video_grid_thw",
    "image_grid_thw",
    "image_grid_hws",
    "image_grid_hw",
    "grid_thw",
    "spatial_shapes",
    "target_sizes",
)


@dataclass(frozen=True, eq=False)
class Remade:
    """Random images of the shapes that were read, and their tensors.

    Attributes:
        tensors: those of the images that were read.
        sizes: rows and columns of each image, in pixels.
        patch: the side of a patch, in pixels.
        process: returns the tensors of other images of these sizes.
        times: seconds of each image, if they are a video's frames.
        corners: where each image begins in its tiles, row and column in pixels; empty if at their first pixel.
    """

    tensors: Mapping[str, Tensor]
    sizes: tuple[tuple[int, int], ...]
    patch: int
    process: Callable[[Sequence[Pixels]], Mapping[str, Tensor]]
    times: tuple[float, ...] = ()
    corners: tuple[tuple[int, int], ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """What decides which position reads which part: shapes, and all numbers that aren't colours or words."""
        found = list[object]()
        for name, one in sorted(self.tensors.items()):
            if not name.endswith(("_ids", "attention_mask", "labels")) or name == "aspect_ratio_ids":
                small = not one.is_floating_point() and one.numel() <= 1000
                found.append((name, tuple(one.shape), tuple(one.flatten().tolist()) if small else ()))
        return (self.sizes, self.times, self.corners, *found)

    @property
    def tiles(self) -> int:
        """The number of tiles that the images were cut into; 0 if each is read as one, or as a list of patches."""
        if self.times:
            return 0
        pixels = self.tensors[PICTURE]
        rows = pixels.shape[:-3].numel() if pixels.ndim > 3 else 0
        return rows if not is_packed(self.tensors) and rows > len(self.sizes) else 0

    def bands(self, picture: int, axis: int) -> NDArray[np.int64]:
        """Return the number of the patch that each row, or column, of an image is in, from 0."""
        corner = self.corners[picture][axis] if self.corners else 0
        at = np.arange(self.sizes[picture][axis], dtype=np.int64) + corner
        pixels = self.tensors.get(PICTURE)
        if pixels is not None and not is_packed(self.tensors):
            tile = int(pixels.shape[axis - 2])
            found = at // tile * -(-tile // self.patch) + at % tile // self.patch
        else:
            found = at // self.patch
        return found - found[0]

    def changed(self, inside: Sequence[NDArray[np.bool_]]) -> dict[str, Tensor]:
        """Return the tensors of random images, which are others inside the masks, (row, column) each."""
        chance, made = np.random.default_rng(0), list[Pixels]()
        for size, mask in zip(self.sizes, inside, strict=True):
            dark = chance.integers(0, 100, (*size, 3), dtype=np.uint8)
            bright = chance.integers(100, 256, (*size, 3), dtype=np.uint8)
            made.append(np.where(mask[..., None], bright, dark))
        return {**self.tensors, **_named(self.process(made), self.tensors)}

    def with_tiles(self, numbers: Sequence[int]) -> dict[str, Tensor]:
        """Return the tensors of random images with other numbers in some tiles."""
        return self._with(0, numbers)

    def with_lines(self, axis: int, numbers: Sequence[int]) -> dict[str, Tensor]:
        """Return the tensors of random images with other numbers in some rows, or columns, of every tile."""
        return self._with(axis + 2, numbers)

    def _with(self, axis: int, numbers: Sequence[int]) -> dict[str, Tensor]:
        found = self.changed([np.zeros(size, np.bool_) for size in self.sizes])
        pixels = found[PICTURE]
        several = pixels.reshape(-1, *pixels.shape[-3:]).clone()
        inside = torch.zeros(several.shape[axis], dtype=torch.bool)
        inside[list(numbers)] = True
        inside = inside.reshape([-1 if at == axis else 1 for at in range(4)])
        return {**found, PICTURE: torch.where(inside, several + 1 + several.abs(), several).reshape(pixels.shape)}


def tensors_in(made: Any) -> dict[str, Tensor]:
    """Return a processor's tensors by name, without labels: these would make the model compute a loss."""
    return {name: one for name, one in dict(made).items() if isinstance(one, Tensor) and name != "labels"}


def _named(made: Mapping[str, Tensor], tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    names = {name for name in made if name in tensors and made[name].is_floating_point()}
    if not names & {PICTURE, VIDEO} or any(made[name].shape != tensors[name].shape for name in names):
        raise UnsupportedModel("the processor makes tensors of other shapes from images of the same size")
    return {name: made[name] for name in names}


def is_packed(tensors: Mapping[str, Tensor]) -> bool:
    """Return whether images are lists of patches, with their rows and columns beside them."""
    return any(name in tensors for name in _GRIDS)


def sizes_read(tensors: Mapping[str, Tensor], pictures: int, patch: int) -> list[tuple[tuple[int, int], ...]]:
    """Return the images' possible sizes as read, rows and columns in pixels, likeliest first."""
    grid = next((tensors[name] for name in _GRIDS if name in tensors), None)
    if grid is not None:
        counts: list[list[int]] = grid.reshape(-1, grid.shape[-1])[:, -2:].tolist()
        return [tuple((rows * patch, columns * patch) for rows, columns in counts)] if len(counts) == pictures else []
    pixels = tensors[PICTURE]
    if pixels.ndim < 4:
        return []
    tiles, (height, width) = pixels.shape[:-3].numel(), pixels.shape[-2:]
    if tiles == pictures:
        return [((height, width),) * pictures]
    counted = {tiles, tiles - 1} if pictures == 1 else set[int]()
    cut = [(rows, count // rows) for count in sorted(counted) for rows in range(1, count + 1) if count % rows == 0]
    return [((rows * height, columns * width),) for rows, columns in cut]


def resized_to(picture: Pixels, size: tuple[int, int]) -> Pixels:
    """Return an image in this size, (rows, columns)."""
    from PIL import Image

    if picture.shape[:2] == size:
        return picture
    return np.array(Image.fromarray(picture).resize((size[1], size[0]), Image.Resampling.BICUBIC))


def as_numbers(pictures: Sequence[Pixels], like: Tensor) -> Tensor:
    """Return images as numbers about 0, in the shape of a model's input of one row per image."""
    made = torch.stack([torch.from_numpy(one).movedim(-1, 0) for one in pictures]).to(like.dtype) / 64 - 2
    return made[:, : like.shape[-3]].reshape(like.shape)
