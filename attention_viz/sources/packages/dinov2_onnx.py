"""Convert the DINOv2 backbone in an ONNX file to a transformers folder; ignore the rest of the file."""

import json
import mmap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attention_viz.errors import UnsupportedModel
from attention_viz.sources.folders import WEIGHTS
from attention_viz.sources.packages.weights_file import Progress, write_weights

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
_OURS = "backbone."
_PATCHES = "embeddings.patch_embeddings.projection.weight"
# The width of a head, the same in every size of DINOv2.
_HEAD = 64
# What the file doesn't say: the pictures that it was trained with, and with which means and deviations of the colours.
_MEAN, _DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# Pictures are read at this size, by their middle; any other that can be divided by a patch's would do.
_SIDE = 224

_Numbers = NDArray[np.float32]
_Tensors = dict[str, tuple[tuple[int, ...], Callable[[], _Numbers]]]


@dataclass(frozen=True)
class Node:
    """A step of the graph: its operation, such as "MatMul", and the names of its inputs and outputs."""

    operation: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class OnnxFile:
    """An open file; `nodes` are its graph's steps in order."""

    path: Path
    nodes: tuple[Node, ...]
    _tensors: dict[str, memoryview]

    @classmethod
    def open(cls, path: Path) -> "OnnxFile":
        """Read the graph, and the places of its numbers."""
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
            raise UnsupportedModel(f"{path.name} isn't a readable ONNX file; get it again") from error
        return cls(path, tuple(nodes), tensors)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its tensors."""
        return tuple(self._tensors)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return a tensor's shape."""
        return _shape(self._tensors[name])

    def read(self, name: str) -> NDArray[np.float32]:
        """Return a tensor's numbers, in its shape."""
        part = self._tensors[name]
        kind = next((found for number, found in _fields(part) if number == _KIND), 0)
        raw = next((found for number, found in _fields(part) if number == _RAW), b"")
        if kind not in _KINDS or isinstance(raw, int):
            raise UnsupportedModel(f"{name} in {self.path.name} has type {kind}; use float32 or int64")
        numbers = np.frombuffer(raw, _KINDS[int(kind)]).reshape(_shape(part))
        return numbers.astype(np.float32)


def _node(part: memoryview) -> Node:
    return Node(_text(part, _OPERATION), _texts(part, _INPUTS), _texts(part, _OUTPUTS))


def _constant(node: Node, part: memoryview) -> dict[str, memoryview]:
    """Return the tensor of a constant step, by the step's output name."""
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
    """Yield each field of a message: its number, and its integer or bytes."""
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
            raise ValueError(f"unknown field kind {kind}")


def _all_whole(piece: memoryview) -> list[int]:
    found, at = list[int](), 0
    while at < len(piece):
        value, at = _whole(piece, at)
        found.append(value)
    return found


def _whole(message: memoryview, at: int) -> tuple[int, int]:
    """Return an integer, seven bits per byte from the lowest on, and the offset after it."""
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def convert(source: Path, folder: Path, progress: Progress) -> None:
    """Write config.json, preprocessor_config.json and model.safetensors."""
    file = OnnxFile.open(source)
    tensors = _tensors(file)
    if not {_PATCHES, "embeddings.cls_token", "layernorm.weight", "encoder.layer.0.mlp.fc1.weight"} <= set(tensors):
        raise UnsupportedModel(f"{source.name} has no DINOv2 backbone under the known names")
    _write_json(folder / "config.json", _config(tensors))
    _write_json(folder / "preprocessor_config.json", _preprocessing())
    write_weights(folder / WEIGHTS, tensors, progress)


def _tensors(file: OnnxFile) -> _Tensors:
    """Return each parameter's shape and reader, by its name in transformers."""
    found: _Tensors = {
        name.removeprefix(_OURS): (file.shape(name), _reader(file, name))
        for name in file.names
        if name.startswith(_OURS)
    }
    for name, matrix in _matrices(file):
        rows, columns = file.shape(matrix)
        found[name.removeprefix(_OURS)] = ((columns, rows), _turned(file, matrix))
    shape = file.shape(f"{_OURS}embeddings.cls_token")
    # Replaces patches hidden in training, which isn't needed here; the file leaves it out.
    found["embeddings.mask_token"] = (shape[1:], lambda: np.zeros(shape[1:], np.float32))
    found["embeddings.position_embeddings"] = _positions(file, shape[-1])
    return found


def _matrices(file: OnnxFile) -> list[tuple[str, str]]:
    """Return each projection matrix's name in transformers and in the file, which names only the bias.

    The matrix is the factor of the product that the graph adds the named bias to.
    """
    made = {node.outputs[0]: node for node in file.nodes if node.operation == "MatMul"}
    found = list[tuple[str, str]]()
    for node in file.nodes:
        biases = [name for name in node.inputs if name.startswith(_OURS) and name.endswith(".bias")]
        products = [made[name] for name in node.inputs if name in made]
        if node.operation == "Add" and biases and products:
            found.append((f"{biases[0].removesuffix('.bias')}.weight", products[0].inputs[1]))
    return found


def _positions(file: OnnxFile, width: int) -> tuple[tuple[int, ...], Callable[[], _Numbers]]:
    """Return position embeddings: the class token's, then the patches', two constants in the file."""
    own = [name for name in file.names if not name.startswith((_OURS, "decoder."))]
    joined = {name for node in file.nodes if node.operation == "Concat" for name in node.inputs}
    shaped = {name for node in file.nodes if node.operation == "Reshape" for name in node.inputs[:1]}
    first = [name for name in own if name in joined and file.shape(name) == (1, 1, width)]
    rest = [name for name in own if name in shaped and file.shape(name)[-1:] == (width,)]
    if len(first) != 1 or len(rest) != 1:
        raise UnsupportedModel(f"{file.path.name} has no table of positions at the known place")
    count = int(np.prod(file.shape(rest[0]))) // width
    return (1, 1 + count, width), lambda: np.concatenate(
        [file.read(first[0]), file.read(rest[0]).reshape(1, count, width)], axis=1
    )


def _config(tensors: _Tensors) -> dict[str, Any]:
    width, colours, patch, _ = tensors[_PATCHES][0]
    layers = {int(name.split(".")[2]) for name in tensors if name.startswith("encoder.layer.")}
    places = tensors["embeddings.position_embeddings"][0][1] - 1
    return {
        "architectures": ["Dinov2Model"],
        "model_type": "dinov2",
        "dtype": "float32",
        "hidden_size": width,
        "num_hidden_layers": len(layers),
        "num_attention_heads": width // _HEAD,
        "mlp_ratio": tensors["encoder.layer.0.mlp.fc1.weight"][0][0] // width,
        "num_channels": colours,
        "patch_size": patch,
        "image_size": patch * round(places**0.5),
        "layer_norm_eps": 1e-06,
        "hidden_act": "gelu",
        "qkv_bias": True,
        "use_swiglu_ffn": False,
    }


def _preprocessing() -> dict[str, Any]:
    return {
        "image_processor_type": "BitImageProcessor",
        "do_convert_rgb": True,
        "do_resize": True,
        "size": {"shortest_edge": _SIDE},
        "resample": 3,
        "do_center_crop": True,
        "crop_size": {"height": _SIDE, "width": _SIDE},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": _MEAN,
        "image_std": _DEVIATION,
    }


def _reader(file: OnnxFile, name: str) -> Callable[[], _Numbers]:
    return lambda: file.read(name)


def _turned(file: OnnxFile, name: str) -> Callable[[], _Numbers]:
    return lambda: file.read(name).T


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
