"""The most striking findings of a run, varied in kind."""

from collections.abc import Mapping, Sequence

from attention_viz.analysis.findings.finding import FINDING_KINDS, Candidate, Finding
from attention_viz.analysis.findings.mixing import mixing_of
from attention_viz.analysis.findings.pairs import between_words, jobs_of, pairs_of, standing_out
from attention_viz.analysis.findings.regions import regions_of
from attention_viz.analysis.findings.scene import StreamScene
from attention_viz.analysis.findings.sentences import tell
from attention_viz.analysis.findings.spots import spots_of
from attention_viz.analysis.measured import row_weights
from attention_viz.errors import ShapeError
from attention_viz.operation.shapes import is_whole
from attention_viz.trace.trace import Trace

__all__ = ["findings", "none_because"]


def findings(trace: Trace, count: int = 5) -> tuple[Finding, ...]:
    """Return the most striking findings of a run, best first.

    Kinds are those of `FINDING_KINDS`. Each kind comes once before any comes twice, and no head or pair of words
    repeats while there are others.

    Findings never look at special tokens, punctuation or, without look-ahead, the first token. A pair counts if its
    weight is at least twice the mean weight that other rows give to the same key, because a sink isn't news. A link's
    score is weight × (1 − 1/distance in words); a head's job counts the weight beyond what its other rows give to the
    same keys. Words repeat if their whole text does, and only rows that may look beyond their neighbour are searched.

    In an image, distances are those of its patches. A region counts if at least two heads of a layer give it 0.4 of the
    class token's weight on patches, and 1.7 times its share of the image. A row's regions are its patches with half of
    its largest weight or more: two or three that touch neither the edge nor the query, with 0.3 of the row and 1.7
    times the mean of the other rows. In audio, frames after its end aren't searched.

    In a layer without a softmax, a word's weight is its share of the row's size. If each channel has its own matrix, it
    is the share of what arrives in all of them.

    The same trace gives the same findings. They use only its weights, and its ids and output for the likeliest next
    token. If a stream has more than 2²⁵ weights, they use the rows of a sample of its words, spread over the text.
    Layers that a trace doesn't keep are left out. Content words are known in English, and the commonest ones in French;
    in other languages every word counts. For edits, readings and merged words, findings describe the trace's own
    weights.

    Source: heads' targets, Clark et al. 2019, "What Does BERT Look At?", sections 3 and 5; next words, Wang et al.
    2022, "Interpretability in the Wild", section 3; induction, Olsson et al. 2022.

    Args:
        trace: the run.
        count: the largest number of findings.

    Returns:
        All findings, up to `count`. If none is striking enough, the most striking link; none for a text of one word or
        with equal rows.

    Raises:
        ShapeError: `count` is below 1.
    """
    if not is_whole(count) or int(count) < 1:
        raise ShapeError(f"count must be a whole number of findings, 1 or more; got {count!r}")
    scenes = {stream: StreamScene(trace, stream) for stream in trace.streams}
    found = [one for scene in scenes.values() for one in _candidates(scene)]
    found.sort(key=lambda one: (-one.score * FINDING_KINDS[one.kind].interest, one.place, one.query, one.key))
    outstanding = [one for one in found if one.score >= FINDING_KINDS[one.kind].least]
    links = [one for one in found if not FINDING_KINDS[one.kind].of_a_head]
    chosen = _varied(outstanding, scenes, int(count)) if outstanding else links[:1]
    return tuple(tell(scenes[one.stream], one) for one in chosen)


def none_because(trace: Trace) -> str:
    """Explain why a run has no findings."""
    kinds = [kind for stream in trace.streams for kind in StreamScene(trace, stream).keys.kinds]
    words = sum(kind in ("content", "pronoun") for kind in kinds)
    if words <= 1:
        return f"the text has {words or 'no'} content word, and a finding needs two"
    return "no word gives another twice the weight that the other words give it"


def _candidates(scene: StreamScene) -> list[Candidate]:
    if scene.stream in scene.trace.mixers:
        return mixing_of(scene)
    found = [*regions_of(scene), *spots_of(scene)]
    if not scene.asked:
        return found
    pairs, jobs = pairs_of(scene), jobs_of(scene)
    for some in row_weights(scene.trace, scene.stream, scene.rows):
        weights, above = between_words(scene, some.weights), between_words(scene, some.above)
        outstanding = standing_out(weights, above)
        found += [one for kind in pairs for one in kind.best(scene, some.heads, weights, outstanding)]
        found += [one for job in jobs for one in job.best(scene, some.heads, some.weights, some.above)]
    return found


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
    chosen = dict[str, Candidate]()
    for one in found:
        topic = one.kind if FINDING_KINDS[one.kind].of_a_head else _pair(one, scenes[one.stream])
        if one.kind not in chosen and topic not in seen and not (other_heads and one.place in seen):
            chosen[one.kind] = one
            seen |= {topic, one.place}
    return list(chosen.values())


def _pair(one: Candidate, scene: StreamScene) -> object:
    return one.stream, frozenset((scene.queries.texts[one.query].casefold(), scene.keys.texts[one.key].casefold()))
