"""A model that attends from one image to another is refused: both images' positions would have the same names."""

import copy
from typing import Any

import pytest
from torch import Tensor, nn

import attention_viz as av
from attention_viz.errors import UnsupportedModel
from scripts.seen.building import seen_families, tiny_seen
from scripts.seen.reading import example_of
from scripts.tiny import scaled
from tests.models.picture_families import PROCESSORS, tiny_of


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
