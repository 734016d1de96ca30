"""A layer's heads by weight and effect: each number beside its own point."""

from collections.abc import Sequence
from typing import Any

import attention_viz as av


def sides(weights: Sequence[float], moved: Sequence[float]) -> tuple[str, ...]:
    points: Any = av.views.weight_and_effect(weights, moved, 0).data[0]
    return points.textposition


def test_a_number_isnt_under_the_point_above_its_own() -> None:
    assert sides([0.1, 0.9], [0.4, 0.2]) == ("top center", "top center")
    upper, lower = sides([0.5, 0.5], [0.30, 0.28])
    assert upper == "top center" != lower


def test_two_heads_at_the_same_place_have_two_numbers() -> None:
    assert len({*sides([0.5, 0.5], [0.3, 0.3])}) == 2
