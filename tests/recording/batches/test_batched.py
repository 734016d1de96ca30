import functools
from typing import Any

import torch

import attention_viz as av
from attention_viz.models.model import AttentionModel


def test_a_pass_over_several_texts_ends_also_in_a_model_that_catches_every_exception() -> None:
    model = av.load("coreference")
    assert isinstance(model, AttentionModel)
    texts = ["the dog saw the cat", "the cat slept"]
    alone = [model.trace(text) for text in texts]
    went_on = list[str]()
    for number, module in enumerate(model.hf_model.modules()):
        if type(module).__name__.endswith("Attention"):
            module.forward = functools.partial(_careful, module.forward, went_on, number)
    together = model.trace_together(texts, layers=[0])
    assert went_on == []
    for one, other in zip(together, alone, strict=True):
        assert torch.allclose(one.weights(0, 0), other.weights(0, 0), atol=1e-6)


def _careful(forward: Any, went_on: list[str], number: int, *args: Any, **named: Any) -> Any:
    """Run a module as code that hides every failure of its own would."""
    try:
        return forward(*args, **named)
    except Exception as error:
        went_on.append(f"{number}: {error!r}")
        raise RuntimeError("the attention of this model failed") from None
