"""Hear the token mixers of a pass, where the model calls their kernels.

A model's code looks a kernel up in its own module each time, or calls a method or a submodule of its layer. In a module
or a class, a listener replaces the kernel for good; submodules get hooks for the pass. All of them ask a context
variable whether to hear, so that threads can share a model.
"""

import functools
import inspect
import threading
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from attention_viz.edits.edit import Edit, edited_mixer
from attention_viz.errors import UnsupportedModel
from attention_viz.operation.terms import map_terms
from attention_viz.operation.token_mixer import TokenMixer
from attention_viz.recording.mixers.kernels import KERNELS, Kernel, first_of, fourier, lightning, mlstm
from attention_viz.recording.recorder import in_a_batch, of_row
from attention_viz.trace.layers import MIXER

__all__ = ["CONVOLUTION", "MixerCall", "MixerRecorder", "edited_mixers", "heard_mixers", "mixing_modules"]

_installing = threading.Lock()
_LISTENER = "_attention_viz_listener"
# Most layers run a short convolution before their kernel; it is the mixer only of layers that call nothing else.
CONVOLUTION = "causal_conv1d_fn"
# The submodules that mix tokens in code of their own, by what their layers are made of.
_LIGHTNING = ("qkv_proj", "act_fn", "norm", "slope_rate", "num_attention_heads")


@dataclass(frozen=True, eq=False)
class MixerCall:
    """One call of a kernel: its layer, its terms, and both outputs in the kernel's layout."""

    module: nn.Module
    mixer: TokenMixer
    own_output: Tensor
    shape_as: Callable[[Tensor], Tensor]
    stream: str = ""
    label: str = ""
    matrix_error: float | None = None

    @property
    def output(self) -> Tensor:
        """Our output, in the layout and precision of the kernel's."""
        return self.shape_as(self.mixer.output).to(self.own_output.dtype)

    @property
    def error(self) -> float:
        """The largest difference from the kernel: of the output, and of the matrix if it was compared."""
        with torch.no_grad():
            largest, apart = float(self.own_output.abs().max()), float((self.output - self.own_output).abs().max())
        return max(apart / largest if largest else apart, self.matrix_error or 0.0)

    def of_row(self, row: int = 0) -> TokenMixer:
        """Return a row's mixer, head first; parameters are copied, since training changes them."""
        return map_terms(self.mixer, lambda term, value: of_row(term, value, row))


@dataclass(eq=False)
class MixerRecorder:
    """Records one pass's token mixers in order, and applies its edits.

    Attributes:
        labels: each layer's number, as text.
        attending: the layers with softmax attention, which edits without a stream mean.
        proves: whether each kernel also runs on values of one token at a time, which shows its own matrix.
        computes: whether our operation's output goes on into the model in place of the kernel's.
        entered: the layers whose forward is running, with their inputs.
        held: what a layer made before its mixer, by layer.
        heard: each call's layer so far.
    """

    labels: Mapping[nn.Module, str] = field(default_factory=dict[nn.Module, str])
    edits: Sequence[Edit] = ()
    attending: Collection[int] = ()
    proves: bool = False
    computes: bool = False
    calls: list[MixerCall] = field(default_factory=list[MixerCall])
    entered: list[tuple[nn.Module, tuple[Any, ...]]] = field(default_factory=list[tuple[nn.Module, tuple[Any, ...]]])
    held: dict[nn.Module, Tensor] = field(default_factory=dict[nn.Module, Tensor])
    heard: list[nn.Module] = field(default_factory=list[nn.Module])

    def placed(self, call: MixerCall) -> MixerCall:
        """Return the call with its layer's number, and its stream by the calls of that layer so far."""
        label = self.labels.get(call.module, "")
        before = sum(self.labels.get(one, "") == label for one in self.heard)
        self.heard.append(call.module)
        return replace(call, label=label, stream=MIXER if not before else f"{MIXER} {before + 1}")

    def hear(self, call: MixerCall) -> Tensor:
        """Record a call; return the output that the model continues with."""
        call = self.placed(call)
        label = call.label
        own, computes = call.of_row() if self.edits and label.isdigit() else None, self.computes
        if own is not None:
            mixer = edited_mixer(self.edits, (call.stream, int(label)), own, self.attending)
            computes |= mixer is not own
            call = replace(call, mixer=map_terms(mixer, in_a_batch)) if mixer is not own else call
        self.calls.append(call)
        return call.output if computes else call.own_output

    def hear_kernel(self, name: str, kernel: Kernel, arguments: Mapping[str, Any], run: Callable[..., Any]) -> Any:
        """Record a kernel's call; return its result, with our output in it if `computes`."""
        kernel.check(name, arguments)
        if not self.entered:
            raise UnsupportedModel(f"{name} was called outside of a layer's forward, so its layer is unknown")
        module, inputs = self.entered[-1]
        terms = {"activations": next(iter(inputs), None), **arguments}
        # The kernel may write into its arguments.
        mixer, result = kernel.call(terms), run()
        call = MixerCall(module, mixer, first_of(result), lambda output: kernel.shape_as(output, terms))
        if self.proves:
            call = replace(call, matrix_error=kernel.matrix_error(mixer, terms, run))
        return _with_first(result, self.hear(call))


def _with_first(result: Any, output: Tensor) -> Any:
    """Return a kernel's result with another output in it."""
    return (output, *result[1:]) if isinstance(result, tuple) else output


_hearing: ContextVar[MixerRecorder | None] = ContextVar("hearing_mixers", default=None)


def mixing_modules(model: nn.Module) -> dict[nn.Module, tuple[str, ...]]:
    """Return the modules that mix tokens without a softmax, with the names of their kernels."""
    found = {module: (*_called_by(type(module)), *_hooked_in(module)) for module in model.modules()}
    return {module: names for module, names in found.items() if names}


@contextmanager
def heard_mixers(mixing: Collection[nn.Module], recorder: MixerRecorder) -> Generator[None]:
    """Record the token mixers of these `mixing_modules` in the passes inside."""
    for kind in {type(module) for module in mixing}:
        _install(kind)
    hooks = [hook for module in mixing for hook in (*_mark(module), *_hook(module))]
    token = _hearing.set(recorder)
    try:
        yield
    finally:
        _hearing.reset(token)
        for hook in hooks:
            hook.remove()


def edited_mixers(
    mixing: Mapping[nn.Module, str], edits: Sequence[Edit], places: Sequence[tuple[str, int]]
) -> AbstractContextManager[None]:
    """Apply edits to the token mixers of the passes inside, unless a recorder hears them already."""
    if not edits or not mixing or _hearing.get() is not None:
        return nullcontext()
    return heard_mixers(mixing, MixerRecorder(mixing, edits, frozenset(number for _, number in places)))


def _mark(module: nn.Module) -> Iterator[RemovableHandle]:
    """Let the recorder of this thread know whose forward is running."""

    def enter(entered: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        if (recorder := _hearing.get()) is not None:
            recorder.entered.append((entered, (*inputs, *named.values())))

    def leave(*_: object) -> None:
        if (recorder := _hearing.get()) is not None and recorder.entered:
            recorder.entered.pop()

    yield module.register_forward_pre_hook(enter, with_kwargs=True)
    yield module.register_forward_hook(leave, always_call=True)


@functools.cache
def _called_by(kind: type[nn.Module]) -> tuple[str, ...]:
    """Return the kernels that a class's methods name and that its module, or the class itself, has."""
    names = dict[str, None]()
    for method in vars(kind).values():
        code = getattr(inspect.unwrap(method), "__code__", None) if callable(method) else None
        if code is not None:
            names |= dict.fromkeys(name for name in code.co_names if name in KERNELS)
    found = [name for name in names if name in _namespace(kind) or name in vars(kind)]
    return tuple(name for name in found if name != CONVOLUTION or len(found) == 1)


def _namespace(kind: type[nn.Module]) -> dict[str, Any]:
    return getattr(inspect.unwrap(kind.forward), "__globals__", {})


def _install(kind: type[nn.Module]) -> None:
    with _installing:
        for name in _called_by(kind):
            of_class = name in vars(kind)
            kernel = vars(kind)[name] if of_class else _namespace(kind)[name]
            if hasattr(kernel, _LISTENER):
                continue
            if of_class:
                setattr(kind, name, _listener(name, kernel, inspect.signature(kernel)))
            elif inspect.isclass(kernel):
                _namespace(kind)[name] = _Applied(name, kernel)
            else:
                _namespace(kind)[name] = _listener(name, kernel, _signature_of(kernel))


def _signature_of(kernel: Any) -> inspect.Signature:
    """Return a function's signature, or of a module that `kernels` made of one that of its class's forward."""
    return _without_first(type(kernel).forward) if isinstance(kernel, nn.Module) else inspect.signature(kernel)


def _without_first(function: Callable[..., Any]) -> inspect.Signature:
    """Return a signature without its first parameter, which the caller doesn't pass."""
    signature = inspect.signature(function)
    return signature.replace(parameters=[*signature.parameters.values()][1:])


def _listener(name: str, kernel: Callable[..., Any], signature: inspect.Signature) -> Callable[..., Any]:
    """Return the listener that replaces a kernel."""

    def listen(*arguments: Any, **named: Any) -> Any:
        recorder = _hearing.get()
        if recorder is None:
            return kernel(*arguments, **named)
        values = _bound(signature, arguments, named)
        return recorder.hear_kernel(name, KERNELS[name], values, _repeated(kernel, signature, arguments, named))

    if inspect.isfunction(kernel):
        functools.update_wrapper(listen, kernel)
    setattr(listen, _LISTENER, True)
    return listen


class _Applied:
    """Replaces an autograd function, whose `apply` the model calls."""

    def __init__(self, name: str, kernel: Any) -> None:
        self.apply = _listener(name, kernel.apply, _without_first(kernel.forward))
        setattr(self, _LISTENER, True)


def _bound(signature: inspect.Signature, arguments: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """Return all arguments by name, with defaults, also those that only `**kwargs` takes."""
    bound = signature.bind(*arguments, **named)
    bound.apply_defaults()
    rest = next((one.name for one in signature.parameters.values() if one.kind is one.VAR_KEYWORD), "")
    more = bound.arguments.pop(rest, {})
    return {**bound.arguments, **more}


def _repeated(
    kernel: Callable[..., Any], signature: inspect.Signature, arguments: tuple[Any, ...], named: dict[str, Any]
) -> Callable[..., Any]:
    """Return the same call with some arguments replaced, each as it was passed, since kernels name them differently."""
    places = list(signature.parameters)

    def run(**changes: Any) -> Any:
        given, by_name = list(arguments), dict(named)
        for name, value in changes.items():
            if (place := places.index(name)) < len(given):
                given[place] = value
            else:
                by_name[name] = value
        return kernel(*given, **by_name)

    return run


def _hooked_in(module: nn.Module) -> tuple[str, ...]:
    """Return the kinds of mixer that a module is or has as a submodule, heard by hooks."""
    found = ["lightning"] if all(hasattr(module, name) for name in _LIGHTNING) else []
    found += ["mLSTM"] if isinstance(getattr(module, "mlstm_backend", None), nn.Module) else []
    found += ["Fourier"] if callable(getattr(module, "fourier_transform", None)) else []
    return tuple(found)


def _hook(module: Any) -> Iterator[RemovableHandle]:
    """Hear a mixer that has no function of its own, by what enters and leaves its parts."""
    for kind in _hooked_in(module):
        if kind == "lightning":
            yield module.act_fn.register_forward_hook(_keep(module))
            yield module.norm.register_forward_pre_hook(_lightning_before_norm(module))
        elif kind == "mLSTM":
            yield module.mlstm_backend.register_forward_hook(_mlstm_output(module), with_kwargs=True)
        else:
            yield module.register_forward_hook(_fourier_output)


def _keep(layer: nn.Module) -> Callable[..., None]:
    def keep(_: nn.Module, __: object, output: Tensor) -> None:
        if (recorder := _hearing.get()) is not None:
            recorder.held[layer] = output

    return keep


def _lightning_before_norm(layer: Any) -> Callable[..., Any]:
    def hear(_: nn.Module, inputs: tuple[Any, ...]) -> Any:
        if (recorder := _hearing.get()) is None:
            return None
        mixer = lightning(recorder.held.pop(layer), layer.num_attention_heads, layer.slope_rate)
        call = MixerCall(layer, mixer, inputs[0], lambda output: output.transpose(1, 2).flatten(-2))
        return (recorder.hear(call), *inputs[1:])

    return hear


def _mlstm_output(layer: Any) -> Callable[..., Any]:
    def hear(backend: Any, _: object, named: dict[str, Any], result: Any) -> Any:
        if (recorder := _hearing.get()) is None:
            return None
        if any(named.get(name) is not None for name in ("c_initial", "n_initial", "m_initial")):
            raise UnsupportedModel("the mLSTM starts from a kept state; run the whole text without a cache")
        mixer = mlstm(named, float(backend.config.eps))
        return _with_first(result, recorder.hear(MixerCall(layer, mixer, first_of(result), lambda output: output)))

    return hear


def _fourier_output(module: nn.Module, inputs: tuple[Any, ...], result: tuple[Any, ...]) -> Any:
    if (recorder := _hearing.get()) is None:
        return None
    call = MixerCall(module, fourier(inputs[0]), first_of(result), lambda output: output.sum(dim=-3))
    return _with_first(result, recorder.hear(call))
