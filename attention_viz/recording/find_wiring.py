"""Finds an attention call's projections by the numbers that flow through a model, not by names.

Columns of a module's output that equal a query are its projection, whatever the order of heads. RoPE turns the first
position by 0, so its numbers are unchanged, and keeps every vector's length, which proves the find.

Source of the rotation: Su et al. 2021, "RoFormer", eq. 34.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor, nn

from attention_viz.operation.modules import Projection
from attention_viz.recording.call_rows import WindowOrder
from attention_viz.recording.hooks import hooked
from attention_viz.recording.recorder import Call, recording
from attention_viz.recording.runner import Pass
from attention_viz.recording.sparse.turn import rerunning
from attention_viz.recording.weights.matrix import matrix_of
from attention_viz.recording.wiring import ColumnSource, Wiring, entering, rows


@dataclass(frozen=True, eq=False)
class _WiringEvent:
    """One module's input and output, and the attention calls before its end.

    A leaf contains no module heard before.
    """

    module: nn.Module
    entered: Tensor | None
    left: Tensor
    calls: int
    is_leaf: bool

    @property
    def like(self) -> Tensor:
        """Zero rows, (0, in), of the input's kind."""
        return torch.empty(0, 0) if self.entered is None else self.entered.new_empty(0, self.entered.shape[-1])


def listened(model: nn.Module, run: Callable[[], Pass]) -> tuple[Pass, Callable[[], tuple[Wiring, ...]]]:
    """Record a run; return the pass, and a function that finds its calls' wirings."""
    events, heard = list[_WiringEvent](), set[int]()

    def hear(module: nn.Module, inputs: tuple[object, ...], named: dict[str, object], output: object) -> None:
        recorder = recording.get()
        if recorder is None or rerunning.get():
            return
        is_leaf = not any(id(one) in heard for one in module.modules() if one is not module)
        heard.add(id(module))
        if isinstance(output, Tensor):
            events.append(
                _WiringEvent(module, entering(inputs, named), output.detach().clone(), recorder.count, is_leaf)
            )

    with hooked(model.modules(), hear):
        found = run()
    return found, lambda: tuple(_wiring(call, number, events) for number, call in enumerate(found.calls))


def _wiring(call: Call, number: int, events: Sequence[_WiringEvent]) -> Wiring:
    attention = call.attention
    before = [event for event in events if event.calls == number]
    after = [event for event in events if event.calls == number + 1]
    query, key, value = (
        _source(tensor, before, call.order) for tensor in (attention.query, attention.key, attention.value)
    )
    joined = attention.output.transpose(0, 1).flatten(1)
    takers = [event for event in after if _same(rows(event.entered, len(joined), call.order), joined)]
    return Wiring(query, key, value, _joining(takers), joined.new_empty(0, joined.shape[1]))


def _joining(takers: Sequence[_WiringEvent]) -> nn.Module | None:
    """Return the module that joins the heads: the first leaf, or a single matrix around it.

    An adapter wraps the leaf and adds to its output.
    """
    found = next((event.module for event in takers if event.is_leaf), None)
    for event in takers:
        around = found is None or (event.module is not found and any(one is found for one in event.module.modules()))
        if not event.is_leaf and around and isinstance(matrix_of(event.module, event.like), Projection):
            found = event.module
    return found


def _source(target: Tensor, events: Sequence[_WiringEvent], order: WindowOrder | None) -> ColumnSource | None:
    """Return the last module with all the target's numbers; a leaf, if one has them.

    An adapter adds to its inner module's output.
    """
    inside = [event for event in events if event.is_leaf]
    around = [event for event in events if not event.is_leaf]
    found = _source_among(target, inside, order)
    return _source_among(target, around, order) if found is None else _outermost(found, around, events)


def _outermost(found: ColumnSource, around: Sequence[_WiringEvent], events: Sequence[_WiringEvent]) -> ColumnSource:
    """Return the outermost module with the same output that is one matrix.

    An adapter may change its inner module's input, as PEFT's OFT does.
    """
    left = next(event.left for event in reversed(events) if event.module is found.module)
    for event in around:
        holds = any(one is found.module for one in event.module.modules())
        if holds and _same(event.left, left) and isinstance(matrix_of(event.module, event.like), Projection):
            found = replace(found, module=event.module, like=event.like)
    return found


def _source_among(target: Tensor, events: Sequence[_WiringEvent], order: WindowOrder | None) -> ColumnSource | None:
    heads, count, width = target.shape
    flat = target.transpose(0, 1).reshape(count, heads * width)
    for event in reversed(events):
        left = rows(event.left, count, order)
        if left is None or left.shape[1] < flat.shape[1] or left.dtype != flat.dtype:
            continue
        for factor in (1.0, width**-0.5):
            columns = _columns(left * factor, flat)
            if columns is not None:
                return ColumnSource(event.module, event.like, columns, factor)
        columns = _columns(left[:1], flat[:1])
        if columns is not None and _same_lengths(left[:, columns], flat, width):
            return ColumnSource(event.module, event.like, columns, rotated=True)
        factor = _stretched(left, flat, width)
        if factor is not None:
            everything = torch.arange(flat.shape[1], device=left.device)
            return ColumnSource(event.module, event.like, everything, factor, rotated=True)
    return None


def _stretched(left: Tensor, flat: Tensor, width: int) -> float | None:
    """Return the factor on rotated numbers; None if there is none.

    YaRN has one for long texts. Source: Peng et al. 2023, "YaRN", section 3.4.
    """
    if left.shape != flat.shape or not bool(left[0].all()):
        return None
    factor = float((flat[0].double() / left[0].double()).median())
    tolerance = 1e-5 if flat.dtype in (torch.float32, torch.float64) else 3e-2
    unturned = torch.allclose(left[0].double() * factor, flat[0].double(), rtol=tolerance, atol=0)
    return factor if factor > 0 and unturned and _same_lengths(left * factor, flat, width) else None


def _columns(left: Tensor, flat: Tensor) -> Tensor | None:
    """Return `flat`'s columns' places in `left`, bit by bit; None if one is missing."""
    places = {column.tobytes(): place for place, column in reversed(list(enumerate(_bits(left))))}
    found = [places.get(column.tobytes()) for column in _bits(flat)]
    return None if None in found else torch.tensor(cast("list[int]", found), device=left.device)


def _bits(columns: Tensor) -> Any:
    # Adding 0 makes −0 into 0. As numpy has no bfloat16, half precision is compared as float32, which holds it exactly.
    return (columns.detach().double() + 0.0).T.contiguous().cpu().numpy()


def _same_lengths(before: Tensor, after: Tensor, width: int) -> bool:
    lengths = [part.double().reshape(len(part), -1, width).norm(dim=-1) for part in (before, after)]
    tolerance = 1e-4 if after.dtype in (torch.float32, torch.float64) else 3e-2
    return torch.allclose(*lengths, rtol=tolerance, atol=tolerance * lengths[1].max().item())


def _same(one: Tensor | None, other: Tensor) -> bool:
    return one is not None and one.shape == other.shape and torch.equal(one, other)
