import pytest

from attention_viz.analysis.head_table import head_table
from attention_viz.ui.pages.heads.numbers import mean_numbers, measure_all
from tests.analysis.test_head_table import long_trace
from tests.ui.screens import Screen


class Stopped(Exception):
    """As when somebody clicks elsewhere meanwhile."""


def test_a_long_text_is_measured_by_a_sample_until_all_rows_were_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attention_viz.analysis.measured.MANY_WEIGHTS", 1)
    monkeypatch.setattr("attention_viz.analysis.measured.SAMPLED_ROWS", 10)
    trace, shares = long_trace(40), list[float]()
    attrs = mean_numbers([trace], "decoder").attrs
    assert (attrs["rows"], attrs["queries"]) == (10, 39)

    def stop(_share: float) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        measure_all(trace, "decoder", stop)
    assert mean_numbers([trace], "decoder").attrs["rows"] == 10
    measure_all(trace, "decoder", shares.append)
    assert shares[-1] == 1
    assert mean_numbers([trace], "decoder").equals(head_table(trace, rows="all"))


def test_means_of_few_tokens_are_named_under_the_table_with_how_many() -> None:
    told = Screen().open("/heads?model=induction&text=moon+ring+moon+ring&view=colours&metric=induction").words
    assert "Few tokens qualify for these metrics" in told and "Induction on 2" in told
    full = Screen().open("/heads?model=all-MiniLM-L6-v2&text=The+bank+of+the+river+was+flooded").words
    assert "Few tokens qualify for these metrics" in full and "no special tokens" not in full
    assert (
        "This text has no special tokens, so “Special tokens” is undefined."
        in Screen().open("/heads?model=SmolLM2-135M-Instruct&text=Hello+there").words
    )
