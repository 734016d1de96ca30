"""Show any step's cell as arithmetic to check by hand."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from attention_viz.errors import ShapeError
from attention_viz.operation.positional import rotation
from attention_viz.operation.shapes import of_head
from attention_viz.steps.head import OpenHead
from attention_viz.trace.kind import stream_kind
from attention_viz.trace.slots import span_at


@dataclass(frozen=True)
class ProductTerm:
    """A product in a cell's sum.

    Attributes:
        label: such as "dimension 3", or a `written` token.
        factors: (name, number) each.
    """

    label: str
    factors: tuple[tuple[str, float], ...]
    product: float


@dataclass(frozen=True)
class Arithmetic:
    """A cell's computation.

    Attributes:
        rule: "sum" of products; "product" of the terms; "share" of one product; "given" without known parts.
        chosen: a share's term.
    """

    rule: Literal["sum", "product", "share", "given"]
    sentence: str
    total: float
    terms: tuple[ProductTerm, ...] = ()
    chosen: int = 0

    @property
    def sum(self) -> float:
        """The sum of all products, a share's divisor."""
        return math.fsum(term.product for term in self.terms)

    @property
    def computed(self) -> float:
        """The terms' result, up to the precision's last digits."""
        if self.rule == "given":
            return self.total
        if self.rule == "product":
            return math.prod(term.product for term in self.terms)
        return self.terms[self.chosen].product / self.sum if self.rule == "share" else self.sum


def open_cell(opened: OpenHead, step: str, row: int, column: int) -> Arithmetic:
    """Return one cell's arithmetic."""
    if step not in _OPENERS:
        raise ShapeError(f"unknown step {step!r}; choose {', '.join(_OPENERS)}")
    return _OPENERS[step](opened, row, column)


def _at(tensor: Tensor, row: int, column: int) -> float:
    rows, columns = tensor.shape
    if not (0 <= row < rows and 0 <= column < columns):
        raise ShapeError(f"no cell ({row}, {column}); the matrix is {rows} × {columns}, counted from 0")
    return float(tensor[row, column])


def _products(labels: Sequence[str], names: tuple[str, str], left: Tensor, right: Tensor) -> tuple[ProductTerm, ...]:
    """Multiply in double precision, exact for narrower numbers."""
    pairs = zip(labels, left.double().tolist(), right.double().tolist(), strict=True)
    return tuple(ProductTerm(label, ((names[0], a), (names[1], b)), a * b) for label, a, b in pairs)


def _dimensions(count: int) -> list[str]:
    return [f"dimension {c}" for c in range(count)]


def _embeddings(opened: OpenHead, row: int, column: int) -> Arithmetic:
    rows = opened.entry.embeddings
    if rows is None:
        raise ShapeError("the embeddings can't be shown: this layer's input wasn't recorded")
    total = _at(rows, row, column)
    if not opened.parts:
        return Arithmetic("given", "It is the layer's input; nothing is computed here.", total)
    terms = tuple(ProductTerm(name, (), float(part[row, column])) for name, part in opened.parts.items())
    return Arithmetic("sum", f"The sum of {' and '.join(opened.parts)}.", total, terms)


def _projected(name: str) -> Callable[[OpenHead, int, int], Arithmetic]:
    letter = name[0].upper()

    def opener(opened: OpenHead, row: int, column: int) -> Arithmetic:
        total = _at(opened.unrotated(name) if name != "value" else opened.attention.value, row, column)
        matrix, rows = opened.projection(name), opened.entering(name)
        if matrix is None or rows is None:
            unknown = f"Made by the learned W_{letter}, which isn't known here, and by the model's other steps."
            return Arithmetic("given", unknown, total)
        vector = "x" if rows is opened.entry.embeddings else "m"
        names = (vector, f"W_{letter}")
        terms = _products(_dimensions(len(matrix.weight)), names, rows[row], matrix.weight[:, column])
        bias = "" if matrix.bias is None else f" + b_{letter}"
        if matrix.bias is not None:
            terms += (ProductTerm(f"b_{letter}", (), float(matrix.bias[column])),)
        sentence = f"The sum over {len(matrix.weight)} dimensions of {vector} × W_{letter}{bias}."
        return Arithmetic("sum", sentence, total, terms)

    return opener


def _rotated(opened: OpenHead, row: int, column: int) -> Arithmetic:
    before, after = opened.unrotated("query"), opened.attention.query
    total, turn = _at(after, row, column), rotation(opened.unrotated("query"), opened.attention.query)
    if turn is None:
        return Arithmetic("given", "The vectors changed, but not by rotating pairs of numbers.", total)
    for number, pair in enumerate(turn.pairs):
        if column in pair:
            angle, sign = float(turn.angles[row, number]), -1 if column == pair[0] else 1
            partner = pair[1] if column == pair[0] else pair[0]
            named = "−sin" if sign < 0 else "sin"
            terms = tuple(
                ProductTerm(f"dimension {c} × {what}", (("before", one), ("cos or sin", factor)), one * factor)
                for c, what, one, factor in (
                    (column, "cos", float(before[row, column]), math.cos(angle)),
                    (partner, named, float(before[row, partner]), sign * math.sin(angle)),
                )
            )
            return Arithmetic("sum", f"Dimensions {pair[0]} and {pair[1]} rotate by {angle:.4f} radians.", total, terms)
    return Arithmetic("given", "This dimension doesn't rotate.", total)


def _scores(opened: OpenHead, row: int, column: int) -> Arithmetic:
    call = opened.attention
    total = _at(call.scores, row, column)
    terms = _products(_dimensions(opened.d_k), ("q", "k"), call.query[row], call.key[column])
    return Arithmetic("sum", f"The sum over {opened.d_k} dimensions of query × key.", total, terms)


def _scaled(opened: OpenHead, row: int, column: int) -> Arithmetic:
    call = opened.attention
    score = _at(call.scores, row, column)
    term = ProductTerm("score × scale", (("score", score), ("scale", opened.factor)), score * opened.factor)
    return Arithmetic("sum", f"The score times {opened.factor:.6g}.", float(call.scaled[row, column]), (term,))


def _softcapped(opened: OpenHead, row: int, column: int) -> Arithmetic:
    cap, scaled = opened.attention.softcap or math.inf, opened.attention.scaled
    squashed = math.tanh(_at(scaled, row, column) / cap)
    term = ProductTerm("cap × tanh(scaled / cap)", (("cap", cap), ("tanh", squashed)), cap * squashed)
    return Arithmetic("sum", f"Bounded to ±{cap:g}.", float(opened.capped[row, column]), (term,))


def _biased(opened: OpenHead, row: int, column: int) -> Arithmetic:
    total, before = _at(opened.biased, row, column), float(opened.capped[row, column])
    bias = opened.attention.bias
    first = ProductTerm("before", (), before)
    if opened.bias_parts:
        parts = tuple(ProductTerm(name, (), float(part[row, column])) for name, part in opened.bias_parts.items())
        return Arithmetic("sum", f"The model adds {' and '.join(opened.bias_parts)}.", total, (first, *parts))
    added = 0.0 if bias is None else float(bias.expand(opened.attention.shape)[row, column])
    return Arithmetic(
        "sum", "The model adds a bias for this pair of positions.", total, (first, ProductTerm("bias", (), added))
    )


def _picked(opened: OpenHead, row: int, column: int) -> Arithmetic:
    picking = opened.picking
    if picking is None or float(picking.scores[row, column]) == -math.inf:
        return Arithmetic("given", "The indexer can't pick this key for this query.", -math.inf)
    score, margin = float(picking.scores[row, column]), float(picking.margins[row, column])
    words = "picked" if bool(picking.picked[row, column]) else "left out"
    if not math.isfinite(margin):
        return Arithmetic("given", f"This key is always {words}.", margin)
    terms = (ProductTerm("the indexer's score", (), score), ProductTerm("less the cut", (), -float(picking.cut[row])))
    return Arithmetic("sum", f"The indexer's score less the query's cut: {words}.", margin, terms)


def _allowed(opened: OpenHead, row: int, column: int) -> Arithmetic:
    total = _at(opened.attention.masked, row, column)
    if total != -math.inf:
        return Arithmetic("given", "This query may attend to this key, so the number stays as it is.", total)
    return Arithmetic(
        "given", f"Blocked: {_reason(opened, row, column)}. It becomes −∞, and its weight exactly 0.", total
    )


def _reason(opened: OpenHead, row: int, column: int) -> str:
    if opened.trace.key_tokens(opened.stream).padding[column]:
        return "the key is padding"
    if opened.picking is not None and bool(opened.picking.left_out[row, column]):
        return "the indexer didn't pick this key"
    span = span_at(opened.trace.key_tokens(opened.stream), column)
    if span is not None and row < span.stop - 1:
        return "the key's span ends later in the text than the query"
    own = len(opened.trace.query_tokens(opened.stream))
    if stream_kind(opened.stream) == "decoder" and row < column < own:
        return "the key comes later in the text than the query"
    return "an edit blocks it" if opened.trace.provenance.edits else "the model's mask doesn't allow this pair"


def _weights(opened: OpenHead, row: int, column: int) -> Arithmetic:
    total = _at(opened.weights, row, column)
    logits = opened.attention.masked[row].double().tolist()
    sink = opened.attention.sinks
    labels = [*opened.trace.key_tokens(opened.stream).numbered]
    if all(logit == -math.inf for logit in logits):
        return Arithmetic("given", "This row is fully blocked, so all its weights are 0.", total)
    if sink is not None:
        logits, labels = [*logits, sink.item()], [*labels, "sink (dropped)"]
    # Less the largest, as softmax is computed: the shares are the same, and exp can't overflow.
    top = max(logits)
    terms = tuple(
        ProductTerm(label, (("entry", logit), ("entry − largest", logit - top)), math.exp(logit - top))
        for label, logit in zip(labels, logits, strict=True)
    )
    sentence = (
        f"exp of this entry, divided by the sum of exp over the row. The row's largest, {top:.6g}, is subtracted "
        "first, which doesn't change the weights."
    )
    return Arithmetic("share", sentence, total, terms, column)


def _output(opened: OpenHead, row: int, column: int) -> Arithmetic:
    call = opened.attention
    total, labels = _at(call.output, row, column), opened.trace.key_tokens(opened.stream).numbered
    terms = _products(labels, ("weight", "value"), opened.weights[row], call.value[:, column])
    return Arithmetic("sum", f"The sum over {len(labels)} keys of weight × value.", total, terms)


def _joined(opened: OpenHead, row: int, column: int) -> Arithmetic:
    joined, matrix = opened.entry.joined, opened.projections.get("output")
    if joined is None:
        raise ShapeError("the joined heads can't be shown: this trace doesn't have them")
    total = _at(joined, row, column)
    if matrix is None:
        return Arithmetic("given", "Made by the learned W_O, which isn't known here.", total)
    outputs = opened.entry.attention.output
    parts = matrix.weight[:, column].double().reshape(opened.heads, -1)
    terms = tuple(
        ProductTerm(f"head {head}: output · W_O", (), float(of_head(outputs, head, opened.heads)[row].double() @ part))
        for head, part in enumerate(parts)
    )
    bias = "" if matrix.bias is None else ", plus b_O"
    if matrix.bias is not None:
        terms += (ProductTerm("b_O", (), float(matrix.bias[column])),)
    return Arithmetic("sum", f"The sum over {opened.heads} heads of output · W_O{bias}.", total, terms)


_OPENERS: dict[str, Callable[[OpenHead, int, int], Arithmetic]] = {
    "embeddings": _embeddings,
    "query": _projected("query"),
    "key": _projected("key"),
    "value": _projected("value"),
    "rotated": _rotated,
    "scores": _scores,
    "scaled": _scaled,
    "softcapped": _softcapped,
    "biased": _biased,
    "picked": _picked,
    "allowed": _allowed,
    "weights": _weights,
    "output": _output,
    "joined": _joined,
}
