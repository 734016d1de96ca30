"""A head's examples from a scan, as tokens."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from attention_viz.corpus.tables import records_of
from attention_viz.serving.cache import SharedCache
from attention_viz.serving.request import Request
from attention_viz.serving.runs import ask
from attention_viz.serving.scans.found import opened
from attention_viz.serving.why import pretrained

if TYPE_CHECKING:
    from attention_viz.protocol.model import Model

__all__ = ["Example", "examples_of"]

Place = tuple[str, int, int]


@dataclass(frozen=True)
class Example:
    """A query and the key with its largest weight.

    Attributes:
        tenth: by lot, the tenth of texts by the metric; 0 of the strongest.
        tokens: readable; none if the model's own words.
    """

    kind: str
    tenth: int
    said: str
    tokens: tuple[str, ...]
    query: int
    key: int
    weight: float


def examples_of(request: Request, path: Path, place: Place, metric: str) -> tuple[Example, ...]:
    """Return a head's examples: strongest, then some by lot."""
    return _examples.get((path, place, metric), lambda: _made(request, path, place, metric))


def _made(request: Request, path: Path, place: Place, metric: str) -> tuple[Example, ...]:
    scan = opened(path)
    rows = records_of(scan.of(place[0]).examples(*place[1:], metric))
    # Of a translation the words that ask are the model's own, which no tokenizer tells of the text.
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
