"""Scans of a model's weights, their examples and tested hypotheses, each made once.

A scan is named by its folder alone, so no URL reveals paths.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from attention_viz.corpus.shipped import CORPUS, scans
from attention_viz.corpus.tables import records_of
from attention_viz.serving.cache import SharedCache
from attention_viz.serving.run import Request
from attention_viz.serving.runs import ask
from attention_viz.serving.settings import SETTINGS
from attention_viz.serving.why import pretrained

if TYPE_CHECKING:
    from attention_viz.corpus.hypotheses.testing import Tested
    from attention_viz.corpus.scan import Scan
    from attention_viz.protocol.model import Model

# The most folders to search, and the most bytes of opened scans to cache.
_MOST, _ROOM = 500, 100_000_000


def offered(sha256: str | None) -> Mapping[str, Path]:
    """Return finished scans, a shipped one first; `sha256` may be None."""
    if sha256 is None:
        return {}
    ours = [(CORPUS.stem, path) for path in scans().values()]
    theirs = [(path.name, path) for path in _folders()]
    found = dict[str, Path]()
    for name, path in ours + theirs:
        if name not in found and _is_of(path, sha256):
            found[name] = path
    return found


def opened(path: Path) -> "Scan":
    """Load a scan."""
    from attention_viz.corpus.scan import Scan

    # Scanned anew, it is another.
    changed = (path / "manifest.json").stat().st_mtime_ns
    return _scans.get((path, changed), lambda: Scan.load(path))


def _folders() -> Iterator[Path]:
    """Yield scan folders in the operator's, by name, without links."""
    seen = 0
    for root in SETTINGS.scans:
        if not root.is_dir():
            continue
        for path in sorted(root.iterdir()):
            seen += 1
            if seen > _MOST:
                return
            if path.is_dir() and not path.is_symlink():
                yield path


def _is_of(path: Path, sha256: str) -> bool:
    try:
        manifest = json.loads((path / "manifest.json").read_text("utf-8"))
        return bool(manifest["complete"]) and manifest["model"]["sha256"] == sha256
    except (OSError, ValueError, KeyError, TypeError):
        return False


_scans: "SharedCache[tuple[Path, int], Scan]" = SharedCache(_ROOM, lambda one: one.nbytes)


Place = tuple[str, int, int]


@dataclass(frozen=True)
class Example:
    """A query and the key with its largest weight; `tenth` ranks its text by mean metric, 1 to 10; else 0."""

    kind: str
    tenth: int
    said: str
    tokens: tuple[str, ...]
    query: int
    key: int
    weight: float


def examples_of(request: Request, path: Path, place: Place, metric: str) -> tuple[Example, ...]:
    """Return a head's examples: the strongest, then some at random."""
    return _examples.get((path, place, metric), lambda: _made(request, path, place, metric))


def _made(request: Request, path: Path, place: Place, metric: str) -> tuple[Example, ...]:
    scan = opened(path)
    rows = records_of(scan.of(place[0]).examples(*place[1:], metric))
    # In a translation, the query words are the model's own output, so tokenizing the text doesn't give them.
    own = len(scan.streams) > 1
    said = [str(row["said"]) for row in rows]
    tokens = [()] * len(said) if own else ask(request, lambda model: _tokens(model, said))
    return tuple(
        Example(row["kind"], row["tenth"], text, words, row["query"], row["key"], row["weight"])
        for row, text, words in zip(rows, said, tokens, strict=True)
    )


def _tokens(model: "Model", said: list[str]) -> list[tuple[str, ...]]:
    reader = pretrained(model)
    return [reader.tokens_of(text).written for text in said]


_examples: "SharedCache[tuple[Path, Place, str], tuple[Example, ...]]" = SharedCache(
    10_000_000, lambda some: 200 + sum(60 * (len(one.tokens) + 10) for one in some)
)


# Texts that are run for a story: half of them rank the heads, half test them.
_TEXTS = 80


def known(path: Path, stream: str, story: str) -> "Tested | None":
    """Return a hypothesis's result, if it was tested."""
    return _tested.peek((path, stream, story))


def test_story(
    request: Request, path: Path, stream: str, story: str, report: Callable[[int, int], object] | None = None
) -> "Tested":
    """Test a hypothesis on a scan's texts."""
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
