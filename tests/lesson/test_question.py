"""What the browser gets of a question: the answer isn't in it before the guess."""

import json

import pytest

from attention_viz.errors import ShapeError
from attention_viz.lesson.lesson import Ask
from attention_viz.lesson.question import question_data, read_guess, reply
from attention_viz.lesson.translation import in_language

SHARES = Ask("Which?", "It is b: 0.75", "a model", ("a", "b"), (0.25, 0.75), shares=True)
NAMED = Ask("Which?", "It is a", "a model", ("a", "b", "c"), (3.5, 1.25, -2.0))


@pytest.mark.parametrize("ask", [SHARES, NAMED])
def test_the_answer_is_in_the_data_once_it_is_shown(ask: Ask) -> None:
    before, after = (json.dumps(question_data(ask, shown=shown)) for shown in (False, True))
    for number in ask.written:
        assert number not in before
        assert number in json.dumps(json.loads(after), ensure_ascii=False)
    assert json.loads(before)["truth"] is None
    assert json.loads(before)["id"] != json.loads(after)["id"]


@pytest.mark.parametrize(
    ("ask", "text", "numbers"),
    [
        (SHARES, "30.70", (30, 70)),
        (SHARES, "30.60", None),
        (SHARES, "1", None),
        (NAMED, "2", (2,)),
        (NAMED, "3", None),
        (NAMED, "0.1", None),
        (NAMED, "shown", None),
        (NAMED, "", None),
        (NAMED, "<b>", None),
        (NAMED, "٣", None),
    ],
)
def test_a_guess_is_read_from_a_url(ask: Ask, text: str, numbers: tuple[int, ...] | None) -> None:
    assert read_guess(ask, text) == numbers
    assert question_data(ask, shown=False, guess=text)["guess"] == (text if numbers else None)


def test_a_reply_is_about_the_option_that_was_given_most() -> None:
    assert reply(SHARES, (30, 70)).right
    assert not reply(SHARES, (60, 40)).right
    assert "“a”, 0.25, ranks 2 of 2" in reply(SHARES, (60, 40)).words
    assert reply(NAMED, (0,)).right


def test_a_reply_is_whole_sentences() -> None:
    ask = Ask("How many?", "All 8", "a model", ("1 number", "8 numbers"), (0.0, 1.0), shown=("", ""))
    assert ask.said(0) == "Not quite: you chose “1 number”. The answer is “8 numbers”."
    assert ask.said(1) == "Right. The answer is “8 numbers”."
    assert SHARES.said(0) == "Not quite: “a”, 0.25, ranks 2 of 2. The answer is “b”: 0.75."
    with in_language("de"):
        assert ask.said(0) == "Nicht ganz: Du hast „1 number“ gewählt. Die Antwort ist „8 numbers“."
        assert SHARES.said(0) == "Nicht ganz: „a“ steht mit 0.25 auf Platz 2 von 2. Die Antwort ist „b“: 0.75."
        assert SHARES.said(1) == "Richtig. Die Antwort ist „b“: 0.75."


def test_a_wrong_guess_hears_its_reason_and_no_rank() -> None:
    ask = Ask("Why?", "So", "a model", ("a", "b", "c"), (0.5, 1.0, 0.2), reasons=("It is short.", "", ""))
    assert ask.said(0) == "Not quite. It is short. The answer is “b”: 1.000."
    assert ask.said(1) == "Right. The answer is “b”: 1.000."
    assert "ranks 3 of 3" in ask.said(2)
    assert "It is short." not in json.dumps(question_data(ask, shown=False))
    assert reply(ask, (0,)).words == ask.said(0) in str(question_data(ask, shown=True))
    with in_language("de"):
        assert ask.said(0) == "Nicht ganz. It is short. Die Antwort ist „b“: 1.000."
    with pytest.raises(ShapeError, match="got 2, 2, 2, 1 for 2 options"):
        Ask("Why?", "So", "a model", ("a", "b"), (0.0, 1.0), reasons=("It is short.",))
