"""What each layer would say, as a picture: its cells are the table's, whatever the tokens are made of."""

from typing import Any

import pytest

import attention_viz as av
from attention_viz.errors import ShapeError
from attention_viz.trace.spelling import weight_text
from attention_viz.views import logit_lens
from attention_viz.views.style.wording import escaped
from tests.models.test_continuation import REPEATED
from tests.shipped import shipped
from tests.views.printed import printed


def test_each_cell_is_the_likeliest_word_of_its_place_and_tells_the_others_on_hover() -> None:
    model = shipped("induction")
    trace = model.trace(REPEATED)
    found = av.logit_lens(model, trace, count=2)
    figure: Any = logit_lens(trace, found.sample(frac=1, random_state=0).sort_values("probability", ascending=False))
    best = found.groupby(["layer", "position"]).first()
    assert figure.data[0].z == pytest.approx(best["probability"].unstack().to_numpy())
    words = best["written"].unstack()
    assert printed(figure) == [[word.replace("<", "&lt;").replace(">", "&gt;") for word in row] for row in words.values]
    assert list(figure.layout.yaxis.ticktext) == ["words", "0", "1"] and figure.layout.yaxis.range[0] == -0.5
    first, second = found[(found["layer"] == 1) & (found["position"] == 6)].itertuples()
    told = figure.data[0].hovertext[2][6]
    assert told.startswith("after layer 1, at ")
    assert told.endswith(f"{first.written} {first.probability:.3f}, {second.written} {second.probability:.3f}")


def test_of_one_token_its_probability_stands_in_the_cells_and_colours_end_above_the_largest() -> None:
    model = shipped("induction")
    trace = model.trace(REPEATED)
    found = av.logit_lens(model, trace, token="moon")
    figure: Any = logit_lens(trace, found, theme="dark")
    assert figure.layout.title.text == "“moon” after each layer · induction"
    shares = [
        escaped(weight_text(one)) if one >= 0.0005 else ""
        for one in found.sort_values(["layer", "position"])["probability"]
    ]
    assert [cell for row in printed(figure) for cell in row] == shares
    assert found["probability"].max() <= figure.data[0].zmax <= 1


def test_strange_words_stay_text_one_token_works_and_a_table_of_another_text_is_refused() -> None:
    model = shipped("lists")
    trace = model.trace("a", special_tokens=False)
    found = av.logit_lens(model, trace).assign(written="<b>&amp;")
    figure: Any = logit_lens(trace, found.assign(token=[str(one) for one in range(len(found))]))
    assert {word for row in printed(figure) for word in row} == {"&lt;b&gt;&amp;amp;"}
    with pytest.raises(ShapeError, match="tokens; got 1 positions"):
        logit_lens(model.trace("a b c"), found)
    with pytest.raises(ShapeError, match="tokens; got 0 positions"):
        logit_lens(trace, found[:0])
