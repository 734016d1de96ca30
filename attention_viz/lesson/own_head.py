"""Our own head of any width, and a trained head's values in a plane."""

import time
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch.nn import functional

from attention_viz.edits.edit import Edit, edited
from attention_viz.errors import ShapeError
from attention_viz.lesson.links import trained_words
from attention_viz.lesson.scene import Scene
from attention_viz.operation.attention import Attention, attend
from attention_viz.operation.modules import AttentionHead
from attention_viz.operation.numerics import EXACT
from attention_viz.operation.shapes import shared_heads
from attention_viz.scratch.model import Scratch
from attention_viz.trace.rerun import Rerun
from attention_viz.trace.trace import Fidelity, Layer, Trace
from attention_viz.trace.trace_data import attach

# Few enough that every number finds room on the page.
D_MODEL, D_K = 8, 4
_STREAM = "encoder"
_NUMBERS = 2


def own_head(scene: Scene, d_k: int = D_K, d_v: int = D_K, edits: Sequence[Edit] = ()) -> Trace:
    """Run one head of `Scratch`'s first d_k or d_v columns, without positions or later layers."""
    if max(d_k, d_v) > D_MODEL:
        raise ShapeError(f"d_k {d_k} or d_v {d_v} is too wide; choose at most {D_MODEL}")
    scratch = Scratch(D_MODEL, 1, scene.seed, positions="none")
    whole = scratch.trace(scene.text)
    x = whole.layer(0).embeddings
    assert x is not None  # our own module keeps them
    head = _module(scratch, d_k, d_v)
    with torch.no_grad():
        one = head.attention(x)
        query, key, value = (tensor[None] for tensor in (one.query, one.key, one.value))
        call = edited(edits, (_STREAM, 0), attend(query, key, value))
        output = call.output[0]
    origin = replace(
        whole.provenance,
        revision=f"{whole.provenance.revision} one head d_k={d_k} d_v={d_v}",
        edits=tuple(str(edit) for edit in edits),
    )
    layers = {_STREAM: (Layer(call, "0", x),)}
    return attach(Trace(layers, whole.queries, whole.keys, output, origin), Rerun(lambda: _compare(call)))


def own_place(scene: Scene) -> int:
    """Return the place among our module's words of the word that asks in the trained model."""
    words, asking = trained_words(scene)
    same = [at for at, word in enumerate(scene.words) if word.casefold() == words[asking].casefold()]
    return int(asking) if len(words) == len(scene.words) else (same or [scene.asking])[0]


def _module(scratch: Scratch, d_k: int, d_v: int) -> AttentionHead:
    head, widths = AttentionHead(scratch.d_model, d_k, d_v), {"query": d_k, "key": d_k, "value": d_v}
    known = scratch.projections()
    head.load_state_dict({f"{name}.weight": known[name].weight[:, :width].mT for name, width in widths.items()})
    return head.eval()


def _compare(call: Attention) -> Fidelity:
    """Compare with torch's; identity values give its weights."""
    started = time.perf_counter()
    same = torch.eye(call.shape[-1])[None]
    theirs = [
        functional.scaled_dot_product_attention(call.query, call.key, value, scale=call.scale)
        for value in (call.value, same)
    ]
    ours = (call.weights @ call.value, call.weights)
    output_error, weight_error = (
        float((one - other).abs().max() / other.abs().max()) for one, other in zip(ours, theirs, strict=True)
    )
    return Fidelity(
        output_error=output_error,
        weight_error=weight_error,
        bound=EXACT,
        reference="torch's scaled_dot_product_attention with the same query, key and value",
        seconds=time.perf_counter() - started,
    )


def in_a_plane(trace: Trace, layer: int, head: int) -> tuple[Trace, float]:
    """Project one head's values to their two main directions; return the trace and the variance kept, 0 to 1."""
    call = trace.attention(layer)
    value = shared_heads(call.value, call.query)[head].detach().double().cpu()
    centred = value - value.mean(dim=0)
    _, sizes, directions = torch.linalg.svd(centred, full_matrices=False)
    plane = torch.zeros(len(value), _NUMBERS, dtype=torch.float64)
    seen = directions[:_NUMBERS]
    plane[:, : len(seen)] = centred @ seen.mT
    one = call.head(head)
    flat = replace(one, query=one.query[None], key=one.key[None], value=plane[None].to(one.query))
    variance = sizes.square()
    share = float(variance[:_NUMBERS].sum() / variance.sum()) if float(variance.sum()) else 1.0
    origin = replace(trace.provenance, revision=f"{trace.provenance.revision} layer {layer} head {head} in a plane")
    (stream,) = trace.attention_streams
    layers = {stream: (Layer(flat, "0", None),)}
    return Trace(layers, trace.queries, trace.keys, flat.output[0], origin), share
