"""Proves that a decoder's keys are its own tokens and its encoder's, as T5Gemma 2 attends to both in one softmax.

Gradients decide, as for spans: each row that a module reads must move one key, in order. DiffusionGemma's canvas reads
its prompt's keys from a cache: these must equal a layer's own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from attention_viz.errors import UnsupportedModel
from attention_viz.operation.masks import causal
from attention_viz.recording.layout.spans import EnteredTurn, entered_turns, kind_of, moving
from attention_viz.recording.recorder import Call
from attention_viz.trace.derived import last_tokens
from attention_viz.trace.slots import joined_tokens
from attention_viz.trace.tokens import Tokens

if TYPE_CHECKING:
    from attention_viz.recording.runner import Pass, Runner


def merges(runner: "Runner", inputs: Mapping[str, Tensor], recorded: "Pass") -> bool:
    """Return whether an encoder–decoder has such keys.

    Raises:
        UnsupportedModel: it has as many, but they aren't proven.
    """
    lengths = [inputs[name].shape[1] for name in ("decoder_input_ids", "input_ids") if name in inputs]
    if len(lengths) != 2:
        return False
    target, source = lengths
    calls = [call for call in recorded.calls if call.attention.shape[1:] == (target, target + source)]
    for call, turn in zip(calls, entered_turns(runner, inputs, [call.module for call in calls]), strict=True):
        _check(runner, turn, target, source)
        _check_looks_back(call, target)
    return bool(calls)


def canvas_streams(runner: "Runner", inputs: Mapping[str, Tensor], recorded: "Pass") -> tuple[str, ...] | None:
    """Return each call's stream of a model whose canvas reads a prompt's last keys, and then its own; None for others.

    Layers of a kind share a stream, since they read as much of a prompt.
    """
    if not {"decoder_input_ids", "input_ids"} <= inputs.keys():
        return None
    target, source = (inputs[name].shape[1] for name in ("decoder_input_ids", "input_ids"))
    calls = recorded.calls
    reading = [call for call in calls if call.attention.shape[1:] != (source, source)]
    before = [call for call in calls if call.attention.shape[1:] == (source, source)]
    if not reading or any(not target < call.attention.shape[2] <= target + source for call in reading):
        return None
    turns = entered_turns(runner, inputs, [call.module for call in reading])
    if not all(_reads_canvas(runner, turn, call, before) for turn, call in zip(turns, reading, strict=True)):
        return None
    kinds = [*dict.fromkeys(map(kind_of, reading))]
    names = {kind: "cross" if not number else f"cross {number + 1}" for number, kind in enumerate(kinds)}
    own = {id(call) for call in reading}
    return tuple(names[kind_of(call)] if id(call) in own else "encoder" for call in calls)


def canvas_axes(
    streams: Sequence[str], recorded: "Pass", source: Tokens, canvas: Tokens
) -> tuple[dict[str, Tokens], dict[str, Tokens]]:
    """Return the rows and columns of such a model's streams.

    Raises:
        UnsupportedModel: the canvas reads other keys than the last ones of a layer of the prompt.
    """
    before = [
        call for call, number in zip(recorded.calls, recorded.numbers, strict=True) if streams[number] == "encoder"
    ]
    whole = len(before) == streams.count("encoder")
    queries = {stream: source if stream == "encoder" else canvas for stream in streams}
    keys = {**dict.fromkeys(streams, canvas), "encoder": source}
    for call, number in zip(recorded.calls, recorded.numbers, strict=True):
        stream, count = streams[number], call.attention.shape[-1] - len(canvas)
        if stream != "encoder":
            if not 0 <= count <= len(source) or (whole and not is_cached(call, count, before)):
                raise UnsupportedModel(f"{type(call.module).__name__} doesn't read the last {count} keys of its prompt")
            keys[stream] = joined_tokens(*_sentences(last_tokens(source, count), canvas))
    return queries, keys


def _reads_canvas(runner: "Runner", turn: EnteredTurn, call: Call, before: Sequence[Call]) -> bool:
    place = turn.main
    leaf = turn.rows[place].detach().clone().requires_grad_(True)
    again, (target, count) = turn.call(runner, place, leaf), call.attention.shape[1:]
    read, own = moving(again, leaf, range(count - target)), moving(again, leaf, range(count - target, count))
    if bool(read.any()) or not torch.equal(own, torch.eye(target, dtype=torch.bool)):
        return False
    return is_cached(call, count - target, before)


def is_cached(call: Call, count: int, before: Sequence[Call]) -> bool:
    """Return whether a call's first keys are the last ones of another."""
    cached = call.attention.key[:, :count]
    return any(torch.equal(one.attention.key[:, one.attention.shape[-1] - count :], cached) for one in before)


def merged_keys(read: Tokens, source: Tokens) -> Tokens:
    """Return the keys of a decoder that attends to its own tokens and to its encoder's: two sentences."""
    return joined_tokens(*_sentences(read, source))


def _sentences(*texts: Tokens) -> list[Tokens]:
    return [replace(one, sentence=(number,) * len(one)) for number, one in enumerate(texts)]


def _check(runner: "Runner", turn: EnteredTurn, target: int, source: int) -> None:
    found = list[Tensor]()
    for place, rows in turn.rows.items():
        leaf = rows.detach().clone().requires_grad_(True)
        call = turn.call(runner, place, leaf)
        both = [moving(call, leaf, keys) for keys in (range(target), range(target, target + source))]
        if any(bool(one.any()) for one in both):
            found.append(torch.cat(both, dim=1))
    wanted = torch.eye(target + source, dtype=torch.bool)
    if [one.tolist() for one in found] != [wanted[:target].tolist(), wanted[target:].tolist()]:
        raise UnsupportedModel(
            f"{type(turn.module).__name__} attends over {target + source} keys, which aren't the decoder's {target} "
            f"tokens and then the encoder's {source}"
        )


def _check_looks_back(call: Call, target: int) -> None:
    allowed = call.attention.allowed
    if allowed is None or bool((allowed[..., :target].cpu() & ~causal(target)).any()):
        raise UnsupportedModel(f"{type(call.module).__name__} attends ahead in its own text; use a causal decoder")
