"""Which heads link one word to another."""

from typing import TYPE_CHECKING

from jaxtyping import Float
from torch import Tensor

from attention_viz.errors import TraceError
from attention_viz.tokens import Tokens, without_marks
from attention_viz.trace import Trace

if TYPE_CHECKING:
    import pandas

__all__ = ["find_heads"]

_MOST_NAMED = 30


def find_heads(trace: Trace, query: str, key: str, stream: str | None = None) -> "pandas.DataFrame":
    """All heads, ranked by how much one word looks at another.

    A word of several pieces counts as one: the mean over its pieces as queries, the sum over its pieces as keys (Clark
    et al. 2019, section 4.1). Of a word that occurs several times, the pair with the most weight is taken, head by
    head.

    Args:
        trace: one text's.
        query: the word that is looking, in any case; or a token as the tokenizer writes it.
        key: the word that is looked at.
        stream: which attention; the only one there is, if none is named.

    Returns:
        Columns layer, head, weight, query and key (the positions of the pair's first pieces, from 0) and rank (from 1),
        the heaviest first.

    Raises:
        TraceError: a word that isn't there; no such stream, or none named where there are several.
    """
    import pandas

    stream = trace.stream(stream)
    queries = _places(trace.query_tokens(stream), query)
    keys = _places(trace.key_tokens(stream), key)
    found: list[tuple[int, int, float, int, int]] = []
    for layer in range(trace.layer_count(stream)):
        weights = trace.attention(layer, stream).weights.detach().double().cpu()
        for head, one in enumerate(weights):
            weight, row, column = max(
                (_weight(one, row, column), row[0], column[0]) for row in queries for column in keys
            )
            found.append((layer, head, weight, row, column))
    found.sort(key=lambda one: -one[2])
    table = pandas.DataFrame(found, columns=["layer", "head", "weight", "query", "key"])
    return table.assign(rank=range(1, len(table) + 1))


def _weight(weights: Float[Tensor, "query key"], rows: tuple[int, ...], columns: tuple[int, ...]) -> float:
    return float(weights[list(rows)][:, list(columns)].sum(dim=-1).mean())


def _places(tokens: Tokens, word: str) -> list[tuple[int, ...]]:
    """The positions of each occurrence of a word: one, or as many as it has pieces."""
    wanted = word.strip().casefold()
    places = {
        (position,) for position, label in enumerate(tokens.labels) if wanted in (label.casefold(), _plain(label))
    }
    words: dict[int, list[int]] = {}
    for position, number in enumerate(tokens.words):
        if number is not None:
            words.setdefault(number, []).append(position)
    for pieces in words.values():
        if "".join(_plain(tokens.labels[position]) for position in pieces) == wanted:
            places = {one for one in places if one[0] not in pieces} | {tuple(pieces)}
    places = {one for one in places if not any(tokens.padding[position] for position in one)}
    if not wanted or not places:
        named = ", ".join(tokens.labels[:_MOST_NAMED]) + (" …" if len(tokens) > _MOST_NAMED else "")
        raise TraceError(f"the word “{word}” was asked for, which isn't in this text; its tokens are {named}")
    return sorted(places)


def _plain(label: str) -> str:
    """A piece without its tokenizer's marks, in small letters."""
    return without_marks(label).casefold()
