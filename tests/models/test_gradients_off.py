"""No question is answered otherwise because its caller switched gradients off, or hooked them."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pandas as pd
import pytest
import torch
from torch import Tensor

import attention_viz as av
from attention_viz.models.model import AttentionModel
from tests.models.families import build
from tests.models.loading.test_load_folder import word_tokenizer

IDS, OTHER = [5, 17, 33, 42, 8], [5, 18, 33, 42, 9]
MODES: list[Callable[[], AbstractContextManager[object]]] = [
    torch.no_grad,
    torch.inference_mode,
    lambda: torch.set_grad_enabled(False),
]
QUESTIONS: dict[str, Callable[[AttentionModel, av.Trace], object]] = {
    "fidelity": lambda model, trace: float(trace.fidelity.ok),
    "circuits": lambda model, trace: av.circuits(model),
    "compositions": lambda model, trace: av.compositions(model),
    "copying": lambda model, trace: av.copying(model, ["the cat sat on the mat"]),
    "writes": lambda model, trace: av.writes(model, trace, 1, 0),
    "a logit": lambda model, trace: av.decompose(model, trace, av.Logit(3)).table,
    "a score": lambda model, trace: av.decompose(model, trace, av.Score(1, 0, 3, 2)).table,
    "pairs": lambda model, trace: av.decompose(model, trace, av.Score(1, 0, 3, 2)).joint(5),
    "fetched": lambda model, trace: av.decompose(model, trace, av.Logit(3)).fetched(),
    "through": lambda model, trace: av.decompose(model, trace, av.Logit(3)).through(1, 0),
    "sources": lambda model, trace: av.decompose(model, trace, av.Logit(3)).sources(1, 0),
    "a direction": lambda model, trace: (
        av.decompose(model, trace, av.Direction(torch.ones(trace.output.shape[1]))).table
    ),
    "patch": lambda model, trace: av.patch(model, trace, model.trace_ids(OTHER), av.Logit(3)),
    "patch, confirmed": lambda model, trace: av.patch(model, trace, model.trace_ids(OTHER), av.Logit(3), confirm=2),
    "effects": lambda model, trace: av.effects(model, trace, av.Logit(3)),
    "gradient": lambda model, trace: av.gradient(model, trace),
    "relevance": lambda model, trace: trace.relevance().layers["decoder"][0],
    "value zeroing": lambda model, trace: trace.value_zeroing()[0],
    "logit lens": lambda model, trace: av.logit_lens(model, trace),
    "norms": lambda model, trace: av.norm_weighted(model, trace, 1),
    "a matrix": lambda model, trace: model.projections(0)["value"].weight,
    "going on": lambda model, trace: next(iter(model.extend(trace))).output,
}


def _numbers(answer: object) -> Tensor:
    if isinstance(answer, pd.DataFrame):
        return torch.tensor(answer.select_dtypes("number").fillna(0).to_numpy(dtype=float))
    return torch.as_tensor(answer).detach().clone().double()


@pytest.fixture(scope="module")
def model() -> AttentionModel:
    return av.wrap(build("llama"), word_tokenizer())


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_caller_that_switched_gradients_off_gets_the_same_answer(name: str, model: AttentionModel) -> None:
    expected = _numbers(QUESTIONS[name](model, model.trace_ids(IDS)))
    for mode in MODES:
        with mode():
            trace = model.trace_ids(IDS)
            found = _numbers(QUESTIONS[name](model, trace))
        torch.testing.assert_close(found, expected)
        # Outside, of a trace that was made inside.
        torch.testing.assert_close(_numbers(QUESTIONS[name](model, trace)), expected)


@pytest.mark.parametrize(
    "hook", ["register_full_backward_hook", "register_full_backward_pre_hook", "register_backward_hook"]
)
def test_others_backward_hooks_change_no_decomposition(hook: str, model: AttentionModel) -> None:
    hooked = build("llama")
    hooked.load_state_dict(model.hf_model.state_dict())
    expected = av.decompose(model, model.trace_ids(IDS), av.Logit(3)).table
    calls: list[object] = []
    getattr(hooked.get_submodule("model.layers.0"), hook)(lambda *_any: calls.append(None))
    wrapped = av.wrap(hooked)
    found = av.decompose(wrapped, wrapped.trace_ids(IDS), av.Logit(3)).table
    torch.testing.assert_close(_numbers(found), _numbers(expected))
    assert not calls
