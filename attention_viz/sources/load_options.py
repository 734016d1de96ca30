"""Options for a model's device, dtype, quantization and memory. Needs no torch."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from attention_viz.errors import UnsupportedModel

__all__ = ["DTYPES", "QUANTIZATIONS", "DeviceMap", "LoadOptions", "MaxMemory", "check_options", "in_bytes", "memory_of"]

DeviceMap = str | Mapping[str, int | str]
MaxMemory = Mapping[int | str, int | str]

DTYPES = ("float64", "float32", "bfloat16", "float16")
QUANTIZATIONS = ("int8", "int4")
# Ways to spread a model that accelerate works out by itself.
SPREADS = ("balanced", "balanced_low_0", "sequential")
DISK = "disk"

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(B|KB|MB|GB|TB|KiB|MiB|GiB|TiB)", re.IGNORECASE)
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000, "g": 1_000_000_000, "t": 1_000_000_000_000}
_DEVICE = re.compile(r"[a-z][a-z0-9_]*(:\d+)?")


@dataclass(frozen=True)
class LoadOptions:
    """The arguments of `av.load` about a model's devices, memory and numbers."""

    device: DeviceMap = "auto"
    dtype: str = "auto"
    quantization: Any = None
    max_memory: MaxMemory | None = None

    @property
    def needs_accelerate(self) -> bool:
        """Whether accelerate has to place the model: on several devices, within limits, or quantized."""
        spread = not isinstance(self.device, str) or self.device in SPREADS
        return spread or self.max_memory is not None or self.quantization is not None


def check_options(options: LoadOptions) -> LoadOptions:
    """Refuse options that no model can be loaded with; return them."""
    if options.dtype != "auto" and options.dtype not in DTYPES:
        raise UnsupportedModel(f"unknown dtype {_short(options.dtype)}; choose auto, {', '.join(DTYPES)}")
    _check_device(options.device)
    asked = options.quantization
    if isinstance(asked, str) and asked not in QUANTIZATIONS:
        raise UnsupportedModel(
            f"unknown quantization {_short(asked)}; choose {', '.join(QUANTIZATIONS)}, or pass a quantization "
            "configuration of transformers"
        )
    if not (asked is None or isinstance(asked, str) or hasattr(asked, "quant_method")):
        raise UnsupportedModel(
            f"quantization takes {', '.join(QUANTIZATIONS)} or a quantization configuration of transformers, such as "
            f"BitsAndBytesConfig(load_in_4bit=True); got {type(asked).__name__}"
        )
    if options.max_memory is not None:
        memory_of(options.max_memory)
    return options


def memory_of(limits: MaxMemory) -> dict[int | str, int]:
    """Return the bytes allowed per device, by accelerate's names, such as 0 for a GPU and "cpu"."""
    if not isinstance(limits, Mapping) or not limits:  # pyright: ignore[reportUnnecessaryIsInstance] -- from outside
        raise UnsupportedModel(f'max_memory must name devices, such as {{"cpu": "10GiB"}}; got {_short(limits)}')
    found = {_short_device(device): in_bytes(limit) for device, limit in limits.items()}
    if len(found) < len(limits):
        raise UnsupportedModel(f"max_memory names a device twice; got {', '.join(map(str, limits))}")
    return found


def in_bytes(limit: object) -> int:
    """Return a number of bytes, or a size such as "10GiB" or "500MB", in bytes."""
    if isinstance(limit, int) and not isinstance(limit, bool) and limit >= 0:
        return limit
    parsed = _SIZE.fullmatch(limit.strip()) if isinstance(limit, str) else None
    if parsed is None:
        raise UnsupportedModel(f'a memory limit is a number of bytes or a size such as "10GiB"; got {_short(limit)}')
    unit = parsed[2].lower()
    factor = 1024 ** "bkmgt".index(unit[0]) if "i" in unit else _UNITS[unit[:-1]]
    return int(float(parsed[1]) * factor)


def _check_device(device: object) -> None:
    if isinstance(device, str):
        if device != "auto" and device not in SPREADS and not _DEVICE.fullmatch(device):
            raise UnsupportedModel(f"unknown device {_short(device)}; choose auto, cpu, cuda, cuda:1 or a device map")
        if device == "meta":
            raise UnsupportedModel("a model on the meta device has no numbers; choose cpu or cuda")
        if device == DISK:
            raise UnsupportedModel(
                'a model can\'t run on a disk alone; pass max_memory={"cpu": "10GiB"}, and the rest goes to the disk'
            )
        return
    if not isinstance(device, Mapping) or not device:
        raise UnsupportedModel(f"device takes a name or a device map, a dict; got {_short(device)}")
    for part, where in cast("Mapping[object, object]", device).items():
        right = (isinstance(where, int) and not isinstance(where, bool) and where >= 0) or (
            isinstance(where, str) and _DEVICE.fullmatch(where)
        )
        if not isinstance(part, str) or not right:
            raise UnsupportedModel(
                "a device map names a device per part of the model, such as "
                f'{{"model.layers.0": "cuda:0"}}; got {_short(part)}: {_short(where)}'
            )


def _short_device(device: object) -> int | str:
    """Return accelerate's name of a device."""
    if isinstance(device, int) and not isinstance(device, bool) and device >= 0:
        return device
    if isinstance(device, str) and device.isdecimal():
        return int(device)
    if not isinstance(device, str) or not _DEVICE.fullmatch(device) or device == DISK:
        raise UnsupportedModel(f"max_memory names a device, such as cpu, cuda:1 or 1; got {_short(device)}")
    kind, _, number = device.partition(":")
    return int(number or 0) if kind in ("cuda", "xpu") else kind


def _short(value: object) -> str:
    return repr(value)[:80]
