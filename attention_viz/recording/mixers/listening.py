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
from typing import Any

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from attention_viz.edits.edit import Edit
from attention_viz.errors import UnsupportedModel
from attention_viz.recording.hooks import HOOKS
from attention_viz.recording.mixers.kernels import KERNELS, first_of, fourier, lightning, mlstm
from attention_viz.recording.mixers.record import HEARING, Entered, MixerCall, MixerRecorder, with_first, without_first

__all__ = [
    "CONVOLUTION",
    "edited_mixers",
    "heard_mixers",
    "hears_mixers",
    "mixing_modules",
]

_installing = threading.Lock()
_LISTENER = "_attention_viz_listener"
# Most layers run a short convolution before their kernel; it is the mixer only of layers that call nothing else.
CONVOLUTION = "causal_conv1d_fn"
# The submodules that mix tokens in code of their own, by what their layers are made of.
_LIGHTNING = ("qkv_proj", "act_fn", "norm", "slope_rate", "num_attention_heads")


def mixing_modules(model: nn.Module) -> dict[nn.Module, tuple[str, ...]]:
    """Return the modules that mix tokens without a softmax, with the names of their kernels."""
    found = {module: (*_called_by(type(module)), *_hooked_in(module)) for module in model.modules()}
    return {module: names for module, names in found.items() if names}


def hears_mixers() -> bool:
    """Return whether this thread records token mixers."""
    return HEARING.get() is not None


@contextmanager
def heard_mixers(mixing: Collection[nn.Module], recorder: MixerRecorder) -> Generator[None]:
    """Record the token mixers of these `mixing_modules` in the passes inside."""
    for kind in {type(module) for module in mixing}:
        _install(kind)
    _take_hooks(mixing)
    token = HEARING.set(recorder)
    try:
        yield
    finally:
        HEARING.reset(token)
        _give_hooks_back(mixing)


# Each module's hooks, and how many passes need them: threads that share a model share its hooks.
_hooks: dict[nn.Module, tuple[list[RemovableHandle], int]] = {}


def _take_hooks(mixing: Collection[nn.Module]) -> None:
    with HOOKS:
        for module in mixing:
            # A mixer that is heard as it leaves its layer must come before the check that it was.
            hooks, count = _hooks.get(module) or ([*_hook(module), *_mark(module)], 0)
            _hooks[module] = hooks, count + 1


def _give_hooks_back(mixing: Collection[nn.Module]) -> None:
    with HOOKS:
        for module in mixing:
            hooks, count = _hooks.pop(module)
            if count > 1:
                _hooks[module] = hooks, count - 1
                continue
            for hook in hooks:
                hook.remove()


def edited_mixers(
    mixing: Mapping[nn.Module, str], edits: Sequence[Edit], places: Sequence[tuple[str, int]]
) -> AbstractContextManager[None]:
    """Apply edits to the token mixers of the passes inside, unless a recorder hears them already."""
    if not edits or not mixing or hears_mixers():
        return nullcontext()
    return heard_mixers(mixing, MixerRecorder(mixing, edits, frozenset(number for _, number in places), keep=()))


def _mark(module: nn.Module) -> Iterator[RemovableHandle]:
    """Let the recorder of this thread know whose forward is running."""

    def enter(entered: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        if (recorder := HEARING.get()) is not None:
            recorder.entered.append(Entered(entered, inputs, named, len(recorder.heard)))

    def check(left: nn.Module, *_: object) -> None:
        if (recorder := HEARING.get()) is not None and left not in recorder.heard[recorder.entered[-1].heard :]:
            where = f"layer {label}" if (label := recorder.labels.get(left, "")) else "a layer"
            raise UnsupportedModel(
                f"{type(left).__name__} of {where} called no kernel that attention_viz can hear, such as "
                f"{', '.join((*_called_by(type(left)), *_hooked_in(left)))}; use the model's own code for it"
            )

    def leave(*_: object) -> None:
        if (recorder := HEARING.get()) is not None and recorder.entered:
            recorder.entered.pop()

    yield module.register_forward_pre_hook(enter, with_kwargs=True)
    yield module.register_forward_hook(check)
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
            # Whatever wraps a listener has its attributes.
            if getattr(kernel, _LISTENER, None) is kernel:
                continue
            if of_class:
                setattr(kind, name, _listener(name, kernel, inspect.signature(kernel)))
            elif inspect.isclass(kernel):
                _namespace(kind)[name] = _Applied(name, kernel)
            else:
                _namespace(kind)[name] = _listener(name, kernel, _signature_of(kernel))


def _signature_of(kernel: Any) -> inspect.Signature:
    """Return a function's signature, or of a module that `kernels` made of one that of its class's forward."""
    return without_first(type(kernel).forward) if isinstance(kernel, nn.Module) else inspect.signature(kernel)


def _listener(name: str, kernel: Callable[..., Any], signature: inspect.Signature) -> Callable[..., Any]:
    """Return the listener that replaces a kernel."""

    def listen(*arguments: Any, **named: Any) -> Any:
        recorder = HEARING.get()
        if recorder is None:
            return kernel(*arguments, **named)
        values = _bound(signature, arguments, named)
        return recorder.hear_kernel(name, KERNELS[name], values, _repeated(kernel, signature, arguments, named))

    if inspect.isfunction(kernel):
        functools.update_wrapper(listen, kernel)
    setattr(listen, _LISTENER, listen)
    return listen


class _Applied:
    """Replaces an autograd function, whose `apply` the model calls."""

    def __init__(self, name: str, kernel: Any) -> None:
        self.apply = _listener(name, kernel.apply, without_first(kernel.forward))
        setattr(self, _LISTENER, self)


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
        if (recorder := HEARING.get()) is not None:
            recorder.held[layer] = output

    return keep


def _lightning_before_norm(layer: Any) -> Callable[..., Any]:
    def hear(_: nn.Module, inputs: tuple[Any, ...]) -> Any:
        if (recorder := HEARING.get()) is None:
            return None
        activated, mask = recorder.held.pop(layer), recorder.entered[-1].input("attention_mask")
        activated = activated if mask is None else activated * mask[..., None].to(activated.dtype)
        mixer = lightning(activated, layer.num_attention_heads, layer.slope_rate)
        call = MixerCall(layer, mixer, inputs[0], lambda output: output.transpose(1, 2).flatten(-2))
        return (recorder.hear(call), *inputs[1:])

    return hear


def _mlstm_output(layer: Any) -> Callable[..., Any]:
    def hear(backend: Any, _: object, named: dict[str, Any], result: Any) -> Any:
        if (recorder := HEARING.get()) is None:
            return None
        if any(named.get(name) is not None for name in ("c_initial", "n_initial", "m_initial")):
            raise UnsupportedModel("the mLSTM starts from a kept state; run the whole text without a cache")
        mixer = mlstm(named, float(backend.config.eps))
        return with_first(result, recorder.hear(MixerCall(layer, mixer, first_of(result), lambda output: output)))

    return hear


def _fourier_output(module: nn.Module, inputs: tuple[Any, ...], result: tuple[Any, ...]) -> Any:
    if (recorder := HEARING.get()) is None:
        return None
    call = MixerCall(module, fourier(inputs[0]), first_of(result), lambda output: output.sum(dim=-3))
    return with_first(result, recorder.hear(call))
