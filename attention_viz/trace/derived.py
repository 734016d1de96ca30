"""Make traces of a trace: of whole words, or of its first tokens."""

import math
from collections.abc import Sequence
from dataclasses import fields, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attention_viz.errors import TraceError
from attention_viz.operation.attention import Attention
from attention_viz.operation.cutting import first
from attention_viz.operation.token_mixer import TokenMixer
from attention_viz.trace.chat.segments import Segment
from attention_viz.trace.given.from_weights import attention_of, mixer_of_weights
from attention_viz.trace.kind import MEDIA, SLOT_STREAMS, Unit
from attention_viz.trace.layers import Layer, MixerLayer
from attention_viz.trace.memory import first_rows
from attention_viz.trace.provenance import MERGED, Provenance
from attention_viz.trace.rerun import Along, Relevance
from attention_viz.trace.tokens import Tokens, first_tokens
from attention_viz.trace.trace import Trace
from attention_viz.trace.trace_data import attach, behind, by_row

__all__ = ["beginning", "merge_words", "tokens_of_words"]

# The positions of each word's pieces.
Pieces = tuple[tuple[int, ...], ...]
# Cells of merged matrices of mixers at most, 1 GiB in float32, and cells that are merged at a time.
_MOST_MERGED, _AT_ONCE = 2**28, 2**23


def merge_words(trace: Trace) -> Trace:
    """Merge the subword tokens of each word.

    A word's attention is the mean over its pieces as queries and the sum over its pieces as keys: M_ab = (1 / |a|) Σ_{i
    in a} Σ_{j in b} A_ij. Rows that summed to 1 still do. Pieces of no word, such as [CLS] or a punctuation mark that
    the tokenizer counts separately, stay as they are. Signed weights, of layers without a softmax, merge in the same
    way. If the output has one row per piece, a word's output is the mean of its pieces' rows.

    No attention call computed these weights (see `attention_of`). `ids` number the distinct words by first occurrence.

    Source: Clark et al. 2019, "What Does BERT Look At?", section 4.1.

    Raises:
        TraceError: the head has an attention sink, so its rows sum to less than 1, or the model has no softmax
            attention.
    """
    trace.check_attends()
    groups = {name: tokens.pieces for name, tokens in _axes(trace).items()}
    layers = {
        stream: tuple(
            Layer(_merged(layer.attention, groups[f"{stream} queries"], groups[f"{stream} keys"]), layer.label)
            for layer in found
        )
        for stream, found in trace.layers.items()
    }
    mixers, left_out = _merged_mixers(trace, groups)
    streams = [one for one in trace.queries if one not in SLOT_STREAMS] or list(trace.queries)
    last = streams[-1]
    read = groups[f"{'decoder' if last == 'cross' and 'decoder' in trace.layers else last} queries"]
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
            trace.provenance.leaving_out(left_out).generating([group[0] - made for group in read if group[0] >= made]),
            edits=(*trace.provenance.edits, MERGED),
            segments=_of_words(trace.segments, groups[f"{trace.text_stream} queries"]),
            answer=None,
        ),
        mixers=mixers,
        before="its words were merged",
    )


def _of_words(segments: Sequence[Segment], groups: Pieces) -> tuple[Segment, ...]:
    """Return segments in words; a word belongs to the segment of its first piece."""
    firsts, found = [group[0] for group in groups], list[Segment]()
    for one in segments:
        inside = [word for word, first in enumerate(firsts) if one.start <= first < one.end]
        found += [Segment(one.role, inside[0], inside[-1] + 1)] if inside else []
    return tuple(found)


def _axes(trace: Trace) -> dict[str, Tokens]:
    queries = {f"{stream} queries": tokens for stream, tokens in trace.queries.items()}
    return queries | {f"{stream} keys": tokens for stream, tokens in trace.keys.items()}


def _mean(groups: Pieces, rows: Float[Tensor, "piece width"]) -> Float[Tensor, "word width"]:
    return torch.stack([rows[list(group)].double().mean(dim=0) for group in groups]).to(rows.dtype)


def _merged(call: Attention, queries: Pieces, keys: Pieces) -> Attention:
    weights = call.weights.detach().double()
    if call.sinks is not None and not bool(torch.isneginf(call.sinks).all()):
        raise TraceError(
            "can't merge words: attention sinks take a share of each row here, and merged rows must sum to 1. Use "
            "the trace as it is"
        )
    words = _summed(weights, queries, keys)
    return attention_of(words, None if call.allowed is None else _open(call.allowed.expand(call.shape), queries, keys))


def _merged_mixers(trace: Trace, groups: dict[str, Pieces]) -> tuple[dict[str, tuple[MixerLayer, ...]], list[str]]:
    """Return the merged mixers, and a note on those whose merged matrices would fill the memory."""
    found, left_out = dict[str, tuple[MixerLayer, ...]](), list[str]()
    for stream, layers in trace.mixers.items():
        tokens = next(iter(trace.queries))
        queries, keys = groups[f"{tokens} queries"], groups[f"{tokens} keys"]
        count = sum(layer.mixer.shape[0] for layer in layers)
        if count * len(queries) * len(keys) > _MOST_MERGED:
            left_out.append(f"the {stream}, whose {count:,} matrices of merged words would fill the memory")
        else:
            found[stream] = tuple(replace(layer, mixer=_merged_mixer(layer.mixer, queries, keys)) for layer in layers)
    return found, left_out


def _merged_mixer(mixer: TokenMixer, queries: Pieces, keys: Pieces) -> TokenMixer:
    parts = list[Tensor]()
    together = max(1, _AT_ONCE // max(1, math.prod(mixer.shape[-2:])))
    for start in range(0, mixer.shape[0], together):
        weights = mixer.heads(slice(start, start + together)).weights.detach().double()
        parts.append(_summed(weights, queries, keys).to(mixer.query.dtype))
    return mixer_of_weights(torch.cat(parts), mixer.kind, mixer.per)


def _summed(weights: Tensor, queries: Pieces, keys: Pieces) -> Float[Tensor, "head word_a word_b"]:
    rows = torch.stack([weights[:, list(group)].mean(dim=1) for group in queries], dim=1)
    return torch.stack([rows[..., list(group)].sum(dim=-1) for group in keys], dim=-1)


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
        tuple(tokens.regions[first] for first in firsts),
        tuple(tokens.slots[first] for first in firsts),
    )


def beginning(trace: Trace, count: int) -> Trace:
    """Return the trace of the first tokens; with causal attention no number changes.

    Gradients come from a run of the whole text.
    """
    streams = trace.attention_streams
    beside = len(streams) == 2 and streams[0] in MEDIA
    stream = streams[-1] if beside or "decoder" in streams else trace.streams[0]
    tokens = trace.query_tokens(stream)
    trace.check_attends()
    if not 1 <= count <= len(tokens):
        raise TraceError(f"the first tokens must be 1 to {len(tokens)}; got {count}")
    if any(Unit.SPAN in keys.units for keys in trace.keys.values()):
        raise TraceError(f"can't take the first {count} tokens: keys are made of several. Use the whole trace")
    if not (beside or streams == ("decoder",)) or any(
        _looks_ahead(layer.attention, count) for layer in trace.layers[stream]
    ):
        raise TraceError(
            f"can't take the first {count} tokens: tokens of this trace attend to later ones. Use the whole trace"
        )
    if count == len(tokens):
        return trace
    cut, output = {stream: first_tokens(tokens, count)}, by_row(trace)
    found = trace.derived(
        layers={**trace.layers, stream: tuple(_layer(layer, count) for layer in trace.layers[stream])},
        queries={**trace.queries, **cut},
        keys={**trace.keys, **cut},
        output=first_rows(output, count) if len(output) == len(tokens) else output,
        provenance=_cut(trace, count, len(tokens)),
        mixers={
            stream: tuple(replace(layer, mixer=first(layer.mixer, queries=count, keys=count)) for layer in layers)
            for stream, layers in trace.mixers.items()
            if all(layer.mixer.is_causal for layer in layers)
        },
        before=f"it was cut to its first {count} tokens",
    )
    return _behind(found, trace, count)


def _cut(trace: Trace, count: int, tokens: int) -> Provenance:
    origin, answer = trace.provenance, trace.provenance.answer
    return replace(
        origin.generating(range(origin.generated - (tokens - count))),
        segments=tuple(replace(one, end=min(one.end, count)) for one in origin.segments if one.start < count),
        answer=answer if answer is None or answer[1] <= count else None,
    )


def _behind(found: Trace, trace: Trace, count: int) -> Trace:
    run = behind(trace)

    def differentiate(of: tuple[int, int] | Along | None) -> Relevance:
        if isinstance(of, Along):
            raise TraceError("a direction needs the whole trace; call it there, not on the first tokens")
        found_of_all = trace.relevance(of or (count - 1, int(by_row(found)[count - 1].argmax())))
        cut = {name: tuple(one[:, :count, :count] for one in layers) for name, layers in found_of_all.layers.items()}
        return replace(found_of_all, layers=cut)

    def zero(stream: str) -> tuple[Tensor, ...]:
        return tuple(one[:count, :count] for one in trace.value_zeroing(stream))

    by_token = trace.provenance.output == "logits"
    return attach(
        found,
        replace(
            behind(found),
            differentiate=differentiate if trace.differentiable and by_token else None,
            zero=None if run.zero is None else zero,
        ),
    )


def _looks_ahead(call: Attention, count: int) -> bool:
    queries, keys = call.shape[-2:]
    if queries != keys:
        return True
    if count >= keys:
        return False
    if call.allowed is None:
        return True
    allowed = call.allowed.expand(*call.allowed.shape[:-2], queries, keys)
    return bool(allowed[..., :count, count:].any())


def _layer(layer: Layer, count: int) -> Layer:
    around = {name: tensor[..., :count, :] for name, tensor in layer.around.items()}
    parts = {name: part[..., :count, :count] for name, part in layer.bias_parts.items()}
    call = first(layer.attention, queries=count, keys=count)
    picking = None if layer.picking is None else layer.picking.changed(lambda one: one[..., :count, :count])
    return replace(layer, attention=call, bias_parts=parts, picking=picking, **around)


def last_tokens(tokens: Tokens, count: int) -> Tokens:
    """Return the last tokens of a text, their words counted from 0."""
    some = {one.name: getattr(tokens, one.name) for one in fields(tokens)}
    some = {name: None if value is None else value[len(tokens) - count :] for name, value in some.items()}
    first = min((word for word in some["words"] if word is not None), default=0)
    words = tuple(None if word is None else word - first for word in some["words"])
    return Tokens(**{**some, "words": words})
