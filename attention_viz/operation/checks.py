"""Named rules for an attention call, checked before torch's."""

import math
from typing import Protocol

import torch
from torch import Tensor

from attention_viz.errors import ShapeError
from attention_viz.operation.shapes import FLOATING, broadcasts, heads_of, shape_of_weights, shapes_in_words
from attention_viz.operation.terms import Term, terms_of

# Kinds and shapes of calls that fit together, up to this many.
_REMEMBERED = 4096
_fitting: set[tuple[object, ...]] = set()
# Types compared by value; all others by identity.
_PLAIN = (int, float, type(None))


class _CallInputs(Protocol):
    @property
    def query(self) -> Tensor: ...

    @property
    def key(self) -> Tensor: ...

    @property
    def value(self) -> Tensor: ...

    @property
    def shape(self) -> tuple[int, ...]: ...


def check_call(call: _CallInputs) -> None:
    """Refuse impossible calls; once per kind and shape, because layers repeat calls."""
    values = [(term, getattr(call, term.name)) for term in terms_of(type(call))]
    signature = tuple(_signature(value) for _, value in values)
    if signature in _fitting:
        return
    for term, value in values:
        if value is not None or term.axes.needed:
            _check_kind(term, value)
    _check_inputs(call.query, call.key, call.value)
    for term, value in values:
        if value is not None and not term.axes.needed:
            _check_extra(term, value, call)
    if len(_fitting) >= _REMEMBERED:
        _fitting.clear()
    _fitting.add(signature)


def _signature(value: object) -> object:
    if isinstance(value, Tensor):
        return value.shape, value.dtype, value.device, value.layout
    return type(value), value if isinstance(value, _PLAIN) else id(value)


def _check_kind(term: Term, value: object) -> None:
    if term.is_number:
        _check_number(term, value)
        return
    if not isinstance(value, Tensor):
        raise ShapeError(f"{term.name} must be a tensor; got {type(value).__name__}")
    if value.layout != torch.strided:
        raise ShapeError(f"{term.name} must be a dense tensor; got layout {value.layout}")
    if term.axes.boolean and value.dtype != torch.bool:
        raise ShapeError(f"{term.name} must be boolean, True where a query may attend; got {value.dtype}")
    if not (term.axes.boolean or term.axes.needed or value.dtype in FLOATING):
        raise ShapeError(f"{term.name} must hold floating-point numbers; got {value.dtype}")


def _check_number(term: Term, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ShapeError(f"{term.name} must be a number; got {value!r}")
    wanted = "a finite number above 0" if term.axes.positive else "a finite number"
    wanted += "" if term.axes.needed else ", or None"
    try:
        number = float(value)
    except OverflowError:
        raise ShapeError(f"{term.name} must be {wanted}; got one too large for a float") from None
    if not math.isfinite(number) or (term.axes.positive and number <= 0):
        raise ShapeError(f"{term.name} must be {wanted}; got {value}")


def _check_inputs(query: Tensor, key: Tensor, value: Tensor) -> None:
    kinds = {"query": query.dtype, "key": key.dtype, "value": value.dtype}
    if len(set(kinds.values())) > 1 or query.dtype not in FLOATING:
        dtypes = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
        raise ShapeError(f"query, key and value must share one floating-point dtype; got {dtypes}")
    for name, other in (("key", key), ("value", value)):
        _check_device(name, other, query)
    shapes = shapes_in_words(query, key, value)
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise ShapeError(f"query, key and value must have at least the axes (position, width); {shapes}")
    if query.shape[-1] != key.shape[-1]:
        raise ShapeError(f"query and key must have the same width d_k; {shapes}")
    if key.shape[-2] != value.shape[-2]:
        raise ShapeError(f"key and value must have the same length; {shapes}")
    heads = heads_of(query)
    for name, count in (("key", heads_of(key)), ("value", heads_of(value))):
        if heads > 1 and (count == 0 or heads % count):
            raise ShapeError(f"the {heads} query heads must be a multiple of the {count} {name} heads; {shapes}")
    shape_of_weights(query, key, value)


def _check_extra(term: Term, value: object, call: _CallInputs) -> None:
    if not isinstance(value, Tensor):
        return
    _check_device(term.name, value, call.query)
    shape = tuple(value.shape)
    if term.is_matrix and (value.ndim < 2 or not broadcasts(shape, call.shape)):
        raise ShapeError(f"{term.name} must broadcast to the weights' (…, query, key) = {call.shape}; got {shape}")
    if not term.is_matrix and not broadcasts(shape, call.shape[:-2]):
        heads = heads_of(call.query)
        raise ShapeError(f"{term.name} must have one number per head, {heads} in all; got shape {shape}")


def _check_device(name: str, tensor: Tensor, query: Tensor) -> None:
    if tensor.device != query.device:
        raise ShapeError(f"{name} must be on the query's device, {query.device}; got {tensor.device}")
