"""The residual stream through a layer, and a run's end, against plain transformers: its hidden states and outputs."""

from typing import Any

import pytest
import torch
import transformers
from torch import Tensor
from torch.nn.functional import normalize
from torch.testing import assert_close

import attention_viz as av
from attention_viz.circuits.layers.ending import ending
from attention_viz.circuits.layers.layer_flow import layer_flow
from attention_viz.errors import TraceError, UnsupportedModel
from tests.models.families import PLAIN, build, ids
from tests.recording.mixers import hybrids
from tests.shipped import MINILM, SMOLLM2, plain, shipped

STORY = "When Mary and John went to the store, John gave a drink to"
RIVER = "The bank of the river was flooded"
# How the layer's kind orders its norms; the module whose output is the attention's, and the one whose output is added
# last, by the family's own names.
LAYERS = {
    "bert": ("post-norm", "encoder.layer.1.attention.output.dense", "encoder.layer.1.output.dense"),
    "llama": ("pre-norm", "model.layers.1.self_attn.o_proj", "model.layers.1.mlp"),
    "gemma2": ("pre-norm", "model.layers.1.post_attention_layernorm", "model.layers.1.post_feedforward_layernorm"),
    "gpt_oss": ("pre-norm", "model.layers.1.self_attn.o_proj", "model.layers.1.mlp"),
    "gpt_neox": ("parallel", "gpt_neox.layers.1.attention.dense", "gpt_neox.layers.1.mlp"),
}


def by_hand(model: Any, given: Tensor, names: tuple[str, str]) -> tuple[list[Tensor], list[Tensor]]:
    """A plain run's hidden states, and what two of its modules return."""
    found = list[Tensor]()
    for name in names:
        model.get_submodule(name).register_forward_hook(
            lambda _module, _inputs, output: found.append((output[0] if isinstance(output, tuple) else output)[0])
        )
    with torch.no_grad():
        states = model(given, output_hidden_states=True).hidden_states
    return [one[0] for one in states], [one.view(states[0].shape[1:]) for one in found]


@pytest.mark.parametrize("family", LAYERS)
def test_a_layers_stream_is_that_of_plain_transformers(family: str) -> None:
    order, *names = LAYERS[family]
    states, (attention, mlp) = by_hand(build(family).eval(), ids(9), (names[0], names[1]))
    flow = layer_flow(av.wrap(build(family)).trace_ids(ids(9)), 1)
    assert flow.order == order and flow.own == 0
    assert flow.parts[-1].kind == ("mixture of experts" if family == "gpt_oss" else "MLP")
    for ours, theirs in (
        (flow.entered, states[1]),
        (flow.parts[0].added, attention),
        (flow.parts[0].total, states[1] + attention),
        (flow.parts[-1].added, mlp),
        (flow.left, states[2]),
    ):
        assert_close(ours, theirs, atol=1e-4, rtol=1e-4)
    # Control: the layer's output isn't the same without either addition.
    before = flow.parts[-1].total
    assert not torch.allclose(before, states[1] + attention, atol=1e-3)
    assert not torch.allclose(before, states[1] + mlp, atol=1e-3)


def test_each_layer_of_the_models_that_ship_is_read_and_begins_where_the_one_before_ended() -> None:
    for name, text in ((MINILM, RIVER), (SMOLLM2, STORY), ("induction", "red cat blue dog red")):
        trace = shipped(name).trace(text)
        layers = trace.layer_numbers()
        flows = [layer_flow(trace, layer) for layer in (layers[0], layers[1])]
        assert_close(flows[1].entered, flows[0].left, atol=1e-5, rtol=1e-5)
        joined = trace.layer(layers[1]).joined
        assert joined is not None
        assert_close(flows[1].parts[flows[1].own].added, joined, atol=1e-4, rtol=1e-4)


def test_cross_attention_is_the_second_of_three_additions() -> None:
    trace = shipped("translation").trace("the boy")
    for stream, own in (("decoder", 0), ("cross", 1)):
        flow = layer_flow(trace, 0, stream)
        assert (flow.own, len(flow.parts), flow.parts[-1].kind) == (own, 3, "MLP")


MIXERS = {
    "qwen3_next": ("pre-norm", "mixture of experts", "model.layers.0.linear_attn", "model.layers.0.mlp"),
    "bamba": ("pre-norm", "MLP", "model.layers.0.mamba", "model.layers.0.feed_forward"),
    "fnet": ("post-norm", "MLP", "fnet.encoder.layer.0.fourier.self", "fnet.encoder.layer.0.output.dense"),
}


@pytest.mark.parametrize("family", MIXERS)
def test_a_mixers_stream_is_that_of_plain_transformers(family: str) -> None:
    order, feeding, *names = MIXERS[family]
    states, (mixer, mlp) = by_hand(hybrids.build(family), ids(9), (names[0], names[1]))
    trace = av.wrap(hybrids.build(family)).trace_ids(ids(9))
    flow = layer_flow(trace, 0, "mixer")
    assert (flow.order, flow.own) == (order, 0)
    assert [part.kind for part in flow.parts] == ["mixer", feeding]
    for ours, theirs in (
        (flow.entered, states[0]),
        (flow.parts[0].added, mixer),
        (flow.parts[0].total, states[0] + mixer),
        (flow.parts[-1].added, mlp),
    ):
        assert_close(ours, theirs, atol=1e-3, rtol=1e-4)
    if family != "fnet":
        assert_close(flow.left, states[0] + mixer + mlp, atol=1e-3, rtol=1e-4)
        assert layer_flow(trace, 1, "decoder").parts[0].kind == "attention"
    # Control: the layer's output isn't the same without the mixer.
    assert not torch.allclose(flow.left, flow.left - mixer, atol=1e-2)
    kind = "words" if family == "fnet" else "next words"
    assert ending(trace, "mixer", [3]).kind == kind


def test_an_edited_mixer_is_followed_as_it_ran() -> None:
    model = shipped("recall-mamba")
    text = "hugo pink , ida gold . ida ?"
    whole, cut = (
        layer_flow(model.trace(text, edits=edits), 1, "mixer") for edits in ([], [av.Ablate(1, 1, "zero", "mixer")])
    )
    assert [part.kind for part in whole.parts] == ["mixer"]
    assert_close(whole.entered, cut.entered)
    assert_close(whole.entered + whole.parts[0].added, whole.left)
    assert not torch.allclose(whole.left, cut.left, atol=1e-3)


def test_an_edited_run_is_followed_as_it_ran() -> None:
    model = shipped("induction")
    text = "red cat blue dog red"
    whole, cut = (layer_flow(model.trace(text, edits=edits), 1) for edits in ([], [av.Ablate(1, 1)]))
    assert_close(whole.entered, cut.entered)
    assert not torch.allclose(whole.left, cut.left, atol=1e-3)


def test_a_layer_that_scales_what_it_adds_is_refused_by_name() -> None:
    sizes = PLAIN | {"num_key_value_heads": 5, "residual_multiplier": 0.5}
    torch.manual_seed(0)
    model = transformers.GraniteForCausalLM(transformers.GraniteConfig(**sizes)).eval()
    with pytest.raises(UnsupportedModel, match=r"this model's layer isn't read here: layer 1 of .* isn't its"):
        layer_flow(av.wrap(model).trace_ids(ids(9)), 1)
    with pytest.raises(TraceError, match="with its model"):
        layer_flow(av.scratch("the cat"), 0)


def test_a_decoder_ends_in_its_likeliest_words_and_a_sentence_model_in_its_vector() -> None:
    trace = shipped(SMOLLM2).trace(STORY)
    end = ending(trace, "decoder", [2, 13])
    with torch.no_grad():
        body = plain(SMOLLM2)
        hidden = body(torch.tensor([trace.query_tokens().ids])).last_hidden_state[0]
        # Its word head has the numbers of its embeddings.
        likely = (hidden @ body.get_input_embeddings().weight.T).softmax(dim=-1)
    assert end.kind == "next words" and end.words[13][0][0].strip("· ") == "Mary"
    for place, words in end.words.items():
        assert_close(torch.tensor([one for _, one in words]), likely[place].topk(5).values, atol=1e-4, rtol=1e-3)
    trace = shipped(MINILM).trace(RIVER)
    end = ending(trace, "encoder", range(9))
    with torch.no_grad():
        hidden = plain(MINILM)(torch.tensor([trace.query_tokens().ids])).last_hidden_state[0]
    assert end.kind == "sentence" and end.vectors is not None and end.made == "mean of all tokens, length 1"
    assert_close(end.vectors[0], normalize(hidden.mean(dim=0), dim=0), atol=1e-5, rtol=1e-4)
    assert not torch.allclose(end.vectors[0], normalize(hidden[0], dim=0), atol=1e-3)


def test_an_encoder_of_no_known_sentence_vector_ends_in_its_tokens_own() -> None:
    trace = av.wrap(build("bert")).trace_ids(ids(9))
    end = ending(trace, "encoder", [3])
    assert end.kind == "token" and end.vectors is not None
    assert_close(end.vectors[0], trace.output[3].float())
