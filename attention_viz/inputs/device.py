"""Find the device that a model computes on."""

from typing import Any

import torch
from torch import nn


def device_of(model: nn.Module) -> torch.device:
    """Return the device that a model's inputs belong on.

    Offloaded parameters are on the meta device between runs. Their hook knows the target device; else other parameters
    show it.
    """
    tensors = [*model.parameters(), *model.buffers()]
    if not tensors or not tensors[0].is_meta:
        return tensors[0].device if tensors else torch.device("cpu")
    hooks: Any = (getattr(module, "_hf_hook", None) for module in model.modules())
    devices = (getattr(hook, "execution_device", None) for hook in hooks)
    found = next((device for device in devices if isinstance(device, int | str | torch.device)), None)
    if found is None:
        found = next((one.device for one in tensors if not one.is_meta), "cpu")
    return torch.device(found)
