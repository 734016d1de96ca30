"""A long text's file has no mask's cells, is written piece by piece, and is read head by head."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import attention_viz as av
from attention_viz.operation.causal_mask import CausalMask, causal_mask
from attention_viz.trace.files import format, stream
from attention_viz.trace.files.stream import StoredTensor, bytes_of_all, header_of
from attention_viz.trace.layers import Layer
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Fidelity, Provenance, Trace

TOKENS = Tokens.of_ids(range(9))


def long_trace(tokens: int, layers: int, heads: int, groups: int, width: int, dtype: torch.dtype) -> Trace:
    """A trace in the shape of a long text's."""

    def random(count: int) -> torch.Tensor:
        return torch.randn(count, tokens, width, dtype=dtype)

    names = Tokens.of_ids(range(tokens))
    calls = [av.attend(random(heads), random(groups), random(groups), causal_mask(tokens)) for _ in range(layers)]
    return Trace(
        {"decoder": tuple(Layer(call, str(number)) for number, call in enumerate(calls))},
        {"decoder": names},
        {"decoder": names},
        torch.randn(tokens, 4, dtype=dtype),
        Provenance("a model", "a text", dtype=str(dtype).removeprefix("torch.")),
        Fidelity(0.0, 0.0, 1e-5, "itself", 0.1),
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_causal_mask_without_cells_is_one_in_the_file(tmp_path: Path, dtype: torch.dtype) -> None:
    trace = long_trace(9, 2, 4, 2, 3, dtype)
    trace.save(path := tmp_path / "long.trace")
    with safe_open(path, framework="pt") as file:
        shapes = [tuple(file.get_slice(name).get_shape()) for name in file.keys()]
    assert not any(shape[-2:] == (9, 9) for shape in shapes)
    again = Trace.load(path)
    assert isinstance(again.attention(0).allowed, CausalMask)
    assert again.attention(0).allowed is again.attention(1).allowed
    for layer in (0, 1):
        assert again.attention(layer).query.dtype == dtype
        assert torch.equal(again.attention(layer).weights, trace.attention(layer).weights)
    again.save(other := tmp_path / "again.trace")
    assert other.read_bytes() == path.read_bytes()


def test_weights_alone_keep_the_cells(tmp_path: Path) -> None:
    trace = long_trace(9, 1, 2, 2, 3, torch.float32)
    trace.save(path := tmp_path / "weights.trace", what="weights")
    with pytest.warns(av.errors.AttentionVizWarning):
        again = Trace.load(path)
    torch.testing.assert_close(again.weights(0, 1), trace.weights(0, 1))


@pytest.mark.parametrize("at_once", [1, 50, 10**6])
def test_pieces_make_the_file_that_safetensors_reads(
    tmp_path: Path, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "AT_ONCE", at_once)
    kinds = [torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.uint8, torch.bool]
    tensors = {f"t{number}": torch.randn(3, 5, 2).mul(9).to(kind) for number, kind in enumerate(kinds)}
    tensors |= {"one": torch.tensor(4.5), "none": torch.zeros(0, 3), "turned": torch.randn(4, 6).T}
    stored = {name: StoredTensor(one, one.dtype, lambda piece: piece) for name, one in tensors.items()}
    path = tmp_path / "some.safetensors"
    path.write_bytes(b"".join([header_of(stored, {"who": "me"}), *bytes_of_all(stored)]))
    found = load_file(path)
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], one) and found[name].dtype == one.dtype for name, one in tensors.items())
    save_file({name: one.contiguous() for name, one in tensors.items()}, other := tmp_path / "own", {"who": "me"})
    assert len(other.read_bytes()) == len(path.read_bytes())


def test_one_head_of_a_large_file_is_read_without_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the shape of an 8B model's layers, 220 MB: a process that reads a head takes a few of them."""
    monkeypatch.setattr(format, "MOST_CHECKED", 2**30)
    trace = long_trace(8192, 2, 32, 8, 128, torch.bfloat16)
    trace.save(path := tmp_path / "large.trace")
    assert path.stat().st_size > 200_000_000
    expected = trace.attention(1).tile(5, slice(8000, 8064), slice(0, 8192)).float()
    code = """
import resource, sys
import torch
import attention_viz as av
from pathlib import Path

av.Trace, av.attend(torch.ones(1, 2, 3), torch.ones(1, 2, 3), torch.ones(1, 2, 3)).weights
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
before = resident()
trace = av.Trace.load(sys.argv[1])
loaded = resident()
rows = trace.attention(1).tile(5, slice(8000, 8064), slice(0, 8192)).float()
print(loaded - before, resident() - before, rows.sum().item(), rows[7, 8003].item())
"""
    run = [sys.executable, "-c", code, str(path)]
    found = subprocess.run(run, capture_output=True, text=True, check=True, timeout=300).stdout.split()
    loaded, shown = map(int, found[:2])
    assert loaded < 40_000_000
    assert shown < 100_000_000
    assert float(found[2]) == pytest.approx(expected.sum().item(), rel=1e-5)
    assert float(found[3]) == expected[7, 8003].item()


def test_a_file_of_gigabytes_is_not_read_for_its_checksum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = long_trace(9, 1, 2, 2, 3, torch.float32)
    trace.save(path := tmp_path / "long.trace")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(av.TraceError, match="checksum"):
        Trace.load(path)
    monkeypatch.setattr(format, "MOST_CHECKED", 10)
    assert Trace.load(path).attention(0).shape == (2, 9, 9)
