"""A head of the induction toy and its logits."""

from collections.abc import Mapping
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from attention_viz.circuits.asked import Logit
from attention_viz.circuits.decomposition import decompose_run
from attention_viz.circuits.opened import open_alone
from attention_viz.circuits.writing import written_logits
from attention_viz.edits.kinds.ablation import Ablate
from attention_viz.lesson.composed import TOY_WORDS, Composed
from attention_viz.lesson.language import TOY
from attention_viz.lesson.scene import Scene
from attention_viz.models.loading.snapshots import snapshot_name
from attention_viz.trace.once import once
from attention_viz.trace.trace import Trace

__all__ = ["WrittenBy"]


@dataclass(frozen=True, eq=False)
class WrittenBy:
    """A head's logits at a repeated word.

    Attributes:
        at: the repeated word's place.
        head: layer and head; None for the induction head.
    """

    scene: Scene
    at: int
    head: tuple[int, int] | None = None
    words: tuple[str, ...] = TOY_WORDS

    @once
    def pair(self) -> Composed:
        """Return the words with the induction head."""
        return Composed(self.scene, self.at, words=self.words)

    @property
    def trace(self) -> Trace:
        """The run."""
        return self.pair.trace

    @property
    def query(self) -> int:
        """Return the repeated word's second position."""
        return self.pair.query

    @property
    def place(self) -> tuple[int, int]:
        """Layer and head."""
        return self.head or self.pair.reader

    @property
    def ids(self) -> tuple[int, ...]:
        """Of each word, its token."""
        start = self.pair.start
        return tuple(self.trace.query_tokens().numbers[start : start + len(self.words)])

    @once
    def row(self) -> Float[Tensor, " key"]:
        """The head's weights at the word."""
        return self.trace.weights(*self.place)[self.query]

    @once
    def added(self) -> Mapping[str, float]:
        """Return the head's logits of the words, minus the vocabulary's mean."""
        run, opened = open_alone(self.trace)
        (stream,) = self.trace.streams
        logits = written_logits(run, opened, self.trace, stream, *self.place, self.query)
        logits = logits - logits.mean()
        return {word: float(logits[token]) for word, token in zip(self.words, self.ids, strict=True)}

    @once
    def likely(self) -> Mapping[str, float]:
        """Return the toy's probability of each word there."""
        return self._likely(self.trace)

    @once
    def likely_without(self) -> Mapping[str, float]:
        """The same where the head is silenced."""
        edits = (Ablate(*self.place),)
        return self._likely(self.scene.run(snapshot_name(TOY, self.pair.step), self.pair.text, edits=edits))

    def _likely(self, trace: Trace) -> Mapping[str, float]:
        shares = trace.output[self.query].float().softmax(dim=-1)
        return {word: float(shares[token]) for word, token in zip(self.words, self.ids, strict=True)}

    def sources(self, word: str) -> Mapping[int, tuple[float, float]]:
        """Return by position the weight, and a weight of 1's addition to a word's logit."""
        token = self.ids[self.words.index(word)]
        table = decompose_run(self.trace, Logit(token, self.query)).sources(*self.place)
        rows = table[table["position"] == self.query]
        found = zip(rows["source"], rows["weight"], rows["contribution"], strict=True)
        return {int(at): (float(weight), float(number) / float(weight)) for at, weight, number in found if weight > 0}
