"""A small course, written once: questions of three kinds, answers of three kinds."""

from pathlib import Path

import pytest

from attention_viz.lesson.export.writing import write_course
from attention_viz.lesson.scene import RunText

TEXT = "The bank of the river was flooded"
# What ends a script or a line, another direction, formulas, and what our own marks look like; each is two words or more.
HOSTILE = (
    "</script><img src=x onerror=a>",
    "a\u2028b \ue0000\ue001 שלום {{word}} $x^2$ **c**",
    "<b>bold</b> &amp; [t](term:head)",
)
LESSONS = ("why", "scores", "masks")


@pytest.fixture(scope="session")
def course(run: RunText, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a course of three lessons with two texts, and two exercises each."""
    out = tmp_path_factory.mktemp("course")
    made = write_course(out, (TEXT, "The cat sat because it was tired."), run, lessons=LESSONS, seeds=(0, 7))
    assert made.lacking == ()
    return out


@pytest.fixture(scope="session")
def hostile(run: RunText, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a course about texts that would break a page."""
    out = tmp_path_factory.mktemp("hostile")
    write_course(out, HOSTILE, run, lessons=("why", "plain"), seeds=(0,))
    return out
