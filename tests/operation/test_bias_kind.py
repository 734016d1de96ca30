"""A slope by position, a table by distance, or neither: told from a bias's live cells alone."""

from dataclasses import replace

import torch
from torch import Tensor

import attention_viz as av
from attention_viz.operation.positional import bias_kind


def call_of(bias: Tensor) -> av.Attention:
    count = bias.shape[-1]
    zeros = torch.zeros(len(bias), count, 4)
    return av.attend(zeros, zeros, zeros, av.masks.causal(count), bias=bias)


def test_a_kind_is_told_from_all_live_cells_and_from_no_others() -> None:
    place = torch.arange(9.0)
    slopes = torch.tensor([0.5, 0.25])[:, None, None]
    alibi = slopes * (place[None, :] - place[:, None])
    table = torch.randn(2, 17, generator=torch.Generator().manual_seed(0))
    relative = table[:, (place[None, :] - place[:, None] + 8).long()]
    assert bias_kind(call_of(alibi)) == bias_kind(call_of(slopes * place.expand(9, 9))) == "ALiBi"
    assert bias_kind(call_of(relative)) == "relative positions"
    for kind, found in (("ALiBi", alibi), ("relative positions", relative)):
        ahead, behind = found.clone(), found.clone()
        ahead[1, 2, 7] += 1
        behind[1, 7, 2] += 1
        assert bias_kind(call_of(ahead)) == kind
        assert bias_kind(call_of(behind)) == ""
    assert bias_kind(call_of(alibi[:, :5, :5])) == "", "too short to tell a slope from a table"
    assert bias_kind(replace(call_of(alibi), bias=None)) == ""
