"""A run's findings, with each head's direct effect on the next word."""

from attention_viz.analysis.findings.finding import Finding
from attention_viz.analysis.findings.findings import findings_of
from attention_viz.circuits.next_word import next_word_effects
from attention_viz.trace.trace import Trace

__all__ = ["findings"]


def findings(trace: Trace, count: int = 5) -> tuple[Finding, ...]:
    """Return the most striking findings of a run, best first.

    Kinds are those of `FINDING_KINDS`. Each kind comes once before any comes twice, and no head or pair of words
    repeats while there are others.

    Findings never look at special tokens, punctuation or, without look-ahead, the first token. A pair counts if its
    weight is at least twice the mean weight that other rows give to the same key, because a sink isn't news. A link's
    score is weight × (1 − 1/distance in words); a head's job counts the weight beyond what its other rows give to the
    same keys. A head with a job keeps only the rest for its links: a link's score is multiplied by 1 minus the job's.
    Words repeat if their whole text does, and only rows that may look beyond their neighbour are searched.

    A finding about the next word has the head's direct effect on that word, if the trace has its model and at most 128
    tokens. Its score is then the part of the effect that comes from the key, divided by the largest effect of any head,
    at least 0.5. The strongest for and the strongest against count as two kinds. Otherwise, its score is its weight's.

    In an image, distances are those of its patches. A region counts if at least two heads of a layer give it 0.4 of the
    class token's weight on patches, and 1.7 times its share of the image. A row's regions are its patches with half of
    its largest weight or more: two or three that touch neither the edge nor the query, with 0.3 of the row and 1.7
    times the mean of the other rows. In audio, frames after its end aren't searched.

    In a layer without a softmax, a word's weight is its share of the row's size. If each channel has its own matrix, it
    is the share of what arrives in all of them.

    The same trace gives the same findings. They use only its weights, and its ids, output and model for the next token.
    If a stream has more than 2²⁵ weights, they use the rows of a sample of its words, spread over the text. Layers that
    a trace doesn't keep are left out. Content words are known in English, and the commonest ones in French;
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
    return findings_of(trace, count, next_word_effects)
