"""Refusal of traces too large for a browser, before computing."""

from typing import TYPE_CHECKING

from attention_viz.errors import TraceError

if TYPE_CHECKING:
    from attention_viz.trace.trace import Trace

# The largest head and the largest trace that a browser can hold, at two bytes a weight, and still answer the pointer.
MOST_CELLS = 4096 * 4096
MOST_WEIGHTS = 16 * MOST_CELLS
# The most tokens of a drawn mask: beyond it, cells are too small to be hit, and links too long.
LONGEST_DRAWN = 512


def refuse_large(trace: "Trace") -> None:
    """Refuse by shapes: small files may need weights beyond memory."""
    total = 0
    for stream, layers in trace.layers.items():
        for number, layer in zip(trace.layer_numbers(stream), layers, strict=True):
            heads, queries, keys = layer.attention.shape
            total += heads * queries * keys
            if queries * keys > MOST_CELLS:
                raise TraceError(
                    f"a head of layer {number} of the {stream} has {queries:,} queries × {keys:,} keys; the explorer "
                    f"draws at most {MOST_CELLS:,} cells per head ({int(MOST_CELLS**0.5):,} tokens)"
                )
    if total > MOST_WEIGHTS:
        raise TraceError(
            f"the trace has {total:,} weights and the explorer draws at most {MOST_WEIGHTS:,}; "
            "record fewer layers or a shorter text"
        )
