"""The map of a long head: the largest weight of each block, and what every weight follows from."""

import math
from dataclasses import dataclass, field

import numpy
import pytest
import torch

import attention_viz as av
from attention_viz.analysis import overview as module
from attention_viz.analysis.overview import overview
from attention_viz.explorer.packet import Packet
from attention_viz.explorer.planes import Masks
from attention_viz.explorer.terms import add_head
from attention_viz.operation.attention import Attention
from attention_viz.operation.terms import along
from tests.explorer.long_texts import NAMES, call_of


def blocks(weights: numpy.ndarray, size: tuple[int, int]) -> numpy.ndarray:
    """The largest of each block, block by block."""
    rows, columns = (range(0, count, length) for count, length in zip(weights.shape, size, strict=True))
    return numpy.array([[weights[r : r + size[0], c : c + size[1]].max() for c in columns] for r in rows])


@pytest.mark.parametrize("name", NAMES)
def test_it_holds_the_largest_weight_of_each_block_and_what_each_weight_follows_from(name: str) -> None:
    call = call_of(name).head(0)
    found, weights = overview(call, 100), call.weights.double().numpy()
    assert found.shape == weights.shape
    assert found.values.shape[0] <= 100 and found.values.shape[1] <= 100
    numpy.testing.assert_allclose(found.values, blocks(weights, found.size), atol=2e-6)
    computed = numpy.exp(call.masked.double().numpy() - found.normalisers[:, None])
    numpy.testing.assert_allclose(computed, weights, atol=1e-5)
    numpy.testing.assert_allclose(found.sums, weights.sum(axis=1), atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_it_holds_the_mean_of_each_block_where_it_is_asked_for(name: str) -> None:
    call = call_of(name).head(0)
    found, weights = overview(call, 100, means=True), call.weights.double().numpy()
    allowed = numpy.ones(weights.shape, bool) if call.allowed is None else call.allowed.expand(weights.shape).numpy()
    rows, columns = (range(0, count, length) for count, length in zip(weights.shape, found.size, strict=True))
    assert found.means is not None and found.means.shape == found.values.shape
    for row, top in enumerate(rows):
        for column, left in enumerate(columns):
            block = numpy.s_[top : top + found.size[0], left : left + found.size[1]]
            mean = weights[block][allowed[block]].mean() if allowed[block].any() else 0
            assert found.means[row, column] == pytest.approx(mean, rel=1e-4, abs=1e-9)
    assert overview(call, 100).means is None


@pytest.mark.parametrize("at_a_time", [1, 40_000, 10_000_000])
def test_it_is_the_same_however_many_rows_are_computed_at_a_time(
    monkeypatch: pytest.MonkeyPatch, at_a_time: int
) -> None:
    call = call_of("window").head(0)
    whole = overview(call, 50)
    monkeypatch.setattr(module, "LOGITS_AT_A_TIME", at_a_time)
    again = overview(call, 50)
    numpy.testing.assert_allclose(again.values, whole.values, atol=1e-6)
    numpy.testing.assert_allclose(again.normalisers, whole.normalisers, atol=1e-5)


@pytest.mark.parametrize("height", [-300.0, -15.0, 15.0, 300.0])
def test_logits_far_from_0_give_the_same_weights_as_those_near_it(
    monkeypatch: pytest.MonkeyPatch, height: float
) -> None:
    monkeypatch.setattr(module, "KEYS_AT_A_TIME", 40)
    generator = torch.Generator().manual_seed(2)
    query, key = (torch.randn(60, 8, generator=generator) for _ in range(2))
    bias = torch.zeros(60, 60)
    bias[:, 40:] = height  # in the second part of the keys alone
    bias[:30] += height
    allowed = torch.ones(60, 60, dtype=torch.bool)
    allowed[5, :40] = allowed[6, 40:] = False
    call = av.attend(query, key, torch.zeros(60, 0), allowed, bias=bias)
    exact = call.masked.double().softmax(dim=-1).numpy()
    found = overview(call, 30, means=True)
    numpy.testing.assert_allclose(found.values, blocks(exact, found.size), atol=1e-5)
    numpy.testing.assert_allclose(found.normalisers, call.masked.double().logsumexp(dim=-1), atol=3e-5)
    numpy.testing.assert_allclose(found.sums, 1, atol=1e-5)


def test_a_row_with_nothing_allowed_has_weights_of_zero() -> None:
    call = call_of("drawn").head(0)
    found = overview(call)
    assert found.normalisers[5] == math.inf
    assert found.sums[5] == 0


def test_a_short_text_is_its_own_map() -> None:
    call = av.attend(torch.randn(5, 3), torch.randn(7, 3), torch.randn(7, 2))
    found = overview(call)
    assert found.size == (1, 1)
    numpy.testing.assert_allclose(found.values, call.weights, atol=1e-6)


def test_weights_that_are_not_numbers_are_refused() -> None:
    query = torch.randn(40, 4)
    query[30, 2] = math.nan
    with pytest.raises(av.TraceError, match="weights aren't finite numbers"):
        overview(av.attend(query, torch.randn(40, 4), torch.randn(40, 4)), 8)


@dataclass(frozen=True, eq=False, repr=False)
class Tilted(Attention):
    """A call with a term that nothing else knows."""

    tilt: torch.Tensor | None = field(default=None, metadata=along("query", "key", logit=True))

    @property
    def masked(self) -> torch.Tensor:
        """Add it to the logits."""
        assert self.tilt is not None
        return super().masked + self.tilt


def test_a_term_that_it_does_not_know_is_computed_by_the_call_and_its_weights_travel_to_the_browser() -> None:
    query, key, tilt = torch.randn(60, 4), torch.randn(60, 4), torch.randn(60, 60)
    call = Tilted(query, key, key, torch.ones(60, 60, dtype=torch.bool).tril(), 0.5, tilt=tilt)
    found = overview(call, 30)
    numpy.testing.assert_allclose(found.values, blocks(call.weights.numpy(), found.size), atol=2e-6)
    entry = add_head(call, Packet(), Masks())
    assert "weights" in entry and "normalisers" not in entry


def test_several_heads_are_refused() -> None:
    call: Attention = av.attend(torch.randn(2, 5, 3), torch.randn(2, 5, 3), torch.randn(2, 5, 3))
    with pytest.raises(av.ShapeError, match="one head's call"):
        overview(call)


def test_half_precision_is_computed_as_the_operation_does() -> None:
    generator = torch.Generator().manual_seed(1)
    query, key = (4 * torch.randn(90, 8, generator=generator).bfloat16() for _ in range(2))
    call = av.attend(query, key, torch.zeros(90, 0, dtype=torch.bfloat16))
    exact = call.masked.double().softmax(dim=-1).numpy()
    numpy.testing.assert_allclose(overview(call).values, exact, atol=1e-5)
