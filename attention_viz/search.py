"""Which heads link one word to another."""

from typing import TYPE_CHECKING

import torch
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
    looking = _shares(queries, len(trace.query_tokens(stream)), mean=True)
    looked_at = _shares(keys, len(trace.key_tokens(stream)), mean=False)
    found: list[tuple[int, int, float, int, int]] = []
    for layer in range(trace.layer_count(stream)):
        pairs = looking @ trace.attention(layer, stream).weights.detach().double().cpu() @ looked_at.T
        for head, one in enumerate(pairs):
            row, column = divmod(int(one.argmax()), len(keys))
            found.append((layer, head, float(one[row, column]), queries[row][0], keys[column][0]))
    found.sort(key=lambda one: -one[2])
    table = pandas.DataFrame(found, columns=["layer", "head", "weight", "query", "key"])
    return table.assign(rank=range(1, len(table) + 1))


def _shares(places: list[tuple[int, ...]], count: int, *, mean: bool) -> Float[Tensor, "place token"]:
    """Which tokens each occurrence of a word takes in, and with what share."""
    shares = torch.zeros(len(places), count, dtype=torch.float64)
    for row, pieces in zip(shares, places, strict=True):
        row[list(pieces)] = 1 / len(pieces) if mean else 1
    return shares


def _places(tokens: Tokens, word: str) -> list[tuple[int, ...]]:
    """The positions of each occurrence of a word: one, or as many as it has pieces."""
    wanted = word.strip().casefold()
    places = {
        (position,) for position, label in enumerate(tokens.labels) if wanted in (label.casefold(), _plain(label))
    }
    for pieces in tokens.pieces:
        if "".join(_plain(tokens.labels[position]) for position in pieces) == wanted:
            places = {one for one in places if one[0] not in pieces} | {pieces}
    places = {one for one in places if not any(tokens.padding[position] for position in one)}
    if not wanted or not places:
        named = ", ".join(tokens.labels[:_MOST_NAMED]) + (" …" if len(tokens) > _MOST_NAMED else "")
        raise TraceError(f"the word “{word}” was asked for, which isn't in this text; its tokens are {named}")
    return sorted(places)


def _plain(label: str) -> str:
    """A piece without its tokenizer's marks, in small letters."""
    return without_marks(label).casefold()
