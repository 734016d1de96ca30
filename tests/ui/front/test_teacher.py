"""The teacher's key: compared whole, with few tries, and never to be had from the answer sheet's."""

import pytest

from attention_viz.errors import AttentionVizError
from attention_viz.serving.settings import Settings
from attention_viz.ui.front import teacher

KEY = "correct horse"


@pytest.fixture(autouse=True)
def _with_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teacher, "SETTINGS", Settings(teacher=KEY))
    teacher.WRONG_TRIES.clear()


def test_only_the_whole_key_is_the_teachers() -> None:
    assert teacher.is_teacher(KEY) and teacher.is_teacher(f" {KEY}\n")
    assert not any(map(teacher.is_teacher, ("", "correct", "Correct horse", "ü", "\ud800", teacher.answers_key())))


def test_the_answer_sheet_has_a_key_of_its_own() -> None:
    assert teacher.is_answers_key(teacher.answers_key())
    assert not any(map(teacher.is_answers_key, ("", "on", KEY, teacher.answers_key()[:-1])))


def test_without_a_key_nothing_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teacher, "SETTINGS", Settings())
    assert not teacher.has_key() and not teacher.is_teacher("")
    assert not teacher.is_answers_key(teacher.answers_key())


def test_after_many_wrong_keys_none_is_looked_at_for_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(teacher.time, "monotonic", lambda: now)
    for _ in range(30):
        assert not teacher.is_teacher("wrong")
    with pytest.raises(AttentionVizError, match="30 wrong keys within a minute"):
        teacher.is_teacher(KEY)
    now += 61
    assert teacher.is_teacher(KEY)


def test_a_key_that_can_be_guessed_is_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTENTION_VIZ_TEACHER", "1234567")
    with pytest.raises(ValueError, match="must have 8 characters or more; got 7"):
        Settings.from_environment()
    monkeypatch.setenv("ATTENTION_VIZ_TEACHER", KEY)
    assert Settings.from_environment().teacher == KEY
