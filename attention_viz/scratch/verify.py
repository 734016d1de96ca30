"""Comparison of our module with torch's on equal inputs."""

import time

import torch
from torch import Tensor, nn

from attention_viz.operation.attention import Attention
from attention_viz.operation.modules import MultiHeadAttention
from attention_viz.operation.numerics import EXACT
from attention_viz.trace.provenance import Fidelity

_REFERENCE = "torch.nn.MultiheadAttention with the same weights"


def measure(
    module: MultiHeadAttention, embeddings: Tensor, measured: Attention, call: Attention, joined: Tensor
) -> Fidelity:
    """Compare the run, or the unedited run if torch can't take its edit."""
    if measured is call:
        return _compare(module, embeddings, call, joined)
    with torch.no_grad():
        unedited = _compare(module, embeddings, measured, module.join(measured))
    return unedited.before("the edits")


def _compare(module: MultiHeadAttention, embeddings: Tensor, call: Attention, joined: Tensor) -> Fidelity:
    started = time.perf_counter()
    blocked = None if call.allowed is None else ~call.allowed.expand(call.shape)
    # A row that may look nowhere is not a number in torch's, and zeros in ours.
    rows = torch.ones(len(joined), dtype=torch.bool) if blocked is None else ~blocked.all(-1).any(0)
    with torch.no_grad():
        output, weights = _torch_twin(module)(*[embeddings] * 3, attn_mask=blocked, average_attn_weights=False)
    return Fidelity(
        output_error=_relative(joined[rows], output[rows]),
        weight_error=_relative(call.weights[:, rows], weights[:, rows]),
        bound=EXACT,
        reference=_REFERENCE if blocked is None else f"{_REFERENCE} and mask",
        seconds=time.perf_counter() - started,
    )


def _torch_twin(module: MultiHeadAttention) -> nn.MultiheadAttention:
    twin = nn.MultiheadAttention(module.d_model, module.heads, bias=False)
    ours = module.state_dict()
    fused = torch.cat([ours[f"{name}.weight"] for name in ("query", "key", "value")])
    twin.load_state_dict({"in_proj_weight": fused, "out_proj.weight": ours["output.weight"]})
    return twin.eval()


def _relative(ours: Tensor, theirs: Tensor) -> float:
    if not theirs.numel():
        return 0.0
    return float((ours - theirs).abs().max() / theirs.abs().max().clamp_min(torch.finfo(theirs.dtype).tiny))
