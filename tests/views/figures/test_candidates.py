"""The likeliest tokens as bars: the numbers are the model's, the labels stay text."""

from typing import Any

import pytest

import attention_viz as av
from attention_viz.errors import ShapeError
from attention_viz.views import candidates
from tests.models.test_continuation import REPEATED
from tests.shipped import shipped


def bars(*arguments: Any, **options: Any) -> tuple[Any, Any]:
    """The bars above and those below."""
    figure: Any = candidates(*arguments, **options)
    return figure.data


def test_the_bars_are_the_probabilities_and_the_heads_own_row() -> None:
    model = shipped("induction")
    trace = model.trace(REPEATED)
    likely = model.candidates(trace, count=5)
    guesses, looks = bars(trace, 1, 1, likely)
    assert list(guesses.x) == pytest.approx(list(likely.probability))
    assert guesses.text[0] == f"frog  {likely.probability[0]:.2f}"
    heaviest = trace.weights(1, 1)[-1].sort(descending=True)
    assert list(looks.x) == pytest.approx(heaviest.values[: len(looks.x)].tolist(), abs=1e-6)
    assert looks.text[0] == f"frog  {heaviest.values[0]:.2f}"


def test_repeated_tokens_are_told_apart_and_spaces_are_marked() -> None:
    model = shipped("induction")
    trace = model.trace(REPEATED)
    likely = model.candidates(trace, count=2).assign(token=["Ġ<b>", "##ing"])
    guesses, looks = bars(trace, 0, 1, likely)
    assert [text.split()[0] for text in guesses.text] == ["·&lt;b&gt;", "‿ing"]
    assert any(name in ("moon₁", "moon₂") for name in looks.customdata)


def test_a_number_stands_behind_its_token_also_where_that_runs_from_right_to_left() -> None:
    model = shipped("induction")
    trace = model.trace(REPEATED)
    likely = model.candidates(trace, count=2).assign(token=["Ġالعالم", "##ة"], probability=[0.9, 0.0001])
    guesses, _ = bars(trace, 0, 1, likely)
    assert list(guesses.text) == ["\u2068·العالم\u2069  0.90", "\u2068‿ة\u2069  &lt;0.01"]


def test_a_quotation_mark_is_written_as_one() -> None:
    # Plotly knows few entities by name, and shows the others as they are spelt.
    model = shipped("induction")
    trace = model.trace(REPEATED)
    guesses, _ = bars(trace, 0, 1, model.candidates(trace, count=2).assign(token=['"', "'"]))
    assert [text.split()[0] for text in guesses.text] == ["&#34;", "&#39;"]


def test_one_token_works_and_a_position_that_is_not_there_is_refused() -> None:
    model = shipped("lists")
    trace = model.trace("a", special_tokens=False)
    likely = model.candidates(trace, count=1)
    assert len(bars(trace, 0, 0, likely, theme="dark")[1].x) == 1
    with pytest.raises(ShapeError, match="positions 0 to 0"):
        candidates(trace, 0, 0, likely, 5)
    assert "candidates" in av.views.VIEWS
