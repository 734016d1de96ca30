"""What the browser gets of a question: the answer isn't in it before the guess."""

import json

import pytest

from attention_viz.lesson.lesson import Ask
from attention_viz.lesson.question import question_data, read_guess, reply

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
