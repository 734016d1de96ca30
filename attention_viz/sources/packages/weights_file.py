"""Write a safetensors file tensor by tensor, so that a model never has to be in memory whole.

Source: https://github.com/huggingface/safetensors#format. The same tensors give the same bytes on every machine,
whatever the library's version, so the file can be known by its sha256.
"""

import json
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Told how many bytes are written and how many will be, again and again.
Progress = Callable[[int, int], None]

_BYTES = 4  # of a number in float32


def write_weights(
    path: Path,
    tensors: Mapping[str, tuple[tuple[int, ...], Callable[[], NDArray[np.float32]]]],
    progress: Progress = lambda done, of: None,
) -> None:
    """Write float32 tensors in the order of their names; `progress` gets the bytes written and in all."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name in sorted(tensors):
        start, end = end, end + _BYTES * prod(tensors[name][0])
        header[name] = {"dtype": "F32", "shape": list(tensors[name][0]), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # where the numbers begin can be divided by 8
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in sorted(tensors):
            shape, read = tensors[name]
            numbers = np.ascontiguousarray(read(), dtype="<f4")
            assert numbers.shape == shape, f"{name} has shape {numbers.shape} instead of {shape}"
            file.write(numbers.data)
            progress(header[name]["data_offsets"][1], end)
