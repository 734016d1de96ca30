"""The DINOv2 backbone in an ONNX file, to a folder as transformers reads it; what else the file holds is left out."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attention_viz.errors import UnsupportedModel
from attention_viz.sources.folders import WEIGHTS
from attention_viz.sources.packages.onnx_file import OnnxFile
from attention_viz.sources.packages.weights_file import Progress, write_weights

__all__ = ["convert"]

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


def convert(source: Path, folder: Path, progress: Progress) -> None:
    """Write config.json, preprocessor_config.json and model.safetensors."""
    file = OnnxFile.open(source)
    tensors = _tensors(file)
    if not {_PATCHES, "embeddings.cls_token", "layernorm.weight", "encoder.layer.0.mlp.fc1.weight"} <= set(tensors):
        raise UnsupportedModel(f"{source.name} holds no DINOv2 backbone by the names that are known here")
    _write_json(folder / "config.json", _config(tensors))
    _write_json(folder / "preprocessor_config.json", _preprocessing())
    write_weights(folder / WEIGHTS, tensors, progress)


def _tensors(file: OnnxFile) -> _Tensors:
    """Of each parameter, by its name in transformers, the shape and what reads it."""
    found: _Tensors = {
        name.removeprefix(_OURS): (file.shape(name), _reader(file, name))
        for name in file.names
        if name.startswith(_OURS)
    }
    for name, matrix in _matrices(file):
        rows, columns = file.shape(matrix)
        found[name.removeprefix(_OURS)] = ((columns, rows), _turned(file, matrix))
    shape = file.shape(f"{_OURS}embeddings.cls_token")
    # Stands for a patch that is hidden in training, which nobody asks for here; the file leaves it out.
    found["embeddings.mask_token"] = (shape[1:], lambda: np.zeros(shape[1:], np.float32))
    found["embeddings.position_embeddings"] = _positions(file, shape[-1])
    return found


def _matrices(file: OnnxFile) -> list[tuple[str, str]]:
    """Of each projection the name of its matrix in transformers, and in the file, where it has none of its own.

    It is what is multiplied by to give what the projection's bias, which has its name, is added to.
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
    """The embeddings of the positions: the class token's, then those of the patches, which are two constants there."""
    own = [name for name in file.names if not name.startswith((_OURS, "decoder."))]
    joined = {name for node in file.nodes if node.operation == "Concat" for name in node.inputs}
    shaped = {name for node in file.nodes if node.operation == "Reshape" for name in node.inputs[:1]}
    first = [name for name in own if name in joined and file.shape(name) == (1, 1, width)]
    rest = [name for name in own if name in shaped and file.shape(name)[-1:] == (width,)]
    if len(first) != 1 or len(rest) != 1:
        raise UnsupportedModel(f"{file.path.name} has no table of positions where one is known to be")
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
