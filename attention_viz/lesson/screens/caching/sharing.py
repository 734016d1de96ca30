"""What a model stores of keys and values, and its runs with fewer of them.

Sources: Shazeer 2019, "Fast Transformer Decoding" (one set for all heads); Ainslie et al. 2023, "GQA" (groups, and the
mean of a model's sets as a start); DeepSeek-AI 2024, "DeepSeek-V2", section 2.1 and table 1 (latent vectors).
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor

from attention_viz.lesson.language import Twice
from attention_viz.lesson.scene import MOST_PRESSED, Scene
from attention_viz.lesson.translation import translate
from attention_viz.lesson.words import in_words
from attention_viz.operation.attention import Attention
from attention_viz.trace.once import once
from attention_viz.trace.trace import Trace

# DeepSeek-V2's latent vector, and the part of a key that holds the position, in widths of a head.
LATENT, ROTARY = 4, 0.5


@dataclass(frozen=True)
class ShareSets:
    """Replace a layer's sets of keys and values by fewer, the mean of neighbouring ones; an edit of all layers.

    Positions are rotations, so the mean of rotated keys is the rotated mean. Source: Ainslie et al. 2023, "GQA",
    section 2.1.
    """

    sets: int
    layer: int | None = None
    head: int | None = None
    stream: str | None = None
    kind: ClassVar[str] = "shared keys and values"
    masks_only: ClassVar[bool] = False

    def __str__(self) -> str:
        """Describe the edit for provenance."""
        return f"share: heads use {self.sets} sets of keys and values, means of the model's own, in all layers"

    def snapshot(self, real: Bool[Tensor, " query"] | None) -> "ShareSets":
        """Return the edit itself, which holds no tensor."""
        return self

    def apply(self, attention: Attention, place: tuple[str, int]) -> Attention:
        """Return the call with fewer sets."""
        key, value = (one.unflatten(0, (self.sets, -1)).mean(dim=1) for one in (attention.key, attention.value))
        return replace(attention, key=key, value=value)


class Store(NamedTuple):
    """A way to store keys and values: its label, how many sets, and the numbers per token and layer."""

    label: str
    sets: int
    numbers: int


class Pair(NamedTuple):
    """Two heads of a set, and the key whose weights differ most between them."""

    heads: tuple[int, int]
    key: int
    weights: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Cached:
    """The text's run through a language model, and the numbers that each way to store keys and values needs."""

    scene: Scene

    @property
    def model(self) -> str:
        """The real model's name, or the toy's."""
        return Twice(self.scene).model

    @once
    def trace(self) -> Trace:
        """The model's run."""
        return self.run(())

    def run(self, edits: tuple[ShareSets, ...]) -> Trace:
        """Run the model on the reader's text, or the toy on its own words."""
        return self.scene.run(self.model, Twice(self.scene).typed, edits=edits)

    @property
    def layers(self) -> int:
        """How many layers it has."""
        return len(self.trace.layer_numbers())

    @property
    def first(self) -> Attention:
        """The first layer's call: others have the same shape."""
        return self.trace.attention(self.trace.layer_numbers()[0])

    @once
    def stores(self) -> Mapping[str, Store]:
        """Count each way's numbers per token and layer, widest first."""
        heads = self.first.shape[0]
        shared = self.own if 1 < self.own < heads else max(1, heads // 2)
        latent = int((LATENT + ROTARY) * self.first.key.shape[-1])
        return {
            "each": Store(translate("one set per head"), heads, self.numbers(heads)),
            "grouped": Store(
                translate("one set for {heads} heads", heads=heads // shared), shared, self.numbers(shared)
            ),
            "one": Store(translate("one set for all heads"), 1, self.numbers(1)),
            "latent": Store(translate("a latent vector"), 0, latent),
        }

    def numbers(self, sets: int) -> int:
        """Count the numbers of some sets, per token and layer."""
        return sets * (self.first.key.shape[-1] + self.first.value.shape[-1])

    @property
    def own(self) -> int:
        """How many sets the model has."""
        return self.first.key.shape[0]

    def with_sets(self, sets: int) -> Trace:
        """Run the model with fewer sets; more are copies, which change nothing."""
        return self.trace if sets >= self.own else self.run((ShareSets(sets),))

    @property
    def asking(self) -> int:
        """The pressed token's position, or the last one's."""
        last, word = min(len(self.trace.query_tokens()), MOST_PRESSED) - 1, self.scene.word
        return word if word is not None and word <= last else last

    def row(self, trace: Trace, layer: int) -> Float[Tensor, "head key"]:
        """Return every head's weights of the asking token, blocked keys left out."""
        return trace.attention(layer).rows([self.asking]).weights[:, 0, : self.asking + 1].detach().double().cpu()

    @once
    def layer(self) -> int:
        """The layer whose heads of a set differ most, on average, for the asking token."""
        sets = self.stores["grouped"].sets

        def apart(layer: int) -> float:
            rows = self.row(self.trace, layer).unflatten(0, (sets, -1))
            return float((rows[:, :, None] - rows[:, None]).abs().sum(dim=-1).mean())

        return max(self.trace.layer_numbers(), key=apart)

    def pair(self, sets: int) -> Pair:
        """Find the two heads of a set that differ most at one key."""
        rows = self.row(self.with_sets(sets), self.layer)
        size = len(rows) // sets
        found = list[tuple[float, int, int, int]]()
        for one, other in itertools.combinations(range(len(rows)), 2):
            if one // size == other // size:
                gap, key = (rows[one] - rows[other]).abs().max(dim=0)
                found.append((float(gap), -one, -other, int(key)))
        _, one, other, key = max(found)
        return Pair((-one, -other), key, (float(rows[-one, key]), float(rows[-other, key])))

    def moved(self, sets: int) -> float:
        """Return the share of probability that moves to other next tokens, the mean over positions."""
        before, after = (
            one.output.detach().double().cpu().softmax(dim=-1) for one in (self.trace, self.with_sets(sets))
        )
        return float((before - after).abs().sum(dim=-1).mean()) / 2

    def name(self, position: int) -> str:
        """Shorten a token for a sentence."""
        return in_words(self.trace.query_tokens().names[position])
