"""The course: every lesson by name, in order. Adding one is a file in `screens`, a text, and a line here."""

from attention_viz.lesson.lesson import Lesson
from attention_viz.lesson.screens import why

__all__ = ["LESSONS"]

LESSONS: dict[str, Lesson] = {
    "why": why.LESSON,
}
