"""Files in the format GGUF, in which llama.cpp keeps models: what is in them, and their tensors as float32.

Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; the blocks of four and eight bits are those of
`ggml-quants.c` there.
"""

from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from attention_viz.errors import UnsupportedModel

__all__ = ["Gguf", "GgufTensor"]

# Of each type of value its number in the file, and how numpy calls it.
_NUMBERS = {0: "u1", 1: "i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "?", 10: "<u8", 11: "<i8", 12: "<f8"}
_STRING, _ARRAY = 8, 9

# Of each type of tensor its number in the file, and what a row consists of: numbers of one block, and its layout.
_F32, _Q4_1, _Q8_0 = 0, 3, 8
_BLOCKS: dict[int, tuple[int, np.dtype[Any]]] = {
    _F32: (1, np.dtype([("value", "<f4")])),
    _Q4_1: (32, np.dtype([("scale", "<f2"), ("least", "<f2"), ("steps", "u1", (16,))])),
    _Q8_0: (32, np.dtype([("scale", "<f2"), ("steps", "i1", (32,))])),
}


@dataclass(frozen=True)
class GgufTensor:
    """Where a tensor stands.

    Attributes:
        offset: of its first byte in the file.
    """

    shape: tuple[int, ...]
    kind: int
    offset: int


@dataclass(frozen=True, eq=False)
class Gguf:
    """An open file.

    Attributes:
        metadata: what the file says of the model and its tokenizer, by the names of the format.
        tensors: by name, in the file's order.
    """

    path: Path
    metadata: dict[str, Any]
    tensors: dict[str, GgufTensor]

    @classmethod
    def open(cls, path: Path) -> "Gguf":
        """Read all but the tensors."""
        with path.open("rb") as file:
            if file.read(4) != b"GGUF" or (version := _number(file, 4)) != 3:
                raise UnsupportedModel(f"{path.name} is no GGUF file of version 3, the only one that is read")
            del version
            tensors, values = _number(file, 10), _number(file, 10)
            metadata = {_string(file): _value(file, _number(file, 4)) for _ in range(values)}
            places = dict(_place(file) for _ in range(tensors))
            alignment = metadata.get("general.alignment", 32)
            start = -(-file.tell() // alignment) * alignment
        found = {name: GgufTensor(one.shape, one.kind, start + one.offset) for name, one in places.items()}
        return cls(path, metadata, found)

    def read(self, name: str) -> NDArray[np.float32]:
        """A tensor's numbers, in its shape."""
        tensor = self.tensors[name]
        if tensor.kind not in _BLOCKS:
            raise UnsupportedModel(
                f"{self.path.name}: {name} is of type {tensor.kind}; read are {', '.join(map(str, _BLOCKS))} "
                "(F32, Q4_1, Q8_0)"
            )
        length, layout = _BLOCKS[tensor.kind]
        count = prod(tensor.shape) // length
        blocks = np.fromfile(self.path, layout, count, offset=tensor.offset)
        return _numbers(tensor.kind, blocks).reshape(tensor.shape)


def _numbers(kind: int, blocks: NDArray[Any]) -> NDArray[np.float32]:
    """The numbers of some blocks, (block, number) or flat, in float32 as in the format's own code."""
    if kind == _F32:
        return blocks["value"].astype(np.float32)
    scale, steps = blocks["scale"].astype(np.float32)[:, None], blocks["steps"]
    if kind == _Q8_0:
        return scale * steps.astype(np.float32)
    # The lower halves of the 16 bytes are the first 16 numbers, the upper halves the other 16.
    halves = np.concatenate([steps & 15, steps >> 4], axis=1).astype(np.float32)
    return scale * halves + blocks["least"].astype(np.float32)[:, None]


def _place(file: BinaryIO) -> tuple[str, GgufTensor]:
    name = _string(file)
    shape = [_number(file, 10) for _ in range(_number(file, 4))]
    return name, GgufTensor(tuple(reversed(shape)), _number(file, 4), _number(file, 10))


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return _string(file)
    if kind != _ARRAY:
        return _number(file, kind)
    of, count = _number(file, 4), _number(file, 10)
    if of in (_STRING, _ARRAY):
        return [_value(file, of) for _ in range(count)]
    number = _type(of)
    return np.frombuffer(file.read(number.itemsize * count), number).tolist()


def _string(file: BinaryIO) -> str:
    return file.read(_number(file, 10)).decode()


def _number(file: BinaryIO, kind: int) -> Any:
    number = _type(kind)
    return np.frombuffer(file.read(number.itemsize), number)[0].item()


def _type(kind: int) -> np.dtype[Any]:
    if kind not in _NUMBERS:
        raise UnsupportedModel(f"a GGUF file with a value of type {kind}, which isn't known")
    return np.dtype(_NUMBERS[kind])
