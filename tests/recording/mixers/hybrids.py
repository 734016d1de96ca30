"""Tiny models with layers without a softmax, whose states keep what is written for some tokens, as trained ones do."""

from typing import Any

import torch

from scripts.tiny import families, tiny

FAMILIES = {family.name: family for family in families()}
# With weights as large as the others', what they keep of a token is 0 or 1.
SCALES = {"mamba": 2.0, "zamba": 2.0, "fnet": 4.0, "rwkv": 2.0}


def build(name: str) -> Any:
    """A tiny model of a family, ready to run; the same weights every time."""
    torch.manual_seed(7)
    model: Any = tiny(FAMILIES[name], scale=SCALES.get(name, 8.0))
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
