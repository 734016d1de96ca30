"""Patches that a hook moves between layers lose their places; harmless hooks change nothing."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import ViTImageProcessor

import attention_viz as av
from attention_viz.errors import UnsupportedModel
from attention_viz.inputs.media.shipped import SAMPLES
from tests.models.seen_families import tiny

MOVES: dict[str, Callable[[Tensor], Tensor]] = {
    "flips": lambda patches: patches.flip(1),
    "rolls": lambda patches: patches.roll(1, 1),
    "swaps two rows": lambda patches: patches[:, [3, 4, 5, 0, 1, 2, *range(6, patches.shape[1])]],
}


def hooked(move: Callable[[Tensor], Tensor]) -> tuple[Any, dict[str, Tensor]]:
    """A ViT whose first layer hands patches on in another order, its class token apart."""
    model, inputs = tiny("vit")
    model = copy.deepcopy(model)

    def turned(_module: Any, _given: Any, output: Any) -> Any:
        first = output[0] if isinstance(output, tuple) else output
        found = torch.cat([first[:, :1], move(first[:, 1:])], dim=1)
        return (found, *output[1:]) if isinstance(output, tuple) else found

    layers = model.layers if hasattr(model, "layers") else model.encoder.layer
    layers[0].register_forward_hook(turned)
    return model, inputs


@pytest.mark.parametrize("move", MOVES)
def test_moved_patches_have_no_places(move: str) -> None:
    model, inputs = hooked(MOVES[move])
    trace = av.wrap(model, inputs=inputs).trace(inputs)
    assert not trace.query_tokens("picture").placed


@pytest.mark.parametrize("move", MOVES)
def test_a_model_of_pictures_that_moves_them_is_refused(move: str) -> None:
    model, _ = hooked(MOVES[move])
    size = model.config.image_size
    processor = ViTImageProcessor(size={"height": size, "width": size})
    with pytest.raises(UnsupportedModel, match=r"the patch at row \d and column \d is at position \d"):
        av.wrap(model, processor).trace(av.Picture(SAMPLES["chelsea"].path))


def test_a_harmless_hook_leaves_places() -> None:
    model, inputs = hooked(lambda patches: patches)
    tokens = av.wrap(model, inputs=inputs).trace(inputs).query_tokens("picture")
    assert tokens.placed and tokens.labels[:2] == ("[CLS]", "0,0")


def test_patches_that_are_dropped_by_their_pixels_are_no_error() -> None:
    """The runs of changed images have fewer positions than the image's own."""
    model, inputs = tiny("vit")
    model, largest = copy.deepcopy(model), [0.0]

    def look(_module: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        largest[0] = float((named["pixel_values"] if "pixel_values" in named else given[0]).abs().max())

    def drop(_module: Any, _given: Any, output: Any) -> Any:
        first = output[0] if isinstance(output, tuple) else output
        found = first if largest[0] <= most else first[:, :-1]
        return (found, *output[1:]) if isinstance(output, tuple) else found

    most = float(inputs["pixel_values"].abs().max())
    layers = model.layers if hasattr(model, "layers") else model.encoder.layer
    model.register_forward_pre_hook(look, with_kwargs=True)
    layers[0].register_forward_hook(drop)
    tokens = av.wrap(model, inputs=inputs).trace(inputs).query_tokens("picture")
    assert tokens.placed and tokens.labels[:2] == ("[CLS]", "0,0")
