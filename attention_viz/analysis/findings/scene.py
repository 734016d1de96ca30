"""One stream of a run as findings are looked for in it: its words, the rows that are asked, their weights."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.analysis.sample import sample_of
from attention_viz.analysis.words import Words
from attention_viz.operation.attention import is_causal
from attention_viz.trace.once import once
from attention_viz.trace.trace import Trace

__all__ = ["Scene"]

# Weights that are looked through at most; of a longer text the rows of a sample of its words.
_CELLS = 2**25
# Weights that are made at a time: 4 MiB in float32.
_AT_ONCE = 2**20


@dataclass(frozen=True, eq=False)
class Scene:
    """One stream of a run, and the words along its axes.

    Attributes:
        trace: the run.
        stream: which attention.
    """

    trace: Trace
    stream: str

    @once
    def queries(self) -> Words:
        """The words down the rows."""
        return Words(self.trace.query_tokens(self.stream))

    @once
    def keys(self) -> Words:
        """The words across the columns."""
        return self.queries if self.alike else Words(self.trace.key_tokens(self.stream))

    @property
    def alike(self) -> bool:
        """Whether queries and keys are the same text."""
        return self.stream != "cross"

    @once
    def looks_back(self) -> bool:
        """Whether no query looks ahead."""
        first = self.trace.attention(self.trace.layer_numbers(self.stream)[0], self.stream)
        return self.stream == "decoder" or (self.alike and is_causal(first.allowed, first.shape[-2:]))

    @once
    def last(self) -> int | None:
        """The last word, in whose row the next is told; None where none is."""
        if self.stream != "decoder" or "cross" in self.trace.streams:
            return None
        return max((word for word, kind in enumerate(self.queries.kinds) if kind != "padding"), default=None)

    @once
    def asked(self) -> tuple[int, ...]:
        """The words whose rows are looked through, rising: of a long text a sample of those with a meaning."""
        kinds = self.queries.kinds
        words = [word for word, kind in enumerate(kinds) if kind not in ("special", "padding")]
        shapes = [self.trace.attention(layer, self.stream).shape for layer in self.trace.layer_numbers(self.stream)]
        room = _CELLS // max(1, sum(heads * keys for heads, _, keys in shapes))
        tokens = sum(len(self.queries.pieces[word]) for word in words)
        if tokens > room:
            telling = [word for word in words if kinds[word] in ("content", "pronoun")]
            words = list(sample_of(telling, max(1, len(words) * room // tokens)))
        return tuple(sorted({*words, *([] if self.last is None else [self.last])}))

    @once
    def rows(self) -> tuple[int, ...]:
        """The positions of these words."""
        return tuple(position for word in self.asked for position in self.queries.pieces[word])

    @once
    def resting(self) -> frozenset[int]:
        """The words that no sentence names as looked at: special ones, and where none looks ahead the first of all."""
        kinds = self.keys.kinds
        first = [next((word for word, kind in enumerate(kinds) if kind != "padding"), 0)] if self.looks_back else []
        return frozenset((*first, *(word for word, kind in enumerate(kinds) if kind in ("special", "padding"))))

    def blocks(self) -> Iterator[tuple[list[tuple[int, int]], Float[Tensor, "head row key"]]]:
        """The weights of these rows, some heads at a time: layer and number of each head, and its weights."""
        heads, weights, cells = list[tuple[int, int]](), list[Tensor](), 0
        for layer in self.trace.layer_numbers(self.stream):
            call = self.trace.attention(layer, self.stream)
            some = call if len(self.rows) == call.shape[-2] else call.rows(self.rows)
            if cells and cells + math.prod(some.shape) > _AT_ONCE:
                yield heads, torch.cat(weights)
                heads, weights, cells = [], [], 0
            heads += [(layer, head) for head in range(some.shape[0])]
            weights.append(some.weights.detach().float().cpu().nan_to_num(0))
            cells += math.prod(some.shape)
        yield heads, torch.cat(weights)
