"""Merge a trace's word pieces into whole words."""

from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attention_viz.errors import TraceError
from attention_viz.operation.attention import Attention
from attention_viz.trace.from_weights import attention_of
from attention_viz.trace.provenance import MERGED
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Layer, Trace

__all__ = ["merge_words", "tokens_of_words"]

# The positions of each word's pieces.
Pieces = tuple[tuple[int, ...], ...]


def merge_words(trace: Trace) -> Trace:
    """A trace with the pieces of each word put together.

    What a word looks at is the mean over its pieces as queries; what is looked at of a word is the sum over its pieces
    as keys: M_ab = (1 / |a|) Σ_{i in a} Σ_{j in b} A_ij. Rows that summed to 1 still do. Pieces that belong to no word,
    such as [CLS] or a punctuation mark that the tokenizer counts by itself, stay as they are. The output of a word is
    the mean over its pieces', where there is one a piece.

    The weights are no call's: no query and key of these words ever met (see `attention_of`). `ids` count the words as
    they first occur.

    Source: Clark et al. 2019, "What Does BERT Look At?", section 4.1.

    Raises:
        TraceError: a head whose rows sum to less than 1, since an attention sink takes a share: weights that sum to 1
            can't tell that.
    """
    groups = {name: tokens.pieces for name, tokens in _axes(trace).items()}
    layers = {
        stream: tuple(
            Layer(_merged(layer.attention, groups[f"{stream} queries"], groups[f"{stream} keys"]), layer.label)
            for layer in found
        )
        for stream, found in trace.layers.items()
    }
    read = groups[f"{trace.streams[-1] if trace.streams[-1] != 'cross' else 'decoder'} queries"]
    pieces = sum(len(group) for group in read)
    output = trace.output if trace.output_shape[0] != pieces else _mean(read, trace.output)
    made = pieces - trace.provenance.generated
    return trace.derived(
        layers=layers,
        queries={
            stream: tokens_of_words(tokens, groups[f"{stream} queries"]) for stream, tokens in trace.queries.items()
        },
        keys={stream: tokens_of_words(tokens, groups[f"{stream} keys"]) for stream, tokens in trace.keys.items()},
        output=output,
        # A word of which the model chose only the end isn't one that it generated.
        provenance=replace(
            trace.provenance,
            edits=(*trace.provenance.edits, MERGED),
            generated=sum(group[0] >= made for group in read),
        ),
        before="pieces of words were merged",
    )


def _axes(trace: Trace) -> dict[str, Tokens]:
    queries = {f"{stream} queries": tokens for stream, tokens in trace.queries.items()}
    return queries | {f"{stream} keys": tokens for stream, tokens in trace.keys.items()}


def _mean(groups: Pieces, rows: Float[Tensor, "piece width"]) -> Float[Tensor, "word width"]:
    return torch.stack([rows[list(group)].double().mean(dim=0) for group in groups]).to(rows.dtype)


def _merged(call: Attention, queries: Pieces, keys: Pieces) -> Attention:
    weights = call.weights.detach().double()
    if call.sinks is not None and not bool(torch.isneginf(call.sinks).all()):
        raise TraceError(
            "merging pieces into words was asked for, and this model's attention sinks take a share of each row: "
            "weights that sum to 1 can't tell that"
        )
    rows = torch.stack([weights[:, list(group)].mean(dim=1) for group in queries], dim=1)
    words = torch.stack([rows[..., list(group)].sum(dim=-1) for group in keys], dim=-1)
    return attention_of(words, None if call.allowed is None else _open(call.allowed.expand(call.shape), queries, keys))


def _open(allowed: Bool[Tensor, "head query key"], queries: Pieces, keys: Pieces) -> Bool[Tensor, "head word_a word_b"]:
    rows = torch.stack([allowed[:, list(group)].any(dim=1) for group in queries], dim=1)
    return torch.stack([rows[..., list(group)].any(dim=-1) for group in keys], dim=-1)


def tokens_of_words(tokens: Tokens, groups: Pieces) -> Tokens:
    """Return each word as one token."""
    labels, spelling = zip(*map(tokens.joined, groups), strict=True) if groups else ((), ())
    known: dict[str, int] = {}
    ids = None if tokens.ids is None else tuple(known.setdefault(label, len(known)) for label in labels)
    firsts = [group[0] for group in groups]
    return Tokens(
        labels,
        ids,
        tuple(tokens.words[first] for first in firsts),
        tuple(tokens.special[first] for first in firsts),
        tuple(tokens.padding[first] for first in firsts),
        tuple(tokens.sentence[first] for first in firsts),
        spelling,
        tuple(tokens.place[first] for first in firsts),
    )
