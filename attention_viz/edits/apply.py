"""What an edit makes of an attention call: another call, whose weights and output are the edited ones.

Whatever an edit asks for is written into the terms of the call, so that nothing is computed in another way than
`attend` computes it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from jaxtyping import Bool
from torch import Tensor

from attention_viz.edits.kinds import Ablate, Allow, Block, Edit, Replace, Temperature, narrow
from attention_viz.edits.places import check_head, check_shape, concerns
from attention_viz.errors import ShapeError, UnsupportedModel
from attention_viz.operation.attention import Attention
from attention_viz.operation.shapes import shared_heads, widened

__all__ = ["edited", "kept"]

# Near the largest number of float32: a few logits beyond this add up to infinity.
_LARGEST = 1e37


def kept(edits: Sequence[Edit], real: Mapping[str, Bool[Tensor, " query"] | None]) -> tuple[Edit, ...]:
    """The edits with tensors of their own, as those of whoever asks may be written into while a trace needs them.

    Args:
        edits: all edits of a run, their places checked.
        real: by stream, which queries aren't padding; None where no padding is known of. A mean is taken over these,
            unless it says over which.
    """
    return tuple(_own(edit, real[edit.stream or next(iter(real))]) for edit in edits)


def _own(edit: Edit, real: Tensor | None) -> Edit:
    match edit:
        case Allow():
            return replace(edit, allowed=edit.allowed.clone())
        case Replace():
            return replace(edit, weights=edit.weights.detach().clone())
        case Ablate(to="mean"):
            rows = real if edit.rows is None else edit.rows
            return replace(edit, rows=None if rows is None else rows.clone())
        case _:
            return edit


def edited(edits: Sequence[Edit], place: tuple[str, int], attention: Attention) -> Attention:
    """The call of one layer after every edit that concerns it, one after the other; itself where none does.

    Args:
        edits: all edits of the run.
        place: the layer's stream, and its place there, from 0.
        attention: the model's own call, head first: query is (head, query, d_k).

    Raises:
        ShapeError: an edit that doesn't fit the call or names a head it doesn't have.
        UnsupportedModel: an edit that the call's terms can't express.
    """
    for edit in edits:
        if not concerns(edit, place):
            continue
        if not isinstance(edit, Allow):  # a mask's size is told first
            check_head(edit, place[1], attention.shape[0])
        match edit:
            case Allow() | Block():
                attention = _masked(edit, place, attention)
            case Temperature():
                attention = _cooled(edit, attention) if edit.head is None else _one_cooled(edit, edit.head, attention)
            case Replace():
                attention = _replaced(edit, attention)
            case _:
                attention = _ablated(edit, attention)
    return attention


def _masked(edit: Allow | Block, place: tuple[str, int], attention: Attention) -> Attention:
    heads, queries, keys = attention.shape
    allowed = narrow([edit], place, heads, (queries, keys), attention.allowed)
    assert allowed is not None
    return replace(attention, allowed=allowed.to(attention.query.device).expand(heads, queries, keys))


def _cooled(edit: Temperature, attention: Attention) -> Attention:
    """Divide all terms: softcap · tanh(x / softcap) / t is (softcap / t) · tanh((x / t) / (softcap / t))."""
    _check_range(edit, attention)
    softcap, bias, sinks = attention.softcap, attention.bias, attention.sinks
    return replace(
        attention,
        scale=attention.scale / edit.value,
        softcap=None if softcap is None else softcap / edit.value,
        bias=None if bias is None else widened(bias) / edit.value,
        sinks=None if sinks is None else widened(sinks) / edit.value,
    )


def _one_cooled(edit: Temperature, head: int, attention: Attention) -> Attention:
    """One head of several: the scale and the softcap are all heads'.

    With a softcap, or a query so coarse that dividing it would show, the head's logits are kept as its bias.
    """
    _check_range(edit, attention)
    query, bias, sinks = _of_each_head(attention.query, attention), attention.bias, attention.sinks
    if attention.softcap is None and query.dtype in (torch.float32, torch.float64):
        query[head] /= edit.value
        if bias is not None:
            bias = _biases(attention)
            bias[head] /= edit.value
    else:
        query[head] = 0
        bias = _biases(attention)
        bias[head] = replace(attention, allowed=None).head(head).masked / edit.value
    if sinks is not None:
        sinks = widened(sinks).expand(attention.shape[:1]).clone()
        sinks[head] /= edit.value
    return replace(attention, query=query, bias=bias, sinks=sinks)


def _replaced(edit: Replace, attention: Attention) -> Attention:
    heads, queries, keys = attention.shape
    check_shape(edit, edit.weights, (queries, keys))
    query, bias = _of_each_head(attention.query, attention), _biases(attention)
    weights = edit.weights.to(query.device).double()
    chosen = weights > 0
    shares = weights / weights.sum(dim=-1, keepdim=True)
    query[edit.head] = 0
    bias[edit.head] = torch.where(chosen, shares, 1).log().to(bias.dtype)
    allowed = attention.allowed
    if allowed is None:
        allowed = torch.ones((), dtype=torch.bool, device=query.device)
    allowed = allowed.expand(heads, queries, keys).clone()
    allowed[edit.head] = chosen
    sinks = attention.sinks
    if sinks is not None:
        sinks = sinks.expand(attention.shape[:1]).clone()
        sinks[edit.head] = -torch.inf
    return replace(attention, query=query, bias=bias, allowed=allowed, sinks=sinks)


def _ablated(edit: Ablate, attention: Attention) -> Attention:
    value = _of_each_head(shared_heads(attention.value, attention.query), attention)
    value[edit.head] = 0 if edit.to == "zero" else _mean(edit, attention)
    return replace(attention, value=value)


def _mean(edit: Ablate, attention: Attention) -> Tensor:
    """The mean of a head's output over its positions, which rows that sum to 1 make again of nothing else."""
    place, one = f"the mean of layer {edit.layer}, head {edit.head}", attention.head(edit.head)
    if one.sinks is not None and not bool(torch.isneginf(one.sinks).all()):
        raise UnsupportedModel(
            f"{place} was asked for, and its rows sum to less than 1 since an attention sink takes a share: no values "
            'give each row the mean; to="zero" can be done'
        )
    queries = attention.shape[1]
    rows = torch.ones(queries, dtype=torch.bool) if edit.rows is None else edit.rows
    if rows.shape != (queries,) or not bool(rows.any()):
        raise ShapeError(f"{place} needs rows for {queries} queries, one or more of them True; got {rows.tolist()}")
    rows = rows.to(attention.query.device)
    empty = None if one.allowed is None else ~one.allowed.expand(one.shape).any(dim=-1) & rows
    if empty is not None and bool(empty.any()):
        raise ShapeError(f"{place} was asked for, and query {int(empty.int().argmax())} may look at nothing")
    output = one.output[rows]
    return widened(output).mean(dim=0).to(output.dtype)


def _of_each_head(rows: Tensor, attention: Attention) -> Tensor:
    """Query or value, a copy in which each head has its own."""
    return rows.expand(attention.shape[0], *rows.shape[-2:]).clone()


def _biases(attention: Attention) -> Tensor:
    """Each head's bias, (head, query, key), a copy in float32 or finer; 0 where there was none."""
    bias = attention.query.new_zeros(()) if attention.bias is None else attention.bias
    return widened(bias).expand(attention.shape).clone()


def _check_range(edit: Temperature, attention: Attention) -> None:
    """Refuse a division of which infinity or 0 / 0 might come."""
    query, key, bias, sinks = (
        0.0 if term is None else float(term.masked_fill(torch.isneginf(term), 0).abs().max())
        for term in (attention.query, attention.key, attention.bias, attention.sinks)
    )
    logits = query * max(key * attention.query.shape[-1] * abs(attention.scale), 1) + bias + sinks
    if not logits < _LARGEST * edit.value:
        raise ShapeError(f"a temperature of {edit.value:g} is so low that the logits overflow, up to {logits:.3g}")
    if attention.softcap is not None and edit.value > _LARGEST * attention.softcap:
        raise ShapeError(f"a temperature of {edit.value:g} is so high that nothing is left of the softcap")
