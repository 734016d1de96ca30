"""Three stages of attention: without parameters, single-head, multi-head."""

import math
import time
from dataclasses import replace

import torch
from torch import Tensor, nn

from attention_viz.errors import ShapeError
from attention_viz.operation.attention import Attention, attend
from attention_viz.operation.modules import AttentionHead, Projection
from attention_viz.operation.numerics import EXACT
from attention_viz.operation.shapes import apart
from attention_viz.scratch.model import Scratch
from attention_viz.trace.rerun import Rerun
from attention_viz.trace.trace import Fidelity, Layer, Trace
from attention_viz.trace.trace_data import attach

# By name, what a person reads.
VARIANTS = {"plain": "Plain, no parameters", "single": "Single head", "multi": "Multi-head"}

_NAMES = ("query", "key", "value", "output")


def run_variant(scratch: Scratch, text: str, variant: str) -> tuple[Trace, dict[str, Projection]]:
    """Run a text through one stage with our module's vectors and weights.

    "plain" is softmax(X Xᵀ) X, unscaled. "single" is one d_model-wide head with W_Q, W_K, W_V only. "multi" is the
    module.

    Returns:
        The trace, and the layer's matrices by name.
    """
    if variant not in VARIANTS:
        raise ShapeError(f"unknown variant {variant!r}; choose {', '.join(VARIANTS)}")
    if variant == "multi":
        return scratch.trace(text), scratch.projections()
    whole = scratch.trace(text)
    x = whole.layer(0).embeddings
    if x is None:
        raise ShapeError("scratch recorded no embeddings")
    known = _matrices(scratch, variant)
    with torch.no_grad():
        call = attend(x, x, x, scale=1.0) if variant == "plain" else _head(scratch.d_model, known).attention(x)
    query, key, value = (tensor[None] for tensor in (call.query, call.key, call.value))
    attention = attend(query, key, value, scale=call.scale)
    joined = attention.output[0]
    origin = replace(whole.provenance, revision=f"{whole.provenance.revision} variant={variant}")
    layer = Layer(attention, "0", x, joined)
    trace = Trace({scratch.stream: (layer,)}, whole.queries, whole.keys, joined, origin)
    return attach(trace, Rerun(lambda: _compare(x, attention, known))), known


def _matrices(scratch: Scratch, variant: str) -> dict[str, Projection]:
    same = Projection(torch.eye(scratch.d_model))
    learned = {} if variant == "plain" else scratch.projections()
    return {name: learned.get(name, same) if name != "output" else same for name in _NAMES}


def _head(d_model: int, known: dict[str, Projection]) -> AttentionHead:
    head = AttentionHead(d_model, d_model)
    head.load_state_dict({f"{name}.weight": known[name].weight.mT for name in _NAMES[:3]})
    return head.eval()


def _compare(x: Tensor, call: Attention, known: dict[str, Projection]) -> Fidelity:
    started, width = time.perf_counter(), x.shape[-1]
    twin = nn.MultiheadAttention(width, 1, bias=False)
    # Torch's always scales by 1/√d_k; what ours does instead goes into its W_Q.
    factor = call.scale * math.sqrt(width)
    fused = torch.cat([known["query"].weight.mT * factor, known["key"].weight.mT, known["value"].weight.mT])
    twin.load_state_dict({"in_proj_weight": fused, "out_proj.weight": known["output"].weight.mT})
    with torch.no_grad():
        output, weights = twin.eval()(x, x, x, average_attn_weights=False)
    ours = apart(output, 1)
    return Fidelity(
        output_error=float((call.output - ours).abs().max() / ours.abs().max()),
        weight_error=float((call.weights - weights).abs().max() / weights.abs().max()),
        bound=EXACT,
        reference="torch.nn.MultiheadAttention with the same weights",
        seconds=time.perf_counter() - started,
    )
