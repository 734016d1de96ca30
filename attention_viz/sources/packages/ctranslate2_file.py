"""Files in the format of CTranslate2: the tensors in one, by name.

Source: https://github.com/OpenNMT/CTranslate2/blob/master/python/ctranslate2/specs/model_spec.py, `_serialize`.
"""

import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from attention_viz.errors import UnsupportedModel

__all__ = ["CTranslate2File"]

# The kinds of numbers, by the format's number.
_KINDS = {0: "<f4", 1: "i1", 2: "<i2", 3: "<i4", 4: "<f2"}
_VERSION = 6


@dataclass(frozen=True)
class _TensorSpan:
    """Where a tensor stands."""

    shape: tuple[int, ...]
    kind: int
    offset: int


@dataclass(frozen=True, eq=False)
class CTranslate2File:
    """An open file.

    Attributes:
        model: what the file calls its kind of model.
    """

    path: Path
    model: str
    _places: dict[str, _TensorSpan]

    @classmethod
    def open(cls, path: Path) -> "CTranslate2File":
        """Read where the tensors stand."""
        try:
            with path.open("rb") as file:
                version, model, _revision, count = _whole(file), _text(file), _whole(file), _whole(file)
                if version != _VERSION:
                    raise UnsupportedModel(f"{path.name} is of version {version}; {_VERSION} is read")
                places = dict(_place(file) for _ in range(count))
        except (struct.error, UnicodeDecodeError, IndexError) as error:
            raise UnsupportedModel(f"{path.name} is no file of CTranslate2 that can be read") from error
        return cls(path, model, places)

    @property
    def names(self) -> tuple[str, ...]:
        """What its tensors are called."""
        return tuple(self._places)

    def shape(self, name: str) -> tuple[int, ...]:
        """A tensor's shape."""
        return self._places[name].shape

    def read(self, name: str) -> NDArray[np.float32]:
        """A tensor's numbers, in its shape."""
        place = self._places[name]
        if place.kind not in _KINDS:
            raise UnsupportedModel(f"{self.path.name}: {name} is of type {place.kind}; read are {sorted(_KINDS)}")
        numbers: NDArray[Any] = np.fromfile(self.path, _KINDS[place.kind], prod(place.shape), offset=place.offset)
        return numbers.reshape(place.shape).astype(np.float32)


def _place(file: BinaryIO) -> tuple[str, _TensorSpan]:
    name, rank = _text(file), file.read(1)[0]
    shape = tuple(_whole(file) for _ in range(rank))
    kind, length = file.read(1)[0], _whole(file)
    place = _TensorSpan(shape, kind, file.tell())
    file.seek(length, 1)
    return name, place


def _text(file: BinaryIO) -> str:
    (length,) = struct.unpack("<H", file.read(2))
    return file.read(length).rstrip(b"\0").decode()


def _whole(file: BinaryIO) -> int:
    return struct.unpack("<I", file.read(4))[0]
