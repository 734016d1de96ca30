"""What the Class page decides: whom it opens for, what a class's files say, and which links it writes."""

import csv
import html
import io
import json
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs, quote_plus, urlsplit

import pytest

from attention_viz.lesson import EXERCISES, LESSONS, Scene
from attention_viz.lesson.quiz import QUIZ
from attention_viz.serving.runs import run_lesson
from attention_viz.serving.settings import Settings
from attention_viz.ui.front import teacher
from attention_viz.ui.pages.class_ import opened
from tests.ui.screens import Screen

TEXT = "The bank of the river was flooded"
KEY = "correct horse"


@pytest.fixture(autouse=True)
def _with_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teacher, "SETTINGS", Settings(teacher=KEY))
    teacher.WRONG_TRIES.clear()


def tried(lesson: str, *tries: str, seed: int = 0, **more: Any) -> dict[str, Any]:
    return {"lesson": lesson, "text": TEXT, "seed": seed, "tries": list(tries), **more}


def file(name: str, student: int, *exercises: dict[str, Any], number: int = 0) -> tuple[str, bytes, str]:
    course = {"lessons": [], "student": number}
    record = {"version": 1, "id": f"{student:016x}", "course": course, "exercises": exercises}
    return f"{name}.json", json.dumps(record).encode(), "application/json"


def opened_class(files: Sequence[tuple[str, bytes, str]] = (), address: str = "/class") -> Screen:
    screen = Screen().open(address)
    screen.picker("Teacher’s key").set_value(KEY)
    screen.press("Open class")
    if files:
        screen.picker("Progress files").set_value(files)
        screen.run()
    return screen


def table(screen: Screen, name: str) -> list[list[str]]:
    """The cells of a table as text; of the first row too."""
    found = re.findall(r"<tr>(.*?)</tr>", screen.part(name))
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in found]
    return [[html.unescape(re.sub("<[^>]*>", "", cell)).strip() for cell in row] for row in cells]


def right(kind: str, seed: int = 0) -> str:
    return EXERCISES[kind].make(Scene(TEXT, run_lesson), seed).solution


def test_it_opens_for_the_teachers_key_only(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen().open("/class?lessons=why")
    files = len(screen.all("file_uploader"))  # a trace can be opened on every page
    assert files == 1 and not screen.all("code")
    screen.picker("Teacher’s key").set_value("wrong")
    assert "This isn’t the teacher’s key; see the server’s terminal." in " ".join(screen.press("Open class").alerts)
    assert len(screen.all("file_uploader")) == files and not screen.all("code")
    screen.picker("Teacher’s key").set_value(KEY)
    assert len(screen.press("Open class").all("file_uploader")) == files + 1 and screen.all("code")
    monkeypatch.setattr(teacher, "SETTINGS", Settings())
    screen = Screen().open("/class")
    assert "no teacher’s key" in " ".join(screen.alerts) and not screen.all("text_input", "code")


@pytest.mark.parametrize("key", [KEY, "12345678"])
def test_a_key_in_the_url_opens_nothing_and_isnt_repeated(key: str) -> None:
    screen = Screen().open(f"/class?key={quote_plus(key)}")
    assert "The URL asks for a key that isn’t here." in screen.words and screen.picker("Teacher’s key")
    assert key not in "".join([*screen.written, *screen.alerts, *screen.address.values()])


def test_a_class_is_summed_up_with_the_hardest_exercise_first() -> None:
    slip = next(one for one in EXERCISES["scaled"].make(Scene(TEXT, run_lesson), 0).slips)
    missed, solved = repr(slip.answer), right("scaled")
    screen = opened_class(
        [
            file(
                "attention-progress-2-abcd", 2, tried("scaling", missed, missed, "77"), tried("scores", right("score"))
            ),
            file("attention-progress-10-abcd", 10, tried("scaling", missed, solved, hints=2, solution=True)),
            # Typed into the file: no answer shows it.
            file("Ann <b>", 3, tried("scores", solved=True), tried("scaling", "5000", solved=True)),
            ("old.json", b'{"done": ["scores"]}', "application/json"),
        ]
    )
    assert "Most stuck: Scaling. 2 of 3 haven’t solved it" in screen.words
    first, second = table(screen, "class-stuck")[1:]
    assert first[:4] == ["Scaling scaling", "3", "1", "4"]
    # The same mistake of two students, whatever their numbers; once by each.
    assert f"{slip.words} 2 students" in first[4]
    assert first[5].startswith(EXERCISES["scaled"].make(Scene(TEXT, run_lesson), 0).question)
    assert second[:4] == ["Scores scores", "1", "1", "0"]
    assert table(screen, "class-students") == [
        ["Student", "scores", "scaling", "Solved"],
        ["2-abcd", "✓ 1", "✗ 3", "1 of 2"],
        ["10-abcd", "", "✓ 2 h2 s", "1 of 2"],
        ["Ann <b>", "?", "?", "0 of 2"],
        ["old", "?", "", "0 of 2"],
    ]
    assert "<b>x" not in "".join(screen.written) and "Ann &lt;b&gt;" in screen.part("class-students")
    assert "a file of version 1.0, which has no answers" in screen.words


def test_the_heading_calls_solved_only_what_was_checked() -> None:
    solved = tried("scaling", right("scaled"))
    one = [file("Ann", 1, solved)]
    assert "# The student solved all exercises" in opened_class(one).words
    two = [*one, file("Bo", 2, solved)]
    assert "# All 2 students solved all their exercises" in opened_class(two).words
    more = [
        *two,
        file("Cy", 3, tried("scaling", solved=True)),
        file("Di", 4),
        file("Eve", 5, tried("scaling", "no idea", solved=True)),
        file("Fay", 6, solved, tried("magic", "1")),
    ]
    screen = opened_class(more)
    assert "# All exercises solved and checked: 2 of 6 students" in screen.words


def test_bad_files_are_named_and_the_others_shown() -> None:
    screen = opened_class(
        [
            ("broken.json", b"{", "application/json"),
            ("large.json", b" " * 200_001, "application/json"),
            file("Bo", 1, tried("magic <b>*", "1"), tried("scores", "1", seed=700), number=3),
            file("Di", 3, tried("scores", "no idea"), *[tried(f"magic{at}") for at in range(5)]),
            file("Cy", 2, tried("scores", "1") | {"text": "word " * 100}),
        ]
    )
    assert screen.warnings == []
    told = " ".join(screen.alerts)
    assert (
        "broken: The file isn't valid JSON" in told and "large: A progress file may have at most 200,000 bytes" in told
    )
    assert table(screen, "class-students")[1:] == [
        ["Bo", "✗ 1", "0 of 1"],
        ["Cy", "!", "0 of 1"],
        ["Di", "!", "0 of 1"],
    ]
    assert "its text has 100 words" in screen.part("class-students")
    assert "no answer that the exercise can read" in screen.part("class-students")
    assert "has exercises with seeds of another student; has exercises of unknown lessons: magic" in screen.words
    assert "unknown lessons: magic0, magic1, magic2 and 2 more" in screen.words
    assert "magic <b>" not in "".join(screen.written)


def test_the_table_has_a_row_per_exercise_and_no_formulas() -> None:
    screen = opened_class([file("=HYPERLINK(1)", 1, tried("scores", "999", right("score"), hints=1))])
    rows = list(csv.DictReader(io.StringIO(screen.download("Class (CSV)").decode())))
    assert [(one["student"], one["lesson"], one["solved"], one["tries"], one["hints"]) for one in rows] == [
        ("'=HYPERLINK(1)", "scores", "yes", "2", "1")
    ]
    assert rows[0]["wrong_answers"] == "999" and rows[0]["text"] == TEXT


def test_control_characters_dont_reach_the_table() -> None:
    text = f"{TEXT}\x00\x1b\x85\x7f"
    screen = opened_class([file("Ann", 1, tried("scores", "999") | {"text": text}, tried("a\x00b", "1"))])
    content = screen.download("Class (CSV)").decode()
    rows = list(csv.DictReader(io.StringIO(content)))
    assert [one["lesson"] for one in rows] == ["scores", "a�b"] and rows[0]["text"] == f"{TEXT}����"
    assert not re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", content)


def test_the_test_of_learning_is_summed_up_and_saved_without_names() -> None:
    key = [f"#{one.right}" for one in QUIZ]

    def tested(name: str, student: int, before: list[str], after: list[str]) -> tuple[str, bytes, str]:
        label, content, kind = file(name, student, number=student)
        record = json.loads(content) | {"test": {"before": before, "after": after}}
        return label, json.dumps(record).encode(), kind

    assert "class-test" not in "".join(opened_class([file("Di", 4)]).written)
    files = [
        tested("Ann", 1, ["?"] * 6 + key[6:], key),
        tested("Bo", 2, key[:1] + ["=1+1", "<b>x</b>", "#9"] + ["?"] * 6, ["?"] * 3 + key[3:]),
        tested("Cy", 3, [], [*key[:9], "@SUM(1)"]),
    ]
    screen = opened_class(files)
    assert "3 students, no exercise tried yet" in screen.words
    head, taken, mean, *questions = table(screen, "class-test")
    assert (head, taken[1:], mean[1:]) == (["Question", "Before", "After"], ["2", "3"], ["2.5", "8.7"])
    assert [one[0] for one in questions] == [f"{at}. {one.question}" for at, one in enumerate(QUIZ, 1)]
    assert [one[1] for one in questions] == list("1000001111")
    assert [one[2] for one in questions] == list("2223333332")
    assert "2 students took both: 2.5 right before, 8.5 after, on average." in screen.words
    content = screen.download("Test results (CSV)").decode()
    rows = list(csv.DictReader(io.StringIO(content)))
    assert [(one["id"], one["student"]) for one in rows] == [(f"{at:016x}", str(at)) for at in (1, 2, 3)]
    assert [(one["before_total"], one["after_total"]) for one in rows] == [("4", "10"), ("1", "7"), ("", "9")]
    assert [rows[1][f"q{at}_before"] for at in (1, 2, 3, 4)] == [key[0], "'=1+1", "<b>x</b>", "#9"]
    assert [rows[1][f"q{at}_before_right"] for at in (1, 2, 3, 4)] == ["1", "0", "0", "0"]
    assert (rows[2]["q10_after"], rows[2]["q10_after_right"], rows[2]["q1_before_right"]) == ("'@SUM(1)", "0", "")
    assert not {"Ann", "Bo", "Cy"} & set(re.findall(r"\w+", content))


def test_an_exercise_is_made_once_and_what_takes_too_long_can_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[tuple[str, str, int]]()
    real = opened.made_again

    def counted(kind: str, text: str, seed: int, run: Any) -> Any:
        made.append((kind, text, seed))
        return real(kind, text, seed, run)

    monkeypatch.setattr(opened, "made_again", counted)
    monkeypatch.setattr(opened, "PATIENCE", -1.0)
    files = [file(f"s{one}", one, tried("scores", "1"), tried("scaling", "2", seed=5)) for one in range(20)]
    screen = opened_class(files)
    assert "# Not all exercises are checked yet" in screen.words
    assert "40 exercises aren’t checked yet." in " ".join(screen.alerts) and not made
    monkeypatch.setattr(opened, "PATIENCE", 60.0)
    screen.press("Check the rest")
    assert sorted(made) == [("scaled", TEXT, 5), ("score", TEXT, 0)] and not screen.alerts
    screen.run()
    assert len(made) == 2


def test_links_open_what_they_say() -> None:
    screen = opened_class(address=f"/class?lessons=softmax.scores&students=3&text={quote_plus('The cat sat')}")
    every = [urlsplit(one.value) for one in screen.all("code")]
    assert all(one.path == "/learn" for one in every)
    course = {"lessons": ["softmax.scores"], "text": ["The cat sat"]}
    sheet = {"answers": [teacher.answers_key()]}
    assert [parse_qs(one.query) for one in every] == [course | {"student": ["0"]}, course, course | sheet]
    links = re.findall('href="([^"]+)"', screen.part("class-links"))
    asked = [parse_qs(urlsplit(html.unescape(one)).query) for one in links]
    assert asked[::2] == [course | {"student": [str(number)]} for number in (1, 2, 3)]
    assert asked[1::2] == [course | sheet | {"exercise_seed": [str(number * 100)]} for number in (1, 2, 3)]
    assert KEY not in screen.words and KEY not in "".join(screen.written)
    # Whoever opens a student's link has its lessons and seeds; the teacher the answers to them.
    student = Screen().open(f"/learn?{urlsplit(html.unescape(links[4])).query}")
    assert (student.address["lesson"], student.address["exercise_seed"]) == ("softmax", "300")
    answers = Screen().open(f"/learn?{urlsplit(html.unescape(links[5])).query}").words
    assert "Answer sheet" in answers and "All 2 answers are here." in answers
    assert EXERCISES["score"].make(Scene("The cat sat", run_lesson), 300).solution in answers
    assert LESSONS["masks"].title not in answers
    # The sheet asks nobody for a number.
    sheet_of_one = f"/learn?lessons=scores&student=0&answers={teacher.answers_key()}"
    assert "Answer sheet" in (words := Screen().open(sheet_of_one).words) and "The answer is here." in words
    assert "Which number" in Screen().open("/learn?lessons=scores&student=0&answers=wrong").words


def test_the_shortest_link_for_the_board_is_of_the_example() -> None:
    screen = opened_class()
    assert [urlsplit(one.value).query for one in screen.all("code")][:2] == ["student=0", ""]
    screen = opened_class(address=f"/class?text={'word+' * 400}")
    assert "The sentence is too long for a link" in screen.words
