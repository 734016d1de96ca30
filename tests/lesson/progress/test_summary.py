"""What a class is stuck on, counted by hand for four students."""

from attention_viz.lesson.progress.checking import Checked, WrongAnswer
from attention_viz.lesson.progress.record import Progress, Tried
from attention_viz.lesson.progress.summary import Student, export_rows, joined, lessons_of, stuck

ROOT = WrongAnswer("0.5", "did you divide by d instead of its root?")
OTHER = WrongAnswer("9", "")


def checked(lesson: str, *wrong: WrongAnswer, solved: bool = False, seed: int = 0) -> Checked:
    return Checked(Tried(lesson, "a b", seed, hints=2), f"{lesson}?", solved=solved, wrong=wrong)


CLASS = [
    Student("Ada", Progress("a"), (checked("scaling", ROOT, ROOT, OTHER, seed=100), checked("why", solved=True))),
    Student("Bo", Progress("b"), (checked("scaling", ROOT, solved=True), checked("why", OTHER, OTHER, solved=True))),
    Student("Cy", Progress("c", ("masks",)), (checked("scaling", OTHER, seed=300), Checked(Tried("masks", "a b", 0)))),
    Student(
        "Di", Progress(done=("why",)), (Checked(Tried("scores", "a", 0, ("1",), solved=True), problem="one word"),)
    ),
]


def test_the_exercise_with_most_tries_without_success_is_first() -> None:
    first, second = stuck(CLASS)
    assert (first.lesson, first.students, first.solved, first.unsolved, first.misses) == ("scaling", 3, 1, 2, 4)
    # By students, not by tries.
    assert first.causes == ((ROOT.cause, 2), ("9", 2))
    assert (first.example, first.seed) == ("scaling?", 100)
    assert (second.lesson, second.students, second.solved, second.misses) == ("why", 2, 2, 0)


def test_what_a_file_only_claims_is_called_so() -> None:
    assert [one.claims("why") for one in CLASS] == [False, False, False, True]
    assert CLASS[3].claims("scores")
    assert lessons_of(CLASS) == ("why", "scores", "scaling", "masks")


def test_files_of_one_browser_are_one_student_with_the_longer_record_of_each_exercise() -> None:
    early, late = Tried("why", "a b", 0, ("1",)), Tried("why", "a b", 0, ("1", "2"), solved=True)
    other = Tried("scores", "a b", 0)
    files = [
        ("Eve 2", Progress("e", exercises=(late, other), after=("x",))),
        ("Eve", Progress("e", exercises=(early,), before=("y",))),
        ("Old", Progress(done=("why",))),
        ("Older", Progress(done=("why",))),
    ]
    found = joined(files)
    assert [label for label, _ in found] == ["Eve, Eve 2", "Old", "Older"]
    assert found[0][1] == Progress("e", exercises=(late, other), before=("y",), after=("x",))


def test_an_exercise_that_a_file_repeats_counts_once() -> None:
    one = Tried("why", "a b", 0, ("1",))
    (found,) = joined([("Fay", Progress("f", exercises=(*[one] * 299, Tried("why", "a b", 0, ("1", "2")))))])
    assert found[1].exercises == (Tried("why", "a b", 0, ("1", "2")),)


def test_a_student_is_done_with_right_answers_to_everything_only() -> None:
    assert [one.complete for one in CLASS] == [False, True, False, False]
    assert not Student("Eve", Progress("e")).begun and CLASS[3].begun
    claimed = Student(
        "Fay", Progress("f"), (checked("why", solved=True), Checked(Tried("masks", "a b", 0, solved=True)))
    )
    assert not claimed.complete


def test_students_are_in_the_order_of_their_numbers() -> None:
    labels = ["10-f", "2-a", "Zoë", "ada 3", "Ada 12", "", "²"]
    found = [label for label, _ in joined([(label, Progress(done=("why",))) for label in labels])]
    assert found == ["", "2-a", "10-f", "ada 3", "Ada 12", "Zoë", "²"]


def test_every_exercise_is_a_row_of_the_table() -> None:
    rows = export_rows(CLASS)
    assert [(one["student"], one["lesson"], one["solved"], one["tries"]) for one in rows] == [
        ("Ada", "scaling", "no", 3),
        ("Ada", "why", "yes", 1),
        ("Bo", "scaling", "yes", 2),
        ("Bo", "why", "yes", 3),
        ("Cy", "scaling", "no", 1),
        ("Cy", "masks", "no", 0),
        ("Di", "scores", "not checked", 0),
    ]
    assert rows[0]["wrong_answers"] == "0.5; 0.5; 9" and rows[-1]["problem"] == "one word"
