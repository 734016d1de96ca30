"""Traces of what TransformerLens and nnsight hand over, compared with transformers' own weights.

`make tools` runs these with the pinned packages; without them, they are skipped by name.
"""

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models
from transformers import (
    BertConfig,
    BertForMaskedLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

import attention_viz as av
from attention_viz.explorer.payload import pack

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

IDS = torch.arange(3, 12)[None]
WORDS = [f"w{one}" for one in range(3, 12)]
PLAIN: dict[str, Any] = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "vocab_size": 50}
GROUPED: dict[str, Any] = {**PLAIN, "intermediate_size": 64, "num_key_value_heads": 2, "head_dim": 8}
BERT: dict[str, Any] = {**PLAIN, "intermediate_size": 64, "initializer_range": 0.5}
GEMMA: dict[str, Any] = {**GROUPED, "sliding_window": 4, "query_pre_attn_scalar": 16, "attn_logit_softcapping": 2.0}
MODELS: dict[str, tuple[Any, Any]] = {
    "gpt2": (GPT2LMHeadModel, GPT2Config(n_layer=2, n_embd=32, n_head=4, vocab_size=50, initializer_range=0.5)),
    "llama": (LlamaForCausalLM, LlamaConfig(**GROUPED, initializer_range=0.3)),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config(**GROUPED, initializer_range=0.3)),
    "gemma2": (Gemma2ForCausalLM, Gemma2Config(**GEMMA, initializer_range=0.3)),
    "neox": (GPTNeoXForCausalLM, GPTNeoXConfig(**PLAIN, intermediate_size=64, initializer_range=0.5)),
    "bert": (BertForMaskedLM, BertConfig(**BERT)),
    "t5": (
        T5ForConditionalGeneration,
        T5Config(d_model=32, d_kv=8, num_layers=2, num_heads=4, d_ff=64, vocab_size=50, decoder_start_token_id=0),
    ),
}


def needs(package: str) -> None:
    """Skip without an optional package."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} isn't installed; make tools installs it")


def made(name: str) -> PreTrainedModel:
    kind, config = MODELS[name]
    torch.manual_seed(0)
    model = kind(config).eval()
    model.set_attn_implementation("eager")
    return model


def tokenizer() -> PreTrainedTokenizerFast:
    words = Tokenizer(models.WordLevel({f"w{one}": one for one in range(50)}, unk_token="w0"))
    return PreTrainedTokenizerFast(
        tokenizer_object=words, unk_token="w0", bos_token="w1", eos_token="w2", pad_token="w0"
    )


def bridge(name: str, folder: Path) -> tuple[Any, Any]:
    """A Bridge of a tiny random model, and transformers' own output for it."""
    needs("transformer_lens")
    if importlib.util.find_spec("transformer_lens.model_bridge") is None:
        pytest.skip("this transformer_lens has no TransformerBridge")
    from transformer_lens.model_bridge import TransformerBridge

    model = made(name)
    more = {"decoder_input_ids": IDS[:, :4]} if name == "t5" else {}
    with torch.no_grad():
        expected = model(IDS, output_attentions=True, **more)
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return TransformerBridge.boot_transformers(str(folder), device="cpu"), expected


def difference(trace: av.Trace, expected: Any, stream: str | None = None) -> float:
    return max(
        float((trace.attention(layer, stream).weights - weights[0]).abs().max())
        for layer, weights in enumerate(expected)
    )


@pytest.mark.parametrize("name", ["gpt2", "llama", "qwen3", "gemma2", "neox", "bert"])
def test_a_bridges_cache_gives_transformers_weights_with_its_queries_and_keys(name: str, tmp_path: Path) -> None:
    model, expected = bridge(name, tmp_path)
    _, cache = model.run_with_cache(IDS)
    trace = av.Trace.from_cache(cache, WORDS)
    assert difference(trace, expected.attentions) <= 1e-5
    assert trace.streams == (("encoder",) if name == "bert" else ("decoder",))
    assert trace.fidelity.ok and "hook_z" in trace.fidelity.reference and trace.fidelity.output_error is not None
    assert "of TransformerLens; no model ran here" in trace.provenance.notes[0]
    assert "transformer_lens" in trace.provenance.versions
    call = trace.attention(1)
    if name == "gemma2":
        assert (call.scale, call.softcap) == (0.25, 2.0)
        assert call.allowed is not None or trace.attention(0).allowed is not None
    assert call.key.shape[0] == (4 if name in ("gpt2", "neox", "bert") else 2), "keys stay grouped"
    assert len(trace.table()) == 2 * 4 * 81 and len(av.head_table(trace)) == 8 and av.findings(trace)
    assert pack(trace)


def test_a_bridge_in_compatibility_mode_has_its_own_queries_and_keys_and_the_same_weights(tmp_path: Path) -> None:
    model, expected = bridge("gpt2", tmp_path)
    model.enable_compatibility_mode()
    _, cache = model.run_with_cache(IDS)
    trace = av.Trace.from_cache(cache, WORDS)
    assert difference(trace, expected.attentions) <= 1e-5 and trace.fidelity.ok


def test_a_bridge_is_wrapped_by_the_model_inside(tmp_path: Path) -> None:
    model, expected = bridge("llama", tmp_path)
    trace = av.wrap(model).trace_ids(IDS)
    assert difference(trace, expected.attentions) <= 1e-5 and trace.fidelity.ok
    assert trace.query_tokens().labels == tuple(WORDS) and "inside the TransformerBridge" in trace.provenance.notes[0]


def test_an_encoder_decoders_cache_has_three_streams_and_names_the_bias_that_it_lacks(tmp_path: Path) -> None:
    model, expected = bridge("t5", tmp_path)
    try:
        _, cache = model.run_with_cache(IDS, decoder_input=IDS[:, :4])
    except ValueError as error:  # TransformerLens 3
        pytest.skip(f"this Bridge can't run T5: {error}")
    with pytest.raises(av.TraceError, match=r"encoder_blocks.0.attn.hook_pattern differs by .* of its largest weight"):
        av.Trace.from_cache(cache, WORDS)
    trace = av.Trace.from_cache(cache, WORDS, WORDS[:4], what="weights")
    assert trace.streams == ("encoder", "decoder", "cross")
    for stream in trace.streams:
        assert difference(trace, expected[f"{stream}_attentions"], stream) <= 1e-5
    assert trace.key_tokens("cross").labels == tuple(WORDS) and not trace.fidelity.ok


def test_a_cache_of_some_layers_keeps_their_numbers(tmp_path: Path) -> None:
    model, expected = bridge("llama", tmp_path)
    _, cache = model.run_with_cache(IDS, names_filter=lambda name: name == "blocks.1.attn.hook_pattern")
    trace = av.Trace.from_cache(cache)
    assert trace.layer_numbers() == (1,)
    assert torch.allclose(trace.attention(1).weights, expected.attentions[1][0], atol=1e-5)
    assert "weights were taken alone" in trace.provenance.notes[1]
    with pytest.raises(av.TraceError, match="rollout needs every layer"):
        av.rollout(trace)


def test_a_cache_without_its_batch_axis_is_the_same(tmp_path: Path) -> None:
    model, expected = bridge("llama", tmp_path)
    _, cache = model.run_with_cache(IDS, remove_batch_dim=True)
    trace = av.Trace.from_cache(cache)
    assert difference(trace, expected.attentions) <= 1e-5 and trace.fidelity.ok
    _, both = model.run_with_cache(IDS.repeat(2, 1))
    with pytest.raises(av.ShapeError, match="batch=0 to 1"):
        av.Trace.from_cache(both)
    assert difference(av.Trace.from_cache(both, batch=1), expected.attentions) <= 1e-5


def test_weights_that_a_hook_changed_are_refused_with_their_difference(tmp_path: Path) -> None:
    model, _ = bridge("gpt2", tmp_path)
    even = av.masks.causal(9).float()
    even /= even.sum(-1, keepdim=True)

    def spread(pattern: torch.Tensor, hook: Any) -> torch.Tensor:
        return even.expand_as(pattern)

    with model.hooks(fwd_hooks=[("blocks.0.attn.hook_pattern", spread)]):
        _, cache = model.run_with_cache(IDS)
    with pytest.raises(av.TraceError, match=r"blocks.0.attn.hook_pattern differs by 0\.\d+ .* \(scale 0.3536, softcap"):
        av.Trace.from_cache(cache)
    trace = av.Trace.from_cache(cache, what="weights")
    assert torch.allclose(trace.attention(0).weights[2], even)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"positional_embedding_type": "rotary", "rotary_dim": 8, "n_key_value_heads": 2, "attn_scale": 2.0}
        | {"attn_scores_soft_cap": 5.0},
        {"use_attn_scale": False, "attention_dir": "bidirectional"},
        {"use_local_attn": True, "attn_types": ["local", "global"], "window_size": 3},
    ],
    ids=["plain", "grouped rotary capped", "unscaled both ways", "local"],
)
def test_a_hooked_transformers_cache_is_reproduced(more: dict[str, Any]) -> None:
    needs("transformer_lens")
    try:
        from transformer_lens import HookedTransformer, HookedTransformerConfig
    except ImportError:
        pytest.skip("this transformer_lens has no HookedTransformer; it has the TransformerBridge instead")
    size: dict[str, Any] = {"n_layers": 2, "d_model": 32, "n_ctx": 16, "d_head": 8, "n_heads": 4, "d_vocab": 50}
    config = HookedTransformerConfig(**size, **more, act_fn="gelu", seed=0, initializer_range=0.5)
    _, cache = HookedTransformer(config).run_with_cache(IDS)
    trace = av.Trace.from_cache(cache, WORDS)
    assert difference(trace, [cache["pattern", layer] for layer in range(2)]) <= 1e-5
    assert trace.fidelity.ok and trace.streams == (("encoder",) if "attention_dir" in more else ("decoder",))
    call = trace.attention(0)
    assert call.scale == pytest.approx(1.0 if "use_attn_scale" in more else 1 / more.get("attn_scale", 8**0.5))
    assert call.softcap == more.get("attn_scores_soft_cap")


def test_an_nnsight_model_is_traced_by_the_model_inside() -> None:
    needs("nnsight")
    from nnsight import NNsight

    model = made("llama")
    with torch.no_grad():
        expected = model(IDS, output_attentions=True).attentions
    wrapped = NNsight(model)
    trace = av.wrap(wrapped).trace_ids(IDS)
    assert difference(trace, expected) <= 1e-5 and trace.fidelity.ok
    assert "model inside the NNsight" in trace.provenance.notes[0]


def test_what_nnsight_saved_makes_the_same_trace() -> None:
    needs("nnsight")
    from nnsight import NNsight

    wrapped = NNsight(made("llama"))
    with torch.no_grad(), wrapped.trace(IDS, output_attentions=True):
        first = wrapped.model.layers[0].self_attn.output[1].save()
        second = wrapped.model.layers[1].self_attn.output[1].save()
        outputs = wrapped.output.save()
    weights = [first, second]
    trace = av.Trace.from_outputs(outputs, WORDS)
    assert torch.equal(trace.output, outputs.logits[0]) and trace.provenance.output == "logits"
    alone = av.Trace.from_weights(weights, WORDS)
    for layer in range(2):
        assert torch.allclose(trace.attention(layer).weights, alone.attention(layer).weights, atol=1e-6)
        assert torch.allclose(trace.attention(layer).weights, weights[layer][0], atol=1e-6)
