"""A class's progress: students by lesson, and the exercises that it is stuck on."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from attention_viz.lesson.course import LESSONS
from attention_viz.lesson.progress.checking import Checked
from attention_viz.lesson.progress.record import Progress, Tried

__all__ = ["Stuck", "Student", "export_rows", "joined", "lessons_of", "stuck"]

_MOST_CAUSES = 3


@dataclass(frozen=True)
class Student:
    """A student: a label, such as the file's name, the file and its checked exercises."""

    label: str
    progress: Progress
    checked: tuple[Checked, ...] = ()

    @property
    def begun(self) -> bool:
        """Whether the file has or claims anything of an exercise."""
        return bool(self.checked or self.progress.done)

    @property
    def complete(self) -> bool:
        """Whether each exercise of the file has a right answer, and it claims nothing else."""
        solved = {one.tried.lesson for one in self.checked}
        return bool(self.checked) and all(one.solved for one in self.checked) and solved.issuperset(self.progress.done)

    @property
    def unknown_lessons(self) -> tuple[str, ...]:
        """The lessons that the course doesn't have."""
        named = (*self.progress.done, *(one.tried.lesson for one in self.checked))
        return tuple(name for name in dict.fromkeys(named) if name not in LESSONS)

    def of(self, lesson: str) -> tuple[Checked, ...]:
        """Return a lesson's exercises."""
        return tuple(one for one in self.checked if one.tried.lesson == lesson)

    def claims(self, lesson: str) -> bool:
        """Return whether the file calls a lesson solved without an answer that could be checked."""
        mine = self.of(lesson)
        claimed = lesson in self.progress.done or any(one.tried.solved for one in mine)
        return claimed and not any(one.solved for one in mine)


@dataclass(frozen=True)
class Stuck:
    """A lesson's exercise in a class.

    Attributes:
        example: one of its questions, with its seed.
        unsolved: students who tried it and didn't solve it.
        misses: their answers, all wrong.
        causes: the most frequent wrong answers by their likely cause, or as given, and how many students gave them.
    """

    lesson: str
    example: str
    seed: int
    students: int
    solved: int
    unsolved: int
    misses: int
    causes: tuple[tuple[str, int], ...]


def joined(files: Iterable[tuple[str, Progress]]) -> list[tuple[str, Progress]]:
    """Join the files of one browser, by their random id, in the order of their labels; each has an exercise once."""
    found = dict[str, tuple[str, Progress]]()
    for at, (label, progress) in enumerate(sorted(files, key=lambda one: _by_number(one[0]))):
        key = progress.id or f"file {at}"
        if key not in found:
            found[key] = label, replace(progress, exercises=_joined_exercises(progress.exercises))
            continue
        first, before = found[key]
        label = first if label == first else f"{first}, {label}"
        both = _joined_exercises((*before.exercises, *progress.exercises))
        tests = {"before": before.before or progress.before, "after": progress.after or before.after}
        found[key] = label, replace(before, exercises=both, **tests)
    return list(found.values())


def _by_number(label: str) -> list[tuple[int, str]]:
    """Sort 2 before 10."""
    parts = re.split(r"([0-9]{1,9})", label.casefold())
    return [(int(part), "") if at % 2 else (-1, part) for at, part in enumerate(parts)]


def _joined_exercises(every: Iterable[Tried]) -> tuple[Tried, ...]:
    """Keep each exercise once: of several, the first of those with most answers."""
    found = dict[tuple[str, str, int], Tried]()
    for one in every:
        key = one.lesson, one.text, one.seed
        if key not in found or len(one.tries) > len(found[key].tries):
            found[key] = one
    return tuple(found.values())


def lessons_of(students: Sequence[Student]) -> tuple[str, ...]:
    """Return the lessons that the students' links selected or that anyone tried, in the course's order."""
    chosen = {name for one in students for name in (*one.progress.lessons, *one.progress.done)}
    chosen |= {checked.tried.lesson for one in students for checked in one.checked}
    return tuple(name for name in LESSONS if name in chosen)


def stuck(students: Sequence[Student]) -> list[Stuck]:
    """Return the tried exercises: most unsuccessful tries first, then most wrong answers."""
    found = [_stuck(name, students) for name in lessons_of(students)]
    return sorted((one for one in found if one.students), key=lambda one: (-one.misses, -sum(n for _, n in one.causes)))


def _stuck(lesson: str, students: Sequence[Student]) -> Stuck:
    tries = [mine for one in students if (mine := [part for part in one.of(lesson) if part.question and part.count])]
    solved = sum(any(one.solved for one in mine) for mine in tries)
    misses = sum(len(one.wrong) for mine in tries if not any(part.solved for part in mine) for one in mine)
    causes = Counter(
        cause for mine in tries for cause in dict.fromkeys(w.cause or w.answer for one in mine for w in one.wrong)
    )
    every = sorted((one for mine in tries for one in mine), key=lambda one: (one.solved, -len(one.wrong)))
    example, seed = (every[0].question, every[0].tried.seed) if every else ("", 0)
    counts = causes.most_common(_MOST_CAUSES)
    return Stuck(lesson, example, seed, len(tries), solved, len(tries) - solved, misses, tuple(counts))


def export_rows(students: Sequence[Student]) -> list[Mapping[str, str | int]]:
    """Return one row per student and exercise, for a table."""
    return [
        {
            "student": one.label,
            "id": one.progress.id,
            "number": one.progress.student,
            "lesson": part.tried.lesson,
            "text": part.tried.text,
            "seed": part.tried.seed,
            "solved": "not checked" if part.problem else "yes" if part.solved else "no",
            "tries": part.count,
            "hints": part.tried.hints,
            "solution_seen": "yes" if part.tried.solution else "no",
            "wrong_answers": "; ".join(wrong.answer for wrong in part.wrong),
            "problem": part.problem,
        }
        for one in students
        for part in one.checked
    ]
