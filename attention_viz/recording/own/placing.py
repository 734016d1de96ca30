"""Which stream each call belongs to, and which tokens stand along it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from attention_viz.errors import ShapeError
from attention_viz.operation.attention import Attention
from attention_viz.operation.reach import is_causal
from attention_viz.recording.own.heard import HeardCall
from attention_viz.trace.from_tensors import Labels, tokens_of
from attention_viz.trace.layers import STREAMS
from attention_viz.trace.tokens import Tokens

__all__ = ["PlacedCalls", "placed"]


@dataclass(frozen=True, eq=False)
class PlacedCalls:
    """The calls of a recording, sorted.

    Attributes:
        calls: of one row of the batch, head first.
        queries: by stream, the tokens down the rows.
        keys: by stream, the tokens across the columns.
    """

    calls: Sequence[Attention]
    streams: Sequence[str]
    queries: Mapping[str, Tokens]
    keys: Mapping[str, Tokens]


def placed(
    heard: Sequence[HeardCall],
    calls: Sequence[Attention],
    labels: Labels,
    key_labels: Labels,
    streams: Sequence[str] | None,
) -> PlacedCalls:
    """Sort calls into streams, and put labels along them."""
    found = _streams(heard, calls) if streams is None else _named(streams, calls)
    sizes: dict[str, tuple[int, ...]] = {}
    for number, (stream, call) in enumerate(zip(found, calls, strict=True)):
        if sizes.setdefault(stream, call.shape[-2:]) != call.shape[-2:]:
            raise ShapeError(
                f"call {number} of the {stream} attends over {call.shape[-2:]} (query, key) and one before it over "
                f"{sizes[stream]}; a trace has the same tokens in every layer: choose calls=[…], as numbered in table()"
            )
    extra = {stream: heard[number].extra for number, stream in enumerate(found)}
    queries: dict[str, Tokens] = {}
    keys: dict[str, Tokens] = {}
    crosses = "cross" in found
    for stream in (one for one in STREAMS if one in found):
        asking, asked = sizes[stream]
        own = key_labels if stream == "encoder" and crosses and key_labels is not None else labels
        queries[stream] = tokens_of(own, asking, f"queries of the {stream}")
        if stream != "cross":
            keys[stream] = queries[stream]
            continue
        across = key_labels if key_labels is not None or len(extra[stream]) == 0 else labels
        across = labels if across is None and asked == asking else across
        keys[stream] = _with(tokens_of(across, asked - len(extra[stream]), "keys"), extra[stream])
    return PlacedCalls(calls, found, queries, keys)


def _with(tokens: Tokens, extra: tuple[str, ...]) -> Tokens:
    """The tokens, and behind them what a module added as keys, which belongs to no word."""
    if not extra:
        return tokens
    count, most = len(extra), max(tokens.numbers, default=-1)
    return replace(
        tokens,
        labels=(*tokens.labels, *extra),
        ids=(*tokens.numbers, *range(most + 1, most + 1 + count)),
        words=(*tokens.words, *[None] * count),
        special=(*tokens.special, *[True] * count),
        padding=(*tokens.padding, *[False] * count),
        sentence=(*tokens.sentence, *[None] * count),
        spelling=(*tokens.spelling, *["text"] * count),
        place=(*tokens.place, *[None] * count),
    )


def _named(streams: Sequence[str], calls: Sequence[Attention]) -> list[str]:
    if isinstance(streams, str) or len(streams) != len(calls) or not set(streams) <= set(STREAMS):
        raise ShapeError(
            f"streams are one of {', '.join(STREAMS)} for each of the {len(calls)} calls, in a list; got {streams!r}"
        )
    for number, (stream, call) in enumerate(zip(streams, calls, strict=True)):
        if stream != "cross" and call.shape[-2] != call.shape[-1]:
            raise ShapeError(
                f"call {number} was to be of the {stream}, where tokens look at each other, and attends over "
                f"{call.shape[-2:]} (query, key); needed: cross"
            )
    return list(streams)


def _streams(heard: Sequence[HeardCall], calls: Sequence[Attention]) -> list[str]:
    crossing = [
        bool(one.crossing) or bool(one.extra) or call.shape[-2] != call.shape[-1]
        for one, call in zip(heard, calls, strict=True)
    ]
    closed = [is_causal(_of_all(call.allowed), call.shape[-2:]) for call in calls]
    own = [shut for shut, across in zip(closed, crossing, strict=True) if not across]
    if not any(crossing):
        return ["decoder" if all(own) else "encoder"] * len(calls)
    across = {call.shape[-2:] for call, one in zip(calls, crossing, strict=True) if one}
    if len(across) > 1:
        metadata = ", ".join(f"{queries} × {keys}" for queries, keys in sorted(across))
        raise ShapeError(
            f"calls attend over {metadata} (query, key), tokens to other tokens, as a model does that reads on from a "
            "cache; choose calls=[…], as numbered in table()"
        )
    ((queries, keys),) = across
    return [
        "cross" if one else _side(call.shape[-1], queries, keys, shut, any(own))
        for call, one, shut in zip(calls, crossing, closed, strict=True)
    ]


def _side(tokens: int, queries: int, keys: int, closed: bool, is_several: bool) -> str:
    """Whether tokens that look at each other are those that ask across, or those that are asked."""
    if queries != keys:
        return "decoder" if tokens == queries else "encoder"
    if not is_several:
        raise ShapeError(
            f"both texts have {queries} tokens and no call is closed to what comes later, so that nothing tells whose "
            'tokens a call is of; say streams=["encoder", …], one for each call'
        )
    return "decoder" if closed else "encoder"


def _of_all(allowed: Tensor | None) -> Tensor | None:
    """A mask that all heads share, as a matrix; None where heads have their own."""
    return None if allowed is None or allowed[..., 0, 0].numel() > 1 else allowed
