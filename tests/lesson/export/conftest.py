"""A small course, written once: questions of three kinds, answers of three kinds."""

from pathlib import Path

import pytest

from attention_viz.lesson.export.writing import write_course
from attention_viz.lesson.scene import RunText

TEXT = "The bank of the river was flooded"
# Markup, quotes, what ends a script or a line, another direction, a formula, and what our own marks look like.
HOSTILE = (
    "</script><img src=x onerror=alert(1)> $x^2$ `b` **c** {{word}} שלום \ue0000\ue001 a\u2028b &amp; [t](term:head)"
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
    """The folder of a course about a text that would break a page."""
    out = tmp_path_factory.mktemp("hostile")
    write_course(out, (HOSTILE,), run, lessons=("why", "plain", "softmax"), seeds=(0,))
    return out
