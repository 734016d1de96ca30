"""A causal mask that isn't in memory is the same mask, whatever reads it."""

import copy
import pickle
from collections.abc import Callable

import numpy
import pytest
import torch
from torch import Tensor

import attention_viz as av
from attention_viz.operation.causal_mask import CausalMask
from attention_viz.operation.reach import first_keys, is_causal, reach

N = 7
MASK = torch.ones(N, N, dtype=torch.bool).tril().expand(1, 1, N, N)

READ: dict[str, Callable[[Tensor], Tensor]] = {
    "not": lambda mask: ~mask,
    "a row": lambda mask: mask[0, 0, 3],
    "rows": lambda mask: mask[..., 2:5, :],
    "some rows": lambda mask: mask[..., torch.tensor([4, 1]), :],
    "rows in a list": lambda mask: mask[0, 0][[0, 3, 6]],
    "columns": lambda mask: mask[:, :, :, :4],
    "a cell": lambda mask: mask[0, 0, 2, 2],
    "reversed": lambda mask: mask.flip(-1),
    "transposed": lambda mask: mask.transpose(-1, -2),
    "flattened": lambda mask: mask.reshape(-1),
    "bytes": lambda mask: mask.to(torch.uint8),
    "a view of bytes": lambda mask: mask[0, 0].contiguous().view(torch.uint8),
    "a sum": lambda mask: mask.sum(-1),
    "where": lambda mask: torch.where(mask, 1.0, 2.0),
    "and": lambda mask: torch.logical_and(MASK.flip(-1), mask),
    "filled": lambda mask: torch.ones(2, N, N).masked_fill(~mask[0], 0),
    "joined": lambda mask: torch.cat([mask, mask], dim=1),
    "of numpy": lambda mask: torch.from_numpy(numpy.asarray(mask.cpu().numpy())),
    "as an array": lambda mask: torch.from_numpy(numpy.asarray(mask)),
    "copied": copy.deepcopy,
    "pickled": lambda mask: pickle.loads(pickle.dumps(mask)),
    "turned over": lambda mask: mask[0, 0].T,
    "matrices turned over": lambda mask: mask.mT,
    "adjoint": lambda mask: mask.mH,
    "data": lambda mask: mask.data,
    "of a type": lambda mask: mask.type(torch.float32),
    "of another class": lambda mask: mask.as_subclass(Tensor),
    "cloned": lambda mask: mask.clone(),
    "a new axis at the end": lambda mask: mask[..., None],
    "rows by booleans": lambda mask: mask[0, 0][torch.arange(N) > 3],
}
SAME: dict[str, Callable[[Tensor], Tensor]] = {
    "of a row": lambda mask: mask[0],
    "whole slices": lambda mask: mask[:, :, :, :N],
    "a new axis": lambda mask: mask[0][None],
    "expanded": lambda mask: mask.expand(2, 4, N, N),
    "in a batch": lambda mask: mask.unsqueeze(0),
    "without axes": lambda mask: mask.reshape(N, N),
    "detached": lambda mask: mask.detach(),
    "elsewhere": lambda mask: mask.to("cpu"),
    "of heads": lambda mask: mask.expand(2, 4, N, N)[1, 1:3],
}


WRITES: dict[str, Callable[[Tensor], object]] = {
    "cells": lambda mask: mask.__setitem__((..., 5), False),
    "fill": lambda mask: mask.fill_(False),
    "masked": lambda mask: mask.masked_fill_(MASK, False),
    "and": lambda mask: mask.__iand__(MASK),
    "out": lambda mask: torch.logical_not(MASK, out=mask),
    "data": lambda mask: setattr(mask, "data", MASK),
}


@pytest.mark.parametrize("name", WRITES)
def test_it_cannot_be_written_into(name: str) -> None:
    with pytest.raises(av.TraceError, match=r"can't write into it; write into mask.clone\(\)"):
        WRITES[name](CausalMask.of(N))


@pytest.mark.parametrize("name", READ)
def test_whatever_reads_it_gets_the_cells(name: str) -> None:
    found = READ[name](CausalMask.of(N))
    assert type(found) is Tensor
    torch.testing.assert_close(found, READ[name](MASK), rtol=0, atol=0)


@pytest.mark.parametrize("name", SAME)
def test_views_of_whole_matrices_stay_out_of_memory(name: str) -> None:
    found = SAME[name](CausalMask.of(N))
    assert isinstance(found, CausalMask)
    assert found.untyped_storage().nbytes() <= 1
    assert torch.equal(found & True, SAME[name](MASK))
    assert found.shape == SAME[name](MASK).shape


def test_numbers_to_add_are_the_lowest_there_are() -> None:
    mask = CausalMask.of(N, dtype=torch.bfloat16)
    expected = torch.zeros(1, 1, N, N, dtype=torch.bfloat16).masked_fill(~MASK, torch.finfo(torch.bfloat16).min)
    assert torch.equal(mask + 0, expected)
    assert torch.equal(mask[..., 3:, :], expected[..., 3:, :])
    assert torch.equal(mask.as_allowed & True, MASK)


def test_its_reach_is_known_without_its_cells() -> None:
    mask = CausalMask.of(N)[0, 0]
    assert is_causal(mask, (N, N))
    assert not is_causal(mask, (N, N + 1))
    counts = first_keys(mask, (N, N))
    assert counts is not None
    assert counts.tolist() == [*range(1, N + 1)]
    assert [reach(mask, slice(start, start + 2), N) for start in range(0, N, 2)] == [2, 4, 6, 7]


def test_attention_under_it_is_that_under_the_same_mask_in_memory() -> None:
    torch.manual_seed(0)
    query, key, value = (torch.randn(heads, N, 5) for heads in (4, 2, 2))
    lazy, whole = (av.attend(query, key, value, mask[0]) for mask in (CausalMask.of(N), MASK))
    assert torch.equal(lazy.weights, whole.weights)
    assert torch.equal(lazy.output, whole.output)
    assert torch.equal(lazy.rows([2, 5]).weights, whole.rows([2, 5]).weights)
    assert torch.equal(lazy.tile(1, slice(1, 4), [0, 2]), whole.tile(1, slice(1, 4), [0, 2]))
    assert torch.equal(lazy.head(3).masked, whole.head(3).masked)
