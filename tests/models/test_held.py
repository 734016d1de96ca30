"""Quantized, offloaded and adapted models answer as the same numbers in plain parameters do, or say why they can't."""

import copy
from collections.abc import Callable

import pandas
import pytest
import torch
from torch import Tensor

import attention_viz as av
from attention_viz.models.model import AttentionModel
from attention_viz.recording.recorder import Recorder
from tests.models.families import build
from tests.models.held import HELD, dense, dynamic, held

IDS = [5, 17, 33, 42, 8, 61]
pytestmark = [
    pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing:FutureWarning"),  # peft asks for it
    pytest.mark.filterwarnings("ignore:torch.ao.quantization is deprecated", "ignore:torch.quantize_per_tensor"),
    pytest.mark.filterwarnings("ignore:.*autograd kernel was not registered"),
]

ANSWERS: dict[str, Callable[[AttentionModel, av.Trace], pandas.DataFrame | Tensor]] = {
    "output": lambda model, trace: trace.output,
    "going on": lambda model, trace: list(model.extend(trace, 2))[-1].output,
    "candidates": lambda model, trace: model.candidates(trace)[["id", "probability"]],
    "effects": lambda model, trace: av.effects(model, trace, av.Logit(7)).sort_index(),
    "logit lens": lambda model, trace: av.logit_lens(model, trace, token=7)[["probability"]],
    "circuits": lambda model, trace: av.circuits(model),
    "compositions": lambda model, trace: av.compositions(model),
    "projections": lambda model, trace: torch.cat([one.weight.flatten() for one in model.projections(1).values()]),
    "norms": lambda model, trace: av.norm_weighted(model, trace, 1),
    "sinks": lambda model, trace: av.attention_sinks(model, trace),
    "writes": lambda model, trace: av.writes(model, trace, 1, 0)[["id", "logit"]],
    "a logit opened": lambda model, trace: av.decompose(model, trace, av.Logit(7)).fetched()[["contribution"]],
    "gradients": lambda model, trace: av.gradient(model, trace),
    "value zeroing": lambda model, trace: torch.stack(trace.value_zeroing()),
    "what leaves the layers": lambda model, trace: trace.layer(1).joined,
}


@pytest.fixture(scope="module")
def known() -> dict[str, tuple[AttentionModel, AttentionModel]]:
    return {}


@pytest.mark.parametrize("what", ANSWERS)
@pytest.mark.parametrize("name", HELD)
def test_a_model_answers_as_its_numbers_in_plain_parameters_do(
    name: str, what: str, known: dict[str, tuple[AttentionModel, AttentionModel]]
) -> None:
    if name not in known:
        known[name] = av.wrap(held(name)), av.wrap(dense(name))
    ours, expected = (
        torch.as_tensor(found.to_numpy(copy=True) if isinstance(found, pandas.DataFrame) else found).double()
        for model in known[name]
        for found in [ANSWERS[what](model, model.trace_ids(IDS))]
    )
    size = float(expected.nan_to_num().abs().max())
    assert torch.allclose(ours, expected, rtol=1e-4, atol=1e-4 * size, equal_nan=True)
    assert known[name][0].trace_ids(IDS).fidelity.ok


@pytest.fixture(scope="module")
def rounding() -> AttentionModel:
    return av.wrap(dynamic(copy.deepcopy(build("llama"))))


@pytest.mark.parametrize("what", ["output", "going on", "candidates", "effects", "logit lens"])
def test_a_model_with_a_quantized_head_says_words(rounding: AttentionModel, what: str) -> None:
    trace = rounding.trace_ids(IDS)
    assert rounding.predicts and trace.fidelity.ok
    assert len(ANSWERS[what](rounding, trace))
    chosen = int(rounding.hf_model(torch.tensor([IDS])).logits[0, -1].argmax())
    assert rounding.candidates(trace)["id"][0] == chosen


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("circuits", "W_V and W_O of .* are not one matrix .*: DynamicQuantizedLinear rounds its input"),
        ("compositions", "DynamicQuantizedLinear rounds its input"),
        ("norms", "W_O.*DynamicQuantizedLinear rounds its input"),
        ("writes", "can't decompose its output .*all of it goes through a step"),
        ("a logit opened", "can't decompose the output of this number"),
        ("gradients", "torch has no derivative of some function"),
    ],
)
def test_what_rounded_activations_keep_from_being_known_is_refused_with_that_reason(
    rounding: AttentionModel, what: str, message: str
) -> None:
    with pytest.raises((av.UnsupportedModel, av.TraceError), match=message):
        ANSWERS[what](rounding, rounding.trace_ids(IDS))
    assert not rounding.projections(0)


def test_what_a_model_says_is_told_by_its_output_and_not_by_how_its_head_is_kept() -> None:
    assert not av.wrap(build("bert that classifies")).predicts
    assert av.wrap(build("bert with a head")).predicts
    with pytest.raises(
        av.UnsupportedModel, match=r"its output, last_hidden_state, has 11 × 20 numbers for the 11 tokens"
    ):
        model = av.wrap(build("bert"))
        av.logit_lens(model, model.trace_ids(IDS))


def test_an_encoder_does_not_go_on_since_it_looks_ahead() -> None:
    with pytest.raises(
        av.UnsupportedModel, match=r"can't continue a text, because its attention \(encoder\) looks ahead"
    ):
        next(iter(av.wrap(build("bert with a head")).generate("a")))


def test_a_model_that_runs_is_not_said_not_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_args: object) -> None:
        raise RuntimeError("lost its way")

    monkeypatch.setattr(Recorder, "hear", broken)
    said = r"runs, but not with our attention: model\.layers\.0\.self_attn \(LlamaAttention\) fails"
    with pytest.raises(av.UnsupportedModel, match=said):
        av.wrap(build("llama"))
