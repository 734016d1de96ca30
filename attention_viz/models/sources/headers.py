"""What the headers of weights say: the shapes and kinds of all tensors, without reading one."""

from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import NamedTuple

from safetensors import SafetensorError, safe_open

from attention_viz.errors import ModelNotFound, UnsupportedModel

__all__ = ["Header", "read_headers"]

# Bytes of all headers together: 200,000 tensors take 20 million.
_LONGEST_HEADER = 40_000_000
# Models with many experts have 90,000 tensors, of a million numbers each; no tensor has as many axes.
MOST_TENSORS, _NUMBERS_A_TENSOR, _MOST_AXES = 50_000, 1_000, 8


class Header(NamedTuple):
    """What the headers of some files say.

    Attributes:
        shapes: the shape of each tensor, by its name.
        dtypes: how its numbers are stored, in the words of safetensors, such as F32.
    """

    shapes: dict[str, tuple[int, ...]]
    dtypes: dict[str, str]


def read_headers(files: Sequence[Path], name: str) -> Header:
    """Return the shape of each tensor in some safetensors files, and how its numbers are stored, by its name."""
    found, length = Header({}, {}), 0
    for file in files:
        length += _header_length(file, name)
        if length > _LONGEST_HEADER:
            raise UnsupportedModel(
                f"{name}: the headers of its weights have {length:,} bytes; at most {_LONGEST_HEADER:,} are read here"
            )
        header = _header(file, name)
        found.shapes.update(header.shapes)
        found.dtypes.update(header.dtypes)
    _check(found.shapes, name)
    return found


def _check(shapes: dict[str, tuple[int, ...]], name: str) -> None:
    axes = max(map(len, shapes.values()), default=0)
    if axes > _MOST_AXES:
        raise UnsupportedModel(f"{name}: a tensor of its weights has {axes:,} axes; at most {_MOST_AXES} are read here")
    if len(shapes) <= MOST_TENSORS:
        return
    most = MOST_TENSORS + sum(map(prod, shapes.values())) // _NUMBERS_A_TENSOR
    if len(shapes) > most:
        raise UnsupportedModel(
            f"{name}: its weights are {len(shapes):,} tensors; at most {most:,} are read here of as few numbers"
        )


def _header_length(file: Path, name: str) -> int:
    """Return how long a safetensors file says that its header is, at most the file's length."""
    try:
        with file.open("rb") as opened:
            return min(int.from_bytes(opened.read(8), "little"), file.stat().st_size)
    except OSError as error:  # its own words would tell the path
        raise ModelNotFound(f"{name}: {file.name} can't be read: {error.strerror}") from None


def _header(file: Path, name: str) -> Header:
    """Return what a file's header says; refuse a file of another length than that says."""
    broken = f"{name}: {file.name} is broken or half-written"
    try:
        with safe_open(file, framework="np") as weights:
            slices = {key: weights.get_slice(key) for key in weights.keys()}
            shapes = {key: tuple(one.get_shape()) for key, one in slices.items()}
            return Header(shapes, {key: str(one.get_dtype()) for key, one in slices.items()})
    except SafetensorError as error:
        if "not fully covered" not in str(error):
            raise ModelNotFound(f"{broken}: it has no header of safetensors that can be read") from None
        size = file.stat().st_size
        raise ModelNotFound(f"{broken}: it has {size:,} bytes, and its header announces another number") from None
    except MemoryError:
        raise UnsupportedModel(f"{name}: there isn't enough memory to open {file.name}") from None
    except OSError as error:  # its own words would tell the path
        raise ModelNotFound(f"{name}: {file.name} can't be read: {error.strerror}") from None
