"""A lesson's runs, and lessons on paper."""

from collections.abc import Callable, Sequence

from attention_viz.edits.edit import Edit
from attention_viz.lesson import Scene
from attention_viz.lesson.export.handouts import paper
from attention_viz.lesson.translation import current_language, in_language
from attention_viz.serving.models import facts_of
from attention_viz.serving.run import Request
from attention_viz.serving.runs import run_request
from attention_viz.trace.kind import MEDIA
from attention_viz.trace.trace import Trace


def run_lesson(
    model: str, text: str, *, edits: Sequence[Edit] = (), beside: str | None = None, picture: str = ""
) -> Trace:
    """Limit concurrent runs; don't cache a lesson's dozens (one per head) for all visitors."""
    asked = Request(model, shown=text) if facts_of(model).reads in MEDIA else Request(model, text, shown=picture)
    return run_request(asked, beside=beside, edits=edits, cached=not edits).trace


def paper_maker(kind: str, lessons: Sequence[str], scene: Scene, seed: int) -> Callable[[], bytes]:
    """Return a function that makes a file of lessons to print, in the language of now."""
    language = current_language()

    def make() -> bytes:
        with in_language(language):
            return paper(kind, lessons, scene, seed).encode()

    return make
