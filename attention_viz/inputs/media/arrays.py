"""Copy a user's array or tensor, and check a processor's tensors, before anything reads them."""

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attention_viz.errors import AttentionVizError, ShapeError, first_line
from attention_viz.inputs.media.remade import PICTURE, VIDEO

__all__ = ["array_of", "check_finite", "checked_numbers", "checked_tensors", "described"]


def array_of(source: Any, what: str, error: type[AttentionVizError]) -> NDArray[Any]:
    """Return the numbers of an array, or of a tensor on any device and with any gradient.

    Raises:
        error: it has no numbers, isn't dense, or can't be read.
    """
    if isinstance(source, Tensor):
        if (why := _why_unread(source)) is not None:
            raise error(f"{what} must be a dense tensor with numbers; got {why}")
        source = source.detach().cpu()
        source = source.float() if source.dtype == torch.bfloat16 else source
    try:
        return np.asarray(source)
    except MemoryError:
        raise
    except Exception as wrong:  # whatever a stranger's array raises
        raise error(f"can't read {what} from {type(source).__name__}: {first_line(wrong)}") from wrong


def checked_tensors(tensors: Mapping[str, object]) -> dict[str, Tensor]:
    """Return a processor's tensors without missing ones and labels, which would make the model compute a loss.

    Raises:
        ShapeError: something isn't as `checked_numbers` needs it, or patches don't fill their grids.
    """
    found = dict[str, Tensor]()
    for name, tensor in tensors.items():
        if tensor is None or name == "labels":
            continue
        found[name] = checked_numbers(name, tensor)
    for pixels, grid in ((PICTURE, "image_grid_thw"), (VIDEO, "video_grid_thw")):
        if pixels in found and grid in found and found[pixels].ndim == 2:
            _check_grid(pixels, found[pixels], grid, found[grid])
    return found


def checked_numbers(name: str, tensor: object) -> Tensor:
    """Return an input of a model, a dense tensor of real, finite numbers; attention masks may also hold −inf.

    Raises:
        ShapeError: it is anything else.
    """
    if not isinstance(tensor, Tensor):
        raise ShapeError(f"{name} must be a tensor; got {type(tensor).__name__}")
    if (why := _why_unread(tensor)) is not None:
        raise ShapeError(f"{name} must be a dense tensor with numbers; got {why}")
    if not tensor.numel():
        raise ShapeError(f"{name} must have at least one number; got {tuple(tensor.shape)}")
    if tensor.is_complex():
        raise ShapeError(f"{name} must be real; got {tensor.dtype}")
    check_finite(name, tensor)
    return tensor


def check_finite(name: str, tensor: Tensor) -> None:
    """Refuse NaN and infinity in an input, except −inf in an attention mask."""
    if not tensor.is_floating_point():
        return
    is_mask = name.endswith("mask")
    wrong = ~tensor.isfinite() & (tensor != -torch.inf) if is_mask else ~tensor.isfinite()
    if bool(wrong.any()):
        count, first = int(wrong.sum()), tuple(wrong.nonzero()[0].tolist())
        also = " or -inf" if is_mask else ""
        raise ShapeError(
            f"{name} must be finite{also}; got {tensor[first].item()} at {list(first)}, and {count:,} such of "
            f"{tensor.numel():,} numbers. Replace them"
        )


def _check_grid(pixels: str, patches: Tensor, name: str, grid: Tensor) -> None:
    """Refuse patches that don't fill their grids: these may name images of any size."""
    whole = grid.ndim == 2 and grid.shape[1] == 3 and not grid.is_floating_point() and bool((grid > 0).all())
    if not whole:
        raise ShapeError(f"{name} must have three whole numbers above 0 per row; got {grid.tolist()!r:.80}")
    count = sum(prod(row) for row in grid.tolist())
    if count != len(patches):
        raise ShapeError(f"{name} has {count:,} patches, but {pixels} has {len(patches):,}; pass as many")


def described(tensors: Mapping[str, Tensor]) -> str:
    """Return the tensors' names and shapes, such as "input_ids (1, 9)"."""
    return ", ".join(f"{name} {tuple(one.shape)}" for name, one in tensors.items())


def _why_unread(tensor: Tensor) -> str | None:
    """Return why a tensor's numbers can't be read; None if they can."""
    if tensor.is_meta:
        return "one on the meta device, without numbers"
    return None if tensor.layout == torch.strided else f"layout {tensor.layout}"
