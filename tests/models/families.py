"""Tiny models of many families with random weights, scaled up: at their usual size attention is uniform.

Sizes are different and coprime where the family lets them be, so that a swapped axis cannot pass.
"""

import copy
import functools
from typing import Any

import torch
import transformers
from torch import Tensor
from transformers import PreTrainedModel

import attention_viz as av
from attention_viz.models.model import AttentionModel

VOCABULARY = 97
POSITIONS = 53

PLAIN = {
    "vocab_size": VOCABULARY,
    "hidden_size": 20,
    "num_hidden_layers": 3,
    "num_attention_heads": 5,
    "intermediate_size": 37,
    "max_position_embeddings": POSITIONS,
}
GROUPED = PLAIN | {
    "hidden_size": 12,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "intermediate_size": 36,  # experts are multiplied in blocks of 16 bytes
}

CLASSES: dict[str, tuple[str, str, dict[str, object]]] = {
    "bert": ("BertModel", "BertConfig", PLAIN),
    "bert with a head": ("BertForMaskedLM", "BertConfig", PLAIN),
    "bert that classifies": ("BertForSequenceClassification", "BertConfig", PLAIN),
    "bert that answers": ("BertForQuestionAnswering", "BertConfig", PLAIN),
    "bert as a decoder": ("BertLMHeadModel", "BertConfig", PLAIN | {"is_decoder": True}),
    "roberta": ("RobertaModel", "RobertaConfig", PLAIN),
    "distilbert": (
        "DistilBertModel",
        "DistilBertConfig",
        {
            "vocab_size": VOCABULARY,
            "dim": 20,
            "n_layers": 3,
            "n_heads": 5,
            "hidden_dim": 37,
            "max_position_embeddings": POSITIONS,
        },
    ),
    "electra": ("ElectraModel", "ElectraConfig", PLAIN | {"embedding_size": 11}),
    "albert": ("AlbertModel", "AlbertConfig", PLAIN | {"embedding_size": 11}),
    "modernbert": ("ModernBertModel", "ModernBertConfig", PLAIN | {"local_attention": 6, "pad_token_id": 0}),
    "t5 encoder": (
        "T5EncoderModel",
        "T5Config",
        {"vocab_size": VOCABULARY, "d_model": 20, "d_kv": 7, "d_ff": 37, "num_layers": 3, "num_heads": 5},
    ),
    "gpt2": (
        "GPT2LMHeadModel",
        "GPT2Config",
        {"vocab_size": VOCABULARY, "n_embd": 20, "n_layer": 3, "n_head": 5, "n_positions": POSITIONS},
    ),
    "gpt2 scaled by layer": (
        "GPT2LMHeadModel",
        "GPT2Config",
        {
            "vocab_size": VOCABULARY,
            "n_embd": 20,
            "n_layer": 3,
            "n_head": 5,
            "n_positions": POSITIONS,
            "scale_attn_by_inverse_layer_idx": True,
        },
    ),
    "llama": ("LlamaForCausalLM", "LlamaConfig", GROUPED),
    "mistral": ("MistralForCausalLM", "MistralConfig", GROUPED | {"sliding_window": 4}),
    "gemma2": (
        "Gemma2ForCausalLM",
        "Gemma2Config",
        GROUPED | {"sliding_window": 4, "attn_logit_softcapping": 0.5, "query_pre_attn_scalar": 4},
    ),
    "gpt_oss": ("GptOssForCausalLM", "GptOssConfig", GROUPED | {"sliding_window": 4, "num_local_experts": 4}),
    "laguna": ("LagunaForCausalLM", "LagunaConfig", GROUPED | {"num_experts": 2, "num_experts_per_tok": 1}),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", GROUPED),
    "phi": ("PhiForCausalLM", "PhiConfig", PLAIN),
    "gpt_neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", PLAIN | {"hidden_size": 30}),
    "opt": (
        "OPTForCausalLM",
        "OPTConfig",
        {
            "vocab_size": VOCABULARY,
            "hidden_size": 20,
            "num_hidden_layers": 3,
            "num_attention_heads": 5,
            "ffn_dim": 37,
            "max_position_embeddings": POSITIONS,
            "word_embed_proj_dim": 20,
        },
    ),
    "jamba": (
        "JambaForCausalLM",
        "JambaConfig",
        GROUPED | {"attn_layer_period": 2, "attn_layer_offset": 1, "use_mamba_kernels": False, "num_experts": 2},
    ),
    "deberta-v2": ("DebertaV2Model", "DebertaV2Config", PLAIN),
    "gpt_neo": (
        "GPTNeoForCausalLM",
        "GPTNeoConfig",
        {
            "vocab_size": VOCABULARY,
            "hidden_size": 20,
            "num_layers": 2,
            "num_heads": 5,
            "attention_types": [[["global", "local"], 1]],
            "max_position_embeddings": POSITIONS,
        },
    ),
    "bloom": (
        "BloomForCausalLM",
        "BloomConfig",
        {"vocab_size": VOCABULARY, "hidden_size": 20, "n_layer": 2, "n_head": 5},
    ),
    "falcon": (
        "FalconForCausalLM",
        "FalconConfig",
        {"vocab_size": VOCABULARY, "hidden_size": 20, "num_hidden_layers": 2, "num_attention_heads": 5},
    ),
    "xlnet": (
        "XLNetModel",
        "XLNetConfig",
        {"vocab_size": VOCABULARY, "d_model": 20, "n_layer": 2, "n_head": 5, "d_inner": 37},
    ),
    "mra": ("MraModel", "MraConfig", PLAIN),
    "mamba": ("MambaModel", "MambaConfig", {"vocab_size": VOCABULARY, "hidden_size": 20, "num_hidden_layers": 2}),
    "t5": (
        "T5Model",
        "T5Config",
        {"vocab_size": VOCABULARY, "d_model": 20, "d_kv": 7, "d_ff": 37, "num_layers": 2, "num_heads": 5},
    ),
    "bart": (
        "BartModel",
        "BartConfig",
        {
            "vocab_size": VOCABULARY,
            "d_model": 20,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_attention_heads": 5,
            "decoder_attention_heads": 5,
            "encoder_ffn_dim": 37,
            "decoder_ffn_dim": 37,
            "max_position_embeddings": POSITIONS,
        },
    ),
    "vit": (
        "ViTModel",
        "ViTConfig",
        {
            "hidden_size": 20,
            "num_hidden_layers": 2,
            "num_attention_heads": 5,
            "intermediate_size": 37,
            "image_size": 8,
            "patch_size": 4,
        },
    ),
}

ENCODERS = (
    "bert",
    "bert with a head",
    "bert that classifies",
    "bert that answers",
    "roberta",
    "distilbert",
    "electra",
    "albert",
    "modernbert",
    "t5 encoder",
)
DECODERS = (
    "bert as a decoder",
    "gpt2",
    "gpt2 scaled by layer",
    "llama",
    "mistral",
    "gemma2",
    "gpt_oss",
    "qwen3",
    "phi",
    "gpt_neox",
    "opt",
)


def build(family: str, **changes: object) -> PreTrainedModel:
    """A tiny model, ready to run; the same weights every time."""
    return built(*CLASSES[family], **changes)


def built(model_class: str, config_class: str, sizes: dict[str, object], **changes: object) -> PreTrainedModel:
    """A tiny model of these classes of transformers, of these sizes."""
    torch.manual_seed(7)
    config = getattr(transformers, config_class)(**sizes | changes)
    model = getattr(transformers, model_class)(config).eval()
    # T5 doesn't divide by √d_k: a factor of 8 would leave one key a weight of 1 and the others none.
    factor = 2 if config.model_type == "t5" else 8
    with torch.no_grad():
        tables = {module.weight for module in model.modules() if isinstance(module, torch.nn.Embedding)}
        for weights in set(model.parameters()) - tables:
            if weights.ndim > 1:
                weights.mul_(factor)
    return model


@functools.cache
def wrapped(family: str) -> AttentionModel:
    """One wrapped model of a family, for tests that only look."""
    return av.wrap(build(family))


def eager_twin(model: PreTrainedModel) -> PreTrainedModel:
    """A copy of its own under transformers' eager attention: what every number is compared with."""
    twin = copy.deepcopy(model)
    twin.set_attn_implementation("eager")
    return twin.eval()


def eager(model: PreTrainedModel, **inputs: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Output (position, width) and weights (head, query, key) a layer of a plain pass, without the batch axis."""
    result = run(model, output_attentions=True, **inputs)
    weights = [layer[0] for layer in result["attentions"]]
    if "start_logits" in result:
        return torch.stack([result["start_logits"][0], result["end_logits"][0]], dim=1), weights
    output = result["logits"] if "logits" in result else result["last_hidden_state"]
    return output[0] if output.ndim == 3 else output, weights


def run(model: PreTrainedModel, **inputs: object) -> dict[str, Any]:
    """A plain pass, as anybody would make it."""
    with torch.no_grad():
        return model(**inputs)


def ids(count: int, start: int = 5) -> Tensor:
    """One row of ids, different from each other and none of them special."""
    return ((start + 11 * torch.arange(count)) % (VOCABULARY - 4) + 4)[None]


def padding(count: int, where: int) -> Tensor:
    """The attention mask of a row whose first tokens are padding, or its last if `where` is below 0."""
    mask = torch.ones(1, count, dtype=torch.long)
    mask[:, slice(None, where) if where > 0 else slice(count + where, None) if where else slice(0)] = 0
    return mask
