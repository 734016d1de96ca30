"""Heads of the induction toy: two composed, and one's addition to logits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.circuits.asked import Logit, Score
from attention_viz.circuits.decomposition import Decomposition, decompose_run
from attention_viz.circuits.opened import open_alone
from attention_viz.circuits.writing import written_logits
from attention_viz.edits.kinds.ablation import Ablate
from attention_viz.lesson.language import TOY
from attention_viz.lesson.scene import Scene
from attention_viz.models import SNAPSHOTS
from attention_viz.models.loading.snapshots import snapshot_name
from attention_viz.sources import CATALOGUE
from attention_viz.trace.once import once
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas

# Training steps with a checkpoint, and the words that the toy knows, each once.
STEPS = tuple(SNAPSHOTS[TOY])
TOY_WORDS = tuple(dict.fromkeys(CATALOGUE[TOY].examples[0].split()))


@dataclass(frozen=True, eq=False)
class Composed:
    """The toy's run on repeated words after some training; `at` is the repeated word's place."""

    scene: Scene
    at: int
    step: int = STEPS[-1]
    words: tuple[str, ...] = TOY_WORDS

    @property
    def text(self) -> str:
        """The toy's input."""
        return " ".join(self.words * 2)

    @once
    def trace(self) -> Trace:
        """The run after `step` training steps."""
        return self.moment(self.step)

    def moment(self, step: int) -> Trace:
        """Run the toy after `step` training steps."""
        return self.scene.run(snapshot_name(TOY, step), self.text)

    @property
    def start(self) -> int:
        """The first word's position, after special tokens."""
        return len(self.trace.query_tokens()) - 2 * len(self.words)

    @property
    def query(self) -> int:
        """The repeated word's second position."""
        return self.start + len(self.words) + self.at

    @property
    def key(self) -> int:
        """The position after its first occurrence."""
        return self.start + self.at + 1

    @once
    def reader(self) -> tuple[int, int]:
        """The trained toy's strongest induction head, over all repeated words."""
        trained, count = self.moment(STEPS[-1]), len(self.words)
        keys = torch.arange(self.start + 1, self.start + count + 1)
        heads = [(layer, head) for layer in trained.layer_numbers()[1:] for head in range(trained.head_count(layer))]
        return max(heads, key=lambda place: float(trained.weights(*place)[keys + count - 1, keys].mean()))

    @once
    def writer(self) -> tuple[int, int]:
        """The earlier head (layer, head) writing most of the key in the trained toy."""
        found = self if self.step == STEPS[-1] else Composed(self.scene, self.at, words=self.words)
        parts = {(layer, head): number for (kind, layer, head), number in found.parts.items() if kind == "head"}
        layer, head = max(parts, key=parts.__getitem__)
        assert layer is not None and head is not None  # a head has both
        return layer, head

    @once
    def opened(self) -> Decomposition:
        """The induction head's score, decomposed."""
        layer, head = self.reader
        return decompose_run(self.trace, Score(layer, head, self.query, self.key))

    @once
    def parts(self) -> Mapping[tuple[str, int | None, int | None], float]:
        """Each part's contribution to the score; they sum to it."""
        found: dict[tuple[str, int | None, int | None], float] = {}
        for row in self._side(self.opened.table).to_dict("records"):
            layer, head = (None if _missing(row[name]) else int(row[name]) for name in ("layer", "head"))
            place = (str(row["kind"]), layer, head)
            found[place] = found.get(place, 0.0) + float(row["contribution"])
        return found

    @once
    def by_word(self) -> Mapping[int, float]:
        """The score's part from each position, without MLPs and biases."""
        found = dict.fromkeys(range(self.key + 1), 0.0)
        for row in self._side(self.opened.fetched()).to_dict("records"):
            found[int(row["source"])] += float(row["contribution"])
        found[self.key] += sum(number for (kind, *_), number in self.parts.items() if kind == "embedding")
        return found

    @property
    def looks(self) -> tuple[float, float]:
        """The earlier head's weight on the previous word, the later's on the key."""
        return self.looks_at(self.trace)

    def looks_at(self, trace: Trace) -> tuple[float, float]:
        """Return a run's weights of the earlier head on the previous word and of the later on the key."""
        before = trace.weights(*self.writer)[self.key, self.key - 1]
        return float(before), float(trace.weights(*self.reader)[self.query, self.key])

    @once
    def over_training(self) -> Mapping[int, tuple[float, float]]:
        """Both heads' weights by training step."""
        return {step: self.looks_at(self.moment(step)) for step in STEPS}

    @once
    def without_writer(self) -> float:
        """The later head's weight with the earlier ablated."""
        trace = self.scene.run(snapshot_name(TOY, self.step), self.text, edits=(Ablate(*self.writer),))
        return self.looks_at(trace)[1]

    def _side(self, table: "pandas.DataFrame") -> "pandas.DataFrame":
        return cast("pandas.DataFrame", table[table["side"] == "key"])


def _missing(number: object) -> bool:
    import pandas

    return bool(pandas.isna(number))  # pyright: ignore[reportArgumentType]


@dataclass(frozen=True, eq=False)
class WrittenBy:
    """A head's logits at a repeated word; by default the induction head's."""

    scene: Scene
    at: int
    head: tuple[int, int] | None = None
    words: tuple[str, ...] = TOY_WORDS

    @once
    def pair(self) -> Composed:
        """The words with the induction head."""
        return Composed(self.scene, self.at, words=self.words)

    @property
    def trace(self) -> Trace:
        """The toy's run."""
        return self.pair.trace

    @property
    def query(self) -> int:
        """The repeated word's second position."""
        return self.pair.query

    @property
    def place(self) -> tuple[int, int]:
        """The head (layer, head)."""
        return self.head or self.pair.reader

    @property
    def ids(self) -> tuple[int, ...]:
        """Each word's token id."""
        start = self.pair.start
        return tuple(self.trace.query_tokens().numbers[start : start + len(self.words)])

    @once
    def row(self) -> Float[Tensor, " key"]:
        """The head's weights at the repeated word."""
        return self.trace.weights(*self.place)[self.query]

    @once
    def added(self) -> Mapping[str, float]:
        """The head's logits of the words, minus the vocabulary's mean."""
        run, opened = open_alone(self.trace)
        (stream,) = self.trace.attention_streams
        logits = written_logits(run, opened, self.trace, stream, *self.place, self.query)
        logits = logits - logits.mean()
        return {word: float(logits[token]) for word, token in zip(self.words, self.ids, strict=True)}

    @once
    def likely(self) -> Mapping[str, float]:
        """The toy's probability of each word there."""
        return self._likely(self.trace)

    @once
    def likely_without(self) -> Mapping[str, float]:
        """Those probabilities with the head ablated."""
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
