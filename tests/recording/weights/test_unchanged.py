"""What is asked of a trace later is answered by the model that ran, or refused: by no other model's numbers."""

from collections.abc import Callable
from pathlib import Path

import peft
import pytest
import torch
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM

import attention_viz as av
from attention_viz.analysis.readings import read
from attention_viz.models.model import AttentionModel
from tests.models.families import build

IDS = [5, 17, 33, 42, 8]
REFUSED = "has changed since this trace was made; trace the text again"

QUESTIONS: dict[str, Callable[[AttentionModel, av.Trace], object]] = {
    "fidelity": lambda model, trace: trace.fidelity,
    "fidelity of one stream": lambda model, trace: trace.derived().fidelity,
    "norms": lambda model, trace: av.norm_weighted(model, trace, 0),
    "norms of a derived trace": lambda model, trace: av.norm_weighted(model, trace.derived(), 0),
    "sinks": lambda model, trace: av.attention_sinks(model, trace),
    "whole layers": lambda model, trace: trace.whole_layers,
    "a head's tensors": lambda model, trace: trace.layer(0),
    "value zeroing": lambda model, trace: trace.value_zeroing(),
    "relevance": lambda model, trace: trace.relevance(),
    "gradient": lambda model, trace: av.gradient(model, trace),
    "decompose": lambda model, trace: av.decompose(model, trace, av.Logit(3)),
    "writes": lambda model, trace: av.writes(model, trace, 0, 1),
    "logit lens": lambda model, trace: av.logit_lens(model, trace),
    "effects": lambda model, trace: av.effects(model, trace, av.Logit(3), heads=[(0, 1)]),
    "patching": lambda model, trace: av.patch(model, trace, trace, av.Logit(3)),
    "going on": lambda model, trace: next(iter(model.extend(trace))),
    "repeated tokens": lambda model, trace: av.head_table([trace], repeated_random=True),
    **{
        f"the reading {name}": lambda model, trace, name=name: read(name, trace, model) for name in ("norm", "gradient")
    },
    "the reading zeroing": lambda model, trace: read("zeroing", trace),
    "a file": lambda model, trace: trace.save(Path("never-written")),
}


@pytest.fixture
def model() -> AttentionModel:
    return av.wrap(build("llama"))


def step(model: nn.Module) -> None:
    """A step of training as some write it, by way of `.data`, which no tensor's version counts."""
    model.get_submodule("model.layers.0.self_attn.o_proj").weight.data *= 10


@pytest.mark.parametrize("name", QUESTIONS)
def test_after_a_training_step_no_question_is_answered_with_the_new_weights(name: str, model: AttentionModel) -> None:
    trace = model.trace_ids(IDS)
    step(model.hf_model)
    with pytest.raises(av.TraceError, match=REFUSED):
        QUESTIONS[name](model, trace)


@pytest.mark.parametrize("name", [name for name in QUESTIONS if name != "a file"])
def test_an_untouched_model_answers_every_question(name: str, model: AttentionModel) -> None:
    QUESTIONS[name](model, model.trace_ids(IDS))


def test_a_step_of_an_optimiser_is_noticed_even_if_it_is_smaller_than_rounding(model: AttentionModel) -> None:
    trace = model.trace_ids(IDS)
    optimiser = torch.optim.SGD(model.hf_model.parameters(), lr=1e-7)
    model.hf_model(torch.tensor([IDS]), labels=torch.tensor([IDS])).loss.backward()
    optimiser.step()
    with pytest.raises(av.TraceError, match=REFUSED):
        _ = trace.fidelity


def test_what_was_asked_before_the_change_stays(model: AttentionModel) -> None:
    trace = model.trace_ids(IDS)
    fidelity, kept = trace.fidelity, model.trace_ids(IDS).detached()
    step(model.hf_model)
    assert trace.fidelity is fidelity and trace.derived().fidelity.ok and kept.fidelity.ok
    assert model.trace_ids(IDS).fidelity.ok


def test_weights_that_are_put_back_are_the_same_model(model: AttentionModel) -> None:
    trace = model.trace_ids(IDS)
    before = {name: one.clone() for name, one in model.hf_model.state_dict().items()}
    step(model.hf_model)
    model.hf_model.load_state_dict(before)
    assert trace.fidelity.ok


def test_one_number_that_changes_is_noticed_by_the_tensors_version(model: AttentionModel) -> None:
    trace = model.trace_ids(IDS)
    with torch.no_grad():
        model.hf_model.get_submodule("model.layers.1.mlp.up_proj").weight[7, 3] += 5
    with pytest.raises(av.TraceError, match=REFUSED):
        _ = trace.fidelity


def test_a_hook_that_changes_what_is_computed_is_noticed_and_one_that_listens_is_not(model: AttentionModel) -> None:
    layer = model.hf_model.get_submodule("model.layers.0.mlp")
    heard, steered = model.trace_ids(IDS), model.trace_ids(IDS)
    handle = layer.register_forward_hook(lambda module, inputs, output: None)
    assert heard.fidelity.ok
    handle.remove()
    layer.register_forward_hook(lambda module, inputs, output: output * 2)
    with pytest.raises(av.TraceError, match=REFUSED):
        _ = steered.fidelity


def test_training_between_two_tokens_ends_a_text_that_is_gone_on_with(model: AttentionModel) -> None:
    traces = model.extend(model.trace_ids(IDS), 3)
    next(traces)
    step(model.hf_model)
    with pytest.raises(av.TraceError, match=REFUSED):
        next(traces)


@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing:FutureWarning")  # peft asks for it
def test_another_adapter_is_another_model_until_the_first_is_active_again() -> None:
    config = peft.LoraConfig(r=2, init_lora_weights=False, target_modules=["v_proj"])
    adapted = peft.get_peft_model(build("llama"), config).eval()
    adapted.add_adapter("other", config)
    model = av.wrap(adapted.base_model.model)
    first, second = model.trace_ids(IDS), model.trace_ids(IDS)
    adapted.set_adapter("other")
    with pytest.raises(av.TraceError, match=REFUSED):
        _ = first.fidelity
    with pytest.raises(av.TraceError, match=REFUSED):
        av.norm_weighted(model, first, 0)
    adapted.set_adapter("default")
    assert first.fidelity.ok
    with adapted.disable_adapter(), pytest.raises(av.TraceError, match=REFUSED):
        _ = second.fidelity
    assert second.fidelity.ok


def _other_row(model: nn.Module) -> None:
    """A row of a table that the text looks up; few of its numbers are among those that are compared of every table."""
    model.get_submodule("model.embed_tokens").weight.data[IDS[1]] = torch.randn(32) * 3


def _other_column_of_words(model: nn.Module) -> None:
    model.get_submodule("lm_head").weight.data[IDS[1]] = torch.randn(32) * 3


def _forward_replaced(model: nn.Module) -> None:
    part = model.get_submodule("model.layers.0.mlp")
    before = part.forward
    part.forward = lambda x: before(x) * 3


def _unseen(model: nn.Module) -> None:
    """A number that is compared nowhere: only the run itself shows it."""
    part = model.get_submodule("model.layers.0.mlp.act_fn")
    hidden = [3.0]

    def scale(_part: nn.Module, _inputs: object, output: Tensor) -> Tensor:
        return output * hidden[0]

    scale.__module__ = "attention_viz.hidden"
    part.register_forward_hook(scale)


SMALL = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
CHANGES = [_other_row, _other_column_of_words, _forward_replaced, _unseen]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["fidelity", "going on", "logit lens"])
def test_a_change_is_named_as_one_wherever_it_is(name: str, change: Callable[[nn.Module], None]) -> None:
    torch.manual_seed(0)
    model = av.wrap(LlamaForCausalLM(LlamaConfig(vocab_size=4000, **SMALL)).eval())
    trace = model.trace_ids(IDS)
    change(model.hf_model)
    if name == "going on" and change is _unseen:  # no run is made for that; what follows can't be verified
        longer = list(model.extend(trace, 1))[-1]
        with pytest.raises(av.TraceError, match=REFUSED):
            _ = longer.fidelity
        return
    with pytest.raises(av.TraceError, match=REFUSED):
        QUESTIONS[name](model, trace)


@pytest.mark.parametrize("name", ["fidelity", "going on"])
def test_another_forward_of_a_class_is_noticed(
    name: str, model: AttentionModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = model.trace_ids(IDS)
    kind = type(model.hf_model.get_submodule("model.layers.0.mlp"))
    before = kind.forward
    monkeypatch.setattr(kind, "forward", lambda self, x: before(self, x) * 3)
    with pytest.raises(av.TraceError, match=REFUSED):
        QUESTIONS[name](model, trace)
