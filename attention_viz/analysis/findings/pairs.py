"""Word pairs with more weight than other rows give, and heads that do one job in every suitable row."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attention_viz.analysis.findings.finding import FINDING_KINDS, Candidate
from attention_viz.analysis.findings.scene import StreamScene
from attention_viz.analysis.metrics import METRICS
from attention_viz.analysis.rows import QueryRows
from attention_viz.trace.kind import CROSSING_STREAMS

NEXT_WORD = "next word"
# Pairs that are kept of each head, and of each kind in all heads that are looked through together. Those of the next
# word are ranked later, by their effect.
_OF_A_HEAD, _OF_A_BLOCK = 3, 24
# A pair stands out where its weight is this many times what other rows give to the same key.
_TIMES = 2
# In a translation a word that stands where it stood counts less than one that moved.
_UNMOVED = 0.9
# Heads that are kept of each job in all heads that are looked through together.
_BEST_OF_BLOCK = 24
# What is seen at one word alone counts less.
_ONCE = 0.7


@dataclass(frozen=True, eq=False)
class Pairs:
    """A kind of finding's word pairs: which searched words have them, and each pair's factor, 0 to 1."""

    kind: str
    rows: Int[Tensor, " row"]
    factor: Float[Tensor, "row word"]

    def best(
        self,
        scene: StreamScene,
        heads: Sequence[tuple[int, int]],
        weights: Float[Tensor, "head asked word"],
        outstanding: Float[Tensor, "head asked word"],
        left: Float[Tensor, " head"],
    ) -> list[Candidate]:
        """Return each head's few most striking pairs, scored by the share of it that its job leaves."""
        scores, places = _largest(outstanding[:, self.rows] * self.factor * left[:, None, None], _OF_A_HEAD)
        most = scores.numel() if self.kind == NEXT_WORD else _OF_A_BLOCK
        best, order = scores.flatten().topk(min(most, int((scores > 0).sum())))
        of_head, places = (order // places.shape[1]).tolist(), places.flatten()[order].tolist()
        found = list[Candidate]()
        for score, head, place in zip(best.tolist(), of_head, places, strict=True):
            row, key = divmod(place, self.factor.shape[1])
            asked, (layer, number) = int(self.rows[row]), heads[head]
            strength, query = float(weights[head, asked, key]), scene.asked[asked]
            share = float(left[head])
            found.append(Candidate(self.kind, score, strength, scene.stream, layer, number, query, key, left=share))
        return found


def _largest(
    scores: Float[Tensor, "head row word"], count: int
) -> tuple[Float[Tensor, "head few"], Int[Tensor, "head few"]]:
    _, rows = scores.amax(dim=2).topk(min(count, scores.shape[1]), dim=1)
    rows = rows.sort(dim=1).values
    words = scores.shape[2]
    some = scores.gather(1, rows[:, :, None].expand(-1, -1, words)).flatten(1)
    found, places = some.topk(min(count, some.shape[1]), dim=1)
    return found, rows.gather(1, places // words) * words + places % words


def standing_out(
    weights: Float[Tensor, "head asked word"], above: Float[Tensor, "head asked word"]
) -> Float[Tensor, "head asked word"]:
    """Return word weights, 0 if unremarkable."""
    return torch.where(_TIMES * (weights - above) < weights, weights, 0)


def between_words(scene: StreamScene, numbers: Float[Tensor, "head row key"]) -> Float[Tensor, "head asked word"]:
    """Average weights over query pieces and sum over key pieces."""
    if len(scene.keys.pieces) != numbers.shape[-1]:
        words = numbers.new_zeros(*numbers.shape[:-1], len(scene.keys.pieces))
        numbers = words.index_add_(-1, scene.keys.index, numbers)
    if len(scene.asked) != numbers.shape[-2]:
        counts = torch.tensor([len(scene.queries.pieces[word]) for word in scene.asked])
        of_row = torch.arange(len(scene.asked)).repeat_interleave(counts)
        words = numbers.new_zeros(len(numbers), len(scene.asked), numbers.shape[-1])
        numbers = words.index_add_(1, of_row, numbers) / counts[:, None]
    return numbers


def pairs_of(scene: StreamScene) -> list[Pairs]:
    """Return each kind's pairs, if any."""
    asked, columns = torch.tensor(scene.asked)[:, None], torch.arange(len(scene.keys.pieces))
    keys, content = scene.keys.are("content"), scene.queries.are("content")[asked]
    keys[list(scene.resting)] = False
    if not scene.alike:
        if not scene.writes:
            # Virtual tokens come before a text's own keys.
            before = next((at for at, one in enumerate(scene.keys.tokens.slots) if one is None), 0)
            own = asked + before == columns
            return _if_any("link", 1.0 * (content & keys & ~(own & (scene.stream not in CROSSING_STREAMS))))
        return _if_any("alignment", (content & keys) * torch.where(asked == columns, _UNMOVED, 1.0))
    pronoun, last = scene.queries.are("pronoun")[asked], asked == (-1 if scene.last is None else scene.last)
    same = torch.tensor(scene.queries.same)
    earlier, again, distance = asked > columns, same[asked] == same, scene.apart(asked)
    # What followed the same pronoun last time is found by repetition, such as "his small dog".
    followed = torch.cat([torch.full((1,), -1), same[:-1]]) == same[asked]
    stood_for = pronoun & earlier & scene.keys.nouns & ~followed
    # A neighbour counts 0, a word far away nearly its whole weight; for what comes next, a neighbour counts half.
    far, near_too = 1 - 1 / distance.clamp_min(1), 1 - 1 / (1 + distance)
    return [
        *_if_any("link", far * (((content & ~again) | (pronoun & ~stood_for & ~followed)) & keys & ~last)),
        *_if_any("pronoun", far * (stood_for & keys & ~last)),
        *_if_any("repeat", 1.0 * (content & again & earlier & keys & ~last)),
        *_if_any(NEXT_WORD, near_too * (last & (distance > 0) & keys)),
    ]


def _if_any(kind: str, factor: Float[Tensor, "asked word"]) -> list[Pairs]:
    rows = (factor > 0).any(dim=1).nonzero()[:, 0]
    return [Pairs(kind, rows, factor[rows])] if len(rows) else []


@dataclass(frozen=True, eq=False)
class Job:
    """A possible job of heads, measured by a metric; `shown` are rows fit as examples."""

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
        scores: Float[Tensor, " head"],
    ) -> list[Candidate]:
        """Return the heads with the highest scores."""
        numbers = METRICS[self.metric].function(weights, self.rows)
        best, order = scores.topk(min(_BEST_OF_BLOCK, len(scores)))
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

    def left(self, scores: Float[Tensor, " head"]) -> Float[Tensor, " head"]:
        """Return the share of each head that the job leaves: all of it below the least score of a finding."""
        busy = (scores >= FINDING_KINDS[self.kind].least) & (self.words > 1)
        return torch.where(busy, 1 - scores, 1.0)

    def scores(self, above: Float[Tensor, "head row key"]) -> Float[Tensor, " head"]:
        """Return how far each head does it, beyond its other rows' weight."""
        return METRICS[self.metric].function(above, self.rows)[:, self.counted].mean(dim=1)


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
