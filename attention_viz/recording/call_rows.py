"""Joins the rows of a batch that a module attends over, such as an image's tiles, into one call.

Towers that cut an image into tiles run these as rows of a batch. The joined call has the rows' positions one after the
other, with a block for each row on its diagonal.
"""

from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attention_viz.errors import UnsupportedModel
from attention_viz.operation.attention import Attention
from attention_viz.operation.terms import Term, map_terms


def joined_rows(attention: Attention, name: str, known: dict[object, Tensor]) -> Attention:
    """Join a batch's rows into one, (1, head, row · position, …).

    Args:
        attention: with terms (row, head, position, …).
        name: its module's class, for a refusal.
        known: the masks of blocks made so far, by size.
    """
    rows, queries, keys = len(attention.query), attention.query.shape[-2], attention.key.shape[-2]
    if any(len(one) != rows or one.ndim != 4 for one in (attention.query, attention.key, attention.value)):
        raise UnsupportedModel(
            f"{name} attends over rows of a batch that share keys; use a model that keeps them apart"
        )
    size = rows, queries, keys
    if size not in known:
        known[size] = _diagonal(torch.ones(rows, 1, queries, keys, dtype=torch.bool, device=attention.query.device))
    allowed, bias = attention.allowed, attention.bias
    return replace(
        attention,
        query=in_one_row(attention.query),
        key=in_one_row(attention.key),
        value=in_one_row(attention.value),
        allowed=known[size] if allowed is None else _diagonal(_filled(allowed, size)),
        bias=None if bias is None else _diagonal(_filled(bias, size)),
    )


def apart(attention: Attention, rows: int) -> Attention:
    """Return a joined call's rows, each with heads of its own: (row · head, position, …)."""

    def part(term: Term, value: Any) -> Any:
        if term.is_number:
            return value
        if not term.is_matrix:
            return value.repeat(rows)
        if term.axes.names[1] != "key":
            return in_rows(value[None], rows).flatten(0, 1)
        cells = value.reshape(len(value), rows, value.shape[-2] // rows, rows, value.shape[-1] // rows)
        blocks = cells.diagonal(dim1=1, dim2=3).movedim(-1, 0)
        return blocks.expand(-1, attention.shape[0], -1, -1).flatten(0, 1)

    return map_terms(attention, part)


def in_one_row(terms: Float[Tensor, "row head position width"]) -> Float[Tensor, "1 head all_positions width"]:
    """Put a batch's rows one after the other."""
    return terms.transpose(0, 1).flatten(1, 2)[None]


def in_rows(terms: Float[Tensor, "1 head all_positions width"], rows: int) -> Float[Tensor, "row head position width"]:
    """Undo `in_one_row`."""
    return terms[0].unflatten(1, (rows, -1)).transpose(0, 1)


def _filled(matrix: Tensor, size: tuple[int, int, int]) -> Tensor:
    rows, queries, keys = size
    return matrix.expand(rows, matrix.shape[-3] if matrix.ndim > 3 else 1, queries, keys)


def _diagonal(blocks: Tensor) -> Bool[Tensor, "1 head all_queries all_keys"]:
    """Put blocks, (row, head, query, key), on a diagonal; all else is 0 or False."""
    rows, heads, queries, keys = blocks.shape
    found = blocks.new_zeros(heads, rows, queries, rows, keys)
    number = torch.arange(rows, device=blocks.device)
    found[:, number, :, number] = blocks
    return found.reshape(1, heads, rows * queries, rows * keys)
