"""Terms that only some families have: keys that a query chose, values in two halves, sinks that act on the output.

Each is compared with what transformers' eager attention itself hands back.
"""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS, PreTrainedModel

import attention_viz as av
from attention_viz.errors import UnsupportedModel
from attention_viz.recording.interface import _attention  # pyright: ignore[reportPrivateUsage] -- the function itself
from scripts.tiny import Family, tiny
from tests.models.families import eager_twin, ids

COUNT = 13
MASKS = {"unpadded": (0, 0), "padded left": (3, 0), "padded right": (0, 3)}


def plain(model: PreTrainedModel, mask: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    with torch.no_grad():
        result: Any = eager_twin(model)(input_ids=ids(COUNT), attention_mask=mask, output_attentions=True)
    return result.logits[0], tuple(layer[0] for layer in result.attentions)


@pytest.fixture(params=sorted(MASKS))
def mask(request: pytest.FixtureRequest) -> Tensor:
    left, right = MASKS[request.param]
    return torch.tensor([[0] * left + [1] * (COUNT - left - right) + [0] * right])


def test_keys_that_a_query_did_not_choose_are_blocked(mask: Tensor) -> None:
    model = tiny(Family("deepseek_v32", "DeepseekV32ForCausalLM"), scale=2)
    trace = av.wrap(model).trace_ids(ids(COUNT), mask)
    output, weights = plain(model, mask)
    real = mask[0].bool()
    for layer, theirs in enumerate(weights):
        ours = trace.attention(layer).weights
        assert_close(ours[:, real], theirs[:, real], rtol=0, atol=1e-5)
        # The tiny model chooses 4 of the keys that a query may see, so the later rows leave some out.
        assert int((ours[0, real] > 0).sum(dim=-1).max()) == 4
    assert_close(trace.output[real], output[real], rtol=1e-4, atol=1e-4)


def test_values_in_two_halves_are_one_layer(mask: Tensor) -> None:
    model = tiny(Family("diffllama", "DiffLlamaForCausalLM"), scale=2)
    trace = av.wrap(model).trace_ids(ids(COUNT), mask)
    output, weights = plain(model, mask)
    real = mask[0].bool()
    assert trace.layer_count() == len(weights) == 2
    for layer, theirs in enumerate(weights):
        attention = trace.attention(layer)
        assert attention.value.shape[-1] == 2 * attention.query.shape[-1]
        assert_close(attention.weights[:, real], theirs[:, real], rtol=0, atol=1e-5)
    assert_close(trace.output[real], output[real], rtol=1e-4, atol=1e-4)


def test_a_mask_in_a_layer_of_two_halves_acts_on_both() -> None:
    model = av.wrap(tiny(Family("diffllama", "DiffLlamaForCausalLM"), scale=2))
    closed = torch.ones(COUNT, COUNT, dtype=torch.bool)
    closed[5:, 2] = False
    before = model.trace_ids(ids(COUNT))
    after = model.trace_ids(ids(COUNT), edits=[av.Allow(closed, layer=0)])
    assert not after.attention(0).weights[:, 5:, 2].any()
    # Of what the first layer hands on, nothing comes from the blocked cell: both halves of its values lost it.
    expected = after.attention(0).weights @ before.attention(0).value.repeat_interleave(
        before.head_count(0) // before.attention(0).value.shape[0], dim=0
    )
    assert_close(after.attention(0).output, expected, rtol=1e-4, atol=1e-5)
    assert not torch.equal(after.output, before.output)


def test_a_sink_that_acts_on_the_output_is_shown_in_the_weights(mask: Tensor) -> None:
    model = tiny(Family("granite_swa", "GraniteSWAForCausalLM"), scale=2)
    trace = av.wrap(model).trace_ids(ids(COUNT), mask)
    output, weights = plain(model, mask)
    real = mask[0].bool()
    for layer, theirs in enumerate(weights):
        ours = trace.attention(layer).weights[:, real]
        shares = ours.sum(dim=-1, keepdim=True)
        assert float(shares.max()) < 1
        # What eager hands back is the weights before the sink takes its share.
        assert_close(ours / shares, theirs[:, real], rtol=0, atol=1e-5)
    assert_close(trace.output[real], output[real], rtol=1e-4, atol=1e-4)


def test_a_sink_that_takes_another_share_than_the_models_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny(Family("granite_swa", "GraniteSWAForCausalLM"), scale=2)

    def another_sink(*terms: Tensor, s_aux: Tensor, **options: Any) -> tuple[Tensor, None]:
        return _attention(*terms, s_aux=s_aux + 1, **options)  # pyright: ignore[reportArgumentType]

    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS, "attention_viz", another_sink)
    with pytest.raises(UnsupportedModel, match="gives another result with our attention"):
        av.wrap(model)


def test_a_hybrid_says_which_of_its_layers_have_no_attention() -> None:
    model = av.wrap(tiny(Family("jamba", "JambaForCausalLM")))
    assert model.heads == {"decoder": (4,)}
    assert model.layers_without_attention == ("0",)
    trace = model.trace_ids(ids(5))
    assert model.layer_numbers() == trace.layer_numbers() == (1,) and trace.label(1) == "1"
    for told in (repr(model), repr(trace)):
        assert "layer 0 has no softmax attention" in told
    assert av.wrap(tiny(Family("llama", "LlamaForCausalLM"))).layers_without_attention == ()
