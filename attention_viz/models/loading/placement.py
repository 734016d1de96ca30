"""Decide on a model's devices, dtype and quantization, for the plan and the load alike, so that both agree."""

import importlib.util
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import nn

from attention_viz.errors import UnsupportedModel, first_line
from attention_viz.models.loading.held_bytes import HeldBytes, held_bytes, quantized_names
from attention_viz.models.loading.quantizing import described, quantizer_of
from attention_viz.sources.building import build, in_turn, quietly, read_config
from attention_viz.sources.folders import CheckedFolder
from attention_viz.sources.free_memory import free_memory
from attention_viz.sources.load_options import DISK, SPREADS, LoadOptions, memory_of
from attention_viz.sources.size import check_size

LARGE = 'pip install "attention-viz[large]"'
# Dtypes by the words of config.json and of safetensors headers.
_STORED = {"F64": "float64", "F32": "float32", "BF16": "bfloat16", "F16": "float16"}


@dataclass(frozen=True, eq=False)
class Placement:
    """A model's devices, dtype and quantization.

    Attributes:
        device: the device that its inputs go to.
        dtype: what transformers takes: a dtype, or "auto" for the file's own.
        parts: accelerate's device map; None if the whole model is moved to `device` once it is read.
        quantizer: the configuration to quantize with; None for none.
        held: the bytes per device, as far as they were counted.
    """

    device: torch.device
    dtype: torch.dtype | str
    parts: Mapping[str, int | str] | None
    quantizer: Any
    held: HeldBytes | None = None

    @property
    def method(self) -> str:
        """How it is quantized, such as "int4 by bitsandbytes"; "" if it isn't."""
        return "" if self.quantizer is None else described(self.quantizer)

    def bytes_of(self, size: int) -> int:
        """Return the most bytes of weights in memory at one time, given the model's bytes in float32."""
        if self.held is not None:
            return self.held.most
        return size * (self.dtype.itemsize if isinstance(self.dtype, torch.dtype) else 4) // 4

    @property
    def offloads(self) -> bool:
        """Whether parts wait on a disk."""
        return self.parts is not None and DISK in self.parts.values()


def place(
    folder: CheckedFolder, options: LoadOptions, check: Callable[[], None], *, model: nn.Module | None = None
) -> Placement:
    """Decide on the devices of a tested folder's model.

    Args:
        model: the same without numbers, if it is at hand; its bytes are counted then.
    """
    device = _device(options)
    dtype = _dtype(options.dtype, device)
    quantizer = quantizer_of(options.quantization, device, dtype)
    automatic = options.device == "auto" and device.type != "cpu"
    if model is None and not (automatic or options.needs_accelerate):
        return Placement(device, dtype, None, quantizer)
    model = empty_model(folder, check) if model is None else model
    stored = stored_dtype(folder)
    number = stored if dtype == "auto" else cast("torch.dtype", dtype)
    if not options.needs_accelerate:
        held = held_bytes(model, number, quantizer, None, device, stored)
        free = free_memory(device) if automatic else None
        if free is None or held.most <= free:
            return Placement(device, dtype, None, quantizer, held)
    _require_accelerate(folder.name, options)
    parts = _parts(folder.name, model, options, device, number, quantizer)
    return Placement(device, dtype, parts, quantizer, held_bytes(model, number, quantizer, parts, device, stored))


def place_whole(name: str, options: LoadOptions) -> Placement:
    """Return the one device for a model that can't be spread."""
    if not isinstance(options.device, str) or options.device in SPREADS or options.max_memory is not None:
        raise UnsupportedModel(f"can't spread {name} over devices; give one device, and leave out max_memory")
    device = _device(options)
    return Placement(device, _dtype(options.dtype, device), None, None)


def stored_dtype(folder: CheckedFolder) -> torch.dtype:
    """Return the dtype that transformers takes for "auto": config.json's, else the first floating tensor's."""
    named = folder.config.get("dtype") or folder.config.get("torch_dtype")
    found = getattr(torch, named, None) if isinstance(named, str) else None
    if isinstance(found, torch.dtype):
        return found
    stored = next((_STORED[one] for one in folder.dtypes.values() if one in _STORED), "float32")
    return cast("torch.dtype", getattr(torch, stored))


def empty_model(folder: CheckedFolder, check: Callable[[], None]) -> nn.Module:
    """Build the model of a tested folder without numbers."""
    config: Any = read_config(folder)
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    with quietly(), in_turn(check):
        model = check_size(folder, lambda: build(folder, config))
    cast(Any, model).tie_weights()
    return model


def _require_accelerate(name: str, options: LoadOptions) -> None:
    if importlib.util.find_spec("accelerate") is not None:
        return
    why = (
        "its weights don't fit into the GPU's free memory"
        if not options.needs_accelerate
        else ("a device map, max_memory and quantization need accelerate")
    )
    raise UnsupportedModel(f"can't place {name}, because {why} and accelerate isn't installed; run {LARGE}")


def _parts(
    name: str, model: nn.Module, options: LoadOptions, device: torch.device, dtype: torch.dtype, quantizer: Any
) -> Mapping[str, int | str]:
    """Return accelerate's device map."""
    if not isinstance(options.device, str):
        return _checked_map(name, model, options.device)
    limits = None if options.max_memory is None else memory_of(options.max_memory)
    here = device.index or 0 if device.type in ("cuda", "xpu") else device.type
    single = options.device != "auto" and options.device not in SPREADS
    if limits is None and (single or device.type == "cpu"):
        return {"": str(device)}
    if single and limits is not None and here not in limits:
        raise UnsupportedModel(f"max_memory has no limit for {options.device}; got {', '.join(map(str, limits))}")
    for one in limits or ():
        _there(f"cuda:{one}" if isinstance(one, int) else one)
    found = _spread(name, model, options, limits, dtype, quantizer)
    if quantizer is not None and DISK in found.values():
        raise UnsupportedModel(
            f"{name}, {described(quantizer)}, doesn't fit into max_memory, and a quantized model can't wait on the "
            "disk; allow more memory, or leave out quantization"
        )
    return found


def _spread(
    name: str,
    model: nn.Module,
    options: LoadOptions,
    limits: Mapping[int | str, int] | None,
    dtype: torch.dtype,
    quantizer: Any,
) -> Mapping[str, int | str]:
    from accelerate import utils

    # Typed as it is called: its own signatures leave parts open.
    accelerate: Any = utils
    keep = sorted(cast("Iterable[str]", cast(Any, model)._no_split_modules or ()))
    allowed = None if limits is None else dict(limits)
    layers: dict[str, Any] = {"no_split_module_classes": keep, "dtype": dtype}
    rounded = dict.fromkeys(quantized_names(model, quantizer), torch.int8)
    try:
        if options.device in ("auto", "balanced", "balanced_low_0"):
            low = options.device == "balanced_low_0"
            room: dict[int | str, int] = accelerate.get_balanced_memory(model, allowed, low_zero=low, **layers)
        else:
            room = accelerate.get_max_memory(allowed)
        found: dict[str, int | str] = accelerate.infer_auto_device_map(
            model, room, special_dtypes=rounded or None, **layers
        )
    except (ValueError, RuntimeError) as error:
        raise UnsupportedModel(f"can't spread {name} over the devices: {first_line(error)}") from None
    if set(found.values()) != {DISK}:
        return found
    largest = max((parameter.numel() for parameter in model.parameters()), default=0) * dtype.itemsize
    if largest > max(room.values()):
        limit = ", ".join(f"{key}: {value:,}" for key, value in (limits or room).items())
        raise UnsupportedModel(
            f"the largest matrix of {name} has {largest:,} bytes, more than max_memory allows ({limit}); allow more"
        )
    return _all_but_one(model, next(iter(room)))


def _all_but_one(model: nn.Module, device: int | str) -> dict[str, int | str]:
    """Put every module on the disk but the smallest, since accelerate finds the device that computes by one part."""
    sizes: dict[str, int] = {
        path: sum(parameter.numel() for parameter in module.parameters(recurse=False))
        for path, module in model.named_modules()
        if next(module.parameters(recurse=False), None) is not None
    }
    smallest = min(sizes, key=lambda path: sizes[path])
    return {path: device if path == smallest else DISK for path in sizes}


def _checked_map(name: str, model: nn.Module, parts: Mapping[str, int | str]) -> Mapping[str, int | str]:
    """Refuse a device map that names missing parts or devices, or leaves parameters out."""
    known = {path for path, _ in model.named_modules()} | {path for path, _ in model.named_parameters()}
    for part, where in parts.items():
        if part not in known:
            raise UnsupportedModel(f"the device map names {part[:120]!r}, which {name} doesn't have")
        if where != DISK:
            _there(f"cuda:{where}" if isinstance(where, int) else where)
    inner = next((one for one in parts for outer in parts if outer != one and _within(one, outer)), None)
    if inner is not None:
        raise UnsupportedModel(f"the device map names {inner!r} and a part that has it; name each part once")
    if all(where == DISK for where in parts.values()):
        raise UnsupportedModel("the device map puts everything on the disk; put one part on a device")
    for path, _ in model.named_parameters():
        if not any(path == part or _within(path, part) for part in parts):
            raise UnsupportedModel(f"the device map leaves out {path} of {name}; name it, or a part that has it")
    return dict(parts)


def _within(path: str, part: str) -> bool:
    return not part or path.startswith(f"{part}.")


def _device(options: LoadOptions) -> torch.device:
    """Return the device that inputs go to."""
    asked = options.device
    if not isinstance(asked, str):
        used = [where for where in asked.values() if where not in (DISK, "cpu")]
        asked = f"cuda:{used[0]}" if used and isinstance(used[0], int) else str(used[0]) if used else "cpu"
        return _there(asked)
    if asked == "auto" or asked in SPREADS:
        return torch.device("cuda" if _uses_gpu(options) else "cpu")
    return _there(asked)


def _uses_gpu(options: LoadOptions) -> bool:
    if not torch.cuda.is_available():
        return False
    return options.max_memory is None or any(isinstance(key, int) for key in memory_of(options.max_memory))


def _there(asked: str) -> torch.device:
    try:
        return torch.empty(0, device=asked).device
    except (RuntimeError, AssertionError) as error:
        raise UnsupportedModel(f"this machine has no device {asked!r}: {first_line(error)}") from None


def _dtype(asked: str, device: torch.device) -> torch.dtype | str:
    if asked == "auto":
        return torch.float32 if device.type == "cpu" else "auto"
    return cast("torch.dtype", getattr(torch, asked))
