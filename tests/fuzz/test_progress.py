"""Students' progress files with anything in them: refused by name, or checked, and solved by right answers only."""

import contextlib
import json
from typing import Any, NoReturn

from hypothesis import given
from hypothesis import strategies as st

from attention_viz.errors import AttentionVizError
from attention_viz.lesson import EXERCISES, LESSONS, Exercise, Scene
from attention_viz.lesson.progress.checking import check, made_again
from attention_viz.lesson.progress.record import MOST_BYTES, read_progress
from attention_viz.lesson.progress.summary import Student, export_rows, joined, stuck
from attention_viz.ui.pages.class_.tables import show_stuck, show_students
from tests.fuzz.settings import JSON, examples
from tests.fuzz.test_files import lied

TEXT = "the bank of the river"
# Of numbers that are drawn from the seed: no model runs.
MADE = ("scores", "masks", "vectors", "softmax")
ONE = {"lesson": "scores", "text": TEXT, "seed": 7, "tries": ["1", "#0", "0>1"], "hints": 1, "solved": True}
RECORD = {
    "version": 1,
    "id": "0123456789abcdef",
    "course": {"lessons": ["why"], "student": 7},
    "exercises": [ONE | {"lesson": name} for name in MADE],
    "test": {"before": ["1"], "after": []},
}


def no_run(*_: object, **__: object) -> NoReturn:
    raise AssertionError("these exercises run no model")


def make(kind: str, text: str, seed: int) -> Exercise:
    return made_again(kind, text, seed, no_run)


@examples(40)
@given(data=st.data())
def test_a_record_that_lies_is_checked_or_refused(data: st.DataObject) -> None:
    draw: Any = data.draw
    content = RECORD
    for _ in range(draw(st.integers(0, 3))):
        content = lied(draw, content)
    with contextlib.suppress(AttentionVizError):
        progress = read_progress(json.dumps(content).encode())
        checked = tuple(
            check(one, lambda kind, text, seed: made_again(kind, text, seed, no_run)) for one in progress.exercises
        )
        for one in checked:
            if one.solved:
                kind = LESSONS[one.tried.lesson].exercise
                exercise = EXERCISES[kind].make(Scene(one.tried.text, no_run), one.tried.seed)
                assert any(exercise.check(answer).right for answer in one.tried.tries)
        students = [Student(label, file, checked) for label, file in joined([(draw(st.text(max_size=9)), progress)])]
        show_stuck(stuck(students))
        show_students(students)
        assert len(export_rows(students)) == len(checked)


@examples(40)
@given(content=st.binary(max_size=300) | JSON.map(lambda one: json.dumps(one).encode()))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    for whole in (content, content * (1 + MOST_BYTES // max(1, len(content)))):
        with contextlib.suppress(AttentionVizError):
            read_progress(whole)
