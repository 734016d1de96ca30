"""A causal mask that isn't in memory: for 32,768 tokens, its cells would be a gigabyte, and four as numbers to add.

It is a tensor of the mask's shape, device and dtype. Some rows, or the whole, are computed when something reads them.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from attention_viz.errors import TraceError

__all__ = ["LEAST", "CausalMask", "causal_mask"]

# So many positions or more get such a mask; below, a mask in memory is faster.
LEAST = 1024

# Facts of a tensor that its cells have no part in: methods, and properties.
_FACTS = frozenset(
    "size dim numel nelement element_size data_ptr stride storage_offset is_floating_point is_complex __len__ "
    "untyped_storage get_device ndimension __hash__ is_inference _is_view requires_grad_".split()
)
_PROPERTIES = frozenset(
    "shape dtype device layout ndim itemsize requires_grad is_leaf grad grad_fn names is_cpu is_cuda is_meta is_sparse "
    "is_quantized is_nested is_mps is_xpu is_mkldnn _version".split()
)
# What leaves every matrix as it is, if the result has the same last two axes.
_VIEWS = frozenset("detach unsqueeze squeeze expand expand_as reshape view cpu cuda to alias".split())
_Index = tuple[Any, ...]
# Within it, such a mask is a tensor like any other; torch names it nowhere else.
_PLAIN = torch._C.DisableTorchFunctionSubclass  # pyright: ignore[reportPrivateUsage]


class CausalMask(Tensor):
    """A causal mask, (…, position, position): booleans, or 0 and the lowest number there is."""

    @classmethod
    def of(cls, positions: int, device: torch.device | str = "cpu", dtype: torch.dtype = torch.bool) -> "CausalMask":
        """Return a text's mask, (1, 1, position, position)."""
        return _mask(torch.zeros((), dtype=dtype, device=device).expand(1, 1, positions, positions))

    @property
    def as_allowed(self) -> "CausalMask":
        """The same mask in booleans."""
        with _PLAIN():
            return _mask(torch.zeros((), dtype=torch.bool, device=self.device).expand(self.shape))

    def as_subclass(self, cls: Any) -> Any:
        """Return the cells as a tensor of another class."""
        return _in_memory(self).as_subclass(cls)

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Keep the mask lazy for views of whole matrices; else hand the function cells in memory."""
        name, named = getattr(func, "__name__", ""), dict(kwargs or {})
        with _PLAIN():
            if name in _FACTS or (name == "__get__" and func.__self__.__name__ in _PROPERTIES):
                return func(*args, **named)
            mask = args[0] if args else None
            if isinstance(named.get("out"), CausalMask) or (isinstance(mask, CausalMask) and _writes(name)):
                raise TraceError(
                    f"from {LEAST:,} tokens on, a causal mask isn't in memory, so {name} can't write into it; write "
                    "into mask.clone()"
                )
            if isinstance(mask, CausalMask):
                if name == "__getitem__":
                    return _chosen(mask, args[1])
                if name == "__repr__":
                    return f"CausalMask({', '.join(map(str, mask.shape))})"
                if name in _VIEWS and not any(isinstance(one, CausalMask) for one in args[1:]):
                    found = _viewed(mask, func, args[1:], named)
                    if found is not None:
                        return found
            return func(*[_in_memory(one) for one in args], **{key: _in_memory(one) for key, one in named.items()})


@functools.lru_cache(maxsize=16)
def causal_mask(positions: int) -> CausalMask:
    """Return a text's mask, (1, position, position), the same for all layers."""
    return CausalMask.of(positions)[0]  # pyright: ignore[reportReturnType] -- a whole matrix stays one


def _writes(name: str) -> bool:
    """Return whether a function changes its first tensor."""
    if name.startswith("__"):
        return name in ("__set__", "__setitem__") or (name.startswith("__i") and name not in ("__invert__", "__int__"))
    return name.endswith("_")


def _mask(zeros: Tensor) -> CausalMask:
    return zeros.as_subclass(CausalMask)


def _viewed(mask: CausalMask, func: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Return a view or a copy elsewhere that is such a mask, too; None if it isn't."""
    kinds = [one for one in (*args, *named.values()) if isinstance(one, torch.dtype)]
    if any(kind != mask.dtype for kind in kinds):
        return None
    try:
        found = func(Tensor.as_subclass(mask, Tensor), *args, **named)
    except RuntimeError:  # a view that memory of its own could have
        return None
    same = found.dtype == mask.dtype and found.ndim >= 2 and found.shape[-2:] == mask.shape[-2:]
    if not same:
        return None
    return _mask(torch.zeros((), dtype=found.dtype, device=found.device).expand(found.shape))


def _chosen(mask: CausalMask, index: Any) -> Tensor:
    """Return some cells; a mask of whole matrices stays one."""
    entries: _Index = index if isinstance(index, tuple) else (index,)
    if _leaves_matrices(entries, mask):
        found = Tensor.as_subclass(mask, Tensor)[index]
        return _mask(torch.zeros((), dtype=mask.dtype, device=mask.device).expand(found.shape))
    size = mask.shape[-1]
    places = torch.arange(size, dtype=torch.int32, device=mask.device)
    rows, columns = places[:, None].expand(mask.shape)[index], places.expand(mask.shape)[index]
    return _cells(columns <= rows, mask.dtype)


def _leaves_matrices(index: _Index, mask: CausalMask) -> bool:
    """Return whether an index takes whole matrices: where cells would be in memory shows it."""
    if any(not (one is None or one is Ellipsis or type(one) is int or isinstance(one, slice)) for one in index):
        return False
    size = mask.shape[-1]
    found = torch.empty(mask.shape, device="meta")[index]
    whole = found.shape[-2:] == (size, size) and found.stride()[-2:] == (size, 1)
    return whole and found.storage_offset() % size**2 == 0


def _in_memory(value: Any) -> Any:
    if isinstance(value, CausalMask):
        size = value.shape[-1]
        cells = torch.ones(size, size, dtype=torch.bool, device=value.device).tril()
        return _cells(cells, value.dtype).expand(value.shape)
    if type(value) in (list, tuple):
        return type(value)(_in_memory(one) for one in value)
    return value


def _cells(allowed: Tensor, dtype: torch.dtype) -> Tensor:
    if dtype == torch.bool:
        return allowed
    zero = torch.zeros((), dtype=dtype, device=allowed.device)
    return torch.where(allowed, zero, torch.finfo(dtype).min)
