"""One rule by which two results are the same."""

import pytest
import torch

from attention_viz.operation.numerics import EXACT, REORDERED, REPEATED, close, distance


def test_the_difference_is_relative_to_the_largest_number() -> None:
    assert distance(torch.tensor([1000.0, 0.1]), torch.tensor([1000.0, 0.0])) == pytest.approx(1e-4)
    assert distance(torch.zeros(2, 0), torch.zeros(2, 0)) == 0


def test_equal_infinities_do_not_differ_and_others_do() -> None:
    blocked = torch.tensor([1.0, -torch.inf])
    assert close(blocked, blocked.clone(), EXACT)
    assert not close(blocked, torch.tensor([1.0, 2.0]), REPEATED)
    assert not close(torch.tensor([1.0, 2.0]), blocked, REPEATED)


def test_not_a_number_is_close_to_nothing() -> None:
    nothing = torch.tensor([torch.nan, 1.0])
    assert not close(nothing, nothing, REPEATED)


def test_another_shape_is_not_close_even_if_it_would_broadcast() -> None:
    assert not close(torch.ones(2, 3), torch.ones(3), REPEATED)


def test_the_tolerances_allow_more_the_more_may_differ() -> None:
    one = torch.tensor([1.0])
    assert EXACT < REORDERED < REPEATED
    for tolerance in (EXACT, REORDERED, REPEATED):
        assert close(one + 0.9 * tolerance, one, tolerance) and not close(one + 1.1 * tolerance, one, tolerance)
