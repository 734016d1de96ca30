"""A model's mask, in whatever form it comes, is read as what is blocked and what is added."""

import pytest
import torch
from torch import Tensor

from attention_viz.operation.masks import causal, combine, sliding_window
from attention_viz.recording.recorder import Recorder, split_mask

ALLOWED = combine(causal(5, 7), sliding_window(7, 4)[:5])[None, None]
LOWEST = torch.finfo(torch.float32).min


def test_a_mask_that_blocks_nothing_and_adds_nothing_is_none() -> None:
    assert split_mask(torch.zeros(1, 1, 5, 7)) == (None, None)
    assert split_mask(torch.ones(1, 1, 5, 7, dtype=torch.bool)) == (None, None)


def test_a_boolean_mask_is_taken_as_it_is() -> None:
    assert split_mask(ALLOWED) == (ALLOWED, None)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("blocked", ["lowest", "lowest of half precision", "-inf", "-10000"])
def test_every_constant_that_means_blocked_is_blocked(dtype: torch.dtype, blocked: str) -> None:
    values = {
        "lowest": torch.finfo(dtype).min,
        "lowest of half precision": torch.finfo(torch.float16).min,
        "-inf": -torch.inf,
        "-10000": -10_000.0,
    }
    mask = torch.zeros(1, 1, 5, 7, dtype=dtype).masked_fill(~ALLOWED, values[blocked])
    allowed, bias = split_mask(mask)
    assert torch.equal(allowed, ALLOWED)
    assert bias is None


@pytest.mark.parametrize("blocked", [LOWEST, -torch.inf])
def test_what_is_added_is_kept_where_it_counts_and_no_constant_leaks_into_it(blocked: float) -> None:
    added = torch.linspace(-80, 40, 3 * 5 * 7).reshape(1, 3, 5, 7)
    allowed, bias = split_mask(added + torch.zeros(1, 1, 5, 7).masked_fill(~ALLOWED, blocked))
    assert torch.equal(allowed, ALLOWED.expand(1, 3, 5, 7))
    assert torch.equal(bias, added.masked_fill(~ALLOWED, 0))


def test_a_bias_alone_blocks_nothing() -> None:
    added = torch.linspace(-800, 40, 35).reshape(1, 1, 5, 7)
    allowed, bias = split_mask(added)
    assert allowed is None
    assert torch.equal(bias, added)


def test_a_mask_is_read_once_a_pass_however_often_it_is_sliced() -> None:
    recorder = Recorder()
    mask = torch.zeros(1, 1, 5, 9).masked_fill(~causal(5, 9), LOWEST)

    def sliced(keys: int) -> tuple[Tensor | None, Tensor | None]:
        return recorder.split(mask[..., :keys])

    assert sliced(7)[0] is sliced(7)[0]
    assert sliced(7)[0].shape == (1, 1, 5, 7)
    assert sliced(9)[0].shape == (1, 1, 5, 9)
    assert recorder.split(None) == (None, None)
