"""What a class's tests before and after the course say, question by question."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from attention_viz.lesson.progress.record import Progress
from attention_viz.lesson.quiz import PARTS, QUIZ, correct

__all__ = ["Learned", "learned", "test_rows"]


@dataclass(frozen=True)
class Learned:
    """A class's results in one part of the test: students who took it, right answers per question, and their mean."""

    taken: int
    right: tuple[int, ...]

    @property
    def mean(self) -> float:
        """The mean number of right answers of those who took it; NaN for none."""
        return sum(self.right) / self.taken if self.taken else float("nan")


def learned(records: Sequence[Progress], *, both: bool = False) -> dict[str, Learned]:
    """Return the results before and after the course, by the names of `PARTS`.

    Args:
        both: whether only students count who took both.
    """
    some = [one for one in records if not both or (one.before and one.after)]
    return {part: _learned([found for one in some if (found := _answers(one, part))]) for part in PARTS}


def _learned(tests: Sequence[Sequence[str]]) -> Learned:
    checked = [correct(answers) for answers in tests]
    return Learned(len(tests), tuple(sum(one[at] is True for one in checked) for at in range(len(QUIZ))))


def _answers(record: Progress, part: str) -> tuple[str, ...]:
    return record.before if part == "before" else record.after


def test_rows(records: Sequence[Progress]) -> list[Mapping[str, str | int]]:
    """Return one row per record, for a table: answers as in the file, 1 for right, 0 for wrong, "" for none."""
    return [_row(one) for one in records]


def _row(record: Progress) -> Mapping[str, str | int]:
    row: dict[str, str | int] = {"id": record.id, "student": record.student or ""}
    checked = {part: correct(_answers(record, part)) for part in PARTS}
    for at in range(len(QUIZ)):
        for part in PARTS:
            right = checked[part][at]
            answer = "" if right is None else _answers(record, part)[at]
            row |= {f"q{at + 1}_{part}": answer, f"q{at + 1}_{part}_right": "" if right is None else int(right)}
    for part in PARTS:
        row[f"{part}_total"] = sum(map(bool, checked[part])) if _answers(record, part) else ""
    return row
