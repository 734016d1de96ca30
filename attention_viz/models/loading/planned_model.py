"""A model to plan memory for, built without numbers: a folder's, a GGUF file's, or one with an adapter."""

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from attention_viz.models.loading.adapters import waits_elsewhere
from attention_viz.models.loading.gguf import empty_gguf
from attention_viz.models.loading.held_bytes import HeldBytes, held_bytes
from attention_viz.models.loading.placement import Placement, empty_model, place, place_whole, stored_dtype
from attention_viz.models.loading.run_bytes import RunBytes, run_bytes
from attention_viz.models.loading.trace_bytes import TraceBytes
from attention_viz.models.loading.verdicts import verdict_of
from attention_viz.sources.folders import CheckedFolder, check_folder
from attention_viz.sources.load_options import LoadOptions
from attention_viz.sources.size import check_config


@dataclass(frozen=True, eq=False)
class PlannedModel:
    """A model on the meta device with its placement.

    Attributes:
        model: the base model, whose weights are placed.
        runs: the model that runs: the same, or a second one with an adapter around it.
        modules: the modules of `runs` by their paths in `model`.
        stored: the dtype in the file.
        folder: None for a GGUF file, which is neither spread nor quantized.
        added: numbers of an adapter, which stay on the device that computes.
    """

    name: str
    model: nn.Module
    runs: nn.Module
    modules: Mapping[str, nn.Module]
    placement: Placement
    stored: torch.dtype
    tokens: int
    folder: CheckedFolder | None = None
    added: int = 0

    @classmethod
    def of(cls, name: str, model: nn.Module, placement: Placement, stored: torch.dtype, tokens: int) -> "PlannedModel":
        """Return a whole model."""
        return cls(name, model, model, dict(model.named_modules()), placement, stored, tokens)

    @property
    def numbers(self) -> int:
        """Its parameters."""
        return self.added + sum(parameter.numel() for parameter in self.model.parameters())

    @property
    def dtype(self) -> torch.dtype:
        """The dtype that its numbers have."""
        asked = self.placement.dtype
        return asked if isinstance(asked, torch.dtype) else self.stored

    @property
    def sizes(self) -> TraceBytes | None:
        """The sizes of a trace."""
        return TraceBytes.of(cast(Any, self.model))

    @property
    def held(self) -> HeldBytes:
        """The bytes per device as placed."""
        placed = self.placement.held
        return self.held_as(self.dtype, None) if placed is None else self.with_added(placed, self.dtype)

    def held_as(self, dtype: torch.dtype, quantizer: Any) -> HeldBytes:
        """Return the bytes as a whole on the device that computes."""
        device = self.placement.device
        return self.with_added(held_bytes(self.model, dtype, quantizer, None, device, self.stored), dtype)

    def with_added(self, held: HeldBytes, dtype: torch.dtype) -> HeldBytes:
        """Add an adapter's bytes."""
        more = self.added * dtype.itemsize
        by_device = {**held.by_device, held.computes: held.here + more}
        return replace(held, weights=held.weights + more, by_device=by_device) if more else held

    def adapted(self, name: str, put_around: Callable[[nn.Module], nn.Module]) -> "PlannedModel":
        """Return this model with an adapter, by a function that puts it around a model."""
        placed = self.placement
        if placed.offloads or (placed.device.type != "cpu" and "cpu" in (placed.parts or {}).values()):
            raise waits_elsewhere(name, self.name)
        second = _again(self.model)
        modules = dict(second.named_modules())
        whole = put_around(second)
        added = sum(one.numel() for one in whole.parameters()) - self.numbers
        return replace(self, name=name, runs=whole, modules=modules, added=added)

    def peak(self, held: HeldBytes, dtype: torch.dtype, layers: int | None = None) -> RunBytes:
        """Return the most bytes on the device that computes; `layers` is how many a trace keeps."""
        run = self.run(held, dtype, layers)
        return replace(run, most=max(self._loading(dtype), held.here + run.most))

    def run(self, held: HeldBytes, dtype: torch.dtype, layers: int | None = None) -> RunBytes:
        """Return the bytes of a text's run beside the weights."""
        passing, sizes = {self.modules[path]: one for path, one in held.passing.items()}, self.sizes
        found = run_bytes(self.runs, self.tokens, dtype, passing, layers, None if sizes is None else sizes.layers)
        if found.counted:
            return found
        trace = 0 if sizes is None else sizes.in_memory(self.tokens, dtype.itemsize, layers)
        return replace(found, most=max(found.most, held.most - held.here, trace))

    def most_layers(self, held: HeldBytes, dtype: torch.dtype, free: int) -> int:
        """Return how many layers a trace may keep; 0 if not even one fits."""
        counts = range(1, cast(TraceBytes, self.sizes).layers + 1)
        return bisect_right(counts, free, key=lambda count: self.peak(held, dtype, count).most)

    def _loading(self, dtype: torch.dtype) -> int:
        """Return the bytes while a GGUF file is read: all numbers in float32, and the largest matrix once more."""
        if self.folder is not None or self.placement.device.type != "cpu":
            return 0
        sizes = [parameter.numel() for parameter in self.model.parameters()]
        return 4 * sum(sizes) + max(4, dtype.itemsize) * max(sizes, default=0)


def planned_folder(
    folder: Path, name: str, options: LoadOptions, tokens: int, *, shipped: bool = False
) -> PlannedModel:
    """Build a folder's model and place it."""
    checked = check_folder(folder, name)
    check_config(checked)
    if not shipped:
        verdict_of(checked, go_on)
    model = empty_model(checked, go_on)
    where = place(checked, options, go_on, model=model)
    return replace(PlannedModel.of(name, model, where, stored_dtype(checked), tokens), folder=checked)


def planned_gguf(file: Path, name: str, options: LoadOptions, tokens: int) -> PlannedModel:
    """Build a GGUF file's model, whose numbers transformers unpacks to float32."""
    model = empty_gguf(file, name, options, go_on)
    return PlannedModel.of(name, model, place_whole(name, options), torch.float32, tokens)


def go_on() -> None:
    """Go on."""


def _again(model: nn.Module) -> nn.Module:
    """Build the same model a second time."""
    with torch.device("meta"):
        second: Any = type(model)(cast(Any, model).config)
    second.tie_weights()
    return second
