"""Measure how far each attention weight raised one output number."""

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.circuits.asked import Direction
from attention_viz.errors import ShapeError, TraceError, UnsupportedModel
from attention_viz.protocol.model import Model
from attention_viz.protocol.needing import need_model
from attention_viz.trace.rerun import Along
from attention_viz.trace.trace import Trace

__all__ = ["gradient"]


def gradient(
    model: Model,
    text: str | Trace,
    second_text: str | None = None,
    *,
    layer: int | None = None,
    stream: str | None = None,
    target: str | None = None,
    of: tuple[int, int] | Direction | None = None,
) -> Float[Tensor, "*layer head query key"]:
    """Measure how far each attention weight A raised an output number y: relu(dy/dA ⊙ A).

    The result is 0 if a weight lowered y or y doesn't depend on it. It holds for small changes of one weight, with the
    row's other weights fixed. Biases and paths around the attention aren't counted.

    By default, y depends on the model. Padding never counts.

    - Decoder: the logit of the likeliest next token.
    - Masked language model: the logit of the likeliest token at the first mask; without a mask, the sum of each
      position's largest logit.
    - Encoder–decoder: the sum of the logits of the tokens that it generates.
    - Without an unembedding: the largest number if the output is one row per text, such as a class; else half the
      squared length of the mean output vector.

    The model's parameters get no gradients and keep their flags.

    Source: Chefer, Gur & Wolf 2021, section 3.2, eq. 5, before the mean over heads.

    Args:
        model: from `load` or `wrap`.
        text: a text, or a trace from this model, read with its edits.
        second_text: a second sentence, for encoders that read pairs.
        layer: one layer number; None for all, which must have equally many heads.
        stream: the layers' stream; None if the model has only one.
        target: the text that an encoder–decoder should generate, as in `trace`.
        of: y as (position, token id), that token's logit there; or a `Direction` of the output, such as one class (1
            there, 0 elsewhere).

    Returns:
        (head, query, key) for one layer, else (layer, head, query, key); 0 or more, in y's units, float32.

    Raises:
        UnsupportedModel: the model is an untrained module of our own, lets no gradient through, or has no unembedding
            for a token.
        TraceError: the stream or layer doesn't exist; the trace has no model or another one; the model has changed
            since; or all layers are needed and the trace keeps only some.
        ShapeError: the position or token doesn't exist, the direction has another width, or layers differ in heads.
    """
    trace = _traced(model, text, second_text, target)
    stream = trace.attention_stream(stream)
    if not trace.differentiable:
        raise TraceError(
            "gradients need a trace with its model, but this one comes from a file or another trace; trace the text "
            "again"
        )
    _check_layer(trace, stream, layer)
    asked = Along(of.vector, of.position) if isinstance(of, Direction) else of
    found = trace.relevance(asked).layers[stream]
    return torch.stack(list(found)) if layer is None else found[trace.layer_numbers(stream).index(layer)]


def _check_layer(trace: Trace, stream: str, layer: int | None) -> None:
    """Refuse a missing layer, or all layers if they don't fit one tensor."""
    if layer is not None:
        _ = trace.attention(layer, stream)
        return
    trace.check_every_layer("the gradient of all layers at once", stream)
    heads = {trace.head_count(number, stream) for number in trace.layer_numbers(stream)}
    if len(heads) > 1:
        raise ShapeError(
            f"the layers of the {stream} have {sorted(heads)} heads, which don't fit one tensor; name one layer"
        )


def _traced(model: Model, text: str | Trace, second_text: str | None, target: str | None) -> Trace:
    need_model(model)
    if not model.facts.trained:
        raise UnsupportedModel(
            f"gradients need a trained model, but {model.name} has random weights; load a pretrained model"
        )
    if isinstance(text, str):
        return model.trace(text, second_text, target=target)
    if second_text is not None or target is not None:
        raise TraceError("a trace has its own second sentence and target; leave out second_text and target")
    if text.provenance.model != model.name:
        raise TraceError(f"{model.name} accepts only its own traces; got one of {text.provenance.model}")
    return text
