"""Files in the format ONNX: the numbers that stand in one, and which step of its graph reads which.

Source: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto; how its messages are written is told at
https://protobuf.dev/programming-guides/encoding/. Only what a converter needs is read.
"""

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from attention_viz.errors import UnsupportedModel

__all__ = ["Node", "OnnxFile"]

# Fields by their numbers in the format's description.
_GRAPH = 7
_NODES, _NUMBERS = 1, 5
_INPUTS, _OUTPUTS, _OPERATION, _ATTRIBUTES = 1, 2, 4, 5
_TENSOR_OF_ATTRIBUTE = 5
_DIMENSIONS, _KIND, _NAME, _RAW = 1, 2, 8, 9
# The kinds of numbers that are read, by the format's number.
_KINDS = {1: "<f4", 7: "<i8"}
# How a field is written, by the number that stands beside its own: a whole number, eight bytes, a piece, four bytes.
_WHOLE, _EIGHT, _PIECE, _FOUR = 0, 1, 2, 5


@dataclass(frozen=True)
class Node:
    """A step of the graph.

    Attributes:
        operation: what it does, such as "MatMul".
        inputs: the names of what it reads.
        outputs: the names of what it makes.
    """

    operation: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class OnnxFile:
    """An open file.

    Attributes:
        nodes: the steps of its graph, in order.
    """

    path: Path
    nodes: tuple[Node, ...]
    _tensors: dict[str, memoryview]

    @classmethod
    def open(cls, path: Path) -> "OnnxFile":
        """Read the graph, and where its numbers stand."""
        with path.open("rb") as file:
            whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        try:
            graph = next(part for number, part in _fields(whole) if number == _GRAPH and not isinstance(part, int))
            nodes, tensors = list[Node](), dict[str, memoryview]()
            for number, part in _fields(graph):
                if isinstance(part, int):
                    continue
                if number == _NUMBERS:
                    tensors[_text(part, _NAME)] = part
                elif number == _NODES:
                    node = _node(part)
                    nodes.append(node)
                    tensors |= _constant(node, part)
        except (StopIteration, IndexError, ValueError) as error:
            raise UnsupportedModel(f"{path.name} is no ONNX file that can be read") from error
        return cls(path, tuple(nodes), tensors)

    @property
    def names(self) -> tuple[str, ...]:
        """What its tensors are called."""
        return tuple(self._tensors)

    def shape(self, name: str) -> tuple[int, ...]:
        """A tensor's shape."""
        return _shape(self._tensors[name])

    def read(self, name: str) -> NDArray[np.float32]:
        """A tensor's numbers, in its shape."""
        part = self._tensors[name]
        kind = next((found for number, found in _fields(part) if number == _KIND), 0)
        raw = next((found for number, found in _fields(part) if number == _RAW), b"")
        if kind not in _KINDS or isinstance(raw, int):
            raise UnsupportedModel(f"{self.path.name}: {name} is of type {kind}; read are float32 and int64")
        numbers = np.frombuffer(raw, _KINDS[int(kind)]).reshape(_shape(part))
        return numbers.astype(np.float32)


def _node(part: memoryview) -> Node:
    return Node(_text(part, _OPERATION), _texts(part, _INPUTS), _texts(part, _OUTPUTS))


def _constant(node: Node, part: memoryview) -> dict[str, memoryview]:
    """The tensor of a step that does nothing but hold it, by the name that the step gives it."""
    if node.operation != "Constant":
        return {}
    (held,) = [found for number, found in _fields(part) if number == _ATTRIBUTES and not isinstance(found, int)]
    tensors = [one for number, one in _fields(held) if number == _TENSOR_OF_ATTRIBUTE and not isinstance(one, int)]
    return dict(zip(node.outputs, tensors, strict=False))


def _shape(part: memoryview) -> tuple[int, ...]:
    found = list[int]()
    for number, value in _fields(part):
        if number == _DIMENSIONS:  # one by one, or all in one piece
            found += [value] if isinstance(value, int) else _all_whole(value)
    return tuple(found)


def _texts(part: memoryview, wanted: int) -> tuple[str, ...]:
    fields = _fields(part)
    return tuple(bytes(found).decode() for number, found in fields if number == wanted and not isinstance(found, int))


def _text(part: memoryview, wanted: int) -> str:
    return next(iter(_texts(part, wanted)), "")


def _fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Each field of a message: its number, and its whole number or its bytes."""
    at = 0
    while at < len(message):
        key, at = _whole(message, at)
        kind = key & 7
        if kind == _WHOLE:
            value, at = _whole(message, at)
            yield key >> 3, value
        elif kind == _PIECE:
            length, at = _whole(message, at)
            if at + length > len(message):
                raise ValueError("a field goes beyond its message")
            yield key >> 3, message[at : at + length]
            at += length
        elif kind in (_EIGHT, _FOUR):
            at += 8 if kind == _EIGHT else 4
        else:
            raise ValueError(f"a field of kind {kind}")


def _all_whole(piece: memoryview) -> list[int]:
    found, at = list[int](), 0
    while at < len(piece):
        value, at = _whole(piece, at)
        found.append(value)
    return found


def _whole(message: memoryview, at: int) -> tuple[int, int]:
    """A whole number, seven bits a byte from the lowest on, and where what follows it begins."""
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
