"""Traces of tiny models with layers without a softmax: with a matrix per head, twice, and with one per channel."""

import functools
from dataclasses import replace

import torch

import attention_viz as av
from attention_viz.trace.trace import Trace
from tests.recording.mixers.hybrids import build

__all__ = ["KINDS", "mixed_trace"]

# A gated delta rule, SSD and a selective scan.
KINDS = ("qwen3_next", "bamba", "jamba")
TOKENS = 21


@functools.cache
def mixed_trace(name: str, changed: int | None = None) -> Trace:
    """A text of tokens that come back, in words of one to three pieces, with a special one; perhaps one id changed."""
    # Token 0 fills batches up in some families, and is nothing there.
    ids = 1 + torch.arange(TOKENS)[None] * 7 % 13
    if changed is not None:
        ids[0, changed] = 50
    trace = av.wrap(build(name)).trace_ids(ids)
    words = (None, 0, 0, 1, 2, 2, 2, *range(3, TOKENS - 4))
    tokens = replace(trace.query_tokens(), special=(True, *(False,) * (TOKENS - 1)), words=words)
    axis = dict.fromkeys(trace.queries, tokens)
    return trace.derived(queries=axis, keys=axis, mixers=trace.mixers)
