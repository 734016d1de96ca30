"""The table of the course in the docs says what the code says, and each subject of it is found where it says."""

import re
from pathlib import Path

from attention_viz.lesson import EXERCISES, LESSONS, Scene, lesson_text
from attention_viz.lesson.scene import RunText
from attention_viz.ui.parts.menu import PAGES

_COURSE = (Path(__file__).parents[2] / "docs" / "lessons.md").read_text("utf-8")


def test_every_lesson_and_exercise_stands_in_the_table_of_the_course_as_in_the_code() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (\d+) \| \*(.+)\* \| `(\w+)`: (.+) \|$", _COURSE, re.MULTILINE)
    assert rows == [
        (name, one.title, str(one.minutes), one.control.label, one.exercise, EXERCISES[one.exercise].label)
        for name, one in LESSONS.items()
    ]
    assert {row[4] for row in rows} == set(EXERCISES)


def test_every_subject_is_found_on_a_lesson_that_opens_or_on_a_page_that_there_is(run: RunText) -> None:
    table = _COURSE.partition("## What is taught where")[2]
    rows = re.findall(r"^\| ([^|]+) \| (?:`(\w+)`)? ?\| ?(.*) ?\|$", table, re.MULTILINE)
    taught = [(subject, lesson) for subject, lesson, _ in rows if lesson]
    assert {lesson for _, lesson in taught} == set(LESSONS)
    assert len(set(taught)) == len(taught)
    for name in {lesson for _, lesson in taught}:
        shown = LESSONS[name].show(Scene("The bank of the river was flooded", run))
        assert shown.figure.data or shown.figure.layout.shapes
        assert "{{" not in lesson_text(name, shown.facts)
    labels = {Path(page).stem: label for label, page in PAGES.items()}
    for subject, lesson, pages in rows:
        found = re.findall(r"\[([^]]+)\]\(pages/(\w+)\.md\)", pages)
        assert lesson or found, f"“{subject}” is found nowhere"
        for label, page in found:
            assert labels["app" if page == "explore" else page] == label
