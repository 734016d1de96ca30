"""Each head's weight on the first token, and the fetched vector's length."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from attention_viz.analysis.attribution import Projecting, fetched_lengths, output_matrices
from attention_viz.analysis.rows import QueryRows
from attention_viz.operation.attention import without_autocast
from attention_viz.operation.shapes import shared_heads
from attention_viz.trace.given.from_weights import check_computed, softmax_stream
from attention_viz.trace.slots import are_alike
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas

__all__ = ["attention_sinks"]


@without_autocast()
def attention_sinks(
    model: Projecting, trace: Trace, stream: str | None = None, layer: int | None = None
) -> "pandas.DataFrame":
    """Return each head's weight on the first token, with the norm of the vector fetched from there.

    A head's weights sum to 1, so they have to go somewhere. Many heads use the first token as an attention sink: its
    vector is short, so a large weight moves little. Lengths are those of `norm_weighted` before the weight: ‖(x_j W_V +
    b_V) W_O‖.

    Source: Xiao et al. 2024, "Efficient Streaming Language Models with Attention Sinks", section 3.1, for the weights;
    Kobayashi et al. 2020, "Attention is Not Only a Weight", section 4, for short vectors under large weights.

    Args:
        model: the model of the trace.
        trace: the run; an edited run counts with the weights and values it had.
        stream: the layers' stream; None for the only one.
        layer: one layer alone, by its number; by default all that the trace keeps.

    Returns:
        One row per head, index (layer, head), float64. Queries count as in the metrics, without special tokens and
        padding; if queries and keys are the same text, also without the first token itself. `weight` is the mean weight
        on the first token; `length` the norm of the first token's vector; `others` the mean norm of the other tokens'
        vectors, without padding; `fetched` the first token's share of all fetched norms, each times its weight. NaN if
        no query counts.

    Raises:
        TraceError: the stream is missing, the model differs from the trace's by name or size or has changed since, or
            W_O isn't known.
    """
    import pandas

    stream = softmax_stream(trace, stream, "an attention sink")
    queries, keys = trace.query_tokens(stream), trace.key_tokens(stream)
    rows = QueryRows.of(queries, keys, alike=are_alike(stream, queries, keys))
    found = {
        (number, head): numbers
        for number in (trace.layer_numbers(stream) if layer is None else [layer])
        for head, numbers in enumerate(_layer(model, trace, number, stream, rows).tolist())
    }
    index = pandas.MultiIndex.from_tuples(found, names=["layer", "head"])
    return pandas.DataFrame(list(found.values()), index, columns=["weight", "length", "others", "fetched"])


def _layer(model: Projecting, trace: Trace, layer: int, stream: str, rows: QueryRows) -> Tensor:
    """(head, 4), float64: weight, length, others, fetched."""
    call = trace.attention(layer, stream)
    check_computed(call, "the norm of the vector fetched from the first token")
    value = shared_heads(call.value, call.query).detach().cpu().double()
    matrices = output_matrices(model, trace, layer, stream, call)
    lengths = fetched_lengths(torch.ones(len(value), 1, value.shape[1]).double(), value, matrices)[:, 0]
    counted = rows.counted & (rows.positions != rows.first) if rows.alike else rows.counted
    weights = call.weights.detach().cpu()[:, counted].double()
    others = rows.real.clone()
    others[rows.first] = False
    fetched = weights.sum(dim=1) * lengths
    return torch.stack(
        [
            weights[..., rows.first].mean(dim=-1),
            lengths[:, rows.first],
            lengths[:, others].mean(dim=-1),
            fetched[:, rows.first] / fetched.sum(dim=-1),
        ],
        dim=-1,
    )
