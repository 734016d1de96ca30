"""Convert a Llama-type decoder with a byte-level tokenizer from GGUF to a transformers folder."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from attention_viz.errors import UnsupportedModel
from attention_viz.sources.folders import WEIGHTS
from attention_viz.sources.packages.weights_file import Progress, write_weights

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
# Of each matrix in a layer: its name in the file, and in transformers.
_IN_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_OUTSIDE = {"token_embd": "embed_tokens", "output_norm": "norm"}

# How a text is cut before pairs are joined, by the name that llama.cpp has for it: digits stand alone.
_CUTS = {
    "smollm": [
        {"type": "Digits", "individual_digits": True},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    ]
}
# The type of a token that is no piece of a text but a sign for the model.
_CONTROL = 3


@dataclass(frozen=True)
class GgufTensor:
    """A tensor's place in the file; `offset` is of its first byte."""

    shape: tuple[int, ...]
    kind: int
    offset: int


@dataclass(frozen=True, eq=False)
class Gguf:
    """An open file; `metadata` has the format's names, `tensors` the file's order."""

    path: Path
    metadata: dict[str, Any]
    tensors: dict[str, GgufTensor]

    @classmethod
    def open(cls, path: Path) -> "Gguf":
        """Read all but the tensors."""
        with path.open("rb") as file:
            if file.read(4) != b"GGUF" or (version := _number(file, 4)) != 3:
                raise UnsupportedModel(f"{path.name} isn't a GGUF file of version 3; convert it to that version")
            del version
            tensors, values = _number(file, 10), _number(file, 10)
            metadata = {_string(file): _value(file, _number(file, 4)) for _ in range(values)}
            places = dict(_place(file) for _ in range(tensors))
            alignment = metadata.get("general.alignment", 32)
            start = -(-file.tell() // alignment) * alignment
        found = {name: GgufTensor(one.shape, one.kind, start + one.offset) for name, one in places.items()}
        return cls(path, metadata, found)

    def read(self, name: str) -> NDArray[np.float32]:
        """Return a tensor's numbers, in its shape."""
        tensor = self.tensors[name]
        if tensor.kind not in _BLOCKS:
            raise UnsupportedModel(
                f"{name} in {self.path.name} has type {tensor.kind}; use one of {', '.join(map(str, _BLOCKS))} "
                "(F32, Q4_1, Q8_0)"
            )
        length, layout = _BLOCKS[tensor.kind]
        count = prod(tensor.shape) // length
        blocks = np.fromfile(self.path, layout, count, offset=tensor.offset)
        return _numbers(tensor.kind, blocks).reshape(tensor.shape)


def _numbers(kind: int, blocks: NDArray[Any]) -> NDArray[np.float32]:
    """Return the numbers of some blocks, (block, number) or flat, in float32 as in the format's own code."""
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
        raise UnsupportedModel(f"the GGUF file has a value of unknown type {kind}")
    return np.dtype(_NUMBERS[kind])


def convert(source: Path, folder: Path, progress: Progress) -> None:
    """Write config.json, the tokenizer and model.safetensors."""
    gguf = Gguf.open(source)
    metadata = gguf.metadata
    kind, cut = metadata.get("general.architecture"), metadata.get("tokenizer.ggml.pre")
    if kind != "llama" or metadata.get("tokenizer.ggml.model") != "gpt2" or cut not in _CUTS:
        raise UnsupportedModel(
            f"{source.name} holds a model of type {kind!r} with a tokenizer {cut!r}; only llama with "
            f"{', '.join(_CUTS)} can be converted"
        )
    _write_json(folder / "config.json", _config(gguf))
    _write_json(folder / "generation_config.json", _special_ids(metadata))
    _write_json(folder / "tokenizer_config.json", _tokenizer_config(metadata))
    _write_json(folder / "tokenizer.json", _tokenizer(metadata))
    write_weights(folder / WEIGHTS, _weights(gguf), progress)


def _config(gguf: Gguf) -> dict[str, Any]:
    metadata, heads = gguf.metadata, gguf.metadata["llama.attention.head_count"]
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "dtype": "float32",
        "vocab_size": metadata["llama.vocab_size"],
        "hidden_size": metadata["llama.embedding_length"],
        "intermediate_size": metadata["llama.feed_forward_length"],
        "num_hidden_layers": metadata["llama.block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": metadata["llama.attention.head_count_kv"],
        "head_dim": metadata["llama.embedding_length"] // heads,
        "max_position_embeddings": metadata["llama.context_length"],
        "rms_norm_eps": _shortest(metadata["llama.attention.layer_norm_rms_epsilon"]),
        "rope_parameters": {"rope_theta": metadata["llama.rope.freq_base"], "rope_type": "default"},
        "tie_word_embeddings": "output.weight" not in gguf.tensors,
        **_special_ids(metadata),
    }


def _shortest(number: float) -> float:
    """Return the shortest number equal in float32, which the file has: 1e-05 instead of 9.999999747378752e-06."""
    return float(str(np.float32(number)))


def _special_ids(metadata: Mapping[str, Any]) -> dict[str, int]:
    names = {"bos_token_id": "bos", "eos_token_id": "eos", "pad_token_id": "padding"}
    return {name: metadata[f"tokenizer.ggml.{theirs}_token_id"] for name, theirs in names.items()}


def _tokenizer_config(metadata: Mapping[str, Any]) -> dict[str, Any]:
    tokens = metadata["tokenizer.ggml.tokens"]
    names = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": metadata["llama.context_length"],
        "clean_up_tokenization_spaces": False,
        **{name: tokens[metadata[f"tokenizer.ggml.{theirs}_token_id"]] for name, theirs in names.items()},
        "chat_template": metadata["tokenizer.chat_template"],
    }


def _tokenizer(metadata: Mapping[str, Any]) -> dict[str, Any]:
    tokens, kinds = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.token_type"]
    special = [
        {"id": number, "content": token, **dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)}
        for number, (token, kind) in enumerate(zip(tokens, kinds, strict=True))
        if kind == _CONTROL
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{**token, "special": True} for token in special],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": _CUTS[metadata["tokenizer.ggml.pre"]]},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: number for number, token in enumerate(tokens)},
            "merges": [merge.split(" ", 1) for merge in metadata["tokenizer.ggml.merges"]],
        },
    }


def _weights(gguf: Gguf) -> dict[str, tuple[tuple[int, ...], Callable[[], NDArray[np.float32]]]]:
    """Return each tensor's shape and reader, by its name in transformers."""
    return {_called(name): (tensor.shape, _reader(gguf, name)) for name, tensor in gguf.tensors.items()}


def _called(name: str) -> str:
    """Return a tensor's name in transformers: "model.layers.3.mlp.up_proj.weight" for "blk.3.ffn_up.weight"."""
    match name.split("."):
        case ["blk", layer, part, "weight"] if part in _IN_LAYER:
            return f"model.layers.{layer}.{_IN_LAYER[part]}.weight"
        case [part, "weight"] if part in _OUTSIDE:
            return f"model.{_OUTSIDE[part]}.weight"
        case ["output", "weight"]:
            return "lm_head.weight"
        case _:
            raise UnsupportedModel(f"unknown tensor {name!r}; only Llama-type decoders can be converted")


def _reader(gguf: Gguf, name: str) -> Callable[[], NDArray[np.float32]]:
    heads = {
        "attn_q": gguf.metadata["llama.attention.head_count"],
        "attn_k": gguf.metadata["llama.attention.head_count_kv"],
    }
    part = name.split(".")[-2]
    return lambda: _in_halves(gguf.read(name), heads[part]) if part in heads else gguf.read(name)


def _in_halves(matrix: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Return a query or key matrix's rows in the order of transformers.

    Rotary positions turn pairs of rows: llama.cpp has a pair side by side, transformers half a head apart.
    """
    rows, width = matrix.shape
    return matrix.reshape(heads, rows // heads // 2, 2, width).swapaxes(1, 2).reshape(rows, width)


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
