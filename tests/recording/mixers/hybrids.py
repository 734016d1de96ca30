"""Tiny models with layers without a softmax, whose states keep what is written for some tokens, as trained ones do."""

from typing import Any

import torch
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import AutoModelForCausalLM

from scripts.tiny import families, scaled, small_changes, tiny

FAMILIES = {family.name: family for family in families()}
# Their default configurations have no such layer, or can't be built so small.
RECIPES: dict[str, tuple[str, dict[str, Any]]] = {
    "lfm2": ("convolution", {"layer_types": ["conv", "full_attention"]}),
    "zamba": (
        "selective scan",
        {
            **{"num_hidden_layers": 5, "attention_hidden_size": 64, "attention_head_dim": 16},
            "layers_block_type": [*("linear_attention", "hybrid") * 2, "linear_attention"],
        },
    ),
    "qwen4_exp_text": (
        "gated delta",
        {
            **{"hc_count": 2, "hc_lowrank": 8, "indexer_n_heads": 2, "indexer_kv_heads": 1, "indexer_head_dim": 16},
            **{"indexer_budget": 32, "indexer_compress_ratio": 4},
            "layer_types": ["linear_attention", "full_attention"],
        },
    ),
}
# With weights as large as the others', what they keep of a token is 0 or 1.
SCALES = {"mamba": 2.0, "zamba": 2.0, "fnet": 4.0, "rwkv": 2.0}


def build(name: str) -> Any:
    """A tiny model of a family, ready to run; the same weights every time."""
    torch.manual_seed(7)
    if name in RECIPES:
        kind = CONFIG_MAPPING[name]
        config = kind(**small_changes(kind()) | RECIPES[name][1])
        model = scaled(AutoModelForCausalLM.from_config(config), SCALES.get(name, 8.0))
    else:
        model = tiny(FAMILIES[name], scale=SCALES.get(name, 8.0))
    bounded = name in ("bailing_hybrid", "glm5_next_text")
    with torch.no_grad():
        for path, weights in model.named_parameters():
            if path.endswith("A_log"):
                weights.uniform_(*((0.0, 0.5) if bounded else (-4.6, 0.0)))
            elif path.endswith("dt_bias") and bounded:
                weights.fill_(-4)
            elif path.endswith("time_decay"):
                weights.uniform_(-5, 0)
            elif path.endswith("recurrent_param"):
                weights.uniform_(-6, -2)
            elif path.endswith(("conv1d.weight", "conv.weight", "x_proj_weight")):
                weights.normal_(0, 0.5)
    return model.eval()
