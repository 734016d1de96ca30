"""A run of a model that stays linear in what each of its parts wrote, so that a number can be split among them.

With the norms' statistics, the attention patterns and the nonlinear steps of MLPs held fixed, everything in a
transformer between two attention calls is linear. A mode that sees every torch function makes each part's output a leaf
of the graph and holds the rest fixed, by what a function does and never by the names of a model's modules:

- what an embedding, a bias, an attention call or a nonlinear step gave is a leaf from where it is added to the rest;
- statistics (1 / √variance, a softmax, a gate's sigmoid) are numbers;
- after the body, in the head that chooses words, an activation f is x · (f(x) / x) with the ratio held fixed.

What isn't known to be linear counts as a nonlinear step: it becomes a row of its own, and never a wrong number.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attention_viz.models.circuits.linear_steps import STEPS, scaled

__all__ = ["Leaf", "Ledger", "Written"]

# Linear in each tensor that carries a gradient, given the others.
_LINEAR = frozenset(
    """
    view reshape view_as reshape_as transpose permute swapaxes swapdims movedim moveaxis contiguous clone T mT t flatten
    unflatten squeeze unsqueeze expand expand_as broadcast_to repeat tile repeat_interleave split split_with_sizes chunk
    tensor_split unbind narrow select index_select gather take_along_dim __getitem__ cat concat stack hstack vstack neg
    __neg__ sum mean cumsum roll flip rot90 to float double half bfloat16 type type_as dropout requires_grad_ real
    view_as_complex view_as_real diff unfold as_strided pad identity Identity zero_pad where masked_fill __setitem__
    index_add_ index_add index_copy_ scatter_add_ scatter_add copy_ alias fold masked_select diagonal cpu cuda
    """.split()
)
_ADDS = frozenset("add __add__ __radd__ add_ __iadd__ sub __sub__ __rsub__ rsub sub_ __isub__ subtract".split())
_PRODUCTS = frozenset(
    "mul __mul__ __rmul__ mul_ __imul__ multiply matmul __matmul__ __rmatmul__ mm bmm einsum outer dot mv".split()
)
_QUOTIENTS = frozenset("div __truediv__ __rtruediv__ div_ __itruediv__ divide true_divide".split())
# Statistics and gates: numbers that scale what passes, held fixed.
_FROZEN = frozenset(
    "rsqrt sqrt reciprocal norm vector_norm var std var_mean std_mean softmax log_softmax sigmoid".split()
)
# Functions that mix positions where they meet two things that were computed: no MLP does.
_MIXING = frozenset("conv1d cumsum cumprod logcumsumexp fft_fft fft_ifft roll scan".split())

_ORIGIN = "_attention_viz_origin"


@dataclass(frozen=True)
class Leaf:
    """What one part of the model wrote.

    Attributes:
        tensor: what it wrote, a leaf of the graph.
        kind: "embedding", "position", "head", "mlp", "other", "bias" or "constant".
        path: the name of the module it comes from.
        call: of heads, which attention call it is.
    """

    tensor: Tensor
    kind: str
    path: str
    call: int | None = None


@dataclass(eq=False)
class _Origin:
    """Where a number that is held fixed comes from: a nonlinear step in the module with this name."""

    path: str
    mixes: bool = False


@dataclass(eq=False)
class Written:
    """What was heard of the modules while a model ran: where it is, and whether its body is done."""

    stack: list[str] = field(default_factory=lambda: [""])
    activations: int = 0
    in_head: bool = False

    @property
    def path(self) -> str:
        """The name of the module that is running."""
        return self.stack[-1]


class Ledger(TorchFunctionMode):
    """Sees each torch function of a run and keeps the run linear in its leaves.

    Attributes:
        leaves: what each part wrote, in the order it was added.
    """

    def __init__(self, where: Written, words: nn.Module | None) -> None:
        """Begin with nothing written.

        Args:
            where: told by hooks which module runs.
            words: the module with the embeddings of the words.
        """
        super().__init__()
        self.leaves: list[Leaf] = []
        self._where, self._words = where, words
        self._biases: dict[int, Tensor] = {}

    def leaf(self, tensor: Tensor, kind: str, path: str | None = None, call: int | None = None) -> Tensor:
        """Make what was computed a leaf of its own; the tensor to go on with."""
        with torch._C.DisableTorchFunction(), torch.enable_grad():  # pyright: ignore[reportPrivateUsage]
            own = tensor.detach().requires_grad_()
            self.leaves.append(Leaf(own, kind, self._where.path if path is None else path, call))
            # What a model adds to in place mustn't be the leaf itself.
            return own.clone()

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Do what the function does, linearly."""
        named = dict(kwargs or {})
        name: str = getattr(func, "__name__", "")
        if name == "embedding":
            return self._embedded(func(*args, **named), args)
        tensors = list(_tensors((args, named)))
        live = [one for one in tensors if one.requires_grad]
        if not live or name in ("__get__", "__set__", "backward"):
            return self._marked(func(*args, **named), tensors, name)
        if self._where.activations:
            return self._cut(func, args, named, name)
        return self._apply(func, name, args, named, live)

    def _apply(
        self, func: Callable[..., Any], name: str, args: Sequence[Any], named: dict[str, Any], live: Sequence[Tensor]
    ) -> Any:
        if name in STEPS:
            return STEPS[name](self.leaf, func, *args, **named)
        if name in _ADDS:
            return func(*(self._added(one) for one in args), **named)
        if name in _PRODUCTS:
            others = [one for one in _tensors((args, named)) if not one.requires_grad]
            bound = len(live) > 1 or any(_origin(one) is not None for one in others)
            return self._cut(func, args, named, name) if bound else func(*args, **named)
        if name in _QUOTIENTS:
            return self._divided(func, name, args, named)
        if name in _FROZEN or (name in ("pow", "__pow__") and _is_negative(args)):
            return _without_gradient(func, args, named)
        if name in _LINEAR:
            return func(*args, **named)
        if self._where.in_head and len(live) == 1:
            return scaled(live[0], _without_gradient(func, args, named))
        return self._cut(func, args, named, name)

    def _embedded(self, found: Tensor, args: Sequence[Any]) -> Tensor:
        table = args[1] if len(args) > 1 else None
        words = self._words is not None and isinstance(table, Tensor) and table is getattr(self._words, "weight", None)
        return self.leaf(found, "embedding" if words else "position")

    def _added(self, one: Any) -> Any:
        """A summand: what carries no gradient is a leaf from here on."""
        if not isinstance(one, Tensor) or one.requires_grad or not one.is_floating_point():
            return one
        return self.fixed(one)

    def fixed(self, one: Tensor) -> Tensor:
        """A leaf of what is held fixed: what a nonlinear step gave, a learned bias, or a constant."""
        origin = _origin(one)
        if origin is not None:
            return self.leaf(one, "other" if origin.mixes else "mlp", origin.path)
        learned = isinstance(one, nn.Parameter)
        if learned and one.ndim > 1:
            return self.leaf(one, "position")
        return self.leaf(one, "bias" if learned else "constant")

    def _divided(self, func: Callable[..., Any], name: str, args: Sequence[Any], named: dict[str, Any]) -> Any:
        """What divides is a statistic; what is divided goes on."""
        backwards = name == "__rtruediv__"
        place = 0 if backwards else 1
        held = [one.detach() if at == place and isinstance(one, Tensor) else one for at, one in enumerate(args)]
        return func(*held, **named)

    def _cut(self, func: Callable[..., Any], args: Sequence[Any], named: dict[str, Any], name: str) -> Any:
        """A nonlinear step: its result is held fixed, and remembered as one."""
        found = _without_gradient(func, args, named)
        before = [origin for one in _tensors((args, named)) if (origin := _origin(one)) is not None]
        mixes = any(one.mixes for one in before) or name in _MIXING
        path = before[0].path if before else self._where.path
        for one in _tensors((found,)):
            if one.is_floating_point():
                setattr(one, _ORIGIN, _Origin(path, mixes))
        return found

    def _marked(self, found: Any, tensors: Sequence[Tensor], name: str) -> Any:
        """What is made of what is held fixed comes from the same step."""
        if name in _FROZEN:
            return found
        origins = [origin for one in tensors if (origin := _origin(one)) is not None]
        if not origins:
            return found
        computed = sum(not isinstance(one, nn.Parameter) for one in tensors)
        mixes = any(one.mixes for one in origins) or (
            name in _MIXING or (computed > 1 and name in ("matmul", "__matmul__", "bmm", "einsum"))
        )
        for one in _tensors((found,)):
            if one.is_floating_point() and _origin(one) is None:
                setattr(one, _ORIGIN, _Origin(origins[0].path, mixes))
        return found


def _without_gradient(func: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    with torch.no_grad():
        return func(*args, **named)


def _is_negative(args: Sequence[Any]) -> bool:
    return len(args) > 1 and isinstance(args[1], int | float) and args[1] < 0


def _origin(tensor: Tensor) -> _Origin | None:
    return getattr(tensor, _ORIGIN, None)


def _tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)
        elif isinstance(value, dict):
            yield from _tensors(value.values())
