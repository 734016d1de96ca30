"""A language model's heads on a repeated text, found by metrics."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

import torch

from attention_viz.analysis.head_table import head_table
from attention_viz.analysis.rows import QueryRows
from attention_viz.corpus.shipped import scans
from attention_viz.corpus.tables import HOLDS, TEXTS
from attention_viz.edits.kinds.ablation import Ablate
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.translation import translate
from attention_viz.lesson.words import in_words
from attention_viz.sources import CATALOGUE
from attention_viz.trace.once import once, once_for_each
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas

    from attention_viz.corpus.scan import Scan

# The most letters that are quoted from the text.
_LONGEST = 160

# The real model, and the toy that replaces it if its package isn't installed.
LANGUAGE_MODEL, TOY = "SmolLM2-135M-Instruct", "induction"


@cache
def _scanned(path: Path) -> "Scan":
    from attention_viz.corpus.scan import Scan

    return Scan.load(path)


@once_for_each
def _measured(trace: Trace) -> "pandas.DataFrame":
    return head_table(trace)


@dataclass(frozen=True, eq=False)
class Twice:
    """A repeated text's run through a language model."""

    scene: Scene

    @property
    def real(self) -> bool:
        """Whether the real model is installed."""
        return CATALOGUE[LANGUAGE_MODEL].available

    @property
    def model(self) -> str:
        """The real model's name, or the toy's."""
        return LANGUAGE_MODEL if self.real else TOY

    @property
    def typed(self) -> str:
        """The reader's text, or the toy's, as it knows few words."""
        words = " ".join((self.scene.text if self.real else CATALOGUE[TOY].examples[0]).split())
        if self.real:
            return words
        return " ".join(dict.fromkeys(words.split()))

    @property
    def note(self) -> str:
        """A note if the toy replaces the real model."""
        if self.real:
            return ""
        note = translate(
            "{model} isn't installed where this page was made, so this is the toy “{toy}”, on words of its own.",
            **{"model": LANGUAGE_MODEL, "toy": TOY},
        )
        return f"{note} "

    @property
    def text(self) -> str:
        """The input; a leading space gives the first word its repeat's token."""
        return f" {self.typed} {self.typed}" if self.real else f"{self.typed} {self.typed}"

    @once
    def trace(self) -> Trace:
        """The model's run."""
        return self.scene.run(self.model, self.text)

    @once
    def rows(self) -> QueryRows:
        """The token facts that metrics need."""
        return QueryRows.of(self.trace.query_tokens(), self.trace.key_tokens(), alike=True)

    @once
    def table(self) -> "pandas.DataFrame":
        """Every head's metrics."""
        return _measured(self.trace)

    def heads(self, metric: str, count: int = 1) -> list[tuple[int, int, float]]:
        """Return layer, head and metric, the largest first."""
        shares = cast("dict[tuple[int, int], float]", self.table[metric].fillna(0.0).to_dict())
        best = sorted(shares, key=lambda place: -shares[place])[:count]
        return [(layer, head, shares[layer, head]) for layer, head in best]

    def keys(self, metric: str) -> list[int]:
        """Return each query's key in a metric; −1 if none."""
        rows = self.rows
        keys = {"previous": rows.before, "induction": rows.following, "first": torch.full_like(rows.before, rows.first)}
        return [int(key) for key in keys[metric]]

    def best(self, metric: str, layer: int, head: int) -> tuple[int, int, float]:
        """Return query, key and weight of a head's largest in a metric, in the repetition if it has one."""
        weights, keys = self.trace.weights(layer, head), self.keys(metric)
        found = [
            (2 * query >= len(keys), float(weights[query, key]), query, key)
            for query, key in enumerate(keys)
            if 0 <= key != query
        ]
        last = len(keys) - 1
        _, weight, query, key = max(found, default=(True, float(weights[last, last]), last, last))
        return query, key, weight

    def asked(self, metric: str, layer: int, head: int) -> tuple[int, int, float]:
        """Return query, key and weight: the pressed query's or the largest."""
        query, weights = self.scene.word, self.trace.weights(layer, head)
        if query is None or query >= len(weights):
            return self.best(metric, layer, head)
        key = self.keys(metric)[query]
        key = key if 0 <= key != query else int(weights[query].argmax())
        return query, key, float(weights[query, key])

    def value_lengths(self, layer: int, head: int) -> tuple[float, float]:
        """Return the length of the first token's value and the others' mean."""
        lengths = self.trace.attention(layer).head(head).value.norm(dim=-1)
        others = lengths[[at for at in range(len(lengths)) if at != self.rows.first]]
        return float(lengths[self.rows.first]), float(others.mean())

    def carried_on(self, silenced: Sequence[tuple[int, int]] = ()) -> float | None:
        """Return the true next token's mean probability with heads ablated; None if none follows."""
        edits = tuple(Ablate(layer, head) for layer, head in silenced)
        trace = self.scene.run(self.model, self.text, edits=edits) if edits else self.trace
        ids = torch.tensor(trace.query_tokens().numbers, device=trace.output.device)
        start = len(ids) // 2
        if start + 1 >= len(ids):
            return None
        shares = trace.output[start:-1].float().softmax(dim=-1)
        return float(shares.gather(1, ids[start + 1 :, None]).mean())

    def often(self, role: str, layer: int, head: int) -> str:
        """Return in how many scanned texts a head has a role; empty without a scan."""
        path = scans().get(self.model)
        if path is None or not self.real:
            return ""
        roles = _scanned(path).roles.loc[(layer, head)]
        could, holds = (int(roles[f"role {role}{ending}"]) for ending in (TEXTS, HOLDS))
        return translate(
            "In {could} passages of Jane Austen’s novels this job is possible; the head does it in {holds} of them.",
            **{"holds": holds, "could": could},
        )

    @property
    def quoted(self) -> str:
        """The text, shortened for a sentence."""
        return in_words(self.typed, _LONGEST)

    def name(self, position: int) -> str:
        """Shorten a token for a sentence."""
        return in_words(self.trace.query_tokens().names[position])
