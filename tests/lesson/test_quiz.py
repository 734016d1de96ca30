"""The test of learning: it gives nothing away before, each question has one right answer, and a lesson teaches it."""

import json

import pytest

from attention_viz.lesson import LESSONS
from attention_viz.lesson.quiz import PARTS, QUIZ, UNKNOWN, correct, quiz_data
from attention_viz.lesson.translation import LANGUAGES, in_language


def test_there_are_ten_questions_with_distinct_options_and_a_lesson_each() -> None:
    assert len(QUIZ) == 10
    for one in QUIZ:
        assert len(set(one.options)) == len(one.options) == 4
        assert 0 <= one.right < 4
        assert one.lesson in LESSONS
    # A reader who always takes the same place learns nothing from it.
    places = [one.right for one in QUIZ]
    assert all(places.count(place) <= 3 for place in range(4))


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_browser_gets_the_right_answers_after_the_course_only(language: str) -> None:
    with in_language(language):
        before, after = (quiz_data(part) for part in PARTS)
    text = json.dumps(before, ensure_ascii=False)
    for found in after["questions"]:  # pyright: ignore[reportGeneralTypeIssues] -- a list of questions
        assert found["reason"] not in text
    assert "right" not in before["questions"][0]  # pyright: ignore[reportIndexIssue] -- a list of questions
    assert [found["right"] for found in after["questions"]] == [one.right for one in QUIZ]  # pyright: ignore[reportGeneralTypeIssues]


def test_answers_are_right_wrong_or_missing() -> None:
    right = [f"#{one.right}" for one in QUIZ]
    assert correct(right) == (True,) * 10
    assert correct([UNKNOWN, f"#{QUIZ[1].right + 1}", *right[2:4]]) == (False, False, True, True, *[None] * 6)
    assert correct([*right, "#0"]) == (True,) * 10
    assert correct([]) == (None,) * 10
