"""What a head writes, in words: of models that ship, and what can't be asked."""

from typing import Any

import pytest

import attention_viz as av
from attention_viz.errors import ShapeError, TraceError, UnsupportedModel
from tests.shipped import MINILM, SMOLLM2, shipped

STORY = "When Mary and John went to the store, John gave a drink to"


def test_the_head_that_writes_most_for_mary_does_so_by_suppressing_john() -> None:
    model = shipped(SMOLLM2)
    trace = model.trace(STORY)
    found = av.writes(model, trace, 23, 3)
    assert len(found) == 20
    assert found["logit"].is_monotonic_decreasing
    assert (found["token"].iloc[-1], found["logit"].iloc[-1]) == ("ĠJohn", pytest.approx(-2.94, abs=0.02))
    # Whatever the mean is, two words differ by what is told of their logits' difference.
    every = av.writes(model, trace, 23, 3, count=49_152 // 2).set_index("token")["logit"]
    rows = av.decompose(model, trace, av.Logit("Mary", against="John")).table
    row = rows[(rows["layer"] == 23) & (rows["head"] == 3)]["contribution"].sum()
    assert every["ĠMary"] - every["ĠJohn"] == pytest.approx(row, abs=1e-4)


def test_only_heads_that_reach_a_word_write_for_some() -> None:
    model = shipped("translation")
    trace = model.trace("the red house")
    assert len(av.writes(model, trace, 0, 0, count=2)) == 4
    assert len(av.writes(model, trace, 0, 0, count=2, stream="decoder")) == 4
    assert av.writes(model, trace, 0, 0, stream="encoder").empty


@pytest.mark.parametrize(
    ("asked", "error", "words"),
    [
        ({"layer": 9, "head": 0}, TraceError, "layer 9.*0 to 1"),
        ({"layer": 1, "head": 40}, ShapeError, "head 40.*0 to 3"),
        (
            {"layer": 1, "head": 0, "position": 77},
            ShapeError,
            "position 77.* has positions -6 to 5",
        ),
        ({"layer": 1, "head": 0, "count": 0}, ShapeError, "count must be at least 1; got 0"),
    ],
)
def test_what_there_is_not_is_refused(asked: dict[str, Any], error: type[Exception], words: str) -> None:
    model = shipped("induction")
    with pytest.raises(error, match=words):
        _ = av.writes(model, model.trace("red cat blue dog red"), **asked)


def test_a_model_without_a_word_head_and_another_model_s_trace_are_refused() -> None:
    encoder, induction = shipped(MINILM), shipped("induction")
    with pytest.raises(UnsupportedModel, match="unembedding, which all-MiniLM-L6-v2 lacks"):
        _ = av.writes(encoder, encoder.trace("the red house"), 0, 0)
    with pytest.raises(TraceError, match="only its own traces"):
        _ = av.writes(induction, encoder.trace("the red house"), 0, 0)
