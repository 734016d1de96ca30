"""What needs a model refuses a trace, which doesn't hold one, and says how to get it."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import attention_viz as av

CALLS: dict[str, Callable[[Any, av.Trace], object]] = {
    "effects": lambda model, trace: av.effects(model, trace, av.Logit("a")),
    "patch": lambda model, trace: av.patch(model, trace, trace, av.Logit("a")),
    "decompose": lambda model, trace: av.decompose(model, trace, av.Logit("a")),
    "circuits": lambda model, trace: av.circuits(model),
    "gradient": lambda model, trace: av.gradient(model, trace),
    "logit_lens": lambda model, trace: av.logit_lens(model, trace),
}


@pytest.fixture(scope="module")
def trace() -> av.Trace:
    return av.Trace.from_weights(torch.full((1, 2, 2), 0.5), ["a", "b"])


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", CALLS)
def test_a_trace_in_place_of_a_model_is_refused_with_the_way_to_the_model(name: str, trace: av.Trace) -> None:
    with pytest.raises(av.UnsupportedModel, match=r"got a trace of .*, which doesn't hold the model\..* av\.load"):
        CALLS[name](trace, trace)


def test_anything_else_in_place_of_a_model_is_named(trace: av.Trace) -> None:
    with pytest.raises(av.UnsupportedModel, match=r"model from av\.load or av\.wrap; got str"):
        CALLS["effects"]("SmolLM2-135M-Instruct", trace)
