"""Readings of a run: what its weights moved; only computing imports torch, as pages list readings before."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jaxtyping import Bool, Float

from attention_viz.errors import TraceError

if TYPE_CHECKING:
    from torch import Tensor

    from attention_viz.analysis.attribution import Projecting
    from attention_viz.trace.trace import Trace

    # Of each layer, numbers that are read as weights, and which of them may be more than 0; and what else is to be
    # said of them.
    _Read = tuple[Sequence[tuple[Float[Tensor, "head query key"], Bool[Tensor, "... query key"] | None]], str]

__all__ = ["READINGS", "Reading", "read"]


@dataclass(frozen=True)
class Reading:
    """An attribution method for attention.

    Attributes:
        label: its name on the screen.
        meaning: the meaning of a number, in a sentence.
        limits: the questions that it can't answer, to follow "It can't tell:".
        formula: LaTeX, of one layer; A is the weights, R the result.
        source: author, year and section.
        per_head: True if each head has its own numbers; False if a layer's heads are joined.
        scaled: True if rows are divided by their sum to be shown, because the numbers aren't shares.
        function: computes the numbers of each layer of one stream of a trace; None for the weights themselves.
    """

    label: str
    meaning: str
    limits: str
    formula: str
    source: str
    per_head: bool
    scaled: bool
    function: "Callable[[Trace, Projecting | None, str], _Read] | None"


def read(name: str, trace: "Trace", model: "Projecting | None" = None, stream: str | None = None) -> "Trace":
    """Return a trace whose weights are a reading's.

    It keeps one stream, and one head per layer if the reading joins heads. Rows are divided by their sum unless they
    are shares; rows of zeros stay. The numbers belong to no call (see `attention_of`), the output is the run's.
    Provenance names the reading.

    Args:
        model: only "norm" needs it.

    Returns:
        A new trace; for "raw" the original if it has one stream.
    """
    from attention_viz.trace.given.from_weights import attention_of, shares, softmax_stream
    from attention_viz.trace.trace import Layer

    if name not in READINGS:
        raise TraceError(f"unknown reading {name!r}; choose {', '.join(READINGS)}")
    if trace.provenance.reading != "raw":
        raise TraceError(
            f"can't apply {name} to a trace that is already read as {trace.provenance.reading}; use the original trace"
        )
    stream, reading = softmax_stream(trace, stream, "a reading"), READINGS[name]
    if reading.function is None:
        return trace.only(stream)
    layers, of = reading.function(trace, model, stream)
    found = tuple(
        Layer(attention_of(shares(numbers), allowed), layer.label)
        for (numbers, allowed), layer in zip(layers, trace.layers[stream], strict=True)
    )
    done = f"read afterwards: {reading.label}{of and f', {of}'}{', rows divided by their sums' * reading.scaled}"
    origin = replace(trace.provenance, reading=name, edits=(*trace.provenance.edits, done))
    return trace.derived(layers={stream: found}, provenance=origin, before=f"it was read as {reading.label}")


def _rollout(trace: "Trace", model: "Projecting | None", stream: str) -> "_Read":
    from attention_viz.analysis.attribution import rollout

    return _together(trace, stream, rollout(trace, stream))


def _flow(trace: "Trace", model: "Projecting | None", stream: str) -> "_Read":
    from attention_viz.analysis.attribution import flow

    return _together(trace, stream, flow(trace, stream))


def _together(trace: "Trace", stream: str, numbers: "Float[Tensor, 'layer query key']") -> "_Read":
    """Blocked cells are unreachable, even through lower layers."""
    import torch

    queries = len(trace.query_tokens(stream))
    reached = torch.eye(queries, dtype=torch.bool)
    found: list[tuple[Tensor, Tensor | None]] = []
    for layer, rows in zip(trace.layer_numbers(stream), numbers, strict=True):
        call = trace.attention(layer, stream)
        step = torch.ones(queries, queries, dtype=torch.bool)
        if call.allowed is not None:
            step = call.allowed.expand(call.shape).any(dim=0).cpu() | torch.eye(queries, dtype=torch.bool)
        reached = (step.double() @ reached.double()) > 0
        found.append((rows[None], None if bool(reached.all()) else reached[None]))
    return found, ""


def _norm(trace: "Trace", model: "Projecting | None", stream: str) -> "_Read":
    from attention_viz.analysis.attribution import norm_weighted

    if model is None:
        raise TraceError("norm-weighted attention needs the model's matrix W_O; this trace has no model")
    layers = trace.layer_numbers(stream)
    return [(norm_weighted(model, trace, layer, stream), _allowed(trace, layer, stream)) for layer in layers], ""


def _gradient(trace: "Trace", model: "Projecting | None", stream: str) -> "_Read":
    if not trace.differentiable:
        raise TraceError(
            "gradient-weighted attention needs a trained model; traces from files have none, and our own module is "
            "untrained. Trace a model from av.load"
        )
    found = trace.relevance()
    placed = zip(trace.layer_numbers(stream), found.layers[stream], strict=True)
    return [(one, _allowed(trace, layer, stream)) for layer, one in placed], found.of


def _zeroing(trace: "Trace", model: "Projecting | None", stream: str) -> "_Read":
    placed = zip(trace.layer_numbers(stream), trace.value_zeroing(stream), strict=True)
    return [(numbers[None], _looked_at(trace, layer, stream)) for layer, numbers in placed], ""


def _looked_at(trace: "Trace", layer: int, stream: str) -> "Bool[Tensor, 'one query key'] | None":
    call = trace.attention(layer, stream)
    return None if call.allowed is None else call.allowed.expand(call.shape).any(dim=0, keepdim=True).cpu()


def _allowed(trace: "Trace", layer: int, stream: str) -> "Bool[Tensor, '... query key'] | None":
    allowed = trace.attention(layer, stream).allowed
    return None if allowed is None else allowed.cpu()


READINGS: dict[str, Reading] = {
    "raw": Reading(
        "Raw weights",
        "Each key's share of the vector that a query fetches in this head.",
        "How much that vector matters after values, output matrix, residual connection and later layers.",
        r"R = A",
        "Vaswani et al. 2017, eq. 1",
        per_head=True,
        scaled=False,
        function=None,
    ),
    "norm": Reading(
        "Norms",
        "The norm of the vector that a query fetches from each key: a large weight on a short vector moves little.",
        "Whether the vectors of several keys cancel out, and how the layer norm and later layers change them.",
        r"R_{ij} = \lVert A_{ij}\,(x_j W_V + b_V)\,W_O\rVert",
        "Kobayashi et al. 2020, section 2.2",
        per_head=True,
        scaled=True,
        function=_norm,
    ),
    "rollout": Reading(
        "Rollout",
        "Each input word's share of a position after this layer, if all heads counted equally and half of each "
        "vector stayed in place.",
        "Single heads' contributions, and the effect of values and feed-forward layers on the mixture.",
        r"R_l = (\tfrac12 \bar A_l + \tfrac12 I)\,R_{l-1}",
        "Abnar and Zuidema 2020, section 3",
        per_head=False,
        scaled=False,
        function=_rollout,
    ),
    "flow": Reading(
        "Flow",
        "The maximum flow from each input word to a position after this layer, with the weights (averaged over "
        "heads) as edge capacities.",
        "The actual flow: words that share an edge each count as if they had it alone.",
        r"R_l = \max\text{ flow through } \tfrac12 \bar A + \tfrac12 I \text{ of layers } 0 \text{ to } l",
        "Abnar and Zuidema 2020, section 3",
        per_head=False,
        scaled=True,
        function=_flow,
    ),
    "gradient": Reading(
        "Gradients",
        "How much each weight raised the model's output: the weight times its gradient, if that is above 0.",
        "The effect of removing the weight: a gradient holds for small changes, and weights that lowered the "
        "output are left out.",
        r"R = \operatorname{relu}\left(\frac{\partial y}{\partial A} \odot A\right)",
        "Chefer, Gur and Wolf 2021, section 3.2",
        per_head=True,
        scaled=True,
        function=_gradient,
    ),
    "zeroing": Reading(
        "Value zeroing",
        "How much a word's output from the layer changes direction if another word's value is set to zero in all "
        "heads.",
        "Single heads' contributions and the effect of later layers; if either of two words would do, neither counts.",
        r"R_{ij} = 1 - \cos\left(x'_i,\; x'_{i \setminus j}\right)",
        "Mohebbi et al. 2023, section 3",
        per_head=False,
        scaled=True,
        function=_zeroing,
    ),
}
