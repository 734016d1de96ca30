"""Follows a model's own attention from query · key through its softmax to the values.

A mode sees this thread's torch calls: a product of tensors, neither a parameter, leads to a softmax over its last axis,
and that to a product with the values.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from attention_viz.errors import UnsupportedModel
from attention_viz.recording.interception.inside_torch import signature, with_inside, written_out

_PLAIN = {torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.bmm, Tensor.bmm}
_ADDED = {torch.baddbmm, Tensor.baddbmm}
_SOFTMAX = {functional.softmax, torch.softmax, Tensor.softmax, torch.special.softmax}
_LOGSUMEXP = {torch.logsumexp, Tensor.logsumexp, torch.special.logsumexp}
# What makes something new of its input, which is no longer the numbers that were followed.
_ENDS = {functional.linear, functional.layer_norm, functional.rms_norm, functional.group_norm, functional.embedding}
_MARK = "_attention_viz_followed"


# Given a softmax's number, what enters it and the softmax itself, hands back what leaves it.
Soften = Callable[[int, Tensor, Callable[[Tensor], Tensor]], Tensor]


@dataclass(frozen=True, eq=False)
class Product:
    """One product of two tensors.

    Attributes:
        left: (…, row, width).
        layout: reorders (…, row, column) as requested.
        straight: undoes `layout`.
        added: with its own factor; None for nothing.
    """

    left: Tensor
    right: Tensor
    layout: Callable[[Tensor], Tensor]
    straight: Callable[[Tensor], Tensor]
    factor: float = 1.0
    added: Tensor | None = None
    number: int = -1

    @property
    def lead(self) -> torch.Size:
        """The axes before the rows."""
        return torch.broadcast_shapes(self.left.shape[:-2], self.right.shape[:-2])

    def result(self, value: Tensor) -> Tensor:
        """Return torch's result for a product, (…, row, column)."""
        made = self.layout(value)
        return made if self.added is None else made + self.added

    @property
    def value(self) -> Tensor:
        """The product with its factor, without `added`: (…, row, column)."""
        made = self.left @ self.right
        return made * self.factor if self.factor != 1 else made


def product_of(func: object, args: Sequence[Any], named: Mapping[str, Any]) -> Product | None:
    """Return a torch call as a product of two tensors with three or more axes, if it is one."""
    if func in _PLAIN:
        left, right = _two(args, named, ("input", "other"), ("self", "mat2"), ("tensor1", "tensor2"))
        return _plain(left, right)
    if func is Tensor.__rmatmul__:
        return _plain(args[1], args[0])
    if func in _ADDED:
        added, left, right = (*args[:3],) if len(args) >= 3 else (args[0], named.get("batch1"), named.get("batch2"))
        if not isinstance(left, Tensor) or not isinstance(right, Tensor) or not _three(left, right):
            return None
        beta, alpha = float(named.get("beta", 1)), float(named.get("alpha", 1))
        return Product(left, right, _same, _same, alpha, None if beta == 0 else added * beta)
    if func is torch.einsum:
        return _summed(args)
    return None


def _two(args: Sequence[Any], named: Mapping[str, Any], *names: tuple[str, str]) -> tuple[Any, Any]:
    if len(args) == 2:
        return args[0], args[1]
    keys = {key for pair in names for key in pair}
    given = [*args, *(value for key, value in named.items() if key in keys)]
    return (given[0], given[1]) if len(given) == 2 else (None, None)


def _three(left: object, right: object) -> bool:
    return isinstance(left, Tensor) and isinstance(right, Tensor) and min(left.ndim, right.ndim) >= 3


def _plain(left: Any, right: Any) -> Product | None:
    return Product(left, right, _same, _same) if _three(left, right) else None


def _same(tensor: Tensor) -> Tensor:
    return tensor


def _summed(args: Sequence[Any]) -> Product | None:
    """Return an einsum as a product, if it sums one axis and each tensor has one of its own."""
    factors = list(args[1]) if len(args) == 2 and isinstance(args[1], (list, tuple)) else list(args[1:])
    if not isinstance(args[0], str) or len(factors) != 2 or not _three(*factors):
        return None
    asked, arrow, made = _spelled_out(args[0].replace(" ", ""), factors).partition("->")
    one, _, other = asked.partition(",")
    letters = (one, other, made)
    if not arrow or not all(name.isalpha() and len(set(name)) == len(name) for name in letters):
        return None
    lead = [axis for axis in made if axis in one and axis in other]
    width = [axis for axis in one if axis in other and axis not in made]
    rows = [axis for axis in made if axis not in other]
    columns = [axis for axis in made if axis not in one]
    if not len(width) == len(rows) == len(columns) == 1:
        return None
    if any(len(name) != len(lead) + 2 for name in letters):
        return None
    left = factors[0].permute([one.index(axis) for axis in (*lead, *rows, *width)])
    right = factors[1].permute([other.index(axis) for axis in (*lead, *width, *columns)])
    order = [*lead, *rows, *columns]
    asked_for = [order.index(axis) for axis in made]
    back = [made.index(axis) for axis in order]
    return Product(left, right, lambda result: result.permute(asked_for), lambda result: result.permute(back))


def _spelled_out(asked: str, factors: Sequence[Tensor]) -> str:
    """Write letters for an ellipsis over equally many axes."""
    parts = asked.partition("->")[0].split(",")
    axes = {one.ndim - len(part) + 3 for one, part in zip(factors, parts, strict=False) if "..." in part}
    if len(axes) != 1 or not all("..." in part for part in parts):
        return asked
    unused = [letter for letter in "ABCDEFGHIJKLMNOP" if letter not in asked]
    return asked.replace("...", "".join(unused[: axes.pop()]))


@dataclass(frozen=True, eq=False)
class Logits:
    """A softmax's input, its products, and the operations on the first."""

    tensor: Tensor
    products: tuple[Product, ...]
    way: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class FollowedCall:
    """One attention call of a model's own.

    Attributes:
        number: its rank by when values are taken.
        place: its softmax's number.
        module: the innermost running module with children.
        taken: weights (left) times values.
        way: the operations on the weights before.
    """

    number: int
    place: int
    module: nn.Module
    logits: Logits
    taken: Product
    way: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Followed:
    """A tensor's origin: products, or one softmax."""

    products: tuple[Product, ...] = ()
    way: tuple[str, ...] = ()
    logits: Logits | None = None
    place: int = 0


class Following(TorchFunctionMode):
    """Hears a model's attention calls in this thread.

    Attributes:
        softmaxes: how many came after a product.
        taken: those multiplied with values.
    """

    def __init__(
        self,
        parameters: frozenset[int],
        attend: Callable[[FollowedCall], Tensor | None],
        *,
        busy: Callable[[], bool] = lambda: False,
        product: Callable[[Product], Tensor | None] | None = None,
        softmax: Soften | None = None,
        inside: bool = True,
    ) -> None:
        """Set up the callbacks.

        Args:
            parameters: their addresses; see `memory_of`.
            attend: returns an output, (…, query, d_v), or None for the model's own.
            product: returns a replacement, (…, row, column), or None.
            inside: whether to follow torch's multi-head attention, too.
        """
        super().__init__()
        self._inside = inside
        self._parameters, self._attend, self._busy = parameters, attend, busy
        self._product, self._softmax = product, softmax
        self.softmaxes = self._products = 0
        self.taken: set[int] = set()

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Handle one torch call."""
        named = kwargs or {}
        if self._busy():
            return func(*args, **named)
        if func is functional.multi_head_attention_forward and self._inside:
            return self._enter(func, args, named)
        if func in _SOFTMAX:
            return self._soften(func, args, named)
        if func is functional.scaled_dot_product_attention and self._inside:
            with self:
                return written_out(*args, **named)
        product = product_of(func, args, named)
        if product is not None:
            return self._multiply(product, func, args, named)
        result = func(*args, **named)
        if isinstance(result, (Tensor, tuple, list)) and func not in _ENDS:
            found = _marks((*args, *named.values()))
            if found:
                _mark(result, _merged(found, _name(func)))
        return result

    def _enter(self, func: Any, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Tensor, Tensor | None]:
        """Follow torch's multi-head attention: handing out its weights, it multiplies them itself."""
        call = signature(func).bind(*args, **named)
        call.apply_defaults()
        inner = {**call.arguments, "need_weights": True}
        if not call.arguments["need_weights"]:
            inner["is_causal"] = False  # a hint beside the mask, which weights don't take
        with self:
            output, weights = with_inside(func)(**inner)
        return output, weights if call.arguments["need_weights"] else None

    def _multiply(self, product: Product, func: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        weights = next((mark for mark in _marks((*args, *named.values())) if mark.logits is not None), None)
        if weights is not None:
            return self._take(weights, product, func, args, named)
        if memory_of(product.left) in self._parameters or memory_of(product.right) in self._parameters:
            return func(*args, **named)
        product = replace(product, number=self._products)
        self._products += 1
        instead = None if self._product is None else self._product(product)
        result = func(*args, **named) if instead is None else product.result(instead)
        added = [] if product.added is None else _marks((args[0],))
        _mark(result, _merged([_Followed((product,)), *added], ""))
        return result

    def _soften(self, func: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Tensor:
        logits = args[0] if args else named["input"]
        found = [mark for mark in _marks((logits,)) if mark.products]
        axis = args[1] if len(args) > 1 else named.get("dim")
        if not found or logits.ndim < 3 or axis not in (-1, logits.ndim - 1):
            return func(*args, **named)

        def compute(entering: Tensor) -> Tensor:
            return func(entering, *args[1:], **{name: value for name, value in named.items() if name != "input"})

        return self.soften(logits, compute)

    def soften(self, logits: Tensor, compute: Callable[[Tensor], Tensor]) -> Tensor:
        """Handle a softmax over products."""
        found = [mark for mark in _marks((logits,)) if mark.products]
        place, self.softmaxes = self.softmaxes, self.softmaxes + 1
        result = compute(logits) if self._softmax is None else self._softmax(place, logits, compute)
        entered = Logits(logits, found[0].products, found[0].way)
        _mark(result, _Followed(logits=entered, place=place))
        return result

    def _take(
        self, weights: _Followed, product: Product, func: Any, args: tuple[Any, ...], named: Mapping[str, Any]
    ) -> Any:
        """Multiply weights with values: one attention call."""
        assert weights.logits is not None
        if weights.place in self.taken:
            raise UnsupportedModel("it multiplies the same weights with values twice")
        first = args[1 if func is torch.einsum else 0]
        if not _holds(first[0] if isinstance(first, list | tuple) else first, weights):
            raise UnsupportedModel("it multiplies values with the weights in another order")
        self.taken.add(weights.place)
        heard = FollowedCall(len(self.taken) - 1, weights.place, _module(), weights.logits, product, weights.way)
        output = self._attend(heard)
        return func(*args, **named) if output is None else product.layout(output)


class Softmaxes(TorchFunctionMode):
    """Collects the key counts of softmaxes with four or more axes.

    Reformer writes them out, as exp(x - logsumexp(x)).
    """

    def __init__(self) -> None:
        """Begin with none."""
        super().__init__()
        self.keys: list[int] = []
        self.modules: list[nn.Module] = []
        self.written: list[nn.Module] = []

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one torch call, and note a softmax."""
        result = func(*args, **(kwargs or {}))
        if func in _SOFTMAX and isinstance(result, Tensor) and result.ndim > 3:
            self._note(result.shape[-1])
        elif func in _LOGSUMEXP and isinstance(args[0], Tensor) and args[0].ndim > 3:
            self._note(args[0].shape[-1])
            self.written.append(self.modules[-1])
        return result

    def _note(self, keys: int) -> None:
        self.keys.append(keys)
        self.modules.append(_module())


def entering_softmax(tensor: Tensor) -> tuple[Product, ...]:
    """Return the products that led to a tensor."""
    return tuple(product for mark in _marks((tensor,)) for product in mark.products)


def mark_written(target: Tensor, written: object) -> None:
    """Mark a tensor that another was written into."""
    found = _marks((target, written))
    if found:
        _mark(target, _merged(found, "setitem"))


def memory_of(tensor: Tensor) -> int:
    """Return the address of a tensor's storage, which its views share."""
    return tensor.untyped_storage().data_ptr()


def _holds(tensor: object, mark: _Followed) -> bool:
    found = getattr(tensor, _MARK, None)
    return isinstance(found, _Followed) and found.place == mark.place and found.logits is not None


def _marks(values: Iterable[Any]) -> list[_Followed]:
    found: list[_Followed] = []
    for value in values:
        if isinstance(value, Tensor):
            mark = getattr(value, _MARK, None)
            if mark is not None:
                found.append(mark)
        elif isinstance(value, (tuple, list)):
            found += _marks(cast("Sequence[Any]", value))
    return found


def _mark(result: Any, mark: _Followed) -> None:
    if isinstance(result, Tensor):
        setattr(result, _MARK, mark)
    elif isinstance(result, (tuple, list)):
        for one in cast("Sequence[Any]", result):
            _mark(one, mark)


def _merged(found: Sequence[_Followed], name: str) -> _Followed:
    """Merge marks; weights win, since only output is made of them."""
    weights = next((mark for mark in found if mark.logits is not None), None)
    first = weights or found[0]
    way = (*first.way, name) if name else first.way
    if weights is not None:
        return _Followed((), way, weights.logits, weights.place)
    products = dict.fromkeys(product for mark in found for product in mark.products)
    return _Followed(tuple(products), way)


def _name(func: Any) -> str:
    return str(getattr(func, "__name__", func)).strip("_")


def _module() -> nn.Module:
    frame = inspect.currentframe()
    while frame is not None:
        found = frame.f_locals.get("self")
        if isinstance(found, nn.Module) and next(found.children(), None) is not None:
            return found
        frame = frame.f_back
    raise UnsupportedModel("it computes attention outside of any module")
