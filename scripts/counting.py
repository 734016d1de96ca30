"""Count attention in a model's plain run, by means of its own, and find what a trace neither has nor names.

A mode hears torch's attention functions, and each softmax of a product of two tensors whose result is multiplied again.
It shares no code with the recorder. Each row of each head counts, so a missing call or head shows.
"""

import re
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

import attention_viz as av
from attention_viz.models.model import AttentionModel

__all__ = ["counted", "unaccounted"]

_ATTENDING = ("scaled_dot_product_attention",)
_WHOLE = ("multi_head_attention_forward", "_native_multi_head_attention")
_PRODUCTS = ("matmul", "__matmul__", "bmm", "baddbmm", "einsum")
_SOFTMAX = ("softmax",)
# What comes of these has no cells of queries and keys any more.
_ENDS = ("linear", "layer_norm", "conv1d", "conv2d", "embedding")
_TAG = "_counted_as"


class _Counting(TorchFunctionMode):
    """Hears the rows of each attention, by the name of the module that runs."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.rows = Counter[str]()
        self.running = [""]
        self._fixed = {one.untyped_storage().data_ptr() for one in model.parameters()}
        self._taken = set[object]()
        self._last: tuple[object, Tensor, Tensor] | None = None

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named, name = kwargs or {}, getattr(func, "__name__", "")
        result = func(*args, **named)
        tensors = list(_tensors((*args, *named.values())))
        tags = [tag for one in tensors if (tag := getattr(one, _TAG, None)) is not None]
        if name in _ATTENDING:
            self._hear(tensors[0], tensors[1], tensors[0].shape[:-1].numel())
        elif name in _WHOLE:
            # The whole numbers after the tensors are the width and the heads.
            heads = [one for one in args if type(one) is int][1:2]
            self.rows[self.running[-1]] += tensors[0].shape[:-1].numel() * (heads[0] if heads else 1)
        elif name in _PRODUCTS and len(tensors) > 1:
            weights = next((tag for tag in tags if tag[0] == "weights"), None)
            if weights is not None:
                self._count(weights)
            elif not any(one.untyped_storage().data_ptr() in self._fixed for one in tensors[-2:]):
                _set(result, ("product", id(tensors[-2]), id(tensors[-1]), tensors))
        elif tags and name not in _ENDS and not isinstance(result, int | float | bool):
            if name in _SOFTMAX and tags[0][0] == "product":
                count = result.numel() // max(result.shape[-1], 1)
                _set(result, ("weights", self.running[-1], count, object()))
            else:
                _set(result, next((tag for tag in tags if tag[0] == "weights"), tags[0]))
        return result

    def _hear(self, query: Tensor, key: Tensor, count: int) -> None:
        """Count a call of torch's attention, but its second half of values only once."""
        same = (self.running[-1], query.data_ptr(), key.data_ptr(), query.shape, query._version)
        if self._last is None or same != self._last[0]:
            self.rows[self.running[-1]] += count
        self._last = same, query, key  # kept, so that no other tensor takes their place in memory

    def _count(self, weights: tuple[str, str, int, object]) -> None:
        if weights not in self._taken:
            self._taken.add(weights)
            self.rows[weights[1]] += weights[2]


def _tensors(values: Iterable[Any]) -> Iterable[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, tuple | list):
            yield from _tensors(value)


def _set(result: Any, tag: object) -> None:
    for one in _tensors((result,)):
        if not isinstance(one, nn.Parameter):
            setattr(one, _TAG, tag)


@contextmanager
def _named(model: nn.Module, running: list[str]) -> Generator[None]:
    """Keep the names of the modules that run, innermost last."""

    def begin(name: str) -> Callable[..., None]:
        def enter(*_: object) -> None:
            running.append(name)

        return enter

    def end(*_: object) -> None:
        running.pop()

    handles = [
        handle
        for name, module in model.named_modules()
        for handle in (module.register_forward_pre_hook(begin(name)), module.register_forward_hook(end))
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def counted(model: nn.Module, inputs: Mapping[str, Tensor], settings: Mapping[str, bool]) -> Counter[str]:
    """Run a model plainly, and return the rows of its attention by module."""
    counting = _Counting(model)
    with _named(model, counting.running), torch.no_grad(), counting:
        model(**inputs, **settings)
    return counting.rows


def unaccounted(wrapped: AttentionModel, trace: av.Trace, inputs: Mapping[str, Tensor]) -> str:
    """Return which attention of the plain run a trace neither has nor names; "" if none."""
    runner, anatomy = wrapped.runner, wrapped.anatomy
    paths = {id(module): name for name, module in runner.model.named_modules()}
    recorded = Counter[str]()
    modules = {
        (stream, int(number)): one for (stream, number), one in zip(anatomy.places, anatomy.modules, strict=True)
    }
    for stream, layers in trace.layers.items():
        for number, layer in zip(trace.layer_numbers(stream), layers, strict=True):
            heads, queries, _ = layer.attention.shape
            recorded[paths[id(modules[stream, number])]] += heads * queries
    there, left_out = Counter[str](), " ".join((*wrapped.left_out, *trace.provenance.left_out))
    for path, rows in counted(runner.model, runner.inputs(inputs), runner.settings).items():
        parts = path.split(".")
        around = [".".join(parts[:length]) for length in range(len(parts), -1, -1)]
        own = next((one for one in around if one in recorded), None)
        if own is not None:
            there[own] += rows
        elif path not in left_out and re.sub(r"\d+", "*", path) not in left_out:
            return f"its plain run attends in {path or 'its own forward'}, which the trace neither has nor names"
    # Sparse attention fills a text up to whole windows, blocks or buckets.
    filled = bool(runner.switch.plan.sparse)
    for path, rows in there.items():
        if rows < recorded[path] or (rows > recorded[path] and not filled):
            return f"its plain run attends in {rows} rows of heads in {path}, and the trace has {recorded[path]}"
    return ""
