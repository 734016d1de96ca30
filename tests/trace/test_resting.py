"""Tensors in a mapped file: the same numbers, no memory of their own, gone with the last that looks at them."""

import gc
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from attention_viz.trace import memory
from attention_viz.trace.memory import RestingFile, is_resting, set_aside


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_the_numbers_are_the_same_whatever_their_kind_and_order(dtype: torch.dtype) -> None:
    file = RestingFile()
    whole = torch.randn(1, 7, 5, 3).to(dtype)
    for tensor in (whole, whole.transpose(1, 2), whole[:, ::2], whole[0, 3, 2]):
        rested = file.put(tensor)
        assert rested.dtype == dtype and torch.equal(rested, tensor)
        assert is_resting(rested) and is_resting(rested[..., :1]) and not is_resting(tensor)


def test_large_tensors_in_another_order_are_written_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "BYTES_AT_A_TIME", 100)
    tensor = torch.randn(1, 9, 11, 4).transpose(1, 2)
    assert torch.equal(RestingFile().put(tensor), tensor)


def test_what_has_a_gradient_or_nothing_in_it_stays() -> None:
    file = RestingFile()
    for tensor in (torch.ones(3, requires_grad=True), torch.zeros(2, 0)):
        assert file.put(tensor) is tensor


def test_writing_into_one_changes_no_other() -> None:
    file, tensor = RestingFile(), torch.arange(5000.0)
    one, other = file.put(tensor), file.put(tensor)
    one[3] = -1
    assert other[3] == 3 and tensor[3] == 3 and one[3] == -1


def test_threads_that_write_at_once_keep_to_places_of_their_own() -> None:
    """As a device's tensors do, while others of the same run are written."""
    file, tensors = RestingFile(), [torch.full((1000 + at,), float(at)) for at in range(400)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            rested = [*threads.map(file.put, tensors)]
    finally:
        sys.setswitchinterval(before)
    assert all(is_resting(one) for one in rested)
    assert [
        at for at, (one, tensor) in enumerate(zip(rested, tensors, strict=True)) if not torch.equal(one, tensor)
    ] == []


def test_the_numbers_are_there_after_memory_was_let_go() -> None:
    tensor = torch.randn(400, 300)
    rested = RestingFile().put(tensor)
    assert torch.equal(rested, tensor)
    rested[0, 0] = tensor[0, 0] = 5
    set_aside(rested)
    assert torch.equal(rested, tensor)
    set_aside(tensor)  # what lies in memory stays there
    assert torch.equal(rested, tensor)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are counted as Linux tells them")
def test_the_file_goes_with_the_last_tensor() -> None:
    def mapped() -> int:
        return Path("/proc/self/maps").read_text().count("attention_viz-")

    gc.collect()
    before, files = mapped(), len(os.listdir("/proc/self/fd"))
    rested = RestingFile().put(torch.ones(10_000))
    gc.collect()
    place = rested.data_ptr()
    assert is_resting(rested)
    del rested
    gc.collect()
    assert mapped() == before and len(os.listdir("/proc/self/fd")) == files
    assert place not in memory._places
