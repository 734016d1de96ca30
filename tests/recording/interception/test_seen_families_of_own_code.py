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
OWN = {"cvt": ("picture", "picture 2", "picture 3"), "data2vec-vision": ("picture",)}


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
    return scaled(model, 8), example_of(model)


@pytest.mark.parametrize("name", OWN)
def test_weights_are_those_of_the_models_own_softmax(name: str) -> None:
    model, inputs = tiny(name)
    trace = av.wrap(model, inputs=inputs).trace(inputs)
    with torch.no_grad(), Softmaxes() as softmaxes:
        model(**inputs)
    theirs = [one.reshape(-1, *one.shape[-2:]) for one in softmaxes.found]
    assert trace.streams == OWN[name] and trace.fidelity.ok
    own = [layer.attention.weights for stream in trace.streams for layer in trace.layers[stream]]
    assert len(own) == len(theirs)
    for one, other in zip(own, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=2e-6)
    assert any(float(one.amax(-1).mean()) > 1.3 / one.shape[-1] for one in own)
