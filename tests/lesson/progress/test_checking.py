"""A file's answers are checked again: what it claims doesn't count."""

import pytest

from attention_viz.lesson import EXERCISES, LESSONS, Scene
from attention_viz.lesson.exercise import Cells, Exercise, NumberAnswer, OptionAnswer
from attention_viz.lesson.progress.checking import MakeExercise, check, made_again
from attention_viz.lesson.progress.record import Tried
from attention_viz.lesson.scene import RunText

TEXT = "The bank of the river was flooded"


@pytest.fixture
def make(run: RunText) -> MakeExercise:
    return lambda kind, text, seed: made_again(kind, text, seed, run)


def right(exercise: Exercise) -> str:
    match exercise.answer:
        case NumberAnswer(value=value):
            return repr(value)
        case OptionAnswer() as answer:
            return f"#{min(answer.right)}"
        case Cells(right=cells):
            return ",".join(f"{row}>{column}" for row, column in sorted(cells))


@pytest.mark.parametrize("lesson", ["scores", "scaling", "vectors", "masks", "why", "mixture"])
def test_an_exercise_is_solved_by_a_right_answer_only(lesson: str, run: RunText, make: MakeExercise) -> None:
    exercise = EXERCISES[LESSONS[lesson].exercise].make(Scene(TEXT, run), 703)
    answer = right(exercise)
    assert not check(Tried(lesson, TEXT, 703, solved=True), make).solved
    found = check(Tried(lesson, TEXT, 703, (answer,)), make)
    assert found.solved and found.question == exercise.question
    # The same answer to another seed's or another text's exercise, unless these have it, too.
    for text, seed in ((TEXT, 704), ("The cat sat because it was tired.", 703)):
        other = EXERCISES[LESSONS[lesson].exercise].make(Scene(text, run), seed)
        assert check(Tried(lesson, text, seed, (answer,), solved=True), make).solved == other.check(answer).right


def test_wrong_answers_have_their_cause_and_those_after_the_right_one_dont_count(
    run: RunText, make: MakeExercise
) -> None:
    exercise = EXERCISES["scaled"].make(Scene(TEXT, run), 0)
    slip = next(one for one in exercise.slips if not exercise.answer.accepts(one.answer))
    tries = ("no number", "123456", repr(slip.answer), right(exercise), "7")
    found = check(Tried("scaling", TEXT, 0, tries), make)
    assert found.solved and found.count == 3
    assert (found.wrong[0].answer, found.wrong[0].cause) == ("123456", "")
    assert found.wrong[1].cause == slip.words


def test_a_choice_is_written_as_the_student_saw_it(run: RunText, make: MakeExercise) -> None:
    exercise = EXERCISES["strongest"].make(Scene(TEXT, run), 0)
    assert isinstance(exercise.answer, OptionAnswer)
    wrong = next(at for at in range(len(exercise.answer.options)) if at not in exercise.answer.right)
    (found,) = check(Tried("why", TEXT, 0, (f"#{wrong}", "#999")), make).wrong
    assert found.answer == exercise.answer.options[wrong]


def test_what_cant_be_checked_says_why(monkeypatch: pytest.MonkeyPatch, make: MakeExercise) -> None:
    assert check(Tried("magic", TEXT, 0), make).problem == "unknown lesson “magic”"
    assert (
        check(Tried("why", "word " * 200, 0, ("1",)), make).problem
        == "its text has 200 words; the course reads 2 to 24"
    )
    assert "0 words" in check(Tried("scores", "", 0, ("1",)), make).problem
    found = check(Tried("scaling", TEXT, 0, ("no idea", ""), solved=True), make)
    assert (found.problem, found.solved, found.count) == ("no answer that the exercise can read", False, 0)
    kind = EXERCISES["region"]
    monkeypatch.setattr(type(kind), "available", property(lambda one: not one.needs))
    found = check(Tried("picture", TEXT, 0, ("1",), solved=True), make)
    assert not found.solved and found.problem == f"its model isn't installed: {kind.needs}"


def test_a_place_is_a_place_even_if_the_options_are_numbers() -> None:
    answer = OptionAnswer(("3", "0", "1"), frozenset({0}))
    assert (answer.read("0"), answer.read("#0"), answer.read("2"), answer.read("#3")) == (1, 0, 2, None)
