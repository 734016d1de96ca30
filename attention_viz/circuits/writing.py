"""Find the tokens that a head's output makes likelier or less likely."""

from typing import TYPE_CHECKING, cast

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.circuits.opened import OpenedRun, cut_off, open_behind
from attention_viz.errors import ShapeError, UnsupportedModel
from attention_viz.inputs.labelling import label_ids
from attention_viz.operation.attention import without_autocast
from attention_viz.recording.gradients import ModelRun
from attention_viz.trace.slots import has_target, target_stream
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas

    from attention_viz.models.model import AttentionModel

__all__ = ["writes", "written_logits"]


@without_autocast()
def writes(
    model: "AttentionModel",
    trace: Trace,
    layer: int,
    head: int | None,
    position: int = -1,
    count: int = 10,
    stream: str | None = None,
) -> "pandas.DataFrame":
    """List the tokens that a head's output promotes and suppresses directly.

    This is a direct effect, with norms and patterns held fixed. Each number is the head's addition to a logit minus the
    mean over the vocabulary, because the softmax ignores a common shift. Source: Elhage et al. 2021, "A Mathematical
    Framework for Transformer Circuits", but for a head's output in a text instead of its weights alone.

    Args:
        model: from `load` or `wrap`.
        trace: from this model; an edited trace is decomposed with its edits.
        layer: layer number, counted as the model counts.
        head: from 0; None for a whole layer without a softmax, such as all channels of a convolution.
        position: row of the output; negative numbers count from the end.
        count: number of tokens of each kind.
        stream: the layer's stream; None for the only one, or an encoder–decoder's cross-attention.

    Returns:
        Columns token, id, logit, written (the token as people read it): the most promoted first, then the suppressed,
        the most suppressed last. No rows if the head writes nothing there, as an encoder's head does.

    Raises:
        TraceError: the trace is another model's, comes from a file or from another trace, has no such layer, or the
            model has changed since.
        ShapeError: the head or position doesn't exist, or `count` is below 1.
        UnsupportedModel: the model is one of our own modules, has no unembedding, or can't be decomposed.
    """
    import pandas

    if count < 1:
        raise ShapeError(f"count must be at least 1; got {count}")
    run, opened = open_behind(model, trace)
    if run.anatomy.no_words:
        raise UnsupportedModel(f"a head's words need an unembedding, which {run.name} lacks: {run.anatomy.no_words}")
    if stream is None and has_target(trace.attention_streams):
        stream = target_stream(trace.attention_streams)
    logits = written_logits(run, opened, trace, stream, layer, head, position)
    logits = logits - logits.mean()
    if not logits.any():
        return pandas.DataFrame({"token": [], "id": [], "logit": [], "written": []}).astype(
            {"id": "int64", "logit": "float32"}
        )
    size = min(count, len(logits) // 2)
    best, worst = logits.topk(size), logits.topk(size, largest=False)
    ids = [*best.indices.tolist(), *worst.indices.flip(0).tolist()]
    numbers = torch.cat([best.values, worst.values.flip(0)])
    tokens = label_ids(run.tokenizer, ids)
    return pandas.DataFrame({"token": tokens.labels, "id": ids, "logit": numbers.numpy(), "written": tokens.written})


def written_logits(
    run: ModelRun, opened: OpenedRun, trace: Trace, stream: str | None, layer: int, head: int | None, position: int
) -> Float[Tensor, " token"]:
    """Return a head's direct addition to each logit at a position.

    The row is linear in it: differentiate its gradients under unknown weights by those.
    """
    rows = len(opened.output)
    if not -rows <= position < rows:
        raise ShapeError(f"no position {position}; the output has positions {-rows} to {rows - 1}")
    _, _, leaf = opened.head_leaf(run, trace, layer, head, stream)
    if not opened.output.requires_grad:
        raise cut_off(run.name, "its output", opened.output, opened)
    with opened.asking(), run.runner.door:
        own = torch.zeros_like(leaf.tensor).detach()
        chosen = slice(None) if head is None else head
        own[0, chosen] = leaf.tensor[0, chosen].detach()
        row = opened.output[position]
        weights = torch.zeros_like(row, requires_grad=True)
        (slope,) = cast(
            "tuple[Tensor | None]",
            torch.autograd.grad(row, [leaf.tensor], weights, create_graph=True, retain_graph=True, allow_unused=True),
        )
        if slope is None or not slope.requires_grad:
            return torch.zeros_like(row.detach())
        (found,) = torch.autograd.grad((slope * own).sum(), [weights], retain_graph=True)
    return found.detach().float().cpu()
