"""Find the next word, its rival and every head's effect on the word over the rival."""

from collections.abc import Callable, Mapping, Sequence

from attention_viz.analysis.findings.finding import NextWordEffects
from attention_viz.analysis.words import words_of
from attention_viz.circuits.asked import Logit
from attention_viz.circuits.number import OpenNumber
from attention_viz.circuits.opened import open_alone
from attention_viz.errors import AttentionVizError
from attention_viz.inputs.labelling import label_ids
from attention_viz.trace.spelling import CONTINUES, SPACE
from attention_viz.trace.trace import Trace

# A longer text's run takes seconds to open.
LONGEST = 128
# A word of the text is a rival only if it is at least this likely.
_LEAST = 0.001
# Tokens among which a rival of another name is looked for.
_OFFERED = 8


def next_word_effects(trace: Trace, position: int) -> NextWordEffects | None:
    """Return heads' effects on the likeliest word after a position; None without a readable model behind the trace."""
    if len(trace.query_tokens(trace.streams[-1])) > LONGEST:
        return None
    try:
        run, opened = open_alone(trace)
        token = int(trace.output_at(position).argmax())
        rival = rival_of(trace, position, token, lambda ids: names_of(label_ids(run.tokenizer, ids).written))
        number = OpenNumber.begin(run, trace, opened, Logit(token, position, rival))
        parts, _ = number.sums("output")
    except AttentionVizError:
        return None
    heads: dict[tuple[str, int, int], float] = {}
    for part, written in parts.items():
        if part.kind == "head" and part.stream is not None and part.layer is not None and part.head is not None:
            place = part.stream, part.layer, part.head
            heads[place] = heads.get(place, 0.0) + written
    word, other = names_of(label_ids(run.tokenizer, [token, rival]).written)
    return NextWordEffects(word, other, heads, lambda place: _sources(number, place))


def _sources(number: OpenNumber, place: tuple[str, int, int]) -> Mapping[int, float]:
    stream, layer, head = place
    found = number.sources(layer, head, stream)
    totals: dict[int, float] = {}
    for source, written in zip(found["source"].tolist(), found["contribution"].tolist(), strict=True):
        totals[source] = totals.get(source, 0.0) + written
    return totals


def rival_of(trace: Trace, position: int, token: int, names: Callable[[Sequence[int]], Sequence[str]]) -> int:
    """Return the likeliest other content word of the text; if none is likely, the likeliest token of another name."""
    likely = trace.output_at(position).detach().float().softmax(dim=-1)
    tokens = trace.query_tokens(trace.streams[-1])
    words = words_of(tokens)
    whole = zip(words.kinds, words.pieces, strict=True)
    # Beside an image, positions have no ids.
    ids = tokens.ids or ()
    own = {ids[pieces[0]] for kind, pieces in whole if kind == "content" and len(pieces) == 1 and ids}
    found = [one for one in own if one != token and float(likely[one]) >= _LEAST]
    if found:
        return max(found, key=lambda one: float(likely[one]))
    (mine,), best = names([token]), likely.topk(min(_OFFERED, len(likely))).indices.tolist()
    others = [one for one in best if one != token]
    return next((one for one, name in zip(others, names(others), strict=True) if name != mine), others[0])


def names_of(written: Sequence[str]) -> list[str]:
    """Return tokens as people read them, without marks of spaces."""
    return [one.strip(f"{SPACE}{CONTINUES} ") or one for one in written]
