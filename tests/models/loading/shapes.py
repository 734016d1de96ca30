"""Models of different shapes, made from scratch, and the test that a plan knows what each of them takes."""

from pathlib import Path
from typing import Any

from transformers import (
    BertConfig,
    BertModel,
    BloomConfig,
    BloomForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    GptOssConfig,
    GptOssForCausalLM,
    Lfm2Config,
    Lfm2ForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    LongformerConfig,
    LongformerModel,
    MambaConfig,
    MambaForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

import attention_viz as av
from tests.models.loading.allocated import Allocated


def llama() -> Any:
    size = dict(hidden_size=256, intermediate_size=700, num_attention_heads=8, num_key_value_heads=4)
    return LlamaForCausalLM(LlamaConfig(vocab_size=4_000, num_hidden_layers=4, max_position_embeddings=4096, **size))


def gpt2() -> Any:
    size = dict(n_embd=192, n_layer=5, n_head=6, bos_token_id=0, eos_token_id=0)
    return GPT2LMHeadModel(GPT2Config(vocab_size=900, n_positions=2048, **size))


def encoder() -> Any:
    size = dict(hidden_size=128, intermediate_size=512, num_attention_heads=4)
    return BertModel(BertConfig(vocab_size=2_000, num_hidden_layers=6, max_position_embeddings=2048, **size))


def many_words() -> Any:
    size = dict(hidden_size=128, intermediate_size=300, num_attention_heads=8, num_key_value_heads=2)
    return Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=40_000, num_hidden_layers=3, max_position_embeddings=4096, tie_word_embeddings=True, **size
        )
    )


def capped() -> Any:
    """Its logits and scores are bounded, so it computes whole matrices, and half its layers have a window."""
    size = dict(hidden_size=128, intermediate_size=512, num_attention_heads=4, num_key_value_heads=2, head_dim=48)
    return Gemma2ForCausalLM(Gemma2Config(vocab_size=3_000, num_hidden_layers=4, sliding_window=300, **size))


_SMALL = dict(vocab_size=900, hidden_size=128, intermediate_size=256, num_hidden_layers=3, num_attention_heads=4)
_GROUPED = _SMALL | dict(num_key_value_heads=2, num_local_experts=4, max_position_embeddings=2048)


def experts() -> Any:
    return MixtralForCausalLM(MixtralConfig(**_GROUPED))


def sinks() -> Any:
    """Experts with biases, and sinks."""
    return GptOssForCausalLM(GptOssConfig(**_GROUPED, head_dim=32))


def slopes() -> Any:
    return BloomForCausalLM(BloomConfig(vocab_size=900, hidden_size=128, n_layer=3, n_head=4))


def windows() -> Any:
    return LongformerModel(LongformerConfig(**_SMALL, attention_window=64, max_position_embeddings=2050))


def states() -> Any:
    return MambaForCausalLM(MambaConfig(vocab_size=900, hidden_size=128, num_hidden_layers=3))


def mixed() -> Any:
    kinds = ["conv", "full_attention", "conv"]
    return Lfm2ForCausalLM(Lfm2Config(**_SMALL, num_key_value_heads=2, layer_types=kinds))


def relative() -> Any:
    return T5ForConditionalGeneration(
        T5Config(vocab_size=900, d_model=128, d_kv=32, d_ff=256, num_layers=3, num_heads=4)
    )


SHAPES = (llama, gpt2, encoder, many_words, capped)
EXPERTS = (experts, sinks)
UNCOUNTED = (slopes, windows, states, mixed, relative)


def check_peaks(folder: Path, options: dict[str, Any]) -> None:
    """Compare plans of short and long texts with what torch allocates, beside the weights and with them."""
    with Allocated() as loading:
        model = av.load(folder, **options)
    assert abs(loading.end - model.nbytes) < 200_000
    for tokens in (100, 500, 1000, 2000):
        plan = av.load_plan(str(folder), tokens=tokens, **options)
        assert plan.counted
        here = plan.by_device.get("cpu", 0)
        with Allocated() as running:
            trace = model.trace_ids([5 + at % 100 for at in range(tokens)])
        assert abs(here - model.nbytes) <= 0.03 * plan.weights
        assert abs(plan.peak / (model.nbytes + running.most) - 1) < 0.1
        # Nor may the weights hide what is wrong beside them, 100 kB apart.
        assert abs((plan.peak - here) - running.most) < max(0.1 * running.most, 100_000)
        assert plan.trace is not None
        # Masks of a byte per pair of tokens come with it, and queries, keys and values made as one.
        assert plan.trace <= trace.nbytes + trace.resting_bytes <= plan.trace * 1.1 + 2 * tokens**2
