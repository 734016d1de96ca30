"""One opened head: tensors, projections and switches."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.errors import ShapeError
from attention_viz.operation.attention import Attention
from attention_viz.operation.modules import Projection
from attention_viz.operation.numerics import EXACT, REPEATED, close
from attention_viz.operation.shapes import of_head, side_by_side
from attention_viz.trace.given.from_weights import check_computed
from attention_viz.trace.once import once
from attention_viz.trace.picking import Picking
from attention_viz.trace.trace import Layer, Trace

# What the scores may be multiplied by, and the kinds of number that a head can be computed in again.
SCALES = ("model", "d_k", "d_model", "none")
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True, eq=False)
class OpenHead:
    """One head of a layer; made by `open_head`.

    Attributes:
        trace: with this layer recomputed if switched.
        projections: all heads' "query", "key", "value" and "output", if known and verified.
        parts: the embeddings' summands, if known.
        switched: deviations from the model.
        queries: None for all; some if computed in parts.
    """

    trace: Trace
    layer: int
    head: int
    stream: str
    projections: Mapping[str, Projection] = field(default_factory=dict[str, Projection])
    parts: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])
    switched: tuple[str, ...] = ()
    queries: slice | None = None

    @once
    def entry(self) -> Layer:
        """The layer, with all heads."""
        return self.trace.layer(self.layer, self.stream)

    @once
    def attention(self) -> Attention:
        """This head's call."""
        call = self.entry.attention.head(self.head)
        return call if self.queries is None else call.rows(self.queries)

    @property
    def heads(self) -> int:
        """The layer's head count."""
        return self.entry.attention.shape[0]

    @property
    def d_k(self) -> int:
        """The width of a query or key."""
        return self.attention.query.shape[-1]

    @once
    def d_model(self) -> int | None:
        """The layer's input width, if known."""
        return _d_model(self.entry, self.projections)

    @property
    def rotates(self) -> bool:
        """Whether RoPE applies and unrotated vectors are known."""
        return self.entry.unrotated_query is not None and self.entry.unrotated_key is not None

    def unrotated(self, name: str) -> Tensor:
        """Return "query" or "key" before any rotation."""
        before = self.entry.unrotated_query if name == "query" else self.entry.unrotated_key
        return getattr(self.attention, name) if before is None else of_head(before, self.head, self.heads)

    @property
    def factor(self) -> float:
        """The scores' scale."""
        return self.attention.scale

    @once
    def capped(self) -> Float[Tensor, "query key"]:
        """The scaled scores, soft-capped if the model does."""
        return replace(self.attention, bias=None, allowed=None).masked

    @once
    def biased(self) -> Float[Tensor, "query key"]:
        """The softmax's input without a mask: scaled, soft-capped scores plus any bias."""
        return replace(self.attention, allowed=None).masked

    @once
    def bias_parts(self) -> Mapping[str, Float[Tensor, "query key"]]:
        """The bias's summands by name; empty if unknown or inexact."""
        call, parts = self.attention, self.entry.bias_parts
        if call.bias is None or not parts:
            return {}
        heads = {name: of_head(part, self.head, self.heads).expand(-1, call.shape[-1]) for name, part in parts.items()}
        rows = slice(None) if self.queries is None else self.queries
        found = {name: part.expand(self.entry.attention.shape[-2], -1)[rows] for name, part in heads.items()}
        live = (
            call.bias.new_ones(call.shape, dtype=torch.bool)
            if call.allowed is None
            else call.allowed.expand(call.shape)
        )
        off = (sum(part.double() for part in found.values()) - call.bias.double()).abs().masked_fill(~live, 0)
        return found if float(off.max()) <= EXACT * max(1.0, float(self.capped.abs().max())) else {}

    @once
    def picking(self) -> Picking | None:
        """The keys that the indexer picked for this head, (query, key); None if it left none out."""
        whole = self.entry.picking
        one = None if whole is None else whole.head(self.head, self.heads)
        return one if one is None or self.queries is None else one.changed(lambda rows: rows[self.queries])

    @once
    def weights(self) -> Float[Tensor, "query key"]:
        """Each query's weights on keys, computed once."""
        return self.attention.weights

    @once
    def adds(self) -> Float[Tensor, "query d_model"] | None:
        """This head's part of the joined vector, output · W_O without bias, if known.

        All heads' sum plus W_O's bias is the recorded vector.
        """
        whole, width = self.projections.get("output"), self.attention.value.shape[-1]
        if whole is None:
            return None
        output = self.attention.output
        return output @ whole.weight[self.head * width : (self.head + 1) * width].to(output.dtype)

    def entering(self, name: str) -> Tensor | None:
        """Return input rows of "query", "key" or "value", if known."""
        return _entering(self.entry, name)

    def projection(self, name: str) -> Projection | None:
        """Return this head's projection, (d_model, d_k), if known."""
        whole = self.projections.get(name)
        if whole is None:
            return None
        made = getattr(self.entry.attention, name)
        width, place = made.shape[-1], self.head // (self.heads // made.shape[0])
        columns = slice(place * width, (place + 1) * width)
        return Projection(whole.weight[:, columns], None if whole.bias is None else whole.bias[columns])


@dataclass(frozen=True)
class RowStatistics:
    """Sharpness of weight rows.

    Attributes:
        entropy: in nats; 0 for a single key.
        gradient: Frobenius norm of diag(p) − p pᵀ; near 0 if saturated, so that nothing is learned.
    """

    entropy: Float[Tensor, " query"]
    largest: Float[Tensor, " query"]
    gradient: Float[Tensor, " query"]


def row_statistics(weights: Float[Tensor, "query key"]) -> RowStatistics:
    """Return each row's entropy, largest weight and gradient size."""
    p = weights.double()
    second, third = (p**2).sum(-1), (p**3).sum(-1)
    # ‖diag(p) − p pᵀ‖² written out, so that no n × n matrix a row is made.
    gradient = (second - 2 * third + second**2).clamp_min(0).sqrt()
    return RowStatistics(-torch.special.xlogy(p, p).sum(-1), p.amax(-1), gradient)


def open_head(
    trace: Trace,
    layer: int,
    head: int,
    stream: str | None = None,
    *,
    scale: str = "model",
    precision: str | None = None,
    projections: Mapping[str, Projection] = MappingProxyType({}),
    parts: Mapping[str, Tensor] = MappingProxyType({}),
) -> OpenHead:
    """Open one head, as it ran, or recomputed by `attend` with another scale or precision."""
    stream = trace.attention_stream(stream)
    entry = trace.layer(layer, stream)
    entry.attention.head(head)  # refuses a head that isn't there
    check_computed(entry.attention, "the steps of a head")
    proven = {name: matrix for name, matrix in projections.items() if _explains(entry, name, matrix)}
    factor, notes = _factor(entry, scale, proven)
    kind = _kind(entry, precision)
    words = tuple(
        word for word in (notes, f"precision {precision}" if kind != entry.attention.query.dtype else "") if word
    )
    if words:
        trace = _with_layer(trace, stream, layer, _recomputed(entry, factor, kind, proven.get("output")), words)
    return OpenHead(trace, layer, head, stream, proven, parts, words)


def _factor(entry: Layer, scale: str, projections: Mapping[str, Projection]) -> tuple[float, str]:
    own, width = entry.attention.scale, None
    if scale not in SCALES:
        raise ShapeError(f"unknown scale {scale!r}; choose {', '.join(SCALES)}")
    if scale == "d_k":
        width = entry.attention.query.shape[-1]
    if scale == "d_model":
        width = _d_model(entry, projections)
        if width is None:
            raise ShapeError("scaling by √d_model needs d_model, which this trace doesn't have")
    factor = own if scale == "model" else 1.0 if width is None else 1 / math.sqrt(width)
    if math.isclose(factor, own, rel_tol=1e-6):
        return own, ""
    return factor, "no scale" if width is None else f"scale 1/√{width}"


def _kind(entry: Layer, precision: str | None) -> torch.dtype:
    if precision is not None and precision not in PRECISIONS:
        raise ShapeError(f"unknown precision {precision!r}; choose {', '.join(PRECISIONS)}")
    return entry.attention.query.dtype if precision is None else PRECISIONS[precision]


def _recomputed(entry: Layer, factor: float, kind: torch.dtype, output: Projection | None) -> Layer:
    call = entry.attention
    query, key, value = (tensor.to(kind) for tensor in (call.query, call.key, call.value))
    attention = replace(call, query=query, key=key, value=value, scale=factor)
    joined = None if output is None else _projected(side_by_side(attention.output), output)
    before = [None if one is None else one.to(kind) for one in (entry.unrotated_query, entry.unrotated_key)]
    return replace(entry, attention=attention, joined=joined, unrotated_query=before[0], unrotated_key=before[1])


def _with_layer(trace: Trace, stream: str, layer: int, entry: Layer, words: tuple[str, ...]) -> Trace:
    layers = list(trace.layers[stream])
    layers[trace.layer_numbers(stream).index(layer)] = entry
    notes = tuple(f"{word} in layer {layer}, computed beside the model" for word in words)
    return trace.derived(
        layers={**trace.layers, stream: tuple(layers)},
        provenance=replace(trace.provenance, edits=trace.provenance.edits + notes),
    )


def _d_model(entry: Layer, projections: Mapping[str, Projection]) -> int | None:
    for rows in (entry.embeddings, entry.joined):
        if rows is not None:
            return rows.shape[-1]
    return projections["query"].weight.shape[0] if "query" in projections else None


def _explains(entry: Layer, name: str, matrix: Projection) -> bool:
    """Return whether a projection reproduces the recorded numbers; models may norm, gate or rotate in between."""
    call = entry.attention
    before = {"query": entry.unrotated_query, "key": entry.unrotated_key}.get(name)
    source = side_by_side(call.output) if name == "output" else _entering(entry, name)
    made = entry.joined if name == "output" else side_by_side(getattr(call, name) if before is None else before)
    if source is None or made is None or source.shape[-1] != matrix.weight.shape[0] or len(source) != len(made):
        return False
    ours = _projected(source, matrix)
    return close(ours, made, REPEATED)


def _entering(entry: Layer, name: str) -> Tensor | None:
    return entry.embeddings if entry.source is None or name == "query" else entry.source


def _projected(rows: Tensor, matrix: Projection) -> Tensor:
    projected = rows @ matrix.weight.to(rows.dtype)
    return projected if matrix.bias is None else projected + matrix.bias.to(rows.dtype)
