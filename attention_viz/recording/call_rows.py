"""Joins the rows of a batch that a module attends over, such as an image's tiles, into one call.

Towers that cut an image into tiles run these as rows of a batch. The joined call has the rows' positions one after the
other, with a block for each row on its diagonal. Windows of one image are rows, too: their joined call has the image's
own order of positions; see `attention_viz.recording.layout.windows`.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from attention_viz.errors import UnsupportedModel
from attention_viz.operation.attention import Attention
from attention_viz.operation.terms import Term, map_terms, same_terms

# The memory that the matrices of all calls in rows may take, once joined: 2 GiB.
MOST_BYTES = 2**31


@dataclass(frozen=True, eq=False)
class WindowOrder:
    """The order of a call that attends in windows.

    Attributes:
        places: the position in the joined call of each row's slots.
        origin: the position of the input at each place; −1 for positions that the model adds, such as padding.
        count: how many positions the input has.
        source: the input, which calls with equal sources share.
    """

    places: Int[Tensor, "row slot"]
    origin: Int[Tensor, " place"]
    count: int
    source: object = None

    @property
    def is_plain(self) -> bool:
        """Whether each position of the input is at its own place, before those that the model adds."""
        own = self.origin[: self.count]
        return len(own) == self.count and torch.equal(own, torch.arange(self.count, device=own.device))

    @property
    def positions(self) -> object:
        """What its places are: equal for calls over the same positions."""
        return self.source, tuple(self.origin.tolist())

    def of_rows(self, terms: Tensor) -> Float[Tensor, "row head slot width"]:
        """Return the rows of a joined term, (1, head, place, width)."""
        return terms[0][:, self.places].transpose(0, 1)

    def joined(self, terms: Tensor) -> Float[Tensor, "1 head place width"]:
        """Undo `of_rows`."""
        return terms.transpose(0, 1).flatten(1, 2)[None].index_select(2, self._order)

    def of_states(self, states: Tensor) -> Float[Tensor, "place width"] | None:
        """Return a module's states by place; None unless they are one per slot, in the rows' order."""
        rows, width = len(self.places), states.shape[-1]
        if states.ndim < 3 or states.shape[0] != rows or states.shape[:-1].numel() != self.places.numel():
            return None
        return states.reshape(-1, width)[self._order]

    @property
    def _order(self) -> Tensor:
        return self.places.flatten().argsort()


@dataclass(frozen=True, eq=False)
class Call:
    """One call of our function.

    Attributes:
        rows: rows of a batch that it joins; see `call_rows`.
        order: that of its windows; None without any.
    """

    module: nn.Module
    attention: Attention
    rows: int = 1
    order: WindowOrder | None = None

    @property
    def tiles(self) -> int:
        """The rows of a batch that are tiles or images; 1 for windows."""
        return self.rows if self.order is None else 1

    @property
    def positions(self) -> int:
        """How many positions of the input its keys show; of windows without the model's own."""
        return self.attention.shape[-1] if self.order is None else self.order.count

    def of_row(self, row: int = 0) -> "Call":
        """Return one batch row's call, head first; parameters are copied."""
        return replace(self, attention=map_terms(self.attention, lambda term, value: of_row(term, value, row)))

    def in_a_batch(self) -> "Call":
        """Return the call with a batch axis."""
        return replace(self, attention=map_terms(self.attention, in_a_batch))

    def again(self, other: "Call") -> bool:
        """Return whether a module repeats the weights for a second half of its values.

        The first call is kept, so its memory isn't reused. Source: Ye et al. 2024, "Differential Transformer".
        """
        return self.module is other.module and same_terms(self.attention, other.attention, _same_memory, "value")

    def beside(self, other: "Call") -> "Call":
        """Return this call with another's values appended."""
        both = torch.cat([self.attention.value, other.attention.value], dim=-1)
        return replace(self, attention=replace(self.attention, value=both))


def joined_rows(
    attention: Attention, name: str, known: dict[object, Tensor], order: WindowOrder | None = None
) -> Attention:
    """Join a batch's rows into one, (1, head, row · position, …).

    Args:
        attention: with terms (row, head, position, …).
        name: its module's class, for a refusal.
        known: the masks of blocks made so far, by size and order.
        order: of windows; None for rows one after the other.
    """
    rows, queries, keys = len(attention.query), attention.query.shape[-2], attention.key.shape[-2]
    if any(len(one) != rows or one.ndim != 4 for one in (attention.query, attention.key, attention.value)):
        raise UnsupportedModel(
            f"{name} attends over rows of a batch that share keys; use a model that keeps them apart"
        )
    size = rows, queries, keys
    allowed, bias = attention.allowed, attention.bias
    if order is not None and (tuple(order.places.shape) != (rows, queries) or queries != keys):
        raise UnsupportedModel(f"{name} attends in {rows} rows of {queries}, but in other windows when they were found")
    if (size, order) not in known:
        ones = torch.ones(rows, 1, queries, keys, dtype=torch.bool, device=attention.query.device)
        known[size, order] = _diagonal(ones, order)
    return replace(
        attention,
        query=in_one_row(attention.query, order),
        key=in_one_row(attention.key, order),
        value=in_one_row(attention.value, order),
        allowed=known[size, order] if allowed is None else _diagonal(_filled(allowed, size), order),
        bias=None if bias is None else _diagonal(_filled(bias, size), order),
    )


def check_size(attention: Attention, name: str, before: int) -> int:
    """Return the bytes of a call's matrices once its rows are joined; refuse more than memory should hold.

    Args:
        before: the bytes of earlier calls.
    """
    rows, bias = len(attention.query), attention.bias
    cells = rows**2 * attention.query.shape[-2] * attention.key.shape[-2]
    own = cells if attention.allowed is not None else 0
    own += 0 if bias is None else cells * bias.element_size() * (bias.shape[-3] if bias.ndim > 2 else 1)
    if before + max(own, cells) > MOST_BYTES:
        raise UnsupportedModel(
            f"{name} attends in {rows} rows of {attention.query.shape[-2]:,} positions: with the layers before, their "
            f"matrices as a whole take more than {MOST_BYTES // 2**30} GiB; use a smaller image, or layers=[…]"
        )
    return own


def apart(attention: Attention, rows: int, order: WindowOrder | None = None) -> Attention:
    """Return a joined call's rows, each with heads of its own: (row · head, position, …)."""

    def part(term: Term, value: Any) -> Any:
        if term.is_number:
            return value
        if not term.is_matrix:
            return value.repeat(rows)
        if term.axes.names[1] != "key":
            return in_rows(value[None], rows, order).flatten(0, 1)
        if order is not None:
            places = order.places.to(value.device)
            blocks = value[:, places[:, :, None], places[:, None, :]].transpose(0, 1)
        else:
            cells = value.reshape(len(value), rows, value.shape[-2] // rows, rows, value.shape[-1] // rows)
            blocks = cells.diagonal(dim1=1, dim2=3).movedim(-1, 0)
        return blocks.expand(-1, attention.shape[0], -1, -1).flatten(0, 1)

    return map_terms(attention, part)


def in_one_row(
    terms: Float[Tensor, "row head position width"], order: WindowOrder | None = None
) -> Float[Tensor, "1 head all_positions width"]:
    """Put a batch's rows one after the other, or windows into their order."""
    return terms.transpose(0, 1).flatten(1, 2)[None] if order is None else order.joined(terms)


def in_rows(
    terms: Float[Tensor, "1 head all_positions width"], rows: int, order: WindowOrder | None = None
) -> Float[Tensor, "row head position width"]:
    """Undo `in_one_row`."""
    return terms[0].unflatten(1, (rows, -1)).transpose(0, 1) if order is None else order.of_rows(terms)


def _filled(matrix: Tensor, size: tuple[int, int, int]) -> Tensor:
    rows, queries, keys = size
    return matrix.expand(rows, matrix.shape[-3] if matrix.ndim > 3 else 1, queries, keys)


def _diagonal(
    blocks: Shaped[Tensor, "row head query key"], order: WindowOrder | None
) -> Shaped[Tensor, "1 head all_queries all_keys"]:
    """Put blocks on a diagonal, or at their windows' places; all else is 0 or False."""
    rows, heads, queries, keys = blocks.shape
    if order is not None:
        places, count = order.places.to(blocks.device), rows * queries
        found = blocks.new_zeros(heads, count, count)
        found[:, places[:, :, None], places[:, None, :]] = blocks.transpose(0, 1)
        return found[None]
    found = blocks.new_zeros(heads, rows, queries, rows, keys)
    number = torch.arange(rows, device=blocks.device)
    found[:, number, :, number] = blocks
    return found.reshape(1, heads, rows * queries, rows * keys)


def of_row(term: Term, value: Any, row: int) -> Any:
    """Return one batch row's term, head first; parameters are copied, since training changes them."""
    if term.is_number:
        return value
    if term.is_matrix:
        return value[row if len(value) > 1 else 0] if value.ndim == 4 else value
    return value.detach().clone()  # a parameter of the model's


def in_a_batch(term: Term, value: Any) -> Any:
    """Add a batch axis to a term that has rows."""
    return value[None] if term.is_matrix else value


def _same_memory(one: Tensor, other: Tensor) -> bool:
    return memory_key(one) == memory_key(other)


def memory_key(mask: Tensor) -> object:
    """Return a mask's key: many models slice theirs anew per layer, uncopied."""
    return mask.data_ptr(), mask.shape, mask.stride(), mask.dtype
