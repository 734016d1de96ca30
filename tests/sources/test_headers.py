"""Headers of weights that list more than any model has."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import attention_viz as av
from attention_viz.sources import declarations
from attention_viz.sources.declarations import read_headers


def written(path: Path, tensors: dict[str, list[int]]) -> Path:
    entries = {key: {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]} for key, shape in tensors.items()}
    text = json.dumps(entries).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text)
    return path


def test_more_tensors_than_any_model_has_are_refused(tmp_path: Path) -> None:
    file = written(tmp_path / "model.safetensors", {f"t{number}": [0] for number in range(50_001)})
    with pytest.raises(av.UnsupportedModel, match=r"weights of many are 50,001 tensors; at most 50,000 are allowed"):
        read_headers([file], "many")


def test_a_large_model_may_have_more_tensors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declarations, "MOST_TENSORS", 1)
    file = tmp_path / "model.safetensors"
    save_file({"one": torch.zeros(1000), "two": torch.zeros(500, 2)}, file)
    assert len(read_headers([file], "large").shapes) == 2
    save_file({"one": torch.zeros(10), "two": torch.zeros(5, 2)}, file)
    with pytest.raises(av.UnsupportedModel, match="2 tensors; at most 1 "):
        read_headers([file], "large")


def test_a_tensor_of_many_axes_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path / "model.safetensors", {"one": [0] * 8})
    assert read_headers([file], "deep") == ({"one": (0,) * 8}, {"one": "F32"})
    written(file, {"one": [0] * 9})
    with pytest.raises(av.UnsupportedModel, match="tensor of deep has 9 axes; at most 8"):
        read_headers([file], "deep")


def test_a_file_that_memory_is_short_for_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path / "model.safetensors", {"one": [0]})

    def short(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(declarations, "safe_open", short)
    with pytest.raises(av.UnsupportedModel, match=r"not enough memory to open model\.safetensors of large"):
        read_headers([file], "large")
