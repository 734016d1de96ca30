"""Lessons on paper."""

from collections.abc import Callable, Sequence

from attention_viz.lesson import Scene
from attention_viz.lesson.export.handouts import paper
from attention_viz.lesson.translation import current_language, in_language


def paper_maker(kind: str, lessons: Sequence[str], scene: Scene, seed: int) -> Callable[[], bytes]:
    """Return a function that makes a file of lessons to print, in the language of now."""
    language = current_language()

    def make() -> bytes:
        with in_language(language):
            return paper(kind, lessons, scene, seed).encode()

    return make
