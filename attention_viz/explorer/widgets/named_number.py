"""A score or a logit as a host of the Why component asks for it."""

from typing import TYPE_CHECKING

from attention_viz.analysis.words import token_named
from attention_viz.circuits.asked import Logit, Score
from attention_viz.circuits.decomposition import decompose_run
from attention_viz.circuits.next_word import names_of, rival_of
from attention_viz.circuits.opened import open_alone
from attention_viz.explorer.why_payload import Question, largest_heads, pack_why, stream_of, streams_beside
from attention_viz.inputs.labelling import label_ids
from attention_viz.inputs.vocabulary import token_of

if TYPE_CHECKING:
    from attention_viz.trace.trace import Trace

__all__ = ["pack_number"]


def pack_number(trace: "Trace", of: Score | Logit, side: str) -> tuple[bytes, tuple[str, int, int]]:
    """Return the number's bytes, and the head that contributed most: stream, layer and head."""
    if isinstance(of, Score):
        # Refuses positions that aren't there.
        found, stream = decompose_run(trace, of), trace.attention_stream(of.stream)
        ends = (trace.query_tokens(stream), of.query), (trace.key_tokens(stream), of.key)
        more, less = " → ".join(token_named(tokens, at) for tokens, at in ends), ""
        at, pair = of.query if side == "query" else of.key, (of.layer, of.query, of.key)
    else:
        stream, pair, side = trace.streams[0] if len(trace.attention_streams) < 2 else trace.streams[-1], None, "output"
        of, (more, less) = _compared(trace, of)
        at, found = of.position, decompose_run(trace, of)
    streams = streams_beside(trace, stream)
    question = Question(more, less, found.total, found.remainder, streams, at, side, pair)
    largest = largest_heads(found.table, side, 1, streams)
    layer, head = largest[0][:2] if largest else (trace.layer_numbers(stream)[0], 0)
    beside = stream_of(trace, streams, layer)
    return pack_why(trace, question, found.table, found.fetched()), (beside, layer, head)


def _compared(trace: "Trace", of: Logit) -> tuple[Logit, tuple[str, str]]:
    """Return a logit by ids and with another word, and both words in quotes."""
    tokenizer = open_alone(trace)[0].tokenizer
    logits = trace.output_at(of.position).float()
    at = of.position % trace.output_shape[0]
    token = token_of(trace.provenance.model, tokenizer, logits, of.token)

    def names(ids: "list[int]") -> list[str]:
        return names_of(label_ids(tokenizer, ids).written)

    if of.against is None:
        against = rival_of(trace, at, token, lambda ids: names(list(ids)))
    else:
        against = token_of(trace.provenance.model, tokenizer, logits, of.against, like=token)
    first, second = (f"“{one}”" for one in names([token, against]))
    return Logit(token, at, against), (first, second)
