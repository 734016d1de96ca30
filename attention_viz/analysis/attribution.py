"""Attribution of a token's vector: attention through all layers, or weighted by values."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy
import torch
from jaxtyping import Float
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow
from torch import Tensor

from attention_viz.errors import TraceError
from attention_viz.operation.attention import Attention, without_autocast
from attention_viz.operation.modules import Projection
from attention_viz.operation.shapes import positions, shared_heads
from attention_viz.trace.given.from_weights import check_computed, softmax_stream
from attention_viz.trace.kept import LayerIndex, layers_in_words
from attention_viz.trace.kind import CROSSING_STREAMS
from attention_viz.trace.trace import Trace
from attention_viz.trace.trace_data import behind

__all__ = ["fetched_lengths", "flow", "flow_steps", "norm_weighted", "output_matrices", "rollout"]

# Capacities are whole numbers for scipy, and 32 bits wide: what leaves a node is at most this, so nothing overflows.
_WHOLE = 2**30

# Flows times the edges of the graph that each has to search.
_MOST_STEPS = 2 * 10**9


@runtime_checkable
class Projecting(Protocol):
    """A model with known projection matrices."""

    @property
    def projections(self) -> Callable[..., Mapping[str, Projection]]:
        """Return a layer's matrices, with "output" if known."""
        ...


@without_autocast()
def rollout(trace: Trace, stream: str | None = None) -> Float[Tensor, "layer query key"]:
    """Return each input token's share of each position's vector, if attention alone mixed them.

    Ã_l = A_l Ã_{l−1} from layer 0 up, where A_l = ½ W_l + ½ I is the layer's weights, averaged over its heads, plus the
    residual connection. Entry l is the rollout up to and including layer l; the last entry covers all layers. Rows sum
    to 1: W + I is divided by its row sum. If a row's heads leave something out (a sink, or nothing allowed), that share
    goes to the residual connection.

    Padding keeps its rows and columns. Real positions can't look at padding, so their rows have exactly 0 there. The
    rows of padding have the model's own numbers, which mean nothing.

    Cross-attention into a decoder is left out.

    Source: Abnar & Zuidema 2020, "Quantifying Attention Flow in Transformers", section 3, eq. 1.

    Args:
        trace: the run.
        stream: "encoder" or "decoder"; None for the only one.

    Returns:
        Shares from 0 to 1, float32, computed in float64.

    Raises:
        TraceError: the stream is missing or "cross", whose layers don't chain, the trace keeps only some layers, or it
            has layers without a softmax.
    """
    stream = _own(trace, stream, "rollout")
    trace.check_every_layer("rollout", stream)
    mixed = _with_residual(trace, stream, trace.layer_numbers(stream))
    rolled = [mixed[0]]
    for layer in mixed[1:]:
        rolled.append(layer @ rolled[-1])
    return torch.stack(rolled).float()


@without_autocast()
def flow(
    trace: Trace,
    stream: str | None = None,
    *,
    layers: Sequence[int] | None = None,
    queries: Sequence[int] | None = None,
) -> Float[Tensor, "layer query key"]:
    """Return the maximum flow from each input token to each position, with the weights as edge capacities.

    The graph leads from a position after layer l down to an input token. Its edges join each layer's queries and keys;
    their capacities are ½ W_l + ½ I, the matrices that `rollout` multiplies. Each pair is a flow of its own, so rows
    aren't shares: each number is between that of `rollout` and 1, and a row sums to 1 or more. Layer 0 equals
    `rollout`. Padding and other streams are treated as in `rollout`.

    Computes layer · query · key flows, each over all edges below its layer. All of 6 layers and 64 tokens takes about
    ten seconds, and time grows with the 4th power of the tokens. Use `layers` and `queries` to leave some out.

    Capacities are rounded down to multiples of 2⁻³⁰, about 1e-9. So a flow is never too large, and too small by less
    than 2⁻³⁰ times layers · tokens².

    Source: Abnar & Zuidema 2020, "Quantifying Attention Flow in Transformers", section 3; by Dinic's algorithm.

    Args:
        trace: the run.
        stream: "encoder" or "decoder"; None for the only one.
        layers: only after the layers with these numbers; after all by default.
        queries: only from these positions, from 0; from all by default.

    Returns:
        From 0 to 1, float32; the chosen layers and queries in that order, and all keys.

    Raises:
        TraceError: the stream or layer is missing, the stream is "cross", whose layers don't chain, the trace keeps
            only some layers or has some without a softmax, or it would take more than 2·10⁹ steps (flows times edges),
            which is a minute and a half.
        ShapeError: a query is missing.
    """
    stream = _own(trace, stream, "flow")
    trace.check_every_layer("flow", stream)
    numbers = trace.layer_numbers(stream)
    for layer in layers or ():
        trace.attention(layer, stream)  # refuses one that isn't there
    chosen = [LayerIndex(numbers.index(layer)) for layer in (numbers if layers is None else layers)]
    count = len(trace.query_tokens(stream))
    asked = slice(None) if queries is None else queries
    rows = positions(asked, count, "query", torch.device("cpu")).tolist()
    _check_steps(chosen, len(rows), count)
    pipes = _graph(_with_residual(trace, stream, numbers[: max(chosen, default=-1) + 1]))
    found = torch.zeros(len(chosen), len(rows), count)
    for place, depth in enumerate(chosen):
        end = (depth + 2) * count
        below = pipes[:end, :end]
        for row, query in enumerate(rows):
            start = end - count + query
            most = [maximum_flow(below, start, key, method="dinic").flow_value for key in range(count)]
            found[place, row] = torch.tensor(most, dtype=torch.float64) / _WHOLE
    return found


def flow_steps(layers: int, tokens: int) -> int:
    """Return the cost of a trace's `flow`: flows × edges, some 20 million a second."""
    return _steps(map(LayerIndex, range(layers)), tokens, tokens)


@without_autocast()
def norm_weighted(
    model: Projecting, trace: Trace, layer: int, stream: str | None = None
) -> Float[Tensor, "head query key"]:
    """Return the norm of the vector that each query fetches from each key.

    A large weight on a short vector moves little. ‖α_ij f(x_j)‖ with f(x) = (x W_V + b_V) W_O, where W_O has the rows
    of this head. b_O belongs to no head and no key, so it is left out, as are layer norm and residual connection. The
    vectors themselves (not their norms), summed over keys and heads, plus b_O, are the output of the layer's attention.

    Source: Kobayashi et al. 2020, "Attention is Not Only a Weight", sections 2.2 and 3.

    Args:
        model: the model of the trace.
        trace: the run; an edited run counts with the weights and values it had.
        layer: its number, the model's own.
        stream: the layer's stream; None for the only one.

    Returns:
        Euclidean norms in the units of the layer's output, float32; 0 for blocked keys.

    Raises:
        TraceError: the layer or stream is missing, the model differs from the trace's by name or size or has changed
            since, or W_O isn't known.
    """
    stream = softmax_stream(trace, stream, "norm-weighted attention")
    call = trace.attention(layer, stream)
    check_computed(call, "norm-weighted attention")
    joining = output_matrices(model, trace, layer, stream, call)
    value = shared_heads(call.value, call.query).detach().cpu().double()
    return fetched_lengths(call.weights.detach().cpu().float(), value, joining)


def fetched_lengths(
    weights: Float[Tensor, "head query key"],
    value: Float[Tensor, "#head key d_v"],
    joining: Float[Tensor, "head d_v d_model"],
) -> Float[Tensor, "head query key"]:
    """Return ‖α_ij v_j W_O‖ of each pair, from ‖v W‖² = v (W Wᵀ) vᵀ to save memory."""
    squares = ((value @ (joining @ joining.mT)) * value).sum(dim=-1)
    return weights * squares.clamp_min(0).sqrt().to(weights.dtype)[:, None, :]


def _own(trace: Trace, stream: str | None, what: str) -> str:
    if trace.mixers:
        numbers = sorted({number for name in trace.mixers for number in trace.layer_numbers(name)})
        have = "has" if len(numbers) == 1 else "have"
        raise TraceError(f"{what} needs a softmax in every layer; {layers_in_words(numbers)} of this trace {have} none")
    name = trace.stream(stream)
    queries, keys = trace.query_tokens(name), trace.key_tokens(name)
    if name in CROSSING_STREAMS or len(queries) != len(keys):
        fitting = [one for one in trace.attention_streams if one not in CROSSING_STREAMS]
        whose = "cross-attention" if name == "cross" else f"the {name}"
        instead = f"; choose {' or '.join(fitting)}" if fitting and name in CROSSING_STREAMS else ""
        raise TraceError(
            f"{what} needs self-attention, whose layers chain; {whose} has {len(queries)} queries and {len(keys)} "
            f"keys of two different rows{instead}"
        )
    return name


def _with_residual(trace: Trace, stream: str, layers: Sequence[int]) -> Float[Tensor, "layer query key"]:
    """½ W + ½ I, W the mean over heads; what a row of W lacks goes to I."""
    size = len(trace.query_tokens(stream))
    mixed = torch.eye(size, dtype=torch.float64).repeat(len(layers), 1, 1)
    for entry, layer in zip(mixed, layers, strict=True):
        weights = trace.attention(layer, stream).weights.detach().cpu()
        entry += weights.sum(dim=0, dtype=torch.float64) / _heads_of_a_row(weights)
    return mixed / mixed.sum(dim=-1, keepdim=True)


def _heads_of_a_row(weights: Float[Tensor, "head query key"]) -> int:
    """Return how many heads a row has: fewer than there are if each head has only some rows, as Longformer's do."""
    live = (weights != 0).any(dim=-1)
    return len(weights) if bool(live.all(dim=-1).any()) else max(1, int(live.sum(dim=0).max()))


def _graph(mixed: Float[Tensor, "layer query key"]) -> csr_array:
    """Edges layer·n + n + query → layer·n + key; nodes below n are the text."""
    count = mixed.shape[-1]
    capacity = (mixed * _WHOLE).floor().int().numpy()
    layer, query, key = numpy.nonzero(capacity)
    nodes = (len(mixed) + 1) * count
    ends = ((layer + 1) * count + query, layer * count + key)
    return csr_array((capacity[layer, query, key], ends), shape=(nodes, nodes))


def _check_steps(layers: Sequence[LayerIndex], rows: int, count: int) -> None:
    steps = _steps(layers, rows, count)
    if steps > _MOST_STEPS:
        raise TraceError(
            f"flow for {len(layers)} × {rows} × {count} (layer, query, key) needs {steps:.1e} steps (flows times "
            f"edges), over the limit of {_MOST_STEPS:.0e}; name fewer layers or queries, or shorten the text"
        )


def _steps(layers: Iterable[LayerIndex], rows: int, count: int) -> int:
    return sum(rows * count * (layer + 1) * count**2 for layer in layers)


def output_matrices(
    model: Projecting, trace: Trace, layer: int, stream: str, call: Attention
) -> Float[Tensor, "head d_v d_model"]:
    """Return each head's W_O; refuse if the model has changed since."""
    behind(trace).check()
    traced = trace.provenance.model
    name: object = getattr(model, "name", traced)
    if name != traced:
        raise TraceError(f"the trace is of {traced}, but the matrices are of {name}; pass that model")
    # `Scratch` has one stream and no name for it.
    place = (layer,) if len(trace.attention_streams) == 1 else (layer, stream)
    matrices = model.projections(*place)
    output = matrices.get("output")
    if output is None:
        missing: Mapping[str, str] = getattr(matrices, "missing", {})
        raise TraceError(
            f"norms need W_O, the output matrix, of {stream} layer {layer} of {traced}, which isn't known: "
            f"{missing.get('output', 'no single matrix makes its output')}"
        )
    heads, width = call.shape[0], call.value.shape[-1]
    if output.weight.shape[0] != heads * width:
        raise TraceError(
            f"W_O of {stream} layer {layer} has {output.weight.shape[0]} rows, but the trace's {heads} heads of "
            f"{width} values need {heads * width}; pass the model of the trace"
        )
    return output.weight.detach().cpu().double().unflatten(0, (heads, width))
