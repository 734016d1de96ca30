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
    """One way to read attention.

    Attributes:
        label: its name on the screen.
        meaning: what a number says, in a sentence.
        limits: what it can't tell, in a sentence.
        formula: LaTeX, of one layer; A is the weights, R what is read.
        source: author, year and section.
        per_head: whether each head has numbers of its own; otherwise a layer's heads are taken together.
        scaled: whether rows are divided by their sum to be shown, as the numbers by themselves aren't shares.
        function: the numbers of each layer of one stream of a trace; None for the weights themselves.
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

    It keeps one stream, and one head a layer if the reading joins heads. Rows are normalised unless they are shares;
    zero rows stay. Numbers are no call's (see `attention_of`), the output is the run's. Provenance names the reading.

    Args:
        model: only "norm" needs it.

    Returns:
        A new trace; for "raw" the original if single-stream.
    """
    from attention_viz.trace.from_weights import attention_of, shares
    from attention_viz.trace.trace import Layer

    if name not in READINGS:
        raise TraceError(f"the reading {name!r} was asked for; there are {', '.join(READINGS)}")
    if trace.provenance.reading != "raw":
        raise TraceError(f"{name} was asked for of a trace that is read already, as {trace.provenance.reading}")
    stream, reading = trace.stream(stream), READINGS[name]
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
        raise TraceError(
            "norm-weighted attention was asked for of a trace without its model, as one from a file, and it needs the "
            "model's matrix W_O"
        )
    layers = trace.layer_numbers(stream)
    return [(norm_weighted(model, trace, layer, stream), _allowed(trace, layer, stream)) for layer in layers], ""


def _gradient(trace: "Trace", model: "Projecting | None", stream: str) -> "_Read":
    if not trace.differentiable:
        raise TraceError(
            "gradient-weighted attention was asked for of a trace without a trained model behind it, and it needs the "
            "gradient of what a model says: a trace from a file has no model any more, and our own module with its "
            "random weights was never trained to say anything"
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
        "What share of the vector that a query fetches in this head comes from each key.",
        "How much that vector matters: what values, output matrix, residual connection and later layers do with it.",
        r"R = A",
        "Vaswani et al. 2017, eq. 1",
        per_head=True,
        scaled=False,
        function=None,
    ),
    "norm": Reading(
        "Norms",
        "How long the vector is that a query fetches from each key: a large weight on a short vector moves little.",
        "Whether the vectors of several keys cancel each other, and what the layer norm and later layers do with them.",
        r"R_{ij} = \lVert A_{ij}\,(x_j W_V + b_V)\,W_O\rVert",
        "Kobayashi et al. 2020, section 2.2",
        per_head=True,
        scaled=True,
        function=_norm,
    ),
    "rollout": Reading(
        "Rollout",
        "How much of each word of the text is mixed into a position after this layer, if all heads counted alike and "
        "half of everything stayed where it was.",
        "What single heads do, and what values and feed-forward layers then do with the mixture.",
        r"R_l = (\tfrac12 \bar A_l + \tfrac12 I)\,R_{l-1}",
        "Abnar and Zuidema 2020, section 3",
        per_head=False,
        scaled=False,
        function=_rollout,
    ),
    "flow": Reading(
        "Flow",
        "How much could come from each word of the text to a position after this layer at most, were the weights, "
        "averaged over heads, the widths of pipes.",
        "How much does come: words that share a pipe are each counted as if they had it alone.",
        r"R_l = \max\text{ flow through } \tfrac12 \bar A + \tfrac12 I \text{ of layers } 0 \text{ to } l",
        "Abnar and Zuidema 2020, section 3",
        per_head=False,
        scaled=True,
        function=_flow,
    ),
    "gradient": Reading(
        "Gradients",
        "How far each weight raised what the model says: the weight times the gradient with respect to it, where that "
        "is above 0.",
        "What would happen without the weight: a gradient holds for small changes, and what held the output back is "
        "left out.",
        r"R = \operatorname{relu}\left(\frac{\partial y}{\partial A} \odot A\right)",
        "Chefer, Gur and Wolf 2021, section 3.2",
        per_head=True,
        scaled=True,
        function=_gradient,
    ),
    "zeroing": Reading(
        "Value zeroing",
        "How far what leaves the layer for a word turns when the value of another is set to zero in all heads, and the "
        "rest of the layer runs on.",
        "What single heads do, and what later layers make of it; where either of two words would do, neither counts.",
        r"R_{ij} = 1 - \cos\left(x'_i,\; x'_{i \setminus j}\right)",
        "Mohebbi et al. 2023, section 3",
        per_head=False,
        scaled=True,
        function=_zeroing,
    ),
}
