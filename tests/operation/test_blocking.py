import math

import pytest
import torch

from attention_viz.errors import ShapeError
from attention_viz.operation.blocking import block_row

LOGITS = torch.tensor([2.0, -1.0, 0.5, 3.0, 0.25])
SOME = torch.tensor([True, True, False, False, True])
NONE = torch.zeros(5, dtype=torch.bool)


def by_hand(allowed: torch.Tensor, value: float, dtype: torch.dtype) -> torch.Tensor:
    """The same without a function of ours: a float mask of that precision, added."""
    mask = torch.where(allowed, 0.0, value).to(torch.float64).to(dtype)
    return torch.nn.functional.softmax(LOGITS.to(dtype) + mask, dim=-1)


@pytest.mark.parametrize("allowed", [SOME, NONE], ids=["some", "none"])
def test_the_numbers_are_those_of_an_additive_mask_in_torch(allowed: torch.Tensor) -> None:
    for one in block_row(LOGITS, allowed):
        expected = by_hand(allowed, one.value, one.dtype)
        assert torch.equal(one.weights.nan_to_num(-7), expected.nan_to_num(-7))
        assert one.leak == expected[~allowed].max().item() or math.isnan(one.leak)


def test_on_a_row_with_something_allowed_each_value_blocks_exactly() -> None:
    assert {one.outcome for one in block_row(LOGITS, SOME)} == {"exact"}
    assert all(one.leak == 0 for one in block_row(LOGITS, SOME))


def test_on_a_row_with_nothing_allowed_each_value_fails_in_its_own_way() -> None:
    outcomes = {(one.dtype, one.value): one.outcome for one in block_row(LOGITS, NONE)}
    assert outcomes[torch.float32, -math.inf] == "not a number"
    assert outcomes[torch.float32, -1e9] == "uniform"
    assert outcomes[torch.float32, -1e4] == "ignored"
    assert outcomes[torch.float16, -math.inf] == "not a number"
    assert outcomes[torch.float16, -1e9] == "not a number"


def test_float16_has_no_minus_a_thousand_million() -> None:
    held = {(one.dtype, one.value): one.rounded for one in block_row(LOGITS, SOME)}
    assert held[torch.float16, -1e9] == -math.inf
    assert held[torch.float32, -1e9] == -1e9
    assert held[torch.float16, -1e4] == -1e4


def test_a_merely_large_number_leaks_where_scores_are_larger() -> None:
    (one,) = block_row(
        torch.tensor([0.0, 20_000.0]), torch.tensor([True, False]), values=[-1e4], precisions=[torch.float32]
    )
    assert (one.outcome, one.leak) == ("ignored", 1.0)


def test_a_row_and_a_mask_of_different_length_are_refused() -> None:
    with pytest.raises(ShapeError, match="got 5 and 3"):
        block_row(LOGITS, SOME[:3])
