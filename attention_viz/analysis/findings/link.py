"""The pair of tokens that a head is told by."""

from collections.abc import Sequence

from attention_viz.analysis.findings.finding import Finding
from attention_viz.analysis.words import Words
from attention_viz.errors import AttentionVizError
from attention_viz.trace.trace import Trace

__all__ = ["link_of"]


def link_of(trace: Trace, stream: str, layer: int, head: int, findings: Sequence[Finding] = ()) -> tuple[int, int]:
    """The positions of a query and a key: those of what was found in the head, else of its strongest link of two words.

    A decoder's first token, which is looked at for want of anything else, doesn't count; where no two words are linked,
    any two tokens are, and of a text of one word its word with itself.

    Args:
        trace: the run.
        stream: which attention.
        layer: by its number.
        head: from 0.
        findings: what was found in the run, best first.
    """
    for one in findings:
        if (one.stream, one.layer, one.head) == (stream, layer, head):
            return one.query, one.key
    queries, keys = Words(trace.query_tokens(stream)), Words(trace.key_tokens(stream))
    shape = (range(len(queries.tokens)), range(len(keys.tokens)))
    try:
        weights = trace.attention(layer, stream).tile(head, *shape).nan_to_num(0)
    except AttentionVizError:
        # A reading has weights and no call that they came from.
        weights = trace.weights(layer, head, stream).nan_to_num(0)
    if stream != "cross" and len(weights) > 1:
        weights.fill_diagonal_(-1)
    for axis, words in enumerate((queries, keys)):
        mute = words.are("sign", "special", "padding")
        silent = [place for place, word in enumerate(words.of_position) if mute[word]]
        silent += [0] if axis == 1 and stream == "decoder" else []
        if len(set(silent)) < weights.shape[axis]:
            weights.index_fill_(axis, weights.new_tensor(silent).long(), -1)
    if weights.max() < 0:
        return _first_plain(queries), _first_plain(keys)
    query, key = divmod(int(weights.argmax()), weights.shape[1])
    return query, key


def _first_plain(words: Words) -> int:
    """The first position that the text itself has; the first of all where the tokenizer added every one."""
    mute = words.are("special", "padding")
    return next((place for place, word in enumerate(words.of_position) if not mute[word]), 0)
