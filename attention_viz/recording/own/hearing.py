"""Computes a thread's torch attention by our function.

Torch calls a thread's modes before its functions (`torch.overrides.TorchFunctionMode`): nothing is changed, other
threads aren't affected, and torch skips its fast paths, which would hide attention.
"""

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from attention_viz.errors import UnsupportedModel
from attention_viz.operation.attention import Attention
from attention_viz.recording.as_written import COMPILER, has_compiled
from attention_viz.recording.interception.inside_torch import signature, with_inside
from attention_viz.recording.own.heard import Against, HeardCall, SdpaArguments, empty_rows, off_by

COMPILED = (
    "a module was compiled while record() was open, so it can't be recorded; run it without torch.compile, or once "
    "before record()"
)

_ASKED = "scaled_dot_product_attention"
# Kernels that somebody calls by hand, past the functions that are known here.
_KERNELS = (
    "_scaled_dot_product",
    "_flash_attention",
    "_efficient_attention",
    "_native_multi_head",
    "_transformer_encoder_layer",
    "_triton_",
)


class Hearing(TorchFunctionMode):
    """Mode that passes attention calls to `hear`, and other softmaxes to `softmax`."""

    def __init__(self, hear: Callable[[HeardCall], None], softmax: Callable[[str], None]) -> None:
        """Keep the callbacks."""
        super().__init__()
        self._hear, self._softmax = hear, softmax
        self._stands_back = COMPILER in sys.modules

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run torch's function, or ours for attention."""
        if not self._stands_back and has_compiled():
            raise UnsupportedModel(COMPILED)
        named, name = dict(kwargs or {}), getattr(func, "__name__", "")
        if func is functional.multi_head_attention_forward:
            return self._many_heads(func, args, named)
        if name == _ASKED:
            return self._one_call(func, args, named)
        if name.startswith(_KERNELS):
            raise UnsupportedModel(
                f"{_Asking.now().kind} calls torch's kernel {name} itself, which returns no weights; call "
                "torch.nn.functional.scaled_dot_product_attention"
            )
        if name == "softmax" and args and isinstance(args[0], Tensor) and args[0].ndim > 2:
            self._softmax(f"{_Asking.now().kind} over {tuple(args[0].shape)}")
        return func(*args, **named)

    def _one_call(self, func: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Tensor:
        asking = _Asking.now()
        if asking.root is None and asking.ours:
            return func(*args, **named)  # our own arithmetic on a record, which no module asked for
        asked = SdpaArguments(*args, **named)
        asked.check(asking.kind)
        with _deaf():  # else a block around this one would hear it, too
            with torch.no_grad():
                theirs = func(*args, **named)
            attention = asked.attention()
            ours = attention.output
            self._keep(asked, asking, None, (), off_by(ours, theirs, empty_rows(attention)))
        return _with_its_nan(ours, theirs)

    def _many_heads(self, func: Any, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Tensor, Tensor | None]:
        """Run torch's multi-head attention, with its projections, masks and added keys, around our call."""
        asking = _Asking.now()
        call = signature(func).bind(*args, **named)
        call.apply_defaults()
        given = call.arguments
        if given["training"] and given["dropout_p"]:
            SdpaArguments(given["query"], given["key"], given["value"], dropout_p=given["dropout_p"]).check(asking.kind)
        calls: list[tuple[SdpaArguments, Attention]] = []

        def ours(*parts: Any, **others: Any) -> Tensor:
            asked = SdpaArguments(*parts, **others)
            asked.check(asking.kind)
            calls.append((asked, asked.attention()))
            return calls[-1][1].output

        weighted, batched = given["need_weights"], given["query"].dim() == 3
        # Torch's way of handing out weights computes them itself, and there a hint of causality doesn't replace a mask.
        inner = {**given, "need_weights": False, "is_causal": given["is_causal"] and not weighted}
        with _deaf():
            output, _ = with_inside(func, **{_ASKED: ours})(**inner)
            ((asked, attention),) = calls
            with torch.no_grad():
                theirs = func(*args, **named)
            average = given["average_attn_weights"]
            weights = _handed_out(attention, average=average, batched=batched) if weighted else None
            against = _against(output, weights, theirs, attention, batched=batched)
            crossing = not (_same(given["query"], given["key"]) and given["static_k"] is None)
            extra = ("[bias]",) * (given["bias_k"] is not None) + ("[zero]",) * bool(given["add_zero_attn"])
            self._keep(asked, asking, crossing, extra, against)
            if weights is not None and theirs[1] is not None:
                weights = _with_its_nan(weights, theirs[1])
            return _with_its_nan(output, theirs[0]), weights

    def _keep(
        self, asked: SdpaArguments, asking: "_Asking", crossing: bool | None, extra: tuple[str, ...], against: Against
    ) -> None:
        kept = asked.kept()
        places = asking.kind, asking.path, asking.outermost
        self._hear(HeardCall(kept, kept.attention(), *places, crossing, extra, against))


def _deaf() -> AbstractContextManager[None]:
    return torch._C.DisableTorchFunction()  # pyright: ignore[reportPrivateUsage] -- torch's documents name it


@dataclass(frozen=True, eq=False)
class _Asking:
    """The caller of torch.

    Attributes:
        root: the outermost running module, if any.
        kind: the innermost module's class, or the function's name.
        path: the innermost module's name inside the outermost.
        ours: whether our own function called.
    """

    root: nn.Module | None
    kind: str
    path: str
    ours: bool

    @classmethod
    def now(cls) -> "_Asking":
        """Find the caller on this thread's stack."""
        frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] -- the only way to ask
        while frame is not None and frame.f_globals.get("__name__") == __name__:
            frame = frame.f_back
        function = "" if frame is None else frame.f_code.co_name
        ours = frame is not None and str(frame.f_globals.get("__name__")).startswith("attention_viz.")
        found: list[nn.Module] = []
        while frame is not None:
            one = frame.f_locals.get("self")
            # What torch.compile puts around a module is none of its author's.
            if isinstance(one, nn.Module) and not hasattr(one, "_orig_mod"):
                found.append(one)
            frame = frame.f_back
        if not found:
            return cls(None, function, "", ours)
        path = next((name for name, module in found[-1].named_modules() if module is found[0]), "")
        return cls(found[-1], type(found[0]).__name__, path, ours)

    @property
    def outermost(self) -> str:
        """The outermost class, or the function's name."""
        return self.kind if self.root is None else type(self.root).__name__


def _handed_out(attention: Attention, *, average: bool, batched: bool) -> Tensor:
    """Return the weights in the shape of torch's module."""
    weights = attention.weights.mean(dim=1) if average else attention.weights
    return weights if batched else weights[0]


def _with_its_nan(ours: Tensor, theirs: Tensor) -> Tensor:
    """Return our numbers, with torch's NaN."""
    nan = theirs.isnan()
    return torch.where(nan, theirs, ours) if bool(nan.any()) else ours


def _against(
    output: Tensor, weights: Tensor | None, theirs: tuple[Tensor, Tensor | None], attention: Attention, *, batched: bool
) -> Against:
    """Compare output and weights around our call with torch's own."""
    empty = empty_rows(attention)  # (batch, head, query)
    # In a row of the output all heads are mixed.
    of_output = None if empty is None else empty.any(dim=1).T if batched else empty.any(dim=1)[0]
    found = off_by(output, theirs[0], of_output)
    if weights is None or theirs[1] is None:
        return found
    averaged = weights.ndim == (3 if batched else 2)
    by_row = None if empty is None else empty.any(dim=1) if averaged else empty
    by_row = by_row if by_row is None or batched else by_row[0]
    return replace(found, error=max(found.error, off_by(weights, theirs[1], by_row).error))


def _same(one: Tensor, other: Tensor) -> bool:
    """Return whether tensors share memory and layout."""
    return one is other or (
        one.data_ptr() == other.data_ptr() and one.shape == other.shape and one.stride() == other.stride()
    )
