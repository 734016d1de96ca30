"""Find layers that mix tokens by means that no listener hears: their other outputs change with one token's input."""

import inspect
from collections.abc import Callable, Collection, Iterator
from typing import Any, TypeGuard

import torch
from torch import Tensor, nn

from attention_viz.errors import UnsupportedModel
from attention_viz.recording.hooks import hooked

__all__ = ["check_all_heard", "why_silent"]

# The kernel without which transformers' MRA computes nothing.
_MRA = "mra_cuda_kernel"
# A layer's named inputs: how it may be called again.
_Given = tuple[tuple[object, ...], dict[str, object]]


def check_all_heard(family: str, model: nn.Module, heard: Collection[nn.Module], run: Callable[[], object]) -> None:
    """Refuse a model if one of its layers without a heard mixer mixes tokens all the same."""
    silent = dict(_silent_layers(model, heard))
    given = dict[nn.Module, _Given]()

    def hear(module: nn.Module, inputs: tuple[object, ...], named: dict[str, object], _: object) -> None:
        given.setdefault(module, (inputs, named))

    with hooked(silent, hear):
        run()
    mixing = [silent[layer] for layer, how in given.items() if _mixes(layer, *how)]
    if mixing:
        raise UnsupportedModel(
            f"can't record {family}: {' and '.join(mixing[:3])} mixes tokens by means that attention_viz can't hear; "
            "use a model whose layers all call transformers' own kernels"
        )


def why_silent(model: nn.Module) -> str:
    """Return why a model mixes no tokens here, as a clause; "" if no reason is known."""
    for module in model.modules():
        namespace: dict[str, Any] = getattr(inspect.unwrap(type(module).forward), "__globals__", {})
        if namespace.get(_MRA, _MRA) is None and type(module).__name__.startswith("Mra"):
            return (
                f"{_MRA} isn't loaded, so transformers returns zeros for its attention. With it, MRA approximates a "
                "softmax by kernels over blocks, which can't be recorded either; use a model with softmax attention"
            )
    return ""


def _silent_layers(model: nn.Module, heard: Collection[nn.Module]) -> Iterator[tuple[nn.Module, str]]:
    """List the layers without a heard mixer of the lists where others have one."""
    for path, layers in model.named_modules():
        if not isinstance(layers, nn.ModuleList) or any(part.isdigit() for part in path.split(".")):
            continue
        mixing = [any(one in heard for one in layer.modules()) for layer in layers]
        if any(mixing):
            silent = (number for number, mixes in enumerate(mixing) if not mixes)
            yield from ((layers[number], f"{path}.{number}") for number in silent)


def _mixes(layer: nn.Module, inputs: tuple[object, ...], named: dict[str, object]) -> bool:
    """Return whether a layer's outputs at the other tokens change with its input at the first, or it can't run."""

    def run(change: Callable[[Tensor], Tensor]) -> Tensor:
        positional = [change(one) if _is_states(one) else one for one in inputs]
        by_name = {name: change(one) if _is_states(one) else one for name, one in named.items()}
        result: Any = layer(*positional, **by_name)
        return result if isinstance(result, Tensor) else result[0]

    def first_changed(states: Tensor) -> Tensor:
        changed = states.clone()
        changed[:, 0] = changed[:, 0].flip(-1) + 1
        return changed

    with torch.no_grad():
        try:
            return not torch.allclose(run(torch.clone)[:, 1:], run(first_changed)[:, 1:], rtol=1e-4, atol=1e-5)
        except Exception:  # its own code may refuse a second run
            return True


def _is_states(value: object) -> TypeGuard[Tensor]:
    return isinstance(value, Tensor) and value.ndim == 3 and value.is_floating_point()
