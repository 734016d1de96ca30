"""One small model as people hold it: quantized, offloaded to a disk or to memory, with an adapter."""

import copy
import tempfile
from collections.abc import Callable
from typing import Any

import accelerate
import peft
import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from transformers import PreTrainedModel

from tests.models.families import build

__all__ = ["HELD", "dense", "dynamic", "held"]

_PLACES = {"model.embed_tokens": "cpu", "model.norm": "cpu", "model.rotary_emb": "cpu", "model.layers.0": "cpu"}


class Int8(Tensor):
    """A matrix of whole numbers and scales, which takes part in `linear` alone, as those of torchao do."""

    numbers: Tensor
    scales: Tensor

    @staticmethod
    def __new__(cls, numbers: Tensor, scales: Tensor) -> "Int8":
        made = Tensor._make_wrapper_subclass(cls, numbers.shape, dtype=scales.dtype)
        made.numbers, made.scales = numbers, scales
        return made

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["numbers", "scales"], None

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is linear:
            x, weight, *bias = args
            return linear(x, weight.numbers.to(x.dtype) * weight.scales, *bias, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.ops.aten.detach.default, torch.ops.aten.clone.default, torch.ops.aten.alias.default):
            return cls(args[0].numbers, args[0].scales)
        raise NotImplementedError(f"Int8 dispatch: attempting to run unimplemented operator {func}")


def int8(model: Any) -> Any:
    for module in model.modules():
        if isinstance(module, nn.Linear):
            scales = module.weight.abs().amax(dim=1, keepdim=True) / 127
            numbers = (module.weight / scales).round().to(torch.int8)
            module.weight = nn.Parameter(Int8(numbers, scales.detach()), requires_grad=False)
    return model


def dynamic(model: Any) -> Any:
    return torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)


def adapted(model: Any) -> Any:
    torch.manual_seed(1)
    where = ["q_proj", "k_proj", "v_proj", "o_proj"]
    return peft.get_peft_model(model, peft.LoraConfig(r=3, init_lora_weights=False, target_modules=where)).eval()


def offloaded(model: Any) -> Any:
    return accelerate.cpu_offload(model, execution_device=torch.device("cpu"))


def on_disk(model: Any) -> Any:
    return accelerate.disk_offload(model, tempfile.mkdtemp(), execution_device=torch.device("cpu"))


def partly_on_disk(model: Any) -> Any:
    places = _PLACES | {"model.layers.1": "disk", "model.layers.2": "disk", "lm_head": "disk"}
    folder = tempfile.mkdtemp()
    return accelerate.dispatch_model(model, places, offload_dir=folder, main_device="cpu", force_hooks=True)


HELD: dict[str, Callable[[Any], Any]] = {
    "int8": int8,
    "adapter": adapted,
    "offloaded": offloaded,
    "on disk": on_disk,
    "partly on disk": partly_on_disk,
}


def held(name: str) -> PreTrainedModel:
    """The model as people hold it."""
    return HELD[name](copy.deepcopy(build("llama")))


def dense(name: str) -> PreTrainedModel:
    """The same numbers in plain parameters."""
    model: Any = copy.deepcopy(build("llama"))
    if name == "adapter":
        return adapted(model).merge_and_unload()
    for module in int8(model).modules() if name == "int8" else ():
        if isinstance(module, nn.Linear):
            weight: Any = module.weight
            module.weight = nn.Parameter(weight.numbers.float() * weight.scales)
    return model
