"""The most striking findings of a run, varied in kind."""

from collections.abc import Mapping, Sequence

from attention_viz.analysis.findings.finding import FINDING_KINDS, Candidate, Finding
from attention_viz.analysis.findings.pairs import between_words, jobs_of, pairs_of, standing_out
from attention_viz.analysis.findings.regions import regions_of
from attention_viz.analysis.findings.scene import StreamScene
from attention_viz.analysis.findings.sentences import tell
from attention_viz.analysis.measured import row_weights
from attention_viz.errors import ShapeError
from attention_viz.operation.shapes import is_whole
from attention_viz.trace.trace import Trace

__all__ = ["findings", "none_because"]


def findings(trace: Trace, count: int = 5) -> tuple[Finding, ...]:
    """What a person should look at in a run, the best first.

    Kinds are those of `FINDING_KINDS`; each comes once before any comes twice, and as long as there are others no head
    and no pair of words comes again. Special tokens, punctuation and, where none looks ahead, the first token are
    never looked at in a finding, and a pair counts where its weight is at least twice what the other rows give to the
    same key on average: a key at which a head rests isn't news. A link counts weight × (1 − 1/distance in words), and
    what a head does all over counts beyond what its other rows give to the same keys. Words come again where their
    whole text does, and only rows are asked that are to look further than at their neighbour. In a picture
    distances are those of its patches, and a region counts where two heads of a layer or more give it 0.4 of the
    weight that the class token has for patches, and 1.7 times the share that it has of the picture. Of a sound what
    comes after its end is not asked.

    The same trace gives the same findings. Only its weights are asked, and the ids and output for the token that is
    likeliest to come next; of a text with more than 2²⁵ weights in a stream the rows of a sample of its words, spread
    over it. Layers that a trace doesn't keep are left out. Which words carry meaning is known of English, and of the
    commonest of French; in other languages every word counts. Of edits, readings and merged words, what is told is what
    the trace holds.

    Source: what heads look at, Clark et al. 2019, "What Does BERT Look At?", sections 3 and 5; what comes next, Wang et
    al. 2022, "Interpretability in the Wild", section 3; induction, Olsson et al. 2022.

    Args:
        trace: the run.
        count: how many at most.

    Returns:
        As many as there are. Where none stands out enough, the link that stands out most; none for a text of one word
        or one whose rows are all alike.

    Raises:
        ShapeError: fewer than 1 were asked for.
    """
    if not is_whole(count) or int(count) < 1:
        raise ShapeError(f"{count!r} findings were asked for; it has to be a whole number, 1 or more")
    scenes = {stream: StreamScene(trace, stream) for stream in trace.attention_streams}
    found = [one for scene in scenes.values() for one in _candidates(scene)]
    found.sort(key=lambda one: (-one.score * FINDING_KINDS[one.kind].interest, one.place, one.query, one.key))
    outstanding = [one for one in found if one.score >= FINDING_KINDS[one.kind].least]
    links = [one for one in found if not FINDING_KINDS[one.kind].of_a_head]
    chosen = _varied(outstanding, scenes, int(count)) if outstanding else links[:1]
    return tuple(tell(scenes[one.stream], one) for one in chosen)


def none_because(trace: Trace) -> str:
    """Explain why a run has no findings."""
    kinds = [kind for stream in trace.attention_streams for kind in StreamScene(trace, stream).keys.kinds]
    words = sum(kind in ("content", "pronoun") for kind in kinds)
    if words <= 1:
        return f"the text has {words or 'no'} word with a meaning of its own, and a finding is about two"
    return "no word looks at another with twice the weight that the other words give it"


def _candidates(scene: StreamScene) -> list[Candidate]:
    found = regions_of(scene)
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
