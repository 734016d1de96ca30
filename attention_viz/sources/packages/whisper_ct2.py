"""Convert Whisper from CTranslate2, with its tokenizer beside it, to a transformers folder."""

import json
import shutil
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from attention_viz.errors import UnsupportedModel
from attention_viz.sources.folders import WEIGHTS
from attention_viz.sources.packages.weights_file import Progress, write_weights

# The kinds of numbers, by the format's number.
_KINDS = {0: "<f4", 1: "i1", 2: "<i2", 3: "<i4", 4: "<f2"}
_VERSION = 6
_KIND = "WhisperSpec"
_TOKENIZER = "tokenizer.json"
_EMBEDDINGS = "decoder/embeddings/weight"
# The sounds that every Whisper reads: 30 seconds at 16,000 numbers a second, a column of its spectrum each 160.
_RATE, _SECONDS, _HOP, _WINDOW = 16_000, 30, 160, 400

_Numbers = NDArray[np.float32]
_Tensors = dict[str, tuple[tuple[int, ...], Callable[[], _Numbers]]]

# Of a linear step or a norm in the file, its name in transformers.
_OUTSIDE = {
    "encoder/conv1": "encoder.conv1",
    "encoder/conv2": "encoder.conv2",
    "encoder/layer_norm": "encoder.layer_norm",
    "encoder/position_encodings": "encoder.embed_positions",
    "decoder/embeddings": "decoder.embed_tokens",
    "decoder/layer_norm": "decoder.layer_norm",
    "decoder/position_encodings": "decoder.embed_positions",
}
_IN_LAYER = {
    "self_attention/layer_norm": "self_attn_layer_norm",
    "self_attention/linear_1": "self_attn.out_proj",
    "attention/layer_norm": "encoder_attn_layer_norm",
    "attention/linear_0": "encoder_attn.q_proj",
    "attention/linear_2": "encoder_attn.out_proj",
    "ffn/layer_norm": "final_layer_norm",
    "ffn/linear_0": "fc1",
    "ffn/linear_1": "fc2",
}
# Several matrices that stand one below the other in the file.
_STACKED = {
    "self_attention/linear_0": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "attention/linear_1": ("encoder_attn.k_proj", "encoder_attn.v_proj"),
}
_NUMBERS = {"gamma": "weight", "beta": "bias", "encodings": "weight"}


@dataclass(frozen=True)
class _TensorSpan:
    """A tensor's place in the file."""

    shape: tuple[int, ...]
    kind: int
    offset: int


@dataclass(frozen=True, eq=False)
class CTranslate2File:
    """An open file; `model` is its name for the kind of model."""

    path: Path
    model: str
    _places: dict[str, _TensorSpan]

    @classmethod
    def open(cls, path: Path) -> "CTranslate2File":
        """Read the tensors' places."""
        try:
            with path.open("rb") as file:
                version, model, _revision, count = _whole(file), _text(file), _whole(file), _whole(file)
                if version != _VERSION:
                    raise UnsupportedModel(f"{path.name} has version {version}; use version {_VERSION}")
                places = dict(_place(file) for _ in range(count))
        except (struct.error, UnicodeDecodeError, IndexError) as error:
            raise UnsupportedModel(f"{path.name} isn't a readable CTranslate2 file; get it again") from error
        return cls(path, model, places)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its tensors."""
        return tuple(self._places)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return a tensor's shape."""
        return self._places[name].shape

    def read(self, name: str) -> NDArray[np.float32]:
        """Return a tensor's numbers, in its shape."""
        place = self._places[name]
        if place.kind not in _KINDS:
            raise UnsupportedModel(f"{name} in {self.path.name} has type {place.kind}; use one of {sorted(_KINDS)}")
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


def convert(source: Path, folder: Path, progress: Progress) -> None:
    """Write config.json, the generation, audio and tokenizer files, and model.safetensors."""
    file = CTranslate2File.open(source)
    if file.model != _KIND:
        raise UnsupportedModel(f"{source.name} holds {file.model!r}; only {_KIND} can be converted")
    metadata = _json_of(source.with_name("config.json"))
    ids = {one["content"]: one["id"] for one in _json_of(source.with_name(_TOKENIZER))["added_tokens"]}
    shutil.copyfile(source.with_name(_TOKENIZER), folder / _TOKENIZER)
    config = _config(file, ids)
    _write_json(folder / "config.json", config)
    _write_json(folder / "generation_config.json", _generation(metadata, ids, config))
    _write_json(folder / "preprocessor_config.json", _preprocessing(config))
    _write_json(folder / "tokenizer_config.json", _tokenizer_config(config, ids))
    write_weights(folder / WEIGHTS, _tensors(file), progress)


def _tensors(file: CTranslate2File) -> _Tensors:
    return {f"model.{name}": one for theirs in file.names for name, one in _called(file, theirs)}


def _called(file: CTranslate2File, name: str) -> Iterator[tuple[str, tuple[tuple[int, ...], Callable[[], _Numbers]]]]:
    """Yield a tensor's name, shape and reader in transformers; several for a stack, none for single numbers."""
    step, _, part = name.rpartition("/")
    of = _NUMBERS.get(part, part)
    if step in _OUTSIDE:
        yield f"{_OUTSIDE[step]}.{of}", (file.shape(name), lambda: file.read(name))
        return
    side, layer, inner = [*step.split("/", 2), "", ""][:3]
    place = f"{side}.layers.{layer.removeprefix('layer_')}"
    if inner in _IN_LAYER:
        yield f"{place}.{_IN_LAYER[inner]}.{of}", (file.shape(name), lambda: file.read(name))
    for at, one in enumerate(parts := _STACKED.get(inner, ())):
        # A key's bias changes no weight: a model of this kind has none, and the file has zeros.
        if not (of == "bias" and one.endswith("k_proj")):
            rows, *rest = file.shape(name)
            yield f"{place}.{one}.{of}", ((rows // len(parts), *rest), _part(file, name, at, len(parts)))


def _part(file: CTranslate2File, name: str, at: int, of: int) -> Callable[[], _Numbers]:
    return lambda: np.split(file.read(name), of)[at]


def _config(file: CTranslate2File, ids: dict[str, int]) -> dict[str, Any]:
    width, colours, _ = file.shape("encoder/conv1/weight")
    ends = ids["<|endoftext|>"]
    sides = {
        f"{side}_{name}": found
        for side in ("encoder", "decoder")
        for name, found in (
            ("layers", sum(name.startswith(f"{side}/") and name.endswith("/ffn/linear_0/bias") for name in file.names)),
            ("attention_heads", int(file.read(f"{side}/num_heads"))),
            ("ffn_dim", file.shape(f"{side}/layer_0/ffn/linear_0/bias")[0]),
        )
    }
    return {
        "architectures": ["WhisperForConditionalGeneration"],
        "model_type": "whisper",
        "dtype": "float32",
        "is_encoder_decoder": True,
        "vocab_size": file.shape(_EMBEDDINGS)[0],
        "num_mel_bins": colours,
        "d_model": width,
        **sides,
        "max_source_positions": file.shape("encoder/position_encodings/encodings")[0],
        "max_target_positions": file.shape("decoder/position_encodings/encodings")[0],
        "decoder_start_token_id": ids["<|startoftranscript|>"],
        "bos_token_id": ends,
        "eos_token_id": ends,
        "pad_token_id": ends,
    }


def _generation(metadata: dict[str, Any], ids: dict[str, int], config: dict[str, Any]) -> dict[str, Any]:
    starts = ("decoder_start_token_id", "bos_token_id", "eos_token_id", "pad_token_id")
    return {
        **{name: config[name] for name in starts},
        "max_length": config["max_target_positions"],
        "suppress_tokens": metadata["suppress_ids"],
        "begin_suppress_tokens": metadata["suppress_ids_begin"],
        "alignment_heads": metadata["alignment_heads"],
        "is_multilingual": False,
        "no_timestamps_token_id": ids["<|notimestamps|>"],
        "prev_sot_token_id": ids["<|startofprev|>"],
        "return_timestamps": False,
    }


def _preprocessing(config: dict[str, Any]) -> dict[str, Any]:
    return {
        "feature_extractor_type": "WhisperFeatureExtractor",
        "processor_class": "WhisperProcessor",
        "feature_size": config["num_mel_bins"],
        "sampling_rate": _RATE,
        "chunk_length": _SECONDS,
        "n_samples": _RATE * _SECONDS,
        "nb_max_frames": _RATE * _SECONDS // _HOP,
        "hop_length": _HOP,
        "n_fft": _WINDOW,
        "padding_side": "right",
        "padding_value": 0.0,
        "return_attention_mask": False,
    }


def _tokenizer_config(config: dict[str, Any], ids: dict[str, int]) -> dict[str, Any]:
    end = "<|endoftext|>"
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": config["max_target_positions"],
        "clean_up_tokenization_spaces": False,
        **dict.fromkeys(("bos_token", "eos_token", "pad_token"), end),
        "additional_special_tokens": [name for name in ids if name != end],
    }


def _json_of(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
