"""Build any text family of transformers as a tiny model with random weights, from its default configuration."""

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers.configuration_utils import PreTrainedConfig
from transformers.modeling_utils import PreTrainedModel
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from scripts.seen.changes import TIMM, merged

__all__ = ["VOCABULARY", "Family", "families", "part_of", "scaled", "small_changes", "tiny"]

VOCABULARY = 97
_LAYERS = 2

# Sizes by the names that configurations give them.
_SIZES: dict[str, int] = {
    name: size
    for size, names in {
        VOCABULARY: "vocab_size decoder_vocab_size text_vocab_size vocab_size_per_layer_input src_vocab_size "
        "tgt_vocab_size additional_vocab_size t2u_vocab_size",
        64: "max_position_embeddings n_positions max_target_positions max_source_positions n_ctx max_seq_len "
        "model_max_length max_2d_position_embeddings t2u_max_position_embeddings",
        48: "intermediate_size ffn_dim d_ff n_inner encoder_ffn_dim decoder_ffn_dim ffn_hidden_size mlp_dim dff dim_ff "
        "moe_intermediate_size shared_expert_intermediate_size shared_intermediate_size dense_intermediate_size "
        "expert_ffn_hidden_size shared_experts_intermediate_size encoder_intermediate_size "
        "decoder_intermediate_size d_inner speech_encoder_intermediate_size block_ff_dim hidden_dim",
        32: "hidden_size d_model n_embd dim emb_dim embed_dim n_embed embedding_size word_embed_proj_dim "
        "decoder_hidden_size attention_hidden_size lru_width embedding_dim projection_dim pooler_hidden_size "
        "encoder_hidden_size projector_hidden_size out_hidden_size hidden_size_per_layer_input",
        16: "q_lora_rank kv_lora_rank o_lora_rank index_head_dim state_size mamba_d_state rank",
        8: "head_dim d_kv kv_channels swa_head_dim global_head_dim d_head qk_rope_head_dim qk_nope_head_dim v_head_dim "
        "swa_v_head_dim mamba_n_heads mamba_num_heads linear_key_head_dim linear_value_head_dim linear_head_dim "
        "dim_head local_head_dim attention_head_dim mamba_d_head mamba_head_dim v_channels swa_rope_head_dim",
        4: "num_attention_heads n_head n_heads num_heads encoder_attention_heads decoder_attention_heads "
        "decoder_num_attention_heads swa_num_attention_heads encoder_num_attention_heads linear_num_value_heads "
        "num_experts n_routed_experts num_local_experts moe_num_experts n_experts index_n_heads index_topk "
        "rotary_dim sliding_window local_attention linear_num_heads attention_window_size "
        "speech_encoder_attention_heads t2u_encoder_attention_heads t2u_decoder_attention_heads sliding_window_size",
        2: "num_hidden_layers n_layer n_layers num_layers num_decoder_layers encoder_layers decoder_layers "
        "decoder_num_hidden_layers num_encoder_layers num_experts_per_tok moe_k moe_topk top_k_experts "
        "num_experts_per_token linear_num_key_heads depth encoder_num_hidden_layers n_mamba_heads "
        "l_layers r_layers x_layers depths speech_encoder_layers t2u_encoder_layers t2u_decoder_layers",
        0: "num_kv_shared_layers",
        1: "n_group topk_group num_expert_group n_shared_experts num_shared_experts first_k_dense_replace "
        "moe_num_shared_experts mamba_n_groups n_groups o_groups num_nextn_predict_layers",
    }.items()
    for name in names.split()
}
_SHARED = ("num_key_value_heads", "num_kv_heads", "swa_num_key_value_heads", "num_global_key_value_heads")


def _turned(*sections: int) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": list(sections)}}


def _turned_by_kind(**shares: float) -> dict[str, Any]:
    usual = {"rope_type": "default", "rope_theta": 1e4}
    return {"rope_parameters": {kind: {**usual, "partial_rotary_factor": share} for kind, share in shares.items()}}


_QWEN4_EXP: dict[str, Any] = {
    "hc_count": 2,
    "hc_lowrank": 8,
    "indexer_n_heads": 2,
    "indexer_kv_heads": 1,
    "indexer_head_dim": 16,
    "indexer_budget": 32,
    "indexer_compress_ratio": 4,
    "layer_types": ["linear_attention", "full_attention"],
}
_EXPERTS: dict[str, Any] = {"num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 48}
_SHARING: dict[str, Any] = {
    "hidden_size_per_layer_input": 0,
    "vocab_size_per_layer_input": 0,
    "num_hidden_layers": 2,
    "num_kv_shared_layers": 2,
    "layer_types": ["sliding_attention", "full_attention"],
}
# What single families, or one of their classes, need besides.
_ODD: dict[str, dict[str, Any]] = {
    **TIMM,
    "bamba": {"attn_layer_indices": [1]},
    "blt": {
        "encoder_hash_byte_group_vocab": 100,
        "encoder_config": {"hidden_size_global": 32},
        "decoder_config": {"hidden_size_global": 32},
    },
    "bros": {"hidden_size": 128},
    "cohere_compass_text": _turned_by_kind(full_attention=1, sliding_attention=1),
    "cosmos3_edge_text": _turned(2, 1, 1),
    "dia": {
        "decoder_config": {
            "cross_hidden_size": 32,
            "cross_num_attention_heads": 4,
            "cross_head_dim": 8,
            "cross_num_key_value_heads": 4,
            "num_key_value_heads": 2,
        },
    },
    "diffusion_gemma": {"text_config": _EXPERTS},
    "diffusion_gemma_text": _EXPERTS,
    "dbrx": {"attn_config": {"kv_n_heads": 2, "rope_theta": 1e4, "clip_qkv": 8}},
    "deepseek_ocr2_text": {
        "mlp_layer_types": ["dense", "sparse"],
        "num_experts_per_tok": 2,
        "n_group": 1,
        "topk_group": 1,
    },
    "deepseek_v2": {"num_experts_per_tok": 2, "n_routed_experts": 4, "n_group": 1, "topk_group": 1},
    "dots1": {"n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2},
    "ernie4_5_vl_moe_text": {"moe_intermediate_size": [48, 48], **_turned(1, 1, 2)},
    "ReformerForMaskedLM": {"is_decoder": False},
    "T5GemmaEncoderModel": {"is_encoder_decoder": False},
    "esm": {"vocab_size": VOCABULARY, "pad_token_id": 1, "mask_token_id": 5},
    "falcon_h1": {"mamba_d_ssm": 64},
    "gemma4_assistant": {"text_config": _SHARING},
    "gemma4_unified_assistant": {"text_config": _SHARING},
    "glm5_next_text": {"index_topk": 16, "qk_rope_head_dim": 0, "head_dim": 0},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "gradium_phonon_tts": {"flow_head_config": {"condition_dim": 32}},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"], "num_hidden_layers": 2},
    "hunyuan_vl_text": _turned(1, 1, 1, 1),
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "use_mamba_kernels": False},
    "layoutlmv3": {"coordinate_size": 6, "shape_size": 4},
    "lfm2_moe": {"layer_types": ["full_attention", "conv"]},
    "lfm2": {"layer_types": ["conv", "full_attention"]},
    "lilt": {"hidden_size": 48},
    "mamba2": {"num_heads": 8},
    "mistral4": {"head_dim": 16},
    "mobilebert": {"intra_bottleneck_size": 32, "hidden_size": 32, "embedding_size": 32},
    "neomme": _turned_by_kind(full_attention=0.5, sliding_attention=1),
    "pix2struct_text_model": {"initializer_range": 0.02},
    "pocket_tts": {"flow_head_config": {"condition_dim": 32}},
    "qwen3_omni_moe_talker_text": {"shared_expert_intermediate_size": 48},
    "qwen4_exp": _QWEN4_EXP,
    "qwen4_exp_text": _QWEN4_EXP,
    "reformer": {
        "is_decoder": True,
        "axial_pos_embds": False,
        "lsh_attn_chunk_length": 16,
        "local_attn_chunk_length": 16,
    },
    "step3p5": {"sliding_window": 4},
    "step3p7": {"text_config": {"sliding_window": 4}},
    "t5gemma2_encoder": {"text_config": {"dropout_rate": 0.0}},
    # At its default rate, random weights speak for minutes.
    "vits": {
        "speaking_rate": 1e9,
        "noise_scale": 0.0,
        "noise_scale_duration": 0.0,
        "upsample_initial_channel": 32,
        "flow_size": 16,
        "spectrogram_bins": 16,
        "duration_predictor_filter_channels": 16,
        "posterior_encoder_num_wavenet_layers": 1,
        "prior_encoder_num_wavenet_layers": 1,
    },
    "xmod": {"default_language": "en_XX"},
    # With one layer of attention, its tied weights have no second one.
    "zamba": {
        "num_hidden_layers": 5,
        "attention_hidden_size": 64,
        "attention_head_dim": 16,
        "layers_block_type": [*("linear_attention", "hybrid") * 2, "linear_attention"],
    },
    "zamba2": {
        "attention_hidden_size": 64,
        "attention_head_dim": 16,
        "mamba_headdim": 8,
        "n_mamba_heads": 8,
        "use_mamba_kernels": False,
    },
    "zaya": {"num_experts_per_tok": 1},
}
# Those that turn parts of a head by time, height and width, and say nothing of how many numbers each gets.
_TURNED_IN_PARTS = ("glm4", "glm_image", "glm_ocr", "glmga", "qwen2_vl", "qwen2_5_vl", "paddleocr", "qwen2_5_omni")
_TEXT = ("SEQ_TO_SEQ_CAUSAL_LM", "CAUSAL_LM", "MASKED_LM", "TEXT_ENCODING")


@dataclass(frozen=True)
class Family:
    """A model family of transformers: its name there, and its class for text."""

    name: str
    model_class: str


def families() -> Iterator[Family]:
    """List every family of the installed transformers that reads token ids, with each of its text classes.

    A family that has several comes several times, such as an encoder–decoder whose encoder can be had alone; the text
    part of a family that reads pictures or sound, too, is a family of its own.
    """
    mappings = [f"MODEL_FOR_{task}_MAPPING_NAMES" for task in _TEXT]
    for name in sorted(CONFIG_MAPPING):
        found = [getattr(modeling_auto, mapping).get(name) for mapping in mappings]
        if not any(found) and _has_vocabulary(name):
            found = [modeling_auto.MODEL_MAPPING_NAMES.get(name) or part_of(name)]
        classes = dict.fromkeys(one if isinstance(one, str) else one[0] for one in found if one)
        yield from (Family(name, model_class) for model_class in classes if _reads_ids(model_class))


def part_of(name: str) -> str | None:
    """Find the model of a part that transformers' own lists leave out, by the part's configuration."""
    config_class = CONFIG_MAPPING[name]
    try:
        module = importlib.import_module(config_class.__module__.replace(".configuration_", ".modeling_"))
    except ImportError:
        return None
    fitting = [
        one.__name__
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, PreTrainedModel) and one.config_class is config_class
    ]
    whole = [one for one in fitting if not one.endswith("PreTrainedModel")]
    ending = next(
        (ending for ending in ("Model", "ForRetrieval") if any(one.endswith(ending) for one in whole)), "Model"
    )
    return min((one for one in whole if one.endswith(ending)), key=len, default=None)


def _has_vocabulary(name: str) -> bool:
    try:
        return isinstance(CONFIG_MAPPING[name]().get_text_config().vocab_size, int)
    except Exception:
        return False


def _reads_ids(model_class: str) -> bool:
    try:
        return getattr(importlib.import_module("transformers"), model_class).main_input_name == "input_ids"
    except (AttributeError, ImportError):
        return False


def tiny(family: Family, *, seed: int = 7, scale: float = 8.0) -> PreTrainedModel:
    """Build a tiny model of a family, with the same weights every time.

    Weights are scaled up: at their usual size attention is uniform, and any mistake would pass unseen.
    """
    torch.manual_seed(seed)
    model_class = getattr(importlib.import_module("transformers"), family.model_class)
    # A family of several parts may have a model of its text part alone, with that part's configuration.
    odd = merged(_ODD.get(family.name, {}), _ODD.get(family.model_class, {}))
    return scaled(model_class(_small(model_class.config_class, odd)).float().eval(), scale)


def scaled(model: PreTrainedModel, scale: float) -> PreTrainedModel:
    """Scale a model's matrices, and change its other parameters slightly."""
    tables = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    with torch.no_grad():
        for weights in model.parameters():
            if not weights.numel():
                continue
            if not bool(weights.isfinite().all()) or float(weights.abs().max()) > 1e3:
                weights.normal_(0, 0.02)
            if weights.ndim < 2:
                weights.add_(0.1 * torch.randn_like(weights))
            elif id(weights) not in tables:
                weights.mul_(scale)
    return model


def _small(config_class: Any, odd: dict[str, Any]) -> PreTrainedConfig:
    try:
        usual = config_class()
    except Exception:  # its own defaults may contradict each other
        usual = config_class(**odd)
    return config_class(**merged(small_changes(usual), odd))


def small_changes(usual: PreTrainedConfig) -> dict[str, Any]:
    """Return replacements that make a configuration's model small, nested parts included."""
    config = {name: value for name, value in usual.to_dict().items() if not isinstance(value, dict)}
    changes: dict[str, Any] = {
        name: size
        for name, size in _SIZES.items()
        if isinstance(config.get(name), int) and not isinstance(config[name], bool)
    }
    # A part of a model may be told by it to attend to another part.
    changes |= {name: True for name in ("is_decoder", "add_cross_attention") if config.get(name)}
    for name in _SHARED:
        if name in config:
            same = config[name] == next((config[n] for n in ("num_attention_heads", "n_head") if n in config), None)
            changes[name] = 4 if same or config[name] is None else 1 if config[name] == 1 else 2
    if config.get("head_dim", 0) is None:
        changes["head_dim"] = _SIZES["head_dim"]
    for name in config:
        if name.endswith(("token_id", "token_index")) and isinstance(config[name], int):
            # What stands for a picture or a sound must not be one of the ids that are tried, which begin at 5.
            if config[name] >= VOCABULARY or name.startswith(("image", "video", "audio", "speech")):
                changes[name] = 1 + (config[name] % 3)
    kinds = [name for name in ("layer_types", "layers_block_type", "block_types") if isinstance(config.get(name), list)]
    for name in kinds:
        types = config[name]
        wanted = sorted({types.index(kind) for kind in types})
        changes[name] = [types[i] for i in wanted] * (1 if len(wanted) > 1 else _LAYERS)
        for count in ("num_hidden_layers", "n_layer", "num_layers"):
            if count in changes:
                changes[count] = len(changes[name])
    rotation = getattr(usual, "rope_parameters", None)
    if isinstance(rotation, dict) and usual.model_type.startswith(_TURNED_IN_PARTS):
        turned = int(_SIZES["head_dim"] * rotation.get("partial_rotary_factor", 1) / 2)
        sections = [1, 1, turned - 2] if turned > 1 else [1, 0, 0]
        changes["rope_parameters"] = {**rotation, "mrope_section": sections}
    for name in usual.sub_configs:
        if isinstance(part := getattr(usual, name, None), PreTrainedConfig):
            changes[name] = {"model_type": part.model_type, **small_changes(part)}
    return changes
