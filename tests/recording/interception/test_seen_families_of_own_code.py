"""Image and audio families that attend in code of their own: each weight is the one that their own softmax returns."""

import functools
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

import attention_viz as av
from scripts.seen.building import seen_families, tiny_seen
from scripts.seen.reading import example_of
from scripts.tiny import scaled

# The families, and the streams of each.
OWN = {
    "cvt": ("picture", "picture 2", "picture 3"),
    "dab-detr": ("picture", "pooling", "slots"),
    "data2vec-vision": ("picture",),
    "levit": ("picture", "picture 2", "picture 3", "picture 4", "picture 5"),
    "table-transformer": ("picture", "pooling", "slots"),
}


class Softmaxes(TorchFunctionMode):
    """Keeps what each softmax over four axes returns, and what torch's fused attention takes."""

    def __init__(self) -> None:
        super().__init__()
        self.found = list[Tensor]()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.__name__ == "scaled_dot_product_attention":
            query, key, value = args
            places = torch.eye(key.shape[-2]).expand(*value.shape[:-2], -1, -1)
            self.found.append(func(query, key, places, **(kwargs or {})))
        elif func.__name__ == "softmax" and result.ndim > 2:
            self.found.append(result)
        return result


@functools.cache
def tiny(name: str) -> tuple[Any, dict[str, Tensor]]:
    family = next(one for one in seen_families() if one.name == name)
    model = next(iter(tiny_seen(family)))
    if name == "levit":  # all of it scaled, its numbers would grow without end
        for weights in (one for one in model.parameters() if one.ndim == 4):
            weights.data *= 8
    return model if name == "levit" else scaled(model, 8), example_of(model)


@pytest.mark.parametrize("name", OWN)
def test_weights_are_those_of_the_models_own_softmax(name: str) -> None:
    model, inputs = tiny(name)
    trace = av.wrap(model, inputs=inputs).trace(inputs)
    with torch.no_grad(), Softmaxes() as softmaxes:
        model(**inputs)
    theirs = [one.reshape(-1, *one.shape[-2:]) for one in softmaxes.found]
    assert trace.streams == OWN[name] and trace.fidelity.ok
    own: list[Tensor] = [layer.attention.weights for stream in trace.streams for layer in trace.layers[stream]]
    assert len(own) == len(theirs)
    # The streams are in one order, the model's modules in another.
    for one in theirs:
        alike = [other for other in own if one.shape == other.shape]
        nearest = min(alike, key=lambda other: float((one - other).abs().max()))
        torch.testing.assert_close(nearest, one, rtol=1e-4, atol=2e-6)
        own = [other for other in own if other is not nearest]
    assert own == []
    assert any(float(one.amax(-1).mean()) > 1.3 / one.shape[-1] for one in theirs), "attention tells nothing here"
