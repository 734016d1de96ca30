"""Two attention calls held against each other, term by term."""

from dataclasses import fields

import torch

from attention_viz.operation.attention import Attention

__all__ = ["assert_same_terms"]


def assert_same_terms(one: Attention, other: Attention) -> None:
    """That every term is the same to the last bit, and the weights as close as rounding allows.

    Weights are computed when asked for, and a matrix product of the same numbers may be rounded otherwise where they
    lie in memory in another order, as they do once they were read from a file.
    """
    for field in fields(Attention):
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        if isinstance(mine, torch.Tensor):
            assert torch.equal(mine, theirs), field.name
        else:
            assert mine == theirs, field.name
    torch.testing.assert_close(one.weights, other.weights, rtol=1e-6, atol=1e-6)
