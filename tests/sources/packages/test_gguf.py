"""Files in the format GGUF are read number by number, and what they hold becomes a model that runs."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

import attention_viz as av
from attention_viz.sources.packages.llama_gguf import Gguf, convert
from attention_viz.sources.packages.weights_file import write_weights
from tests.sources.packages.gguf_file import HEADS, KEY_HEADS, LAYERS, METADATA, WIDTH, write_gguf


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("source") / "tiny.gguf"
    write_gguf(path)
    return path


@pytest.fixture(scope="module")
def folder(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("made")
    convert(source, made, lambda done, of: None)
    return made


def test_every_tensor_is_read_as_the_format_says(tmp_path: Path) -> None:
    numbers = write_gguf(tmp_path / "tiny.gguf")
    gguf = Gguf.open(tmp_path / "tiny.gguf")
    assert gguf.metadata == METADATA
    assert list(gguf.tensors) == list(numbers)
    for name, wanted in numbers.items():
        found = gguf.read(name)
        assert found.dtype == np.float32
        assert np.array_equal(found, wanted), name


def test_what_is_no_such_file_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "other.gguf").write_bytes(b"GGML" + bytes(100))
    with pytest.raises(av.UnsupportedModel, match=r"other\.gguf isn't a GGUF file of version 3"):
        Gguf.open(tmp_path / "other.gguf")


@pytest.mark.parametrize("changed", [{"general__architecture": "gemma"}, {"tokenizer__ggml__pre": "qwen2"}])
def test_another_kind_of_model_is_refused_by_name(tmp_path: Path, changed: dict[str, str]) -> None:
    write_gguf(tmp_path / "tiny.gguf", **changed)
    with pytest.raises(av.UnsupportedModel, match=rf"'{next(iter(changed.values()))}'.*; only llama with smollm"):
        convert(tmp_path / "tiny.gguf", tmp_path, lambda done, of: None)


def test_rows_of_queries_and_keys_stand_in_the_order_of_transformers(source: Path, folder: Path) -> None:
    gguf, found = Gguf.open(source), load_file(folder / "model.safetensors")
    d_k = WIDTH // HEADS
    for part, name, heads in (("attn_q", "q_proj", HEADS), ("attn_k", "k_proj", KEY_HEADS)):
        theirs, ours = gguf.read(f"blk.1.{part}.weight"), found[f"model.layers.1.self_attn.{name}.weight"]
        for head in range(heads):
            for row in range(d_k):
                # A pair that turns together: side by side there, half a head apart here.
                pair, which = row % (d_k // 2), row // (d_k // 2)
                assert np.array_equal(ours[head * d_k + row], theirs[head * d_k + 2 * pair + which])


def test_the_folder_is_read_by_transformers_whole(folder: Path) -> None:
    model, report = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True, dtype=torch.float32)
    assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    config = model.config
    assert (config.num_hidden_layers, config.num_attention_heads, config.num_key_value_heads) == (
        LAYERS,
        HEADS,
        KEY_HEADS,
    )
    assert (config.rms_norm_eps, config.rope_parameters["rope_theta"]) == (1e-5, 10000.0)
    assert model.lm_head.weight is model.model.embed_tokens.weight


def test_the_tokenizer_cuts_digits_apart_and_knows_its_signs_and_its_template(folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.tokenize("ab c12<|end|>") == ["ab", "Ġc", "1", "2", "<|end|>"]
    assert tokenizer("ab").input_ids == [8]
    assert tokenizer.all_special_tokens == ["<|start|>", "<|end|>"]
    assert tokenizer.apply_chat_template([{"role": "user", "content": "ab"}], tokenize=False) == "<|start|>ab"


def test_weights_are_written_as_safetensors_reads_them_and_the_progress_is_told(tmp_path: Path) -> None:
    tensors = {
        name: np.full(shape, number, np.float32)
        for number, (name, shape) in enumerate({"b": (2, 3), "a": (5,)}.items())
    }
    told: list[tuple[int, int]] = []
    path = tmp_path / "model.safetensors"
    write_weights(
        path, {name: (one.shape, lambda one=one: one) for name, one in tensors.items()}, lambda *at: told.append(at)
    )
    found = load_file(path)
    assert found.keys() == tensors.keys()
    assert all(np.array_equal(found[name], tensors[name]) for name in tensors)
    assert told == [(20, 44), (44, 44)]
    assert json.loads(path.read_bytes()[8:].split(b"}}")[0] + b"}}")["a"]["data_offsets"] == [0, 20]
