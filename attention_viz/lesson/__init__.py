"""The course: what a learner is told, in order, with every number computed from the reader's own sentence.

Names load on first use, so that a page can list what there is without waiting for torch.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attention_viz.lesson.exercise import Exercise as Exercise
    from attention_viz.lesson.exercises import EXERCISES as EXERCISES
    from attention_viz.lesson.exercises import answer_sheet as answer_sheet
    from attention_viz.lesson.glossary import TERMS as TERMS
    from attention_viz.lesson.lesson import Control as Control
    from attention_viz.lesson.lesson import Lesson as Lesson
    from attention_viz.lesson.lesson import Shown as Shown
    from attention_viz.lesson.lessons import LESSONS as LESSONS
    from attention_viz.lesson.scene import Scene as Scene
    from attention_viz.lesson.telling import told as told

_HOMES = {
    "Control": "lesson",
    "EXERCISES": "exercises",
    "Exercise": "exercise",
    "LESSONS": "lessons",
    "Lesson": "lesson",
    "Scene": "scene",
    "Shown": "lesson",
    "TERMS": "glossary",
    "answer_sheet": "exercises",
    "told": "telling",
}

__all__ = list(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll] -- resolved by __getattr__


def __getattr__(name: str) -> object:
    """Load a public name on first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
