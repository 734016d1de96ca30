"""A class's results in the test of learning, counted by hand for five records."""

import math

from attention_viz.lesson.progress.learned import learned
from attention_viz.lesson.progress.learned import test_rows as rows_of
from attention_viz.lesson.progress.record import Progress
from attention_viz.lesson.quiz import QUIZ, UNKNOWN

RIGHT = tuple(f"#{one.right}" for one in QUIZ)
RECORDS = [
    # Five right before, nine after.
    Progress("a", student=7, before=(*[UNKNOWN] * 5, *RIGHT[5:]), after=(UNKNOWN, *RIGHT[1:])),
    # Three before; what is no option is wrong.
    Progress("b", before=(*RIGHT[:3], "=1+1", "#9", "<b>", "", *["#"] * 3)),
    # Too few answers, and too many.
    Progress("c", student=9, before=RIGHT[:2], after=(*RIGHT, "#0")),
    Progress("d"),
    Progress(done=("why",)),
]


def test_right_answers_are_counted_by_question() -> None:
    found = learned(RECORDS)
    before, after = found["before"], found["after"]
    assert (before.taken, before.right) == (3, (2, 2, 1, 0, 0, 1, 1, 1, 1, 1))
    assert before.mean == 10 / 3
    assert (after.taken, after.right, after.mean) == (2, (1, *[2] * 9), 9.5)
    both = learned(RECORDS, both=True)
    assert [(one.taken, one.mean) for one in both.values()] == [(2, 3.5), (2, 9.5)]
    assert math.isnan(learned([])["after"].mean)


def test_a_record_is_a_row_without_a_name() -> None:
    rows = rows_of(RECORDS)
    assert [(one["id"], one["student"], one["before_total"], one["after_total"]) for one in rows] == [
        ("a", 7, 5, 9),
        ("b", "", 3, ""),
        ("c", 9, 2, 10),
        ("d", "", "", ""),
        ("", "", "", ""),
    ]
    assert (rows[0]["q1_before"], rows[0]["q1_before_right"], rows[0]["q1_after"]) == ("?", 0, "?")
    assert [rows[1][f"q{at}_before_right"] for at in range(1, 11)] == [1, 1, 1, 0, 0, 0, "", 0, 0, 0]
    assert [rows[1][f"q{at}_before"] for at in (4, 5, 6, 7)] == ["=1+1", "#9", "<b>", ""]
    assert [rows[2][f"q{at}_before_right"] for at in range(1, 11)] == [1, 1, *[""] * 8]
    assert len(rows[0]) == 4 + 4 * len(QUIZ)
