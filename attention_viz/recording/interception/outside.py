"""Hears attention outside our function, and decides whether a trace may omit it.

A dispatch mode sees operations after torch has taken its functions apart, so nothing hides attention. Attention in
recorded streams' layers, or over as many positions as a recorded call, is refused; other, such as a pooling head,
named.
"""

import functools
import re
import sys
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any, cast

from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from attention_viz.errors import UnsupportedModel
from attention_viz.recording.interception.plan import computing

if TYPE_CHECKING:
    from attention_viz.recording.runner import Pass

SOFTMAX, MANY, FUSED = "a softmax of products", "torch's MultiheadAttention", "torch's scaled_dot_product_attention"
# What a plan may follow.
FOLLOWED = (SOFTMAX, MANY, FUSED)

_MARK = "_attention_viz_outside"
# Operations by their names: those that multiply two tensors, with what is added to the product first or last,
_PRODUCTS = frozenset("mm bmm mv matmul linear einsum inner tensordot _cdist_forward".split())
_ADDING = frozenset("addmm baddbmm addbmm addmv".split())
# those that make weights of a product; a softmax may be written out by `exp`,
_SOFTMAXES = frozenset("softmax _softmax _safe_softmax _masked_softmax log_softmax _log_softmax exp exp_ exp2".split())
# and those whose result no longer holds the product's cells.
_ENDS = frozenset("embedding convolution conv1d conv2d conv3d native_layer_norm native_group_norm".split())
# Whatever attends inside one operation says so in its name: torch's kernels, and those of other packages.
_KERNEL = re.compile(r"attention|attn|transformer_encoder_layer", re.IGNORECASE)
_IN_WORDS = (
    ("_transformer_encoder_layer", "torch's TransformerEncoderLayer"),
    ("_native_multi_head_attention", MANY),
    ("scaled_dot_product", FUSED),
    ("flex_attention", "torch's flex_attention"),
)
# Kernels with positions as the last axis but one.
_ROWS_BEFORE_WIDTH = ("scaled_dot_product", "_native_multi_head_attention", "flex_attention")
_NAMED = 3  # modules in a refusal
# Other ways to mix positions, by torch's modules for them.
_WITHOUT = {
    "convolutions": (nn.Conv1d, nn.Conv2d, nn.Conv3d),
    "recurrent layers": (nn.RNNBase,),
    "pooling": (nn.AvgPool1d, nn.AvgPool2d, nn.MaxPool1d, nn.MaxPool2d),
}


class ElsewhereError(UnsupportedModel):
    """Raised if attention runs outside the interface."""


@dataclass(frozen=True)
class OutsideCall:
    """One attention call outside our function.

    Attributes:
        path: the module's name; "" for the model.
        by: its operation, in words.
        shape: numbers of queries and keys, if known.
        apart: how many times these attend apart, in the last axis before; 0 if unknown.
    """

    path: str
    by: str
    shape: tuple[int, int] | None
    apart: int = 0

    def is_of_each(self, counts: Collection[int]) -> bool:
        """Return whether each position attends by itself, over anything but positions, such as earlier layers."""
        return self.shape is not None and self.apart in counts and not {*self.shape} & {*counts}

    @property
    def where(self) -> str:
        """The module's name, or words for the model itself."""
        return self.path or "the model's own forward"


@dataclass(eq=False)
class _Mark:
    """A tensor's origin: fixed numbers, a product, or weights made of one."""

    kind: str
    shape: tuple[int, int] = (0, 0)
    by: str = ""
    counted: bool = False


_FIXED = _Mark("fixed")


class _Outside(TorchDispatchMode):
    """Hears every operation of a thread."""

    # Else torch refuses to run `flex_attention` while this mode is open.
    supports_higher_order_operators = True

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.found: list[OutsideCall] = []
        self._paths = {id(module): path for path, module in model.named_modules()}
        self._own = {id(one): one for one in (*model.parameters(), *model.buffers())}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run one operation and mark its result."""
        result = func(*args, **kwargs) if kwargs else func(*args)
        if computing():
            return result
        kind, name = _kind(func)
        given = _tensors((*args, *kwargs.values()) if kwargs else args)
        marks = [self._mark(one) for one in given]
        if kind == "kernel":
            self._count(*_kernel(name, given))
        elif kind == "product":
            factors = marks[1:3] if name in _ADDING else marks[:2]
            _set(result, self._multiplied(result, factors))
        elif kind != "end" and any(marks):
            _set(result, self._made_of(name, kind, result, given, marks))
        return result

    def _mark(self, tensor: Tensor) -> _Mark | None:
        if id(tensor) in self._own or (type(tensor) is not Tensor and isinstance(tensor, nn.Parameter)):
            return _FIXED
        return getattr(tensor, _MARK, None)

    def _multiplied(self, result: Any, marks: Sequence[_Mark | None]) -> _Mark | None:
        """Return a product's mark; with weights it counts as attention."""
        weights = next((mark for mark in marks if mark is not None and mark.kind == "weights"), None)
        if any(mark is _FIXED for mark in marks) or len(marks) < 2:
            return weights
        if weights is None:
            shape = tuple(result.shape[-2:]) if isinstance(result, Tensor) else ()
            return _Mark("product", (shape[0], shape[1])) if len(shape) == 2 else None
        if not weights.counted:
            weights.counted = True
            self._count(weights.by, weights.shape)
        return None

    def _made_of(
        self, name: str, kind: str, result: Any, given: Sequence[Tensor], marks: Sequence[_Mark | None]
    ) -> _Mark | None:
        """Return the mark of any other operation's result."""
        if all(mark is _FIXED for mark in marks):
            return _FIXED
        weights = next((mark for mark in marks if mark is not None and mark.kind == "weights"), None)
        if weights is not None:
            # Weights that are spread over something larger, as a router's over its experts' outputs, are taken.
            source = given[marks.index(weights)]
            return None if isinstance(result, Tensor) and result.numel() > source.numel() else weights
        product = next((mark for mark in marks if mark is not None and mark.kind == "product"), None)
        if product is None or kind != "softmax":
            return product
        by = FUSED if name == "_safe_softmax" else SOFTMAX
        return _Mark("weights", product.shape, by)

    def _count(self, by: str, shape: tuple[int, int] | None, apart: int = 0) -> None:
        module, path = self._module()
        if isinstance(module, nn.MultiheadAttention):
            by = MANY
        self.found.append(OutsideCall(path, by, shape, apart))

    def _module(self) -> tuple[nn.Module | None, str]:
        """Return the innermost running module and its name."""
        frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] -- the only way to ask
        while frame is not None:
            one = frame.f_locals.get("self")
            if isinstance(one, nn.Module) and id(one) in self._paths:
                return one, self._paths[id(one)]
            frame = frame.f_back
        return None, ""


@contextmanager
def outside_calls(model: nn.Module) -> Generator[list[OutsideCall]]:
    """Hear attention outside our function in this thread."""
    with _Outside(model) as outside:
        yield outside.found


@dataclass(eq=False)
class OutsideListener:
    """Hears outside attention once per kind and size of inputs.

    Longer texts or images may run differently. Findings are cached, so that refusals repeat; below a size with none
    (`_silent`) there are none.
    """

    _silent: dict[frozenset[str], int] = field(default_factory=dict[frozenset[str], int])
    _heard: dict[tuple[frozenset[str], int], Sequence[OutsideCall]] = field(default_factory=dict[Any, Any])

    @contextmanager
    def listening(self, model: nn.Module, inputs: Mapping[str, Tensor]) -> Generator[Sequence[OutsideCall]]:
        """Hear outside attention, or return cached findings."""
        kind, size = frozenset(inputs), sum(one.numel() for one in inputs.values())
        if size <= self._silent.get(kind, 0) or (kind, size) in self._heard:
            yield self._heard.get((kind, size), ())
            return
        with outside_calls(model) as found:
            yield found
        if found:
            self._heard[kind, size] = found
        else:
            self._silent[kind] = size


def parts_left_out(
    model: nn.Module,
    outside: Sequence[OutsideCall],
    recorded: "Pass",
    family: str,
    shapes: Iterable[tuple[int, ...]] | None = None,
) -> tuple[str, ...]:
    """Name attention beside the recorded streams per kind of module; refuse attention in them.

    Args:
        shapes: the calls' queries and keys; None if the record keeps all of these.
    """
    if not outside:
        return ()
    paths = {id(module): path for path, module in model.named_modules()}
    modules = (*recorded.modules, *(call.module for call in recorded.mixers))
    layers = {_layers(paths.get(id(module), "")) for module in modules} - {""}
    shapes = {tuple(call.attention.shape[1:]) for call in recorded.calls} if shapes is None else {*shapes}
    shapes = shapes or {call.mixer.shape[1:] for call in recorded.mixers}
    counts = {count for shape in shapes for count in shape}
    inside = [one for one in outside if _layers(one.path) in layers or one.shape in shapes]
    missing = [one for one in inside if not one.is_of_each(counts)]
    if missing:
        raise UnsupportedModel(refusal_of(model, family, missing))
    kinds = dict[tuple[str, str], list[str]]()
    for one in outside:
        kinds.setdefault((re.sub(r"\d+", "*", one.where), one.by), []).append(one.where)
    return tuple(_named(pattern, by, dict.fromkeys(alike)) for (pattern, by), alike in kinds.items())


def refusal_of(model: nn.Module, family: str, missing: Sequence[OutsideCall]) -> str:
    """Say where a model attends outside ours, if it attends."""
    if not missing:
        mixing = [words for words, kinds in _WITHOUT.items() if any(isinstance(one, kinds) for one in model.modules())]
        instead = f"has {' and '.join(mixing)}, but " if mixing else ""
        return f"can't record {family}: it {instead}computes no attention, softmax(QKᵀ)V; use a model that does"
    means = dict[str, list[str]]()
    for one in missing:
        means.setdefault(one.by, []).append(one.where)
    said = list[str]()
    for by, places in means.items():
        several = list(dict.fromkeys(places))
        more = f" and {len(several) - _NAMED} more modules" if len(several) > _NAMED else ""
        said.append(f"in {', '.join(several[:_NAMED])}{more} by {by}")
    return (
        f"can't record {family}: it attends {' and '.join(said)}, outside transformers' attention interface; use a "
        "model whose attention all goes through it"
    )


def _named(pattern: str, by: str, alike: Mapping[str, object]) -> str:
    return f"{next(iter(alike)) if len(alike) == 1 else f'{len(alike)} modules {pattern}'} (by {by})"


def _layers(path: str) -> str:
    """Return a module's list, such as "model.layers"; "" for none."""
    parts = path.split(".")
    number = next((at for at, part in enumerate(parts) if part.isdigit()), 0)
    return ".".join(parts[:number])


@functools.cache
def _kind(func: Any) -> tuple[str, str]:
    whole = str(func)
    name = whole.split(".")[1] if "." in whole else whole
    if name in _PRODUCTS or name in _ADDING:
        return "product", name
    if name in _SOFTMAXES or whole.startswith("aten.pow.Scalar"):
        return "softmax", name
    # What is left that multiplies matrices does so with packed or quantized ones, which are the model's own.
    if name in _ENDS or name.endswith("mm"):
        return "end", name
    return ("kernel" if _KERNEL.search(name) else "", name)


def _kernel(name: str, given: Sequence[Tensor]) -> tuple[str, tuple[int, int] | None, int]:
    """Return a kernel in words, its numbers of queries and keys, and how many attend apart; 0 if unknown."""
    by = next((words for part, words in _IN_WORDS if part in name), f"the operation {name}")
    query, key = (given[0], given[0 if "encoder_layer" in name else 1]) if len(given) > 1 else (None, None)
    known = "encoder_layer" in name or any(part in name for part in _ROWS_BEFORE_WIDTH)
    if not known or query is None or key is None or query.is_nested or min(query.ndim, key.ndim) < 2:
        return by, None, 0
    return by, (query.shape[-2], key.shape[-2]), query.shape[-3] if query.ndim > 3 else 0


def _tensors(values: Iterable[Any]) -> list[Tensor]:
    found = list[Tensor]()
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, tuple | list):
            found += _tensors(cast("Sequence[Any]", value))
    return found


def _set(result: Any, mark: _Mark | None) -> None:
    for tensor in _tensors((result,)):
        if not isinstance(tensor, nn.Parameter) and (mark is not None or hasattr(tensor, _MARK)):
            setattr(tensor, _MARK, mark)
            # A slice's mark is the whole's.
            if mark is not None and mark is not _FIXED and (whole := tensor._base) is not None:
                setattr(whole, _MARK, mark)
