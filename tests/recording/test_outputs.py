"""Which of the things that a model returns counts as its output, named; and what a model was given beside the ids."""

from pathlib import Path

import pytest
import torch

import attention_viz as av
from tests.models.families import PLAIN, build, built, eager_twin, ids, run
from tests.models.own_code import build_own

DPR = ("DPRQuestionEncoder", "DPRConfig", PLAIN | {"projection_dim": 0})


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("gpt2", "logits"),
        ("bert", "last_hidden_state"),
        ("dpr", "pooler_output"),
        ("mpnet", "logits"),
    ],
)
def test_the_output_is_what_the_model_calls_by_that_name(family: str, name: str) -> None:
    model = built(*DPR) if family == "dpr" else build_own(family) if family == "mpnet" else build(family)
    trace = av.wrap(model).trace_ids(ids(9))
    assert trace.provenance.output == name
    expected = run(model, input_ids=ids(9), attention_mask=torch.ones_like(ids(9)))[name]
    torch.testing.assert_close(trace.output, expected if expected.ndim == 2 else expected[0], rtol=1e-4, atol=1e-5)
    assert f"{name}, {' × '.join(map(str, trace.output.shape))}" in trace._repr_html_()
    assert trace.fidelity.ok


@pytest.mark.parametrize("padded", [slice(None, 3), slice(-3, None)])
def test_an_embedder_of_whole_texts_is_exact_with_padding(padded: slice) -> None:
    mask = torch.ones(1, 9, dtype=torch.long)
    mask[:, padded] = 0
    model = built(*DPR)
    trace = av.wrap(model).trace_ids(ids(9), mask)
    expected = run(eager_twin(model), input_ids=ids(9), attention_mask=mask, output_attentions=True)
    torch.testing.assert_close(trace.output, expected["pooler_output"], rtol=1e-4, atol=1e-5)
    real = mask[0].bool()
    for layer, weights in enumerate(expected["attentions"]):
        torch.testing.assert_close(trace.attention(layer).weights[:, real], weights[0][:, real], rtol=1e-4, atol=2e-6)


def test_two_outputs_side_by_side_are_both_named() -> None:
    trace = av.wrap(build("bert that answers")).trace_ids(ids(9))
    assert trace.provenance.output == "start_logits and end_logits"


def test_a_mask_that_nobody_passed_is_told() -> None:
    model = av.wrap(build("bert"))
    assert model.trace_ids(ids(9), torch.ones_like(ids(9))).provenance.added == ()
    trace = model.trace_ids(ids(9))
    assert trace.provenance.added == ("attention_mask",)
    assert "attention_mask: ones, so the model reads every position" in trace._repr_html_()
    answered = av.wrap(build("t5")).trace_ids(ids(9), decoder_input_ids=ids(5))
    assert answered.provenance.added == ("attention_mask", "decoder_attention_mask")


def test_a_model_that_computes_otherwise_without_a_mask_says_what_it_was_given() -> None:
    """Under eager attention this one looks ahead where no mask is given, and else doesn't."""
    model = built("Aimv2TextModel", "Aimv2TextConfig", PLAIN | {"eos_token_id": 3}, attn_implementation="eager")
    trace = av.wrap(model).trace_ids(ids(9))
    given = run(model, input_ids=ids(9), attention_mask=torch.ones_like(ids(9)))["last_hidden_state"][0]
    alone = run(model, input_ids=ids(9))["last_hidden_state"][0]
    assert not torch.allclose(given, alone, atol=1e-2 * float(given.abs().max()))
    torch.testing.assert_close(trace.output, given, rtol=1e-4, atol=1e-5 * float(given.abs().max()))
    assert trace.provenance.added == ("attention_mask",)


def test_a_file_keeps_what_the_output_is_and_what_was_added(tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    av.wrap(build("bert")).trace_ids(ids(5)).save(file)
    loaded = av.Trace.load(file)
    assert (loaded.provenance.output, loaded.provenance.added) == ("last_hidden_state", ("attention_mask",))
