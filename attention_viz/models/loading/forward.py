"""One forward of a folder's model with what the probe runs, so that what that takes is known before it is loaded.

First on torch's "meta" device, where nothing is computed. Code that looks at numbers can't run there; where the model
is small, it gets numbers by chance instead, under the process's limits.
"""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor
from torch.func import functional_call

from attention_viz.errors import UnsupportedModel
from attention_viz.inputs.text import token_limit
from attention_viz.recording.implementation import IMPLEMENTATION
from attention_viz.recording.probe import probe_inputs
from attention_viz.recording.runner import Runner
from attention_viz.sources.bounded.counting import Bounds, Counting, TooMuch
from attention_viz.sources.huggingface import PreTrainedModel
from attention_viz.sources.size import size_of

__all__ = ["BOUNDS", "Example", "out_of_memory", "try_forward"]

BOUNDS = Bounds()
Example = Mapping[str, Tensor] | None
"""What a model is tried with: tensors by name, or None for a few tokens."""

# Bytes of a model that gets numbers by chance: beside it the process has room for what they make.
_LARGEST_WITH_NUMBERS = 300_000_000


def out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that there isn't enough memory, in Python's way or in torch's."""
    return isinstance(error, MemoryError) or "can't allocate memory" in str(error)


def try_forward(name: str, model: PreTrainedModel, examples: Sequence[Example], bounds: Bounds = BOUNDS) -> None:
    """Run a model once with each example, and count what that makes.

    What else breaks meanwhile is none of its business: the probe will say that.

    Args:
        model: on any device; it isn't fit for anything else afterwards.
    """
    size = size_of(model)
    bounds = bounds.with_weights(size)
    runner = Runner.of(model.eval())
    for config in runner.switch.configs:
        # As the probe compares with it; others may keep quiet about what they make.
        setattr(config, IMPLEMENTATION, "eager")
    for example in examples:
        # Some models look into their mask, which they can't without numbers; others do that where they get none.
        ran = any(_ran(name, runner, example, bounds, _without_numbers, masked=masked) for masked in (True, False))
        if not ran and size <= _LARGEST_WITH_NUMBERS:
            _ = _ran(name, runner, example, bounds, _with_numbers, masked=True)


def _ran(
    name: str,
    runner: Runner,
    example: Example,
    bounds: Bounds,
    placed: Callable[[Tensor], Tensor],
    *,
    masked: bool,
) -> bool:
    """Run an example with tensors that were placed, with its masks of ones or without; return whether it ended."""
    model, reads = runner.model, "its smallest example"
    try:
        inputs = probe_inputs(runner, token_limit(model, None), example)
        if example is None:
            reads = f"{inputs['input_ids'].shape[1]} tokens"
        device = placed(torch.empty(0)).device
        named = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        tensors = {key: placed(tensor) for key, tensor in named.items()}
        given = {key: tensor.to(device) for key, tensor in inputs.items() if masked or not _is_mask(key, tensor)}
        with torch.no_grad(), Counting(bounds):
            functional_call(model, tensors, (), given | runner.settings)
    except TooMuch as error:
        raise UnsupportedModel(f"{name} can't be loaded: for {reads} its config.json asks for {error}") from None
    except Exception as error:
        if out_of_memory(error):
            raise MemoryError from error
        return False
    return True


def _is_mask(key: str, tensor: Tensor) -> bool:
    """Return whether this is a mask that hides nothing, without which a model computes the same."""
    return key.endswith("attention_mask") and bool((tensor == 1).all())


def _without_numbers(tensor: Tensor) -> Tensor:
    return tensor.detach().to("meta")


def _with_numbers(tensor: Tensor) -> Tensor:
    """Return a table that was computed as it is, and numbers by chance for weights, which weren't read."""
    if not tensor.is_meta:
        return tensor.detach()
    if not tensor.is_floating_point():
        return torch.zeros(tensor.shape, dtype=tensor.dtype)
    return torch.randn(tensor.shape, dtype=tensor.dtype).mul_(0.02)
