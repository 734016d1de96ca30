"""Readers of our own for two formats, against tiny files that are written here byte by byte."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import WhisperConfig, WhisperForConditionalGeneration

import attention_viz as av
from attention_viz.sources.packages import whisper_ct2
from attention_viz.sources.packages.dinov2_onnx import OnnxFile
from attention_viz.sources.packages.whisper_ct2 import CTranslate2File

NUMBERS = np.arange(6, dtype=np.float32).reshape(2, 3) / 7


def whole(number: int) -> bytes:
    """A whole number as protobuf writes it."""
    parts = b""
    while number > 127:
        parts += bytes([number & 127 | 128])
        number >>= 7
    return parts + bytes([number])


def field(number: int, content: bytes | int) -> bytes:
    if isinstance(content, int):
        return whole(number << 3) + whole(content)
    return whole(number << 3 | 2) + whole(len(content)) + content


def tensor(name: str, numbers: "np.ndarray[tuple[int, ...], np.dtype[np.float32]]") -> bytes:
    dimensions = b"".join(field(1, size) for size in numbers.shape)
    return dimensions + field(2, 1) + field(8, name.encode()) + field(9, numbers.tobytes())


def test_an_onnx_files_tensors_constants_and_steps_are_read(tmp_path: Path) -> None:
    value = field(1, b"value") + field(5, tensor("", NUMBERS))
    held = field(2, b"held") + field(4, b"Constant") + field(5, value)
    step = field(1, b"x") + field(1, b"w") + field(2, b"y") + field(4, b"MatMul")
    graph = field(1, held) + field(1, step) + field(5, tensor("w", NUMBERS * 2))
    (tmp_path / "tiny.onnx").write_bytes(field(1, 9) + field(7, graph))
    file = OnnxFile.open(tmp_path / "tiny.onnx")
    assert [node.operation for node in file.nodes] == ["Constant", "MatMul"]
    assert file.nodes[1].inputs == ("x", "w")
    assert file.nodes[1].outputs == ("y",)
    assert file.shape("w") == (2, 3)
    assert (file.read("w") == NUMBERS * 2).all()
    assert (file.read("held") == NUMBERS).all()


@pytest.mark.parametrize("content", [b"no such file", field(7, b"\x0a\xff"), field(1, 9)])
def test_what_is_no_onnx_file_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "wrong.onnx").write_bytes(content)
    with pytest.raises(av.UnsupportedModel, match=r"wrong\.onnx"):
        OnnxFile.open(tmp_path / "wrong.onnx")


def text(word: str) -> bytes:
    return struct.pack("<H", len(word) + 1) + word.encode() + b"\0"


def variable(name: str, numbers: "np.ndarray[tuple[int, ...], np.dtype[np.float32]]") -> bytes:
    half = numbers.astype("<f2")
    shape = struct.pack(f"<{half.ndim}I", *half.shape)
    return text(name) + bytes([half.ndim]) + shape + bytes([4]) + struct.pack("<I", half.nbytes) + half.tobytes()


def write_ct2(path: Path, tensors: "dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]", kind: str) -> None:
    head = struct.pack("<I", 6) + text(kind) + struct.pack("<II", 3, len(tensors))
    path.write_bytes(head + b"".join(variable(name, one) for name, one in tensors.items()))


def test_a_ctranslate2_files_tensors_are_read(tmp_path: Path) -> None:
    write_ct2(tmp_path / "model.bin", {"a/weight": NUMBERS, "b": np.float32(3)}, "Kind")  # type: ignore[dict-item]
    file = CTranslate2File.open(tmp_path / "model.bin")
    assert (file.model, file.names, file.shape("a/weight")) == ("Kind", ("a/weight", "b"), (2, 3))
    assert (file.read("a/weight") == NUMBERS.astype(np.float16)).all()


@pytest.mark.parametrize("content", [b"", b"\6\0\0\0\xff\xff", b"\7\0\0\0\2\0a\0\0\0\0\0\0\0\0\0"])
def test_what_is_no_ctranslate2_file_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(content)
    with pytest.raises(av.UnsupportedModel, match=r"model\.bin"):
        CTranslate2File.open(tmp_path / "model.bin")


def test_whispers_stacked_matrices_come_apart_as_they_were_put_together(tmp_path: Path) -> None:
    config = WhisperConfig(
        vocab_size=20, num_mel_bins=8, d_model=8, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=12, decoder_ffn_dim=12, max_source_positions=10,
        max_target_positions=9, pad_token_id=0, bos_token_id=0, eos_token_id=0, decoder_start_token_id=1,
    )  # fmt: skip
    model = WhisperForConditionalGeneration(config)
    own = {name: one.half().float() for name, one in model.state_dict().items() if name != "proj_out.weight"}
    write_ct2(tmp_path / "model.bin", stacked(own), "WhisperSpec")
    heads = {"suppress_ids": [1], "suppress_ids_begin": [2], "alignment_heads": [[0, 0]]}
    (tmp_path / "config.json").write_text(json.dumps(heads))
    names = ("<|endoftext|>", "<|startoftranscript|>", "<|notimestamps|>", "<|startofprev|>")
    added = [{"id": number, "content": name} for number, name in enumerate(names)]
    (tmp_path / "tokenizer.json").write_text(json.dumps({"added_tokens": added}))
    folder = tmp_path / "out"
    folder.mkdir()
    whisper_ct2.convert(tmp_path / "model.bin", folder, lambda done, of: None)
    written = load_file(folder / "model.safetensors")
    assert written.keys() == own.keys()
    assert all(torch.equal(written[name], one) for name, one in own.items())
    told = json.loads((folder / "config.json").read_text())
    for name in ("d_model", "encoder_layers", "decoder_attention_heads", "encoder_ffn_dim", "max_source_positions"):
        assert told[name] == getattr(config, name)


def stacked(own: dict[str, torch.Tensor]) -> "dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]":
    """A model's tensors as CTranslate2 names and stacks them."""
    found = {f"{side}/num_heads": np.float32(2) for side in ("encoder", "decoder")}

    def put(theirs: str, *ours: str) -> None:
        for part, kind in (("weight", "weight"), ("bias", "bias")):
            rows = own[f"model.{ours[0]}.weight"].shape[0]
            parts = [own.get(f"model.{one}.{part}", torch.zeros(rows)) for one in ours]
            found[f"{theirs}/{kind}"] = torch.cat(parts).numpy()

    def norm(theirs: str, ours: str) -> None:
        for part, kind in (("weight", "gamma"), ("bias", "beta")):
            found[f"{theirs}/{kind}"] = own[f"model.{ours}.{part}"].numpy()

    for side in ("encoder", "decoder"):
        norm(f"{side}/layer_norm", f"{side}.layer_norm")
        found[f"{side}/position_encodings/encodings"] = own[f"model.{side}.embed_positions.weight"].numpy()
        theirs, ours = f"{side}/layer_0", f"{side}.layers.0"
        put(f"{theirs}/self_attention/linear_0", *(f"{ours}.self_attn.{one}_proj" for one in "qkv"))
        put(f"{theirs}/self_attention/linear_1", f"{ours}.self_attn.out_proj")
        norm(f"{theirs}/self_attention/layer_norm", f"{ours}.self_attn_layer_norm")
        norm(f"{theirs}/ffn/layer_norm", f"{ours}.final_layer_norm")
        put(f"{theirs}/ffn/linear_0", f"{ours}.fc1")
        put(f"{theirs}/ffn/linear_1", f"{ours}.fc2")
    norm("decoder/layer_0/attention/layer_norm", "decoder.layers.0.encoder_attn_layer_norm")
    put("decoder/layer_0/attention/linear_0", "decoder.layers.0.encoder_attn.q_proj")
    put("decoder/layer_0/attention/linear_1", *(f"decoder.layers.0.encoder_attn.{one}_proj" for one in "kv"))
    put("decoder/layer_0/attention/linear_2", "decoder.layers.0.encoder_attn.out_proj")
    found["decoder/embeddings/weight"] = own["model.decoder.embed_tokens.weight"].numpy()
    for one in ("conv1", "conv2"):
        put(f"encoder/{one}", f"encoder.{one}")
    return found  # pyright: ignore[reportReturnType]
