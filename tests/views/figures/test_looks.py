"""A row of weights as bars."""

import pytest
import torch

import attention_viz as av
from attention_viz.trace.trace import Trace


@pytest.fixture(scope="module")
def trace() -> Trace:
    query, key, value = torch.randn(3, 2, 4, 8, generator=torch.Generator().manual_seed(0))
    return Trace.from_qkv(query, key, value, av.masks.causal(4), labels=["a", "b", "c", "d"])


def test_a_number_is_printed_for_each_key_that_may_be_looked_at_and_for_no_other(trace: Trace) -> None:
    row = trace.weights(0, 1)[2]
    assert list(av.views.looks(trace, 0, 1, 2).data[0].text) == [f"{float(one):.2f}" for one in row[:3]] + [""]  # pyright: ignore[reportAttributeAccessIssue] -- plotly's stubs know no traces


def test_a_small_weight_that_isnt_blocked_is_printed() -> None:
    alone = Trace.from_weights(torch.tensor([[[1.0, 0.0], [0.5, 0.5]]]), ["a", "b"], stream="encoder")
    assert list(av.views.looks(alone, 0, 0, 0).data[0].text) == ["1.00", "0"]  # pyright: ignore[reportAttributeAccessIssue]
