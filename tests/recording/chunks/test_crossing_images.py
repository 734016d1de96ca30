"""A model that attends from one image to another is refused: both images' positions would have the same names."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

import attention_viz as av
from attention_viz.errors import UnsupportedModel
from attention_viz.recording.layout.tiles import settle_rows
from attention_viz.recording.runner import Runner
from scripts.seen.building import seen_families, tiny_seen
from scripts.seen.reading import example_of
from scripts.tiny import scaled
from tests.models.picture_families import PIXELS, PROCESSORS, tensors_of, text_of, tiny_of


def built(name: str) -> tuple[Any, dict[str, Tensor]]:
    family = next(one for one in seen_families() if one.name == name)
    for model in tiny_seen(family):
        return scaled(model, 8.0), example_of(model)
    raise AssertionError(name)


def test_matching_in_two_calls_is_refused() -> None:
    model, inputs = built("efficientloftr")
    with pytest.raises(UnsupportedModel, match="attends from one of the 2 parts of pixel_values to another"):
        av.wrap(model, inputs=inputs)


def test_rows_whose_keys_are_another_images_are_refused() -> None:
    model, inputs = built("lightglue")
    with pytest.raises(UnsupportedModel, match="aren't the 2 parts of pixel_values in their order"):
        av.wrap(model, inputs=inputs)


class Crossing(nn.Module):
    """Lets a layer's keys or values come from the image before."""

    def __init__(self, own: nn.Module) -> None:
        super().__init__()
        self.own = own

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the other image's."""
        return self.own(hidden.roll(1, 0))


@pytest.mark.parametrize("crossed", [("k_proj",), ("v_proj",), ("k_proj", "v_proj")], ids="+".join)
def test_a_tower_that_reads_another_tile_is_refused(crossed: tuple[str, ...]) -> None:
    model: Any = copy.deepcopy(tiny_of("idefics3"))
    attention = model.model.vision_model.encoder.layers[-1].self_attn
    for name in crossed:
        setattr(attention, name, Crossing(getattr(attention, name)))
    with pytest.raises(UnsupportedModel, match="aren't the 5 parts of pixel_values in their order"):
        av.wrap(model, PROCESSORS["idefics3"]())


class Dtypes(TorchDispatchMode):
    """Collects the dtypes of all results, and counts look-ups of words."""

    def __init__(self) -> None:
        super().__init__()
        self.found, self.runs = set[torch.dtype](), 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation."""
        found = function(*args, **(kwargs or {}))
        self.found |= {found.dtype} if isinstance(found, Tensor) else set()
        self.runs += function is torch.ops.aten.embedding.default
        return found


def two_images(family: str) -> tuple[Runner, dict[str, Tensor]]:
    model: Any = copy.deepcopy(tiny_of(family))
    runner = Runner.of(model)
    pixels = [PIXELS, PIXELS[::-1].copy()]
    return runner, runner.inputs(tensors_of(PROCESSORS[family](), text_of(family, 2), pixels))


@pytest.mark.parametrize("family", ["llava", "gemma3"])
def test_images_are_told_apart_without_float64_which_mps_lacks(family: str) -> None:
    runner, inputs = two_images(family)
    recorded = runner.record(inputs)
    with Dtypes() as dtypes:
        settle_rows(runner, inputs, recorded)
    assert torch.float64 not in dtypes.found and torch.float32 in dtypes.found


def test_a_causal_language_model_costs_no_runs() -> None:
    runner, inputs = two_images("llava")
    recorded = runner.record(inputs)
    assert 1 in recorded.rows and 2 in recorded.rows
    with Dtypes() as dtypes:
        settle_rows(runner, inputs, recorded)
    # The rows of the tower alone: one run as it is, and one for each bit of an image's number.
    assert dtypes.runs <= 2 * 3


def changing(tower: Any, layer: Any, change: Callable[[], Any]) -> None:
    """Let a tower's last layer do otherwise on numbers that no image has."""
    wide = [False]

    def read(_module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        pixels = named.get("pixel_values", given[0] if given else None)
        wide[0] = float(pixels.abs().max()) > 2.7

    tower.register_forward_pre_hook(read, with_kwargs=True)
    own = layer.forward

    def forward(hidden: Tensor, *given: Any, **named: Any) -> Any:
        if wide[0] and change() is None:
            return hidden
        return own(hidden, *given, **named)

    layer.forward = forward


def test_changed_images_with_other_calls_are_refused_by_name() -> None:
    model: Any = copy.deepcopy(tiny_of("idefics3"))
    tower = model.model.vision_model
    changing(tower, tower.encoder.layers[0], lambda: None)
    with pytest.raises(UnsupportedModel, match="makes other attention calls once its images change"):
        av.wrap(model, PROCESSORS["idefics3"]())


def test_an_error_on_changed_images_is_named_in_a_trace() -> None:
    model: Any = copy.deepcopy(tiny_of("internvl"))
    fails = [False]

    def change() -> bool:
        if fails[0]:
            raise KeyError("none of ours")
        return True

    tower = model.model.vision_tower
    changing(tower, tower.encoder.layer[0], change)
    wrapped = av.wrap(model, PROCESSORS["internvl"]())
    fails[0] = True
    with pytest.raises(UnsupportedModel, match="rows to its images: in a run for that, it raised KeyError"):
        wrapped.trace(text_of("internvl", 2), pictures=[av.Picture(PIXELS), av.Picture(PIXELS[:, :64].copy())])
