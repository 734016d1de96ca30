"""A second device on a machine that has none, so that whatever forgets which device a tensor is on fails, as on a GPU.

It is a backend of torch in Python: its tensors hold an ordinary one, every operation runs on that, and one that mixes
devices is refused as CUDA refuses it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast
from unittest.mock import patch

import torch
from torch import Tensor
from torch.utils._device import _device_constructors
from torch.utils._pytree import tree_flatten, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

__all__ = ["ELSEWHERE", "elsewhere"]

ELSEWHERE = "elsewhere"
# What may take tensors of two devices: copies, and places that are looked up.
_ACROSS = frozenset({"aten::copy_", "aten::_to_copy", "aten::_copy_from", "aten::index", "aten::index_put_"})
_ACROSS |= {"aten::index_put", "aten::_index_put_impl_", "aten::_unsafe_index"}
_registered: list[torch.library.Library] = []


class _Away(Tensor):
    """A tensor of the other device.

    Attributes:
        near: the ordinary tensor that holds its numbers.
    """

    near: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, near: Tensor) -> "_Away":
        layout = {"strides": near.stride(), "storage_offset": near.storage_offset(), "layout": near.layout}
        make = cast(Callable[..., "_Away"], torch.Tensor._make_wrapper_subclass)
        return make(cls, near.size(), dtype=near.dtype, device=torch.device(ELSEWHERE, 0), **layout)

    def __init__(self, near: Tensor) -> None:
        self.near = near

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, *args, **(kwargs or {}))

    # What torch does in C++ for a tensor of a GPU, past the operations above.

    def __getitem__(self, at: Any) -> Tensor:
        return super().__getitem__(_places(at))

    def __setitem__(self, at: Any, value: Any) -> None:
        super().__setitem__(_places(at), value)

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def new_tensor(self, data: Any, **settings: Any) -> Tensor:
        return self.near.new_tensor(data, **settings).to(self.device)

    def data_ptr(self) -> int:
        return self.near.data_ptr()

    def untyped_storage(self) -> Any:
        return self.near.untyped_storage()

    def numpy(self, **options: Any) -> Any:
        raise TypeError(f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() first.")

    def __array__(self, dtype: Any = None) -> Any:
        return self.numpy()


def _places(at: Any) -> Any:
    def one(place: Any) -> Any:
        return torch.as_tensor(place) if isinstance(place, list) else place

    return tuple(map(one, at)) if isinstance(at, tuple) else one(at)


def _run(func: Any, *args: Any, **named: Any) -> Any:
    """Any operation: on the ordinary tensors, its result put where it belongs."""
    schema = func._schema
    leaves, _ = tree_flatten((args, named))
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    away = any(isinstance(tensor, _Away) for tensor in tensors)
    others = any(not isinstance(tensor, _Away) and tensor.dim() for tensor in tensors)
    if away and others and schema.name not in _ACROSS:
        raise RuntimeError(f"Expected all tensors to be on the same device, but found two, in {schema.name}")
    asked = next((leaf for leaf in leaves if isinstance(leaf, torch.device)), None)
    here, settings = tree_map(_near, (args, named))
    result = func(*here, **settings)
    if schema.is_mutable:
        given = [*zip(schema.arguments, args, strict=False)]
        given += [(one, named[one.name]) for one in schema.arguments if one.name in named]
        written = [value for one, value in given if one.alias_info is not None and one.alias_info.is_write]
        return written[0] if len(schema.returns) == 1 else tuple(written) if schema.returns else None
    stays = away if asked is None else asked.type == ELSEWHERE
    return tree_map(lambda one: _Away(one) if isinstance(one, Tensor) else one, result) if stays else result


def _near(leaf: Any) -> Any:
    if isinstance(leaf, torch.device):
        return torch.device("cpu")
    return leaf.near if isinstance(leaf, _Away) else leaf


@contextmanager
def elsewhere() -> Iterator[None]:
    """While it lasts, tensors can be made on and moved to the device `ELSEWHERE`."""
    if not _registered:
        _setup_privateuseone_for_python_backend(ELSEWHERE)
        _registered.append(torch.library.Library("_", "IMPL"))
        _registered[0].fallback(_run, "PrivateUse1")
        _device_constructors()  # knows `torch.tensor` by what it is before it is replaced
    make = torch.tensor

    def tensor(data: object, *, device: Any = None, **settings: Any) -> Tensor:
        made = make(data, **settings)
        return made if device is None else made.to(device)

    # The one constructor that doesn't go through an operation of the backend.
    with patch.object(torch, "tensor", tensor):
        yield
