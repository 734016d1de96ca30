"""Heads that do one job in every suitable row."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attention_viz.analysis.findings.candidate import Candidate
from attention_viz.analysis.findings.scene import StreamScene
from attention_viz.analysis.metrics import METRICS
from attention_viz.analysis.rows import QueryRows

__all__ = ["Job", "jobs_of"]

# Heads that are kept of each job in all heads that are looked through together.
_OF_A_BLOCK = 24
# What is seen at one word alone counts less.
_ONCE = 0.7


@dataclass(frozen=True, eq=False)
class Job:
    """A possible job of heads.

    Attributes:
        metric: a name in `METRICS` that measures it.
        shown: rows fit as examples.
        keys: each row's target key.
        words: number of different words in the counted rows.
    """

    kind: str
    metric: str
    rows: QueryRows
    counted: Int[Tensor, " counted"]
    shown: Int[Tensor, " shown"]
    keys: Int[Tensor, " row"]
    words: int

    def best(
        self,
        scene: StreamScene,
        heads: Sequence[tuple[int, int]],
        weights: Float[Tensor, "head row key"],
        above: Float[Tensor, "head row key"],
    ) -> list[Candidate]:
        """Return the heads that do it most, beyond their other rows' weight."""
        function = METRICS[self.metric].function
        numbers, scores = function(weights, self.rows), function(above, self.rows)[:, self.counted].mean(dim=1)
        best, order = scores.topk(min(_OF_A_BLOCK, len(scores)))
        found = list[Candidate]()
        for score, head in zip(best.tolist(), order.tolist(), strict=True):
            row = int(self.shown[numbers[head, self.shown].argmax()])
            seen = scene.rows[row], int(self.keys[row])
            query, key = scene.queries.of_position[seen[0]], scene.keys.of_position[seen[1]]
            strength, (layer, number) = float(numbers[head, self.counted].mean()), heads[head]
            score *= 1 if self.words > 1 else _ONCE
            found.append(
                Candidate(self.kind, score, strength, scene.stream, layer, number, query, key, self.words, seen)
            )
        return found


def jobs_of(scene: StreamScene) -> list[Job]:
    """Return possible jobs in this text, without single words that look at themselves."""
    if not scene.alike:
        return []
    tokens, words = scene.trace.query_tokens(scene.stream), scene.queries
    rows = QueryRows.of(tokens, tokens, alike=True, positions=scene.rows)
    of_row, key = rows.duplicates.unbind(dim=1)
    latest = torch.full((len(scene.rows),), -1).scatter_reduce(0, of_row, key, "amax")
    same = torch.tensor(words.same)[words.index]
    # Where pieces alone come again, such as a letter, no word does; and a head that looks at what stands beside may do
    # that without knowing what came before.
    again = words.are("content")[words.index][rows.positions] & (same[rows.positions] == same[latest])
    further = rows.positions - 1
    found = [
        _job(scene, rows, "previous", "previous", rows.before, rows.counted),
        _job(scene, rows, "above", "above", rows.above, rows.counted),
        _job(scene, rows, "same token", "duplicate", latest, again & (latest < further)),
        _job(scene, rows, "induction", "induction", rows.following, again & (rows.following < further)),
    ]
    return [job for job in found if len(job.shown) and (job.words > 1 or job.kind == "induction")]


def _job(
    scene: StreamScene,
    rows: QueryRows,
    kind: str,
    metric: str,
    keys: Int[Tensor, " row"],
    counted: Bool[Tensor, " row"],
) -> Job:
    words_at = scene.queries.index
    looking, looked_at = words_at[rows.positions], words_at[keys]
    resting = torch.zeros(len(scene.queries.pieces), dtype=torch.bool)
    resting[list(scene.resting)] = True
    mute = scene.queries.are("sign", "special", "padding")
    counted = counted & (keys >= 0) & ~resting[looked_at]
    shown = counted & ~mute[looking] & ~mute[looked_at] & (looking != looked_at)
    words = {scene.queries.same[word] for word in looking[counted].tolist()}
    return Job(kind, metric, rows, counted.nonzero()[:, 0], shown.nonzero()[:, 0], keys, len(words))
