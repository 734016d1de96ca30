"""Stories tested on a scan's texts, each once for all."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from attention_viz.serving.cache import SharedCache
from attention_viz.serving.request import Request
from attention_viz.serving.runs import ask
from attention_viz.serving.scans.found import opened
from attention_viz.serving.why import pretrained

if TYPE_CHECKING:
    from attention_viz.corpus.hypotheses.testing import Tested

__all__ = ["known", "test_story"]

# Texts that are run for a story: half of them rank the heads, half test them.
_TEXTS = 80


def known(path: Path, stream: str, story: str) -> "Tested | None":
    """Return a story's result, if it has been tested."""
    return _tested.peek((path, stream, story))


def test_story(
    request: Request, path: Path, stream: str, story: str, report: Callable[[int, int], object] | None = None
) -> "Tested":
    """Test a story on a scan's texts."""
    scan = opened(path)
    return _tested.get(
        (path, stream, story),
        lambda: ask(
            request,
            lambda model: scan.test(story, stream=stream, texts=_TEXTS, model=pretrained(model), progress=report),
        ),
    )


_tested: "SharedCache[tuple[Path, str, str], Tested]" = SharedCache(
    20_000_000, lambda one: int(one.table.memory_usage(deep=True).sum())
)
