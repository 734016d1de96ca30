"""Regions of images that words attend to, summed over a corpus."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy

from attention_viz.analysis.findings.scene import StreamScene
from attention_viz.analysis.findings.word_regions import regions_by_head, words_beside
from attention_viz.corpus.one_text import Heads, heads_of
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas
    from numpy.typing import NDArray

# A head attends to one region if it does so for so many of the words.
MOSTLY = 0.5
ONE_REGION = "attends to one region"


@dataclass(frozen=True, eq=False)
class RegionSums:
    """Sums per head: words, words that attend to one region, their weight on it, and how many times its area that is.

    Attributes:
        sums: those four, (4, head).
        best: the strongest word's score, text, query and key, (4, head); −1 without one.
    """

    sums: "NDArray[Any]"
    best: "NDArray[Any]"

    @classmethod
    def empty(cls, heads: int) -> "RegionSums":
        """Of no text."""
        return cls(numpy.zeros((4, heads)), numpy.full((4, heads), -1.0))

    @classmethod
    def of(cls, trace: Trace, streams: tuple[str, ...]) -> "RegionSums":
        """Measure one text; zeros in streams without words beside an image."""
        return joined([_of_stream(trace, stream) for stream in streams])

    def and_then(self, other: "RegionSums") -> "RegionSums":
        """Add later texts."""
        return RegionSums(self.sums + other.sums, numpy.where(other.best[0] > self.best[0], other.best, self.best))

    @property
    def referred(self) -> frozenset[int]:
        """Return the texts of strongest words."""
        return frozenset(self.best[1].astype(int).tolist()) - {-1}

    def arrays(self) -> "dict[str, NDArray[Any]]":
        """Return both arrays by name, for a file."""
        return {"regions.sums": self.sums, "regions.best": self.best}

    @classmethod
    def of_arrays(cls, arrays: "Mapping[str, NDArray[Any]]") -> "RegionSums | None":
        """Read `arrays`; None if there are none."""
        return cls(arrays["regions.sums"], arrays["regions.best"]) if "regions.sums" in arrays else None

    def in_text(self, number: int) -> "RegionSums":
        """Name the text of the strongest words."""
        best = self.best.copy()
        best[1] = numpy.where(best[0] >= 0, number, -1)
        return RegionSums(self.sums, best)


def joined(parts: list[RegionSums]) -> RegionSums:
    """Join streams' heads."""
    return RegionSums(
        numpy.concatenate([one.sums for one in parts], axis=1), numpy.concatenate([one.best for one in parts], axis=1)
    )


def _of_stream(trace: Trace, stream: str) -> RegionSums:
    if not trace.query_tokens(stream).patches or stream in trace.mixers:
        return RegionSums.empty(len(heads_of(trace, stream)))
    scene, parts = StreamScene(trace, stream), list[RegionSums]()
    rows = words_beside(scene) if scene.alike else []
    for layer in trace.layer_numbers(stream):
        part = RegionSums.empty(trace.head_count(layer, stream))
        for head, (words, found) in enumerate(regions_by_head(scene, layer, rows) if rows else ()):
            part.sums[:, head] = (
                words,
                len(found),
                sum(one.share for _, one in found),
                sum(one.times for _, one in found),
            )
            if found:
                word, one = max(found, key=lambda each: each[1].share * (1 - each[1].area))
                query = scene.queries.pieces[word][-1]
                part.best[:, head] = one.share * (1 - one.area), -1, query, one.heaviest
        parts.append(part)
    return joined(parts)


def table_of_regions(found: RegionSums, heads: Heads) -> "pandas.DataFrame":
    """Return a row per head that reads words beside an image."""
    import pandas

    words, regions, weight, times = found.sums
    read = words > 0
    with numpy.errstate(divide="ignore", invalid="ignore"):
        share, weight, times = regions / words, weight / regions, times / regions
    places = {
        name: numpy.array(column)[read]
        for name, column in zip(("stream", "layer", "head"), zip(*heads, strict=True), strict=True)
    }
    numbers = {"words": words.astype(int), "regions": regions.astype(int), "share": share, "weight": weight}
    best = dict(zip(("text", "query", "key"), found.best[1:].astype(int), strict=True))
    columns = {name: one[read] for name, one in {**numbers, "times": times, **best}.items()}
    label = numpy.where(share[read] >= MOSTLY, ONE_REGION, "")
    return pandas.DataFrame({**places, "label": pandas.Series(label, dtype="str"), **columns})
