"""The students' files, checked, and the class's results."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

import pandas
import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from attention_viz.errors import AttentionVizError
from attention_viz.lesson import LESSONS
from attention_viz.lesson.exercise import Exercise
from attention_viz.lesson.progress.checking import Checked, check, made_again
from attention_viz.lesson.progress.learned import learned, test_rows
from attention_viz.lesson.progress.record import Progress, read_progress
from attention_viz.lesson.progress.summary import Student, export_rows, joined, stuck
from attention_viz.lesson.words import counted
from attention_viz.serving.runs import run_lesson
from attention_viz.trace.export import to_csv
from attention_viz.ui import visit
from attention_viz.ui.pages.class_.tables import show_learned, show_stuck, show_students
from attention_viz.ui.parts.markdown import as_sentence, plain
from attention_viz.views.style.wording import one_line

_MOST_FILES = 100
_LABEL = 60
# All but tab and line ends, which quotes protect.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_PREFIX = "attention-progress-"
# The seconds of checking in one go, and the exercises kept for the next.
PATIENCE, _KEPT = 60.0, 5_000


@dataclass
class _Made:
    """Exercises made again, or why not, by kind, text and seed: checked once for a whole class."""

    found: dict[tuple[str, str, int], Exercise | AttentionVizError] = field(
        default_factory=dict[tuple[str, str, int], Exercise | AttentionVizError]
    )

    def make(self, kind: str, text: str, seed: int) -> Exercise:
        """Make an exercise, once."""
        key = kind, text, seed
        if key not in self.found:
            if len(self.found) >= _KEPT:
                self.found.clear()
            try:
                # Its figure isn't needed, and may be large.
                self.found[key] = replace(made_again(kind, text, seed, run_lesson), seen=None)
            except AttentionVizError as error:
                self.found[key] = error
        found = self.found[key]
        if isinstance(found, AttentionVizError):
            raise found
        return found


def show_progress() -> None:
    """Draw the field for files, and then the class."""
    heading = st.empty()
    heading.markdown("# Where is the class stuck?")
    uploaded = st.file_uploader(
        "Progress files", type=["json"], accept_multiple_files=True, max_upload_size=1, key="class-files"
    )
    if not uploaded:
        st.caption(
            "Collect the files that your students save on Learn: *Options*, *Save progress*. Up to "
            f"{_MOST_FILES} at once. Each answer is checked again; the server keeps nothing."
        )
        return
    files, problems = _read(uploaded)
    for problem in problems:
        st.warning(problem)
    if not files:
        return
    students, left = _checked(joined(files))
    heading.markdown(f"# {_finding(students, left)}")
    if left:
        st.info(f"{counted(left, 'exercise')} {'isn’t' if left == 1 else 'aren’t'} checked yet.")
        st.button("Check the rest", key="class-rest", type="primary")
    show_stuck(stuck(students))
    show_students(students)
    _offer("Class (CSV)", "class", lambda: export_rows(students))
    _show_test([one.progress for one in students])


def _show_test(records: Sequence[Progress]) -> None:
    results = learned(records)
    if not any(one.taken for one in results.values()):
        return
    show_learned(results, learned(records, both=True))
    _offer("Test results (CSV)", "test", lambda: test_rows(records))


def _offer(label: str, name: str, rows: Callable[[], Sequence[Mapping[str, str | int]]]) -> None:
    def make() -> bytes:
        written = [{name: _writable(value) for name, value in row.items()} for row in rows()]
        return to_csv(pandas.DataFrame(written)).encode()

    st.download_button(label, make, f"{name}.csv", "text/csv", key=f"class-{name}-csv", on_click="ignore")


def _writable(value: str | int) -> str | int:
    """Replace control characters by "�", since readers of CSV stop at them."""
    return _CONTROLS.sub("�", value) if isinstance(value, str) else value


def _read(uploaded: Sequence[UploadedFile]) -> tuple[list[tuple[str, Progress]], list[str]]:
    found, problems = list[tuple[str, Progress]](), list[str]()
    for one in uploaded[:_MOST_FILES]:
        try:
            found.append((_label(one.name), read_progress(one.getvalue())))
        except AttentionVizError as error:
            problems.append(f"{plain(_label(one.name))}: {as_sentence(str(error))}")
    if len(uploaded) > _MOST_FILES:
        problems.append(f"These are {len(uploaded)} files; the first {_MOST_FILES} are shown.")
    return found, problems


def _label(name: str) -> str:
    """Return a file's name without what all have in common."""
    return one_line(PurePath(name).stem.removeprefix(_PREFIX), _LABEL) or "file"


def _checked(files: Sequence[tuple[str, Progress]]) -> tuple[list[Student], int]:
    """Check exercises for a while, and return how many are left."""
    make, begun, left = visit.memory(_Made).make, time.monotonic(), 0
    count = sum(len(progress.exercises) for _, progress in files)
    place, done = st.empty(), 0
    students = list[Student]()
    for label, progress in files:
        checked = list[Checked]()
        for tried in progress.exercises:
            if time.monotonic() - begun > PATIENCE:
                left += 1
                checked.append(Checked(tried, problem="not checked yet"))
                continue
            checked.append(check(tried, make))
            done += 1
            place.progress(done / count, f"Checking {done} of {count} exercises …")
        students.append(Student(label, progress, tuple(checked)))
    place.empty()
    return students, left


def _finding(students: Sequence[Student], left: int) -> str:
    """Say who is stuck, or else how many students have right answers to all their exercises."""
    first = next(iter(stuck(students)), None)
    if first is not None and first.unsolved:
        title = plain(LESSONS[first.lesson].title)
        return f"Most stuck{' so far' if left else ''}: {title}. {first.unsolved} of {first.students} haven’t solved it"
    if left:
        return "Not all exercises are checked yet"
    count = counted(len(students), "student")
    if not any(one.begun for one in students):
        return f"{count}, no exercise tried yet"
    done = sum(one.complete for one in students)
    if done < len(students):
        return f"All exercises solved and checked: {done} of {count}"
    return f"All {count} solved all their exercises" if done > 1 else "The student solved all exercises"
