"""What the headers of weights say: the shapes of all tensors, without reading one."""

from collections.abc import Sequence
from pathlib import Path

from safetensors import SafetensorError, safe_open

from attention_viz.errors import ModelNotFound, UnsupportedModel

__all__ = ["read_shapes"]

# Bytes of all headers together: 200,000 tensors take 20 million.
_LONGEST_HEADER = 40_000_000


def read_shapes(files: Sequence[Path], name: str) -> dict[str, tuple[int, ...]]:
    """Return the shape of each tensor in some safetensors files, by its name.

    Args:
        files: where they are.
        name: what messages call the model.

    Raises:
        ModelNotFound: a file is broken or half-written.
        UnsupportedModel: the headers are longer than any model's.
    """
    found, length = dict[str, tuple[int, ...]](), 0
    for file in files:
        length += _header_length(file, name)
        if length > _LONGEST_HEADER:
            raise UnsupportedModel(
                f"{name}: the headers of its weights have {length:,} bytes; at most {_LONGEST_HEADER:,} are read here"
            )
        found |= _shapes(file, name)
    return found


def _header_length(file: Path, name: str) -> int:
    """Return how long a safetensors file says that its header is, at most the file's length."""
    try:
        with file.open("rb") as opened:
            return min(int.from_bytes(opened.read(8), "little"), file.stat().st_size)
    except OSError as error:  # its own words would tell the path
        raise ModelNotFound(f"{name}: {file.name} can't be read: {error.strerror}") from None


def _shapes(file: Path, name: str) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a file's tensors, by its header; refuse a file of another length than that says."""
    broken = f"{name}: {file.name} is broken or half-written"
    try:
        with safe_open(file, framework="np") as weights:
            return {key: tuple(weights.get_slice(key).get_shape()) for key in weights.keys()}
    except SafetensorError as error:
        if "not fully covered" not in str(error):
            raise ModelNotFound(f"{broken}: it has no header of safetensors that can be read") from None
        size = file.stat().st_size
        raise ModelNotFound(f"{broken}: it has {size:,} bytes, and its header announces another number") from None
    except OSError as error:  # its own words would tell the path
        raise ModelNotFound(f"{name}: {file.name} can't be read: {error.strerror}") from None
