import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from torch.testing import assert_close

import attention_viz as av
from attention_viz.trace.export import head_tensors, to_safetensors


def test_the_steps_of_a_head_follow_from_each_other() -> None:
    trace = av.scratch("The cat sat on mat", d_model=12, heads=3, seed=1, allowed=av.masks.causal(5))
    steps = head_tensors(trace, 0, 2)
    assert list(steps) == "query key value scores scaled masked weights output embeddings joined".split()
    assert_close(steps["query"] @ steps["key"].T, steps["scores"])
    assert_close(steps["scores"] / 2, steps["scaled"])
    assert torch.isneginf(steps["masked"]).equal(~av.masks.causal(5))
    assert_close(steps["masked"].softmax(-1), steps["weights"])
    assert_close(steps["weights"] @ steps["value"], steps["output"])
    assert steps["embeddings"].shape == steps["joined"].shape == (5, 12)


def test_the_file_holds_the_same_numbers_and_says_where_they_come_from(tmp_path: Path) -> None:
    trace = av.scratch("The cat sat", d_model=8, heads=2)
    path = tmp_path / "head.safetensors"
    path.write_bytes(to_safetensors(trace, 0, 1))
    with safe_open(path, framework="pt") as file:
        for name, tensor in head_tensors(trace, 0, 1).items():
            assert file.get_tensor(name).equal(tensor)
        header = {name: json.loads(value) for name, value in file.metadata().items()}
    assert header["query_tokens"] == ["The", "cat", "sat"]
    assert (header["layer"], header["head"], header["stream"]) == (0, 1, "encoder")
    assert header["provenance"]["text"] == "The cat sat"


def test_a_head_that_is_not_there_is_refused() -> None:
    with pytest.raises(av.ShapeError, match="head 5"):
        to_safetensors(av.scratch("a b"), 0, 5)
