"""Sort Torch functions by name for a run that is linear in its parts' outputs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

# Linear in each tensor that carries a gradient, given the others.
LINEAR = frozenset(
    """
    view reshape view_as reshape_as transpose permute swapaxes swapdims movedim moveaxis contiguous clone T mT t
    flatten unflatten squeeze unsqueeze expand expand_as broadcast_to repeat tile repeat_interleave split
    split_with_sizes chunk tensor_split unbind narrow select index_select gather take_along_dim __getitem__ neg
    __neg__ sum mean cumsum roll flip rot90 to float double half bfloat16 type type_as dropout requires_grad_ real
    view_as_complex view_as_real diff unfold as_strided pad identity Identity zero_pad masked_fill alias fold
    masked_select diagonal cpu cuda
    """.split()
)
ADDS = frozenset("add __add__ __radd__ add_ __iadd__ sub __sub__ __rsub__ rsub sub_ __isub__ subtract".split())
# Those that put tensors together.
JOINS = frozenset(
    """
    cat concat concatenate stack hstack vstack where __setitem__ index_add_ index_add index_copy_ scatter_add_
    scatter_add copy_ masked_scatter masked_scatter_
    """.split()
)
PRODUCTS = frozenset(
    "mul __mul__ __rmul__ mul_ __imul__ multiply matmul __matmul__ __rmatmul__ mm bmm einsum outer dot mv".split()
)
QUOTIENTS = frozenset("div __truediv__ __rtruediv__ div_ __itruediv__ divide true_divide".split())
# Statistics and gates: numbers that scale what passes, held fixed.
_FROZEN = frozenset(
    "rsqrt sqrt reciprocal norm vector_norm var std var_mean std_mean softmax log_softmax sigmoid".split()
)
# Functions that mix positions where they meet two things that were computed: no MLP does.
MIXING = frozenset("conv1d cumsum cumprod logcumsumexp fft_fft fft_ifft roll scan".split())
# A clip where both its bounds are given: without one it is an activation.
CLIPS = frozenset("clamp clamp_ clip clip_".split())
# Where a head's output meets W_O: what scales it before is a gate.
PROJECTS = frozenset("linear addmm".split())
# Makes a tensor a leaf of a kind, and hands back what to go on with.
Leaves = Callable[[Tensor, str], Tensor]


def is_frozen(name: str, args: Sequence[Any]) -> bool:
    """Return whether a function computes a statistic or a gate."""
    power = name in ("pow", "__pow__") and len(args) > 1 and isinstance(args[1], int | float)
    return name in _FROZEN or (power and args[1] < 0)


def without_gradient(func: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Return a function's result, held fixed."""
    with torch.no_grad():
        return func(*args, **named)


def held(args: Sequence[Any], passes: Tensor) -> list[Any]:
    """Return the arguments with every tensor but one held fixed."""
    return [
        held(one, passes)
        if isinstance(one, list | tuple)
        else one.detach()
        if isinstance(one, Tensor) and one is not passes
        else one
        for one in args
    ]


def tensors_in(values: Iterable[Any]) -> Iterator[Tensor]:
    """Return the tensors among arguments, in lists and dictionaries too."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from tensors_in(value)
        elif isinstance(value, dict):
            yield from tensors_in(value.values())


def marked(found: object, name: str) -> None:
    """Set an attribute on every tensor of a function's result."""
    for one in tensors_in((found,)):
        setattr(one, name, True)


def is_learned(tensor: Tensor) -> bool:
    """Return whether a tensor is a parameter or its view."""
    return isinstance(tensor, nn.Parameter) or isinstance(tensor._base, nn.Parameter)


def _linear(
    leaf: Leaves, func: Callable[..., Tensor], input: Tensor, weight: Tensor, bias: Tensor | None = None
) -> Tensor:
    found = func(input, weight)
    return found if bias is None else found + leaf(bias, "bias")


def _addmm(
    leaf: Leaves, _func: Callable[..., Tensor], input: Tensor, mat1: Tensor, mat2: Tensor, **scales: Any
) -> Tensor:
    if scales:
        return leaf(input, "bias") * scales.get("beta", 1) + (mat1 @ mat2) * scales.get("alpha", 1)
    return leaf(input, "bias") + mat1 @ mat2


def _conv1d(
    leaf: Leaves,
    func: Callable[..., Tensor],
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *rest: Any,
    **named: Any,
) -> Tensor:
    found = func(input, weight, None, *rest, **named)
    return found if bias is None else found + leaf(bias, "bias")[:, None]


def _layer_norm(
    leaf: Leaves,
    _func: Callable[..., Tensor],
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    **_rest: Any,
) -> Tensor:
    axes = tuple(range(-len(normalized_shape), 0))
    centred = input - input.mean(axes, keepdim=True)
    # The variance of the whole, as the model computes it.
    found = centred * (centred.detach().square().mean(axes, keepdim=True) + eps).rsqrt()
    found = found if weight is None else found * weight
    return found if bias is None else found + leaf(bias, "bias")


def _rms_norm(
    _leaf: Leaves,
    _func: Callable[..., Tensor],
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
    **_rest: Any,
) -> Tensor:
    axes = tuple(range(-len(normalized_shape), 0))
    small = torch.finfo(input.dtype).eps if eps is None else eps
    found = input * (input.detach().square().mean(axes, keepdim=True) + small).rsqrt()
    return found if weight is None else found * weight


def _normalize(
    _leaf: Leaves,
    _func: Callable[..., Tensor],
    input: Tensor,
    p: float = 2.0,
    dim: int = 1,
    eps: float = 1e-12,
    **_rest: Any,
) -> Tensor:
    return input / torch.linalg.vector_norm(input.detach(), p, dim, keepdim=True).clamp_min(eps)


STEPS: dict[str, Callable[..., Tensor]] = {
    "normalize": _normalize,
    "linear": _linear,
    "addmm": _addmm,
    "conv1d": _conv1d,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
}


def scaled(before: Tensor, after: Tensor) -> Tensor:
    """Return an activation as input times a fixed number."""
    if after.shape != before.shape:
        return after
    with torch._C.DisableTorchFunction():  # pyright: ignore[reportPrivateUsage]
        held = before.detach()
        return before * torch.where(held == 0, torch.zeros_like(held), after / held)


def clipped(before: Tensor, in_place: bool, *bounds: Any, **named: Any) -> Tensor:
    """Return a clip as input times a fixed number, 1 between the bounds."""
    with torch._C.DisableTorchFunction(), torch.no_grad():  # pyright: ignore[reportPrivateUsage]
        after = torch.clamp(before, *bounds, **named)
        ratio = torch.where(before == 0, torch.zeros_like(before), after / before)
    return before.mul_(ratio) if in_place else before * ratio
