"""The cache as a picture: its cells are the head's rows, what was thrown away is hatched, a long text stays small."""

from typing import Any

import numpy
import pytest

import attention_viz as av
from attention_viz.errors import ShapeError
from attention_viz.views import cache
from tests.models.test_continuation import REPEATED
from tests.shipped import shipped


def parts(*arguments: Any, **options: Any) -> tuple[numpy.ndarray, Any]:
    """The cells, NaN where no key was there yet, and the hatching, where there is some."""
    figure: Any = cache(*arguments, **options)
    return numpy.array(figure.data[0].z, dtype=float), (figure.data[1] if len(figure.data) > 1 else None)


def test_each_row_is_what_a_step_took_and_grows_by_a_key() -> None:
    *_, trace = shipped("induction").generate(REPEATED, 4)
    cells, hatch = parts(trace, 1, 1)
    weights, n = trace.weights(1, 1).numpy(), len(trace.query_tokens())
    assert cells.shape == (5, n) and hatch is None
    for row, at in enumerate(range(n - 5, n)):
        assert numpy.allclose(cells[row, : at + 1], weights[at, : at + 1], atol=1e-6)
        assert numpy.isnan(cells[row, at + 1 :]).all()
    earlier, _ = parts(trace, 1, 1, n - 3)
    assert earlier.shape == (3, n - 2)
    assert numpy.array_equal(earlier, cells[:3, : n - 2], equal_nan=True)


def test_keys_that_were_thrown_away_are_hatched() -> None:
    *_, trace = shipped("induction").generate(REPEATED, 4, evict=av.Evict(first=1, last=2))
    cells, hatch = parts(trace, 1, 1, theme="dark")
    n = len(trace.query_tokens())
    assert hatch is not None
    assert not cells[-1, 1 : n - 3].any() and cells[-1].sum() == pytest.approx(1, abs=1e-5)
    across = [x for x in hatch.x if x is not None]
    assert min(across) >= 0.5 and max(across) <= n - 3.5


def test_of_many_keys_neighbours_are_taken_together_and_the_title_says_so() -> None:
    n = 151
    trace = av.scratch("cat " * n, allowed=av.masks.causal(n))
    cells, _ = parts(trace, 0, 0)
    assert cells.shape == (1, 76)
    weights = trace.weights(0, 0)[-1].numpy()
    assert cells[0, 3] == pytest.approx(weights[6:8].max(), abs=1e-6)
    assert "2 per column" in cache(trace, 0, 0).layout.title.text


def test_one_token_works_and_a_position_that_is_not_there_is_refused() -> None:
    trace = shipped("lists").trace("a", special_tokens=False)
    assert parts(trace, 0, 0)[0].shape == (1, 1)
    with pytest.raises(ShapeError, match="positions 0 to 0"):
        cache(trace, 0, 0, 3)
