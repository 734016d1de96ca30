"""Find the device that a model computes on."""

from typing import Any

import torch
from torch import nn

from attention_viz.inputs.module_tree import first_tensor


def device_of(model: nn.Module) -> torch.device:
    """Return the device that a model's inputs belong on.

    Offloaded parameters are on the meta device between runs. Their hook knows the target device; else other parameters
    show it.
    """
    first = first_tensor(model)
    if first is None or not first.is_meta:
        return torch.device("cpu") if first is None else first.device
    hooks: Any = (getattr(module, "_hf_hook", None) for module in model.modules())
    devices = (getattr(hook, "execution_device", None) for hook in hooks)
    found = next((device for device in devices if isinstance(device, int | str | torch.device)), None)
    if found is None:
        tensors = (*model.parameters(), *model.buffers())
        found = next((one.device for one in tensors if not one.is_meta), "cpu")
    return torch.device(found)
