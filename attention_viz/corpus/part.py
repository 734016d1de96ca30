"""A corpus part: its sums, example texts, and the others' fate."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
from safetensors import SafetensorError
from safetensors.numpy import load, save

from attention_viz.corpus.regions import RegionSums
from attention_viz.corpus.tally import Tally
from attention_viz.errors import ScanError

_TOLD = "told"


@dataclass(frozen=True, eq=False)
class CorpusPart:
    """A chunk, or all chunks from the start.

    Attributes:
        texts: by number, of examples or kept at random; with images as `Pictured` entries.
        cut: number shortened.
        skipped: number with nothing to read.
        regions: of texts with images.
    """

    tally: Tally
    texts: dict[int, str]
    read: int = 0
    cut: int = 0
    skipped: int = 0
    tokens: int = 0
    regions: RegionSums | None = None

    @classmethod
    def empty(cls, heads: int) -> "CorpusPart":
        """Of no text."""
        return cls(Tally.empty(heads), {})

    def and_then(self, other: "CorpusPart") -> "CorpusPart":
        """With the chunk that follows."""
        tally, regions = self.tally.and_then(other.tally), self.regions or other.regions
        if self.regions is not None and other.regions is not None:
            regions = self.regions.and_then(other.regions)
        kept = tally.referred | (frozenset() if regions is None else regions.referred)
        both = {**self.texts, **other.texts}
        return CorpusPart(
            tally,
            {number: both[number] for number in sorted(kept)},
            self.read + other.read,
            self.cut + other.cut,
            self.skipped + other.skipped,
            self.tokens + other.tokens,
            regions,
        )

    def to_bytes(self, **more: Any) -> bytes:
        """Return one safetensors file, with other data as JSON."""
        every = {**self.tally.arrays(), **({} if self.regions is None else self.regions.arrays())}
        arrays = {name: numpy.array(array, order="C") for name, array in every.items()}
        facts = {
            "texts": {str(number): text for number, text in self.texts.items()},
            **{name: getattr(self, name) for name in ("read", "cut", "skipped", "tokens")},
            **more,
        }
        return save(arrays, metadata={_TOLD: json.dumps(facts, sort_keys=True)})

    @classmethod
    def of_bytes(cls, content: bytes) -> "tuple[CorpusPart, dict[str, Any]]":
        """Read `to_bytes`, with its other data."""
        length = int.from_bytes(content[:8], "little")
        found = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][_TOLD])
        texts = {int(number): str(text) for number, text in found.pop("texts").items()}
        counts = {name: int(found.pop(name)) for name in ("read", "cut", "skipped", "tokens")}
        arrays = load(content)
        return cls(Tally.of_arrays(arrays), texts, **counts, regions=RegionSums.of_arrays(arrays)), found

    @classmethod
    def of_file(cls, path: str) -> "tuple[CorpusPart, dict[str, Any]]":
        """Read `to_bytes` from a file."""
        try:
            return cls.of_bytes(Path(path).read_bytes())
        except (SafetensorError, KeyError, ValueError) as error:
            raise ScanError(f"{path} is damaged: {error}; remove its folder and scan again") from None
