"""A stream as findings see it: its words and searched rows."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attention_viz.analysis.measured import looks_back
from attention_viz.analysis.places import after_the_sound, patches_beside_words, sample_of
from attention_viz.analysis.words import Words, words_of
from attention_viz.trace.kind import CROSSING_STREAMS, stream_kind
from attention_viz.trace.once import once
from attention_viz.trace.slots import has_target
from attention_viz.trace.trace import Trace

# Weights that are looked through at most; of a longer text the rows of a sample of its words.
MOST_WEIGHTS = 2**25


@dataclass(frozen=True, eq=False)
class StreamScene:
    """A stream and its axes' words."""

    trace: Trace
    stream: str

    @once
    def queries(self) -> Words:
        """Return the words down the rows."""
        return words_of(self.trace.query_tokens(self.stream))

    @once
    def keys(self) -> Words:
        """Return the words across the columns."""
        return self.queries if self.alike else words_of(self.trace.key_tokens(self.stream))

    @once
    def alike(self) -> bool:
        """Whether queries and keys are the same text."""
        queries, keys = self.trace.query_tokens(self.stream), self.trace.key_tokens(self.stream)
        return self.stream not in CROSSING_STREAMS and queries == keys

    @property
    def writes(self) -> bool:
        """Whether the queries are the words that a decoder writes."""
        return self.stream == "cross" and has_target(self.trace.attention_streams)

    @once
    def looks_back(self) -> bool:
        """Whether no query looks ahead."""
        return looks_back(self.trace, self.stream)

    @once
    def last(self) -> int | None:
        """Return the last word, whose row predicts the next, or None."""
        reads = stream_kind(self.stream) == "decoder" or (self.stream in self.trace.mixers and self.looks_back)
        if not reads or has_target(self.trace.attention_streams):
            return None
        return max((word for word, kind in enumerate(self.queries.kinds) if kind != "padding"), default=None)

    @once
    def asked(self) -> tuple[int, ...]:
        """Return the searched words, rising; a meaningful sample of long texts."""
        words = self._words
        if self.is_sampled:
            telling = [word for word in words if self.queries.kinds[word] in ("content", "pronoun")]
            words = list(sample_of(telling, max(1, len(words) * self._room // self._count(words))))
        return tuple(sorted({*words, *([] if self.last is None else [self.last])}))

    @once
    def is_sampled(self) -> bool:
        """Whether the text is too long to search the rows of all words."""
        return self._count(self._words) > self._room

    @once
    def _words(self) -> list[int]:
        """Return the words whose rows can be news."""
        mute = self.unheard(self.queries) | self._pictured | self._templated
        kinds = enumerate(self.queries.kinds)
        return [word for word, kind in kinds if kind not in ("special", "padding") and word not in mute]

    @once
    def _room(self) -> int:
        """Return how many rows may be searched."""
        shapes = [self.trace.attention(layer, self.stream).shape for layer in self.trace.layer_numbers(self.stream)]
        return MOST_WEIGHTS // max(1, sum(heads * keys for heads, _, keys in shapes))

    def _count(self, words: list[int]) -> int:
        return sum(len(self.queries.pieces[word]) for word in words)

    @once
    def _pictured(self) -> frozenset[int]:
        """Return an image's patches beside words: the words ask about them."""
        patches = patches_beside_words(self.queries.tokens)
        return frozenset(word for word, (first, *_) in enumerate(self.queries.pieces) if first in patches)

    @once
    def _templated(self) -> frozenset[int]:
        """Return the words that a chat template wrote around the messages."""
        trace = self.trace
        if not trace.provenance.chat or not trace.segments or not self.alike or self.stream != trace.text_stream:
            return frozenset()
        said = {position for one in trace.segments for position in range(one.start, one.end)}
        return frozenset(word for word, (first, *_) in enumerate(self.queries.pieces) if first not in said)

    @once
    def rows(self) -> tuple[int, ...]:
        """The positions of these words."""
        return tuple(position for word in self.asked for position in self.queries.pieces[word])

    @once
    def resting(self) -> frozenset[int]:
        """Return sink words: special ones, and a decoder's first."""
        kinds = self.keys.kinds
        sink = self.looks_back and self.stream not in self.trace.mixers
        first = [next((word for word, kind in enumerate(kinds) if kind != "padding"), 0)] if sink else []
        mute = (word for word, kind in enumerate(kinds) if kind in ("special", "padding"))
        return frozenset((*first, *mute)) | self.unheard(self.keys) | self._templated

    def unheard(self, words: Words) -> frozenset[int]:
        """Return the silent frames that pad a sound."""
        after = after_the_sound(self.trace.seen, words.tokens)
        return frozenset(word for word, (first, *_) in enumerate(words.pieces) if after[first])

    def apart(self, asked: Int[Tensor, "row 1"]) -> Float[Tensor, "row word"]:
        """Return distances to some words, in words or patches; 0 for non-patches."""
        columns = torch.arange(len(self.keys.pieces))
        patches, none = self.keys.tokens.patches, (torch.nan, torch.nan)
        if not patches:
            return (asked - columns).abs().float()
        grid = torch.tensor([patches.get(first, none) for first, *_ in self.keys.pieces], dtype=torch.float32)
        return (grid[asked[:, 0], None] - grid).norm(dim=-1).nan_to_num(0)
