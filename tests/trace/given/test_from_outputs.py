"""Traces of transformers' outputs, against the same model's pass over the whole text."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import (
    BertConfig,
    BertModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)
from transformers.models.led.modeling_led import LEDEncoderBaseModelOutput
from transformers.models.longformer.modeling_longformer import LongformerBaseModelOutput
from transformers.models.perceiver.modeling_perceiver import PerceiverModelOutput
from transformers.models.swin.modeling_swin import SwinModelOutput

import attention_viz as av
from attention_viz.explorer.payload import pack

IDS = torch.arange(3, 10)[None]
WORDS = "a cat saw a dog run home".split()
PLAIN: dict[str, Any] = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "vocab_size": 50}
SIZE: dict[str, Any] = {**PLAIN, "intermediate_size": 64, "max_position_embeddings": 64, "initializer_range": 0.3}
GROUPED: dict[str, Any] = {**SIZE, "num_key_value_heads": 2}
T5 = T5Config(d_model=32, d_kv=8, num_layers=2, num_heads=4, d_ff=64, vocab_size=50, decoder_start_token_id=0)
KINDS: dict[str, Any] = {
    "llama": (LlamaForCausalLM, LlamaConfig(**GROUPED)),
    "mistral": (MistralForCausalLM, MistralConfig(**GROUPED, sliding_window=4)),
    "bert": (BertModel, BertConfig(**SIZE)),
    "t5": (T5ForConditionalGeneration, T5),
}


def model(name: str) -> Any:
    kind, config = KINDS[name]
    torch.manual_seed(0)
    made = kind(config).eval()
    made.set_attn_implementation("eager")
    return made


def run(name: str, ids: Tensor = IDS, **more: Any) -> Any:
    with torch.no_grad():
        return model(name)(ids, output_attentions=True, **more)


def generated(name: str, ids: Tensor = IDS, **more: Any) -> Any:
    flags = {"output_attentions": True, "return_dict_in_generate": True, "pad_token_id": 0}
    with torch.no_grad():
        return model(name).generate(ids, max_new_tokens=6, **{"do_sample": False, **flags, **more})


def difference(trace: av.Trace, weights: Any, stream: str | None = None) -> float:
    pairs = enumerate(weights)
    return max(float((trace.attention(layer, stream).weights - one[0]).abs().max()) for layer, one in pairs)


@pytest.mark.parametrize(("name", "stream"), [("llama", "decoder"), ("bert", "encoder")])
def test_a_models_weights_are_those_that_it_returned(name: str, stream: str) -> None:
    outputs = run(name)
    trace = av.Trace.from_outputs(outputs, WORDS)
    assert trace.streams == (stream,) and difference(trace, outputs.attentions) <= 1e-6
    assert trace.query_tokens().labels == tuple(WORDS)
    result = outputs.logits if name == "llama" else outputs.last_hidden_state
    assert torch.equal(trace.output, result[0])
    assert trace.provenance.output == ("logits" if name == "llama" else "last_hidden_state")
    assert "no model ran here" in trace.provenance.notes[0] and "transformers" in trace.provenance.versions
    assert not trace.fidelity.ok and "rows sum to 1 within" in trace.fidelity.reference
    assert trace.fidelity.weight_error is not None and trace.fidelity.weight_error <= 1e-6
    assert av.findings(trace) and len(av.head_table(trace)) == 8 and len(trace.table()) == 2 * 4 * 49
    assert pack(trace) and av.views.heatmap(trace, 1, 2)


def test_a_dict_of_the_fields_is_taken_and_a_row_of_a_batch_is_chosen() -> None:
    both = run("llama", torch.cat([IDS, IDS.flip(1)]))
    with pytest.raises(av.ShapeError, match="batch=0 to 1"):
        av.Trace.from_outputs(both)
    trace = av.Trace.from_outputs(dict(both), batch=1)
    assert difference(trace, run("llama", IDS.flip(1)).attentions) <= 1e-5
    assert torch.equal(trace.output, both.logits[1])


def test_an_encoder_decoder_has_three_streams() -> None:
    outputs = run("t5", decoder_input_ids=IDS[:, :4])
    trace = av.Trace.from_outputs(outputs, WORDS, WORDS[:4])
    assert trace.streams == ("encoder", "decoder", "cross")
    for stream in trace.streams:
        assert difference(trace, outputs[f"{stream}_attentions"], stream) <= 1e-6
    assert trace.query_tokens("cross").labels == tuple(WORDS[:4]) and trace.key_tokens("cross").labels == tuple(WORDS)
    assert torch.equal(trace.output, outputs.logits[0])


@pytest.mark.parametrize("name", ["llama", "mistral"])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"use_cache": False},
        {"cache_implementation": "static"},
        {"num_beams": 3, "num_return_sequences": 2},
        {"do_sample": True, "num_return_sequences": 2},
    ],
    ids=["cache", "no cache", "static cache", "beams", "samples"],
)
def test_steps_of_a_generation_join_to_the_rows_of_one_pass(name: str, more: dict[str, Any]) -> None:
    if name == "mistral" and "num_return_sequences" in more:
        more = {**more, "num_beams": 2}
    outputs = generated(name, **more)
    for row in range(len(outputs.sequences)):
        trace = av.Trace.from_outputs(outputs, batch=row)
        read = outputs.sequences[row : row + 1, : len(trace.query_tokens())]
        assert trace.query_tokens().ids == tuple(read[0].tolist()) and read.shape[1] == 12
        assert difference(trace, run(name, read).attentions) <= 1e-5
        assert trace.provenance.generated_in_words == "5 tokens generated elsewhere"


@pytest.mark.parametrize("more", [{}, {"num_beams": 3, "num_return_sequences": 2}], ids=["greedy", "beams"])
def test_a_generation_of_an_encoder_decoder_joins_each_stream(more: dict[str, Any]) -> None:
    texts = torch.cat([IDS, IDS.flip(1)])
    outputs = generated("t5", texts, **more)
    count = len(outputs.sequences)
    for row in range(count):
        trace = av.Trace.from_outputs(outputs, WORDS, batch=row)
        read = outputs.sequences[row : row + 1, : len(trace.query_tokens("decoder"))]
        text = texts[row * 2 // count][None]
        expected = run("t5", text, decoder_input_ids=read)
        for stream in ("encoder", "decoder", "cross"):
            assert difference(trace, expected[f"{stream}_attentions"], stream) <= 1e-5
        assert trace.query_tokens("cross").ids == tuple(read[0].tolist())


def test_a_generations_labels_may_have_its_last_token() -> None:
    outputs = generated("llama")
    labels = [f"t{one}" for one in outputs.sequences[0].tolist()]
    assert len(labels) == 13
    assert av.Trace.from_outputs(outputs, labels).query_tokens().labels == tuple(labels[:12])
    some = av.Tokens(tuple(labels), tuple(range(13)))
    assert av.Trace.from_outputs(outputs, some).query_tokens().ids == tuple(range(12))
    with pytest.raises(av.TraceError, match="tokens of the decoder need 12 labels, one each; got 11"):
        av.Trace.from_outputs(outputs, labels[:11])


def test_a_models_own_numbers_of_its_layers_are_kept() -> None:
    trace = av.Trace.from_outputs(run("llama"), WORDS, layers=[3, 7])
    assert trace.layer_numbers() == (3, 7)
    with pytest.raises(av.ShapeError, match="layers needs 2 numbers, one per layer with weights; got 1"):
        av.Trace.from_outputs(run("llama"), WORDS, layers=[3])


SHARES = torch.full((1, 2, 3, 3), 1 / 3)


def outputs_of(*weights: Any, **more: Any) -> Any:
    return SimpleNamespace(attentions=weights, **more)


@pytest.mark.parametrize(
    ("outputs", "error", "message"),
    [
        (outputs_of(), av.TraceError, "has no attention weights .attentions is empty.; load the model with attn_impl"),
        (SimpleNamespace(logits=SHARES), av.TraceError, "no attentions in it"),
        (SimpleNamespace(cross_attentions=(SHARES,)), av.TraceError, "has no attention weights"),
        (outputs_of(None, None), av.TraceError, 'None in place of the weights of 2 of 2 layers.*"eager"'),
        (outputs_of(SHARES, None), av.TraceError, "1 of 2 layers"),
        ((SHARES,), av.ShapeError, "got tuple. Pass return_dict=True"),
        (outputs_of(SHARES[0]), av.ShapeError, r"attentions\[0\] must have the shape .* got \(2, 3, 3\)"),
        (outputs_of(SHARES, SHARES[..., :2, :2] * 1.5), av.ShapeError, "all layers of attentions need the same tokens"),
        (outputs_of(SHARES[:, :, :1]), av.ShapeError, "attentions is 1 × 3, but a text attends to itself"),
        (outputs_of(SHARES / 2), av.TraceError, r"row 0 of head 0 of attentions\[0\] sums to 0.5, not 1"),
        (outputs_of(SHARES * torch.tensor([-1.0, 2, 2])), av.TraceError, r"attentions\[0\] has weights that are neg"),
        (outputs_of(SHARES * torch.nan), av.TraceError, "negative or not finite"),
        (outputs_of(torch.ones(1, 2, 3, 3, dtype=torch.long)), av.ShapeError, "must be floating-point"),
        (outputs_of((SHARES,), (SHARES,)), av.ShapeError, r"step 1 of layer 0 of attentions has the shape \(2, 3, 3\)"),
        (
            outputs_of((SHARES[:, :, 1:],)),
            av.ShapeError,
            "step 0 of .* attends to 3 tokens, but only 2",
        ),
    ],
)
def test_what_isnt_a_texts_weights_is_refused_by_name(outputs: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        av.Trace.from_outputs(outputs)


def test_labels_and_streams_that_dont_fit_are_refused() -> None:
    with pytest.raises(av.TraceError, match="tokens of the encoder need 3 labels, one each; got 2"):
        av.Trace.from_outputs(outputs_of(SHARES), ["a", "b"])
    with pytest.raises(av.TraceError, match=r"stream must be one of .* got 'left'"):
        av.Trace.from_outputs(outputs_of(SHARES), stream="left")


def test_a_model_with_fused_attention_is_refused_by_name() -> None:
    made = model("llama")
    made.set_attn_implementation("sdpa")
    with torch.no_grad(), pytest.raises(av.TraceError, match='attn_implementation="eager"'):
        av.Trace.from_outputs(made(IDS, output_attentions=True))


def test_a_saved_trace_of_outputs_is_the_same(tmp_path: Any) -> None:
    trace = av.Trace.from_outputs(generated("llama"))
    trace.save(tmp_path / "trace.safetensors")
    read = av.Trace.load(tmp_path / "trace.safetensors")
    assert read.provenance == trace.provenance and torch.equal(read.weights(1, 2), trace.weights(1, 2))


@pytest.mark.parametrize(
    ("outputs", "why"),
    [
        (LongformerBaseModelOutput(SHARES[0], attentions=(SHARES,)), "are by distance"),
        (LEDEncoderBaseModelOutput(SHARES[0], attentions=(SHARES,)), "are by distance"),
        (outputs_of(SHARES, global_attentions=None), "are by distance"),
        ({"attentions": (SHARES,), "encoder_global_attentions": None}, "are by distance"),
        (PerceiverModelOutput(attentions=(SHARES,)), "are over latents"),
        (SwinModelOutput(attentions=(SHARES,)), "are over a window's patches"),
    ],
)
def test_attentions_that_arent_over_tokens_are_refused(outputs: Any, why: str) -> None:
    with pytest.raises(av.TraceError, match=f"{why}.*, not over tokens"):
        av.Trace.from_outputs(outputs)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("scored", [True, False])
def test_a_beam_search_without_its_paths_is_refused(count: int, scored: bool) -> None:
    outputs = dict(generated("llama", num_beams=3, num_return_sequences=count, output_scores=scored))
    assert av.Trace.from_outputs(outputs, batch=0)
    del outputs["beam_indices"]
    if count == 3 and not scored:
        outputs = type("GenerateBeamDecoderOnlyOutput", (dict,), {})(outputs)
    with pytest.raises(av.TraceError, match="pass beam_indices too"):
        av.Trace.from_outputs(outputs, batch=0)


def test_rows_of_steps_are_chosen_without_sequences_too() -> None:
    steps = {"attentions": ((SHARES.repeat(2, 1, 1, 1),),)}
    with pytest.raises(av.ShapeError, match="batch=0 to 1"):
        av.Trace.from_outputs(steps)
    assert av.Trace.from_outputs(steps, batch=1)


def test_a_beam_that_ended_early_counts_its_own_tokens(tmp_path: Any) -> None:
    outputs = generated("llama", num_beams=3)
    outputs.beam_indices[0, 3:] = -1
    trace = av.Trace.from_outputs(outputs)
    assert len(trace.query_tokens()) == 9 and trace.provenance.generated == 2
    trace.save(tmp_path / "trace.safetensors")
    assert av.Trace.load(tmp_path / "trace.safetensors").provenance == trace.provenance
    outputs.beam_indices[0, 0] = 3
    with pytest.raises(av.ShapeError, match="must name rows from 0 to 2"):
        av.Trace.from_outputs(outputs)


def test_a_generation_has_no_chances_without_logits() -> None:
    trace = av.Trace.from_outputs(generated("llama"))
    assert "<html" in av.explore(trace).html()


@pytest.mark.parametrize(
    ("outputs", "options", "message"),
    [
        (outputs_of(SHARES), {"batch": True}, "batch must be 0 to 0 .* got True"),
        (outputs_of(SHARES), {"batch": 1.5}, "got 1.5"),
        (outputs_of(SHARES), {"layers": ["a"]}, r"whole numbers.* got \['a'\]"),
        (outputs_of(SHARES), {"layers": 5}, "got 5"),
        ({"attentions": 5}, {}, "attentions must be a tuple .* got 5"),
        ({"attentions": ((SHARES,), None)}, {}, "step 1 of attentions .* got None"),
        ({"attentions": ((),)}, {}, r"step 0 of attentions .* got \(\)"),
        (outputs_of(SHARES[..., :0, :0]), {}, r"needs heads and tokens; got .* = \(2, 0, 0\)"),
        (outputs_of(SHARES[:, :0]), {}, r"needs heads and tokens; got .* = \(0, 3, 3\)"),
    ],
)
def test_wrong_values_are_named(outputs: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(av.ShapeError, match=message):
        av.Trace.from_outputs(outputs, **options)


def test_labels_of_no_text_and_empty_tensors_are_refused() -> None:
    with pytest.raises(av.TraceError, match=r"labels must be one str per token.* got NoneType"):
        av.Trace.from_weights(SHARES[0], [None] * 3)  # pyright: ignore[reportArgumentType] -- refused
    for empty in (torch.ones(2, 0, 4), torch.ones(0, 3, 4)):
        with pytest.raises(av.ShapeError, match="needs heads and tokens"):
            av.Trace.from_qkv(empty, empty, empty, layout="bhsd")
        with pytest.raises(av.ShapeError, match="needs heads and tokens"):
            av.Trace.from_weights(empty[..., : empty.shape[1]])
