"""Explore with a long text: its head is drawn once, by the explorer, which zooms down to the numbers."""

import pytest

from attention_viz.explorer import payload
from attention_viz.serving import runs
from attention_viz.serving.cache import SharedCache
from tests.ui.screens import Screen

PLACE = "/?model=induction&text=moon+cheese+frog+ring+moon+cheese&layer=1&head=1"


@pytest.mark.parametrize(("most", "drawn_again"), [(10, False), (10_000, True)])
def test_the_head_is_drawn_a_second_time_only_where_it_is_small(
    monkeypatch: pytest.MonkeyPatch, most: int, drawn_again: bool
) -> None:
    monkeypatch.setattr(payload, "LONG", most)
    # What is long is told when a text is run, so none may be left from before.
    monkeypatch.setattr(runs, "_traces", SharedCache(10**9, lambda drawn: drawn.trace.nbytes))
    screen = Screen().open(PLACE)
    assert ("matrix" in [getattr(one, "key", None) for one in screen.all("plotly_chart")]) == drawn_again
    assert ("to zoom into" in screen.words) == drawn_again
    assert not screen.alerts
