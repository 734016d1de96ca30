"""Plan a model's memory before anything of it is loaded: bytes of weights and traces, and whether they fit."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import fsdecode
from pathlib import Path
from typing import Any, cast

import torch

from attention_viz.errors import ModelNotFound, UnsupportedModel
from attention_viz.models.loading.adapters import base_of, empty_adapter, is_adapter
from attention_viz.models.loading.by_name import check_path, find_gguf
from attention_viz.models.loading.held_bytes import HeldBytes
from attention_viz.models.loading.placement import place
from attention_viz.models.loading.planned_model import PlannedModel, go_on, planned_folder, planned_gguf
from attention_viz.models.loading.quantizing import quantizer_of
from attention_viz.sources.catalogue import CATALOGUE
from attention_viz.sources.folders import CheckedFolder
from attention_viz.sources.free_memory import free_memory
from attention_viz.sources.load_options import (
    DISK,
    DeviceMap,
    LoadOptions,
    MaxMemory,
    check_options,
    memory_of,
)
from attention_viz.trace.ahead import size_in_words

__all__ = ["LoadPlan", "load_plan"]

# The length of the text that plans are for.
_TOKENS = 1_000
# Bytes of buffers that matrix products keep for themselves.
_BUFFERS = 10_000_000


@dataclass(frozen=True, eq=False)
class LoadPlan:
    """A model's need of memory with some options of `av.load`.

    Attributes:
        name: the model's name.
        numbers: its parameters.
        dtype: the dtype of its numbers and of a trace's.
        quantization: how its matrices are rounded; "" if they aren't.
        device: the device that computes.
        weights: bytes of the weights in all.
        by_device: bytes of the weights per device, "disk" among them.
        tokens: the length of the text that `trace` and `peak` are for.
        trace: bytes of such a text's trace with all layers, a lower bound if not `counted`; None if config.json doesn't
            say the sizes.
        counted: whether the whole run was counted. It isn't if the model doesn't run without numbers, or if layers mix
            tokens other than by the attention interface and plain masks.
        peak: bytes of all tensors on the device that computes, while such a text is traced. From 640 tokens on, a
            trace's queries, keys and values go to a file in TMPDIR, which isn't counted. Buffers of kernels and of the
            C library come on top, some 10 to 60 MB on a CPU; `fits` allows for 10 MB. A lower bound if not `counted`.
        free: bytes that the device may take: its limit in `max_memory`, or its free memory; None if unknown.
        layers: attention layers that a trace keeps.
        alternatives: options that would fit, if these don't, best first.
    """

    name: str
    numbers: int
    dtype: str
    quantization: str
    device: str
    weights: int
    by_device: Mapping[str, int]
    tokens: int
    trace: int | None
    counted: bool
    peak: int
    free: int | None
    layers: int | None
    alternatives: tuple[str, ...] = ()

    @property
    def fits(self) -> bool | None:
        """Whether the peak fits into the device's memory; None if unknown. A lower bound only rules it out."""
        if self.free is None:
            return None
        fits = self.peak + _BUFFERS <= self.free
        return None if fits and not self.counted else fits

    @property
    def trace_per_1000(self) -> int | None:
        """Bytes of a trace per 1,000 tokens."""
        return None if self.trace is None else self.trace * 1_000 // self.tokens

    def __str__(self) -> str:
        """Return the plan in sentences, one per line."""
        form = f"{self.dtype}, {self.quantization}" if self.quantization else self.dtype
        lines = [f"{self.name}: {self.numbers:,} numbers take {size_in_words(self.weights)} ({form})."]
        if len(self.by_device) > 1 or DISK in self.by_device:
            spread = ", ".join(f"{size_in_words(size)} on {where}" for where, size in self.by_device.items())
            lines.append(f"Of these, {spread}.")
        if self.trace is not None:
            least = "" if self.counted else "at least "
            lines.append(f"A trace takes {least}{size_in_words(self.trace_per_1000 or 0)} per 1,000 tokens.")
        loading, peak = f"Loading it and tracing {self.tokens:,} tokens takes", size_in_words(self.peak)
        if self.counted:
            lines.append(f"{loading} {peak} on {self.device} at most.")
        else:
            end = "this model's run can't be counted beforehand."
            lines.append(f"{loading} at least {peak} on {self.device}; {end}")
        if self.fits is not None:
            lines.append(f"It {'fits' if self.fits else 'does not fit'} into {size_in_words(self.free or 0)} there.")
        lines += [f"This would fit: {one}." for one in self.alternatives]
        return "\n".join(lines)


def load_plan(
    name: str,
    *,
    revision: str | None = None,
    device: DeviceMap = "auto",
    dtype: str = "auto",
    quantization: Any = None,
    max_memory: MaxMemory | None = None,
    tokens: int = _TOKENS,
) -> LoadPlan:
    """Return a model's need of memory before it is loaded: bytes of weights and of a trace, and whether they fit.

    The sizes come from config.json, the headers of the weights, and a run without numbers. No weights are read. A hub
    model has to be on this machine; `attention_viz.models.plan` returns a download's size.

    Args:
        name: as in `av.load`.
        revision: as in `av.load`, for a hub model.
        device: as in `av.load`.
        dtype: as in `av.load`.
        quantization: as in `av.load`.
        max_memory: as in `av.load`.
        tokens: the length of the text to be traced.

    Raises:
        ModelNotFound: the model doesn't exist, isn't on this machine, or its files are missing or broken.
        UnsupportedModel: the model or the options can't be loaded.
    """
    if type(tokens) is not int or tokens < 1:
        raise UnsupportedModel(f"tokens must be a whole number of at least 1; got {repr(tokens)[:80]}")
    options = check_options(LoadOptions(device, dtype, quantization, max_memory))
    name = fsdecode(name)
    return _plan(_planned(name, revision, options, tokens), options)


def _planned(name: str, revision: str | None, options: LoadOptions, tokens: int) -> PlannedModel:
    """Return what a name stands for: a folder's model, a GGUF file's, or an adapter around one."""
    if name == "scratch":
        raise UnsupportedModel("scratch has no weights to load; choose another model")
    if name not in CATALOGUE and revision is None and (file := find_gguf(name)) is not None:
        return planned_gguf(file, name, options, tokens)
    folder = _folder(name, revision)
    if name in CATALOGUE or not is_adapter(folder):
        return planned_folder(folder, name, options, tokens, shipped=name in CATALOGUE)
    base, version = base_of(folder, name)
    if isinstance(base, Path) and is_adapter(base):
        raise UnsupportedModel(f"{name} is an adapter around another adapter; load it with peft and pass it to av.wrap")
    whole = _planned(str(base), version, options, tokens)
    return whole.adapted(name, lambda model: empty_adapter(folder, name, model))


def _folder(name: str, revision: str | None) -> Path:
    """Return the folder of a model on this machine."""
    if name in CATALOGUE:
        path = CATALOGUE[name].path
        if path is None:
            raise ModelNotFound(f"{name} is not on this machine; run attention-viz models --install {name}")
        return path
    if Path(name).is_dir():
        return Path(name)
    check_path(name)
    from attention_viz.sources import download, plan

    wanted = plan(name, revision)
    if not wanted.complete:
        raise ModelNotFound(
            f"{name} isn't on this machine; its files take {size_in_words(wanted.missing)} to download, with "
            "attention_viz.models.download"
        )
    return download(wanted)


def _plan(planned: PlannedModel, options: LoadOptions) -> LoadPlan:
    where, dtype, sizes = planned.placement, planned.dtype, planned.sizes
    held, free = planned.held, _free(where.device, options)
    peak = planned.peak(held, dtype)
    found = LoadPlan(
        name=planned.name,
        numbers=planned.numbers,
        dtype=str(dtype).removeprefix("torch."),
        quantization=where.method,
        device=str(where.device),
        weights=held.weights,
        by_device=held.by_device,
        tokens=planned.tokens,
        trace=None if sizes is None else sizes.kept(planned.tokens, dtype.itemsize),
        counted=peak.counted,
        peak=peak.most,
        free=free,
        layers=None if sizes is None else sizes.layers,
    )
    if found.fits is not False or free is None or not found.counted:
        return found
    return replace(found, alternatives=tuple(_alternatives(planned, options, free - _BUFFERS)))


def _free(device: torch.device, options: LoadOptions) -> int | None:
    if options.max_memory is None:
        return free_memory(device)
    limits = memory_of(options.max_memory)
    return limits.get(device.index or 0 if device.type in ("cuda", "xpu") else device.type)


def _alternatives(planned: PlannedModel, options: LoadOptions, free: int) -> list[str]:
    """Return options that would fit, the ones that change its numbers least first."""
    found, device, number = list[str](), planned.placement.device, planned.dtype
    own = planned.held_as(number, _quantizer(options.quantization, device, number))
    if planned.sizes is not None and (most := planned.most_layers(own, number, free)):
        found.append(f"a trace of {most} of the {planned.sizes.layers} layers, with layers= of trace")
    for words, dtype, quantization in (
        ('dtype="bfloat16"', torch.bfloat16, None),
        ('quantization="int8"', number, "int8"),
        ('quantization="int4"', number, "int4"),
        ('dtype="bfloat16", quantization="int4"', torch.bfloat16, "int4"),
    ):
        if dtype.itemsize > number.itemsize or (dtype is number and quantization == options.quantization):
            continue
        quantizer = _quantizer(quantization, device, dtype)
        if quantization is not None and (quantizer is None or planned.folder is None):
            continue
        held = planned.held_as(dtype, quantizer)
        peak = planned.peak(held, dtype)
        if peak.counted and peak.most <= free:
            found.append(f"{words}, {size_in_words(held.weights)} of weights")
    if options.quantization is None and planned.folder is not None and not planned.added:
        found += _spread(planned, own, planned.folder, options, free)
    return found


def _spread(planned: PlannedModel, own: HeldBytes, folder: CheckedFolder, options: LoadOptions, free: int) -> list[str]:
    """Return a memory limit that would fit, with other parts on the disk."""
    device, number = str(planned.placement.device), planned.dtype
    room = free - planned.run(own, number).most
    if not 0 < room < own.weights:
        return []
    limited = LoadOptions(device, options.dtype, None, {device: room})
    with contextlib.suppress(UnsupportedModel):
        rest = planned.with_added(cast(HeldBytes, place(folder, limited, go_on, model=planned.model).held), number)
        if planned.peak(rest, number).most <= free:
            left = own.weights - rest.here
            return [f'max_memory={{"{device}": "{room // 1_000_000}MB"}}, {size_in_words(left)} on the disk']
    return []


def _quantizer(asked: Any, device: torch.device, dtype: torch.dtype) -> Any:
    try:
        return quantizer_of(asked, device, dtype)
    except UnsupportedModel:  # the package isn't installed
        return None
