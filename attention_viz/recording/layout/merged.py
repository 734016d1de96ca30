"""Proves that a decoder's keys are its own tokens and then its encoder's, as T5Gemma 2 attends to both in one softmax.

Gradients decide, as for spans: each row that a module reads must move one key, in order.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from attention_viz.errors import UnsupportedModel
from attention_viz.operation.masks import causal
from attention_viz.recording.layout.spans import EnteredTurn, entered_turns, moving
from attention_viz.recording.recorder import Call
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


def merged_keys(read: Tokens, source: Tokens) -> Tokens:
    """Return the keys of a decoder that attends to its own tokens and to its encoder's: two sentences."""
    first, second = (replace(one, sentence=(number,) * len(one)) for number, one in enumerate((read, source)))
    return joined_tokens(first, second)


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
