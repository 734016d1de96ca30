"""The most striking findings of a run, varied in kind."""

from collections.abc import Callable, Mapping, Sequence

import torch

from attention_viz.analysis.findings.finding import FINDING_KINDS, Candidate, Finding, NextWordEffects, WordEffect
from attention_viz.analysis.findings.hearing import heard_of
from attention_viz.analysis.findings.mixing import mixing_of
from attention_viz.analysis.findings.pairs import NEXT_WORD, between_words, jobs_of, pairs_of, standing_out
from attention_viz.analysis.findings.regions import regions_of
from attention_viz.analysis.findings.scene import StreamScene
from attention_viz.analysis.findings.segments import segments_of
from attention_viz.analysis.findings.sentences import tell
from attention_viz.analysis.findings.spots import spots_of
from attention_viz.analysis.findings.word_regions import word_regions_of
from attention_viz.analysis.measured import row_weights
from attention_viz.errors import ShapeError
from attention_viz.operation.shapes import is_whole
from attention_viz.trace.trace import Trace

__all__ = ["findings_of", "none_because"]

# Where no head writes as much, in logits, effects are compared with this.
_LOGITS = 0.5
# The effects on the word after a position; None if they are unknown.
FindEffects = Callable[[Trace, int], NextWordEffects | None]


def findings_of(trace: Trace, count: int, effects: FindEffects) -> tuple[Finding, ...]:
    """Return the most striking findings; see `attention_viz.findings`, which knows the effects."""
    if not is_whole(count) or int(count) < 1:
        raise ShapeError(f"count must be a whole number of findings, 1 or more; got {count!r}")
    scenes = {stream: StreamScene(trace, stream) for stream in trace.streams}
    found = [one for scene in scenes.values() for one in _by_effect(_candidates(scene), scene, effects)]
    found.sort(key=lambda one: (-one.score * FINDING_KINDS[one.kind].interest, one.place, one.query, one.key))
    outstanding = [one for one in found if one.score >= FINDING_KINDS[one.kind].least]
    links = [one for one in found if not FINDING_KINDS[one.kind].of_a_head]
    chosen = _varied(outstanding, scenes, int(count)) if outstanding else links[:1]
    return tuple(tell(scenes[one.stream], one) for one in chosen)


def searched_rows(trace: Trace, stream: str) -> int | None:
    """Return the number of rows that findings use, if they use a sample of a long text's."""
    scene = StreamScene(trace, stream)
    return len(scene.rows) if scene.is_sampled else None


def none_because(trace: Trace) -> str:
    """Explain why a run has no findings."""
    kinds = [kind for stream in trace.streams for kind in StreamScene(trace, stream).keys.kinds]
    words = sum(kind in ("content", "pronoun") for kind in kinds)
    if words <= 1:
        return f"the text has {words or 'no'} content word, and a finding needs two"
    units = {unit for stream in trace.streams for unit in trace.key_tokens(stream).units}
    one, plural = ("position", "positions") if len(units) > 1 else next((unit, unit.plural) for unit in units)
    return f"no {one} gives another twice the weight that the other {plural} give it"


def _candidates(scene: StreamScene) -> list[Candidate]:
    if scene.stream in scene.trace.mixers:
        return mixing_of(scene)
    found = [*regions_of(scene), *spots_of(scene), *heard_of(scene), *word_regions_of(scene), *segments_of(scene)]
    if not scene.asked:
        return found
    pairs, jobs = pairs_of(scene), jobs_of(scene)
    for some in row_weights(scene.trace, scene.stream, scene.rows):
        weights, above = between_words(scene, some.weights), between_words(scene, some.above)
        outstanding = standing_out(weights, above)
        # A link of a head with a job is the job's own, or an accident beside it.
        free = torch.ones(len(some.heads))
        for job in jobs:
            scores = job.scores(some.above)
            found += job.best(scene, some.heads, some.weights, scores)
            free = free.minimum(job.left(scores))
        found += [one for kind in pairs for one in kind.best(scene, some.heads, weights, outstanding, free)]
    return found


def _by_effect(found: list[Candidate], scene: StreamScene, effects: FindEffects) -> list[Candidate]:
    """Score findings about the next word by what their heads write for or against it, if that is known."""
    spoken = [one for one in found if one.kind == NEXT_WORD and one.score >= FINDING_KINDS[NEXT_WORD].least]
    known = effects(scene.trace, scene.queries.pieces[spoken[0].query][-1]) if spoken else None
    if known is None:
        return found
    largest = max([*map(abs, known.heads.values()), _LOGITS])
    measured = (_measured(one, scene, known, largest) for one in spoken)
    return [one for one in found if one.kind != NEXT_WORD] + [one for one in measured if one is not None]


def _measured(one: Candidate, scene: StreamScene, known: NextWordEffects, largest: float) -> Candidate | None:
    """Score by the effect's part that comes from the key, of the largest head's effect; None for a small effect."""
    effect = known.heads.get(one.place, 0.0)
    if abs(effect) < largest * FINDING_KINDS[NEXT_WORD].least:
        return None
    sources = known.sources(one.place)
    part = sum(sources.get(position, 0.0) for position in scene.keys.pieces[one.key]) * (1 if effect > 0 else -1)
    score = one.left * max(0.0, min(part, abs(effect))) / largest
    return one._replace(score=score, effect=WordEffect(effect, known.word, known.rival))


def _varied(found: Sequence[Candidate], scenes: Mapping[str, StreamScene], count: int) -> list[Candidate]:
    """Take turns among kinds, best first."""
    chosen, seen = list[Candidate](), set[object]()
    for other_heads in (True, False):
        while len(chosen) < count and (turn := _turn(found, scenes, seen, other_heads=other_heads)):
            chosen += turn
    return chosen[:count]


def _turn(
    found: Sequence[Candidate], scenes: Mapping[str, StreamScene], seen: set[object], *, other_heads: bool
) -> list[Candidate]:
    chosen = dict[object, Candidate]()
    for one in found:
        # Writing for a word and writing against it count as two kinds.
        against = one.effect is not None and one.effect.number < 0
        kind = one.kind, against
        topic = (
            (one.kind, one.target) if FINDING_KINDS[one.kind].of_a_head else (_pair(one, scenes[one.stream]), against)
        )
        if kind not in chosen and topic not in seen and not (other_heads and one.place in seen):
            chosen[kind] = one
            seen |= {topic, one.place}
    return list(chosen.values())


def _pair(one: Candidate, scene: StreamScene) -> object:
    return one.stream, frozenset((scene.queries.texts[one.query].casefold(), scene.keys.texts[one.key].casefold()))
